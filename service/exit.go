package service

import (
	"strings"
	"unicode/utf8"
)

// Every text that leaves recalld passes through leave: there is one mask and
// one way to make text valid, and no handler has another.

// replacement stands for a run of bytes that are not UTF-8.
const replacement = "\uFFFD"

// A leaving is the text of one message on its way out. Its bytes are masked and
// in the same places as those that were stored, so ranges fit both; a text is
// masked whole, before anything is cut from it, so that no secret slips through
// in two halves.
type leaving struct {
	bytes  []byte
	masked bool
}

// leave prepares a stored text to leave. The mask is length-preserving by
// contract; for now it lets everything through.
func leave(stored []byte) leaving {
	return leaving{bytes: stored}
}

// all is the whole text as it is shown. exact says whether it is byte for byte
// what was stored.
func (l leaving) all() (text string, exact bool) {
	text = strings.ToValidUTF8(string(l.bytes), replacement)
	return text, !l.masked && utf8.Valid(l.bytes)
}

// cut is the text from start on, up to end, as it is shown. It takes no more
// than limit bytes, replacements included, and says where in the stored bytes
// it had to end for that: never inside a character.
func (l leaving) cut(start, end, limit int) (text string, to int, exact bool) {
	part := l.bytes[start:end]
	exact = !l.masked
	var b strings.Builder
	broken := false // whether the byte before was replaced
	for i := 0; i < len(part); {
		r, size := utf8.DecodeRune(part[i:])
		invalid := r == utf8.RuneError && size <= 1
		grows := size
		switch {
		case invalid && broken:
			grows = 0
		case invalid:
			grows = len(replacement)
		}
		if b.Len()+grows > limit {
			break
		}
		switch {
		case !invalid:
			b.Write(part[i : i+size])
		case !broken:
			b.WriteString(replacement)
		}
		broken = invalid
		exact = exact && !invalid
		i += size
		to = i
	}
	return b.String(), start + to, exact
}

// name is how ids, speakers and titles leave: they are valid UTF-8 when they
// come in, and are checked again because the wire refuses anything else.
func name(s string) string { return strings.ToValidUTF8(s, replacement) }
