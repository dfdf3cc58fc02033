package consolidate

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// How much of a window a model is shown. A prompt that is longer than a model's
// context is cut by its server without a word, so it is cut here.
const (
	personRunes = 6000  // of one message of the person, half from either end
	agentRunes  = 2500  // of one reply; proposals stand at its end
	shownRunes  = 24000 // of all together
)

// promptHead begins the part of a prompt that is the chat; a boundary follows.
const promptHead = "The part of the chat follows. A line that begins with the mark below begins a message: the mark, the message's number, and who said it. What stands after a message of the agent marked \"before\" is new.\n\nMark: "

// A shown is what a model gets to see of a window, by number from 1: the pieces
// of its context, then its own. Nothing else can be quoted.
type shown struct {
	pieces []shownPiece
}

// A shownPiece is a piece with its text as it is shown: pasted text, code and
// what is too long are line breaks, so that every offset stays what it was.
type shownPiece struct {
	Piece
	context bool
	text    []byte
}

// show returns what a model sees of w: all that it may, or only one part in so
// many.
func show(w Window, part int) shown {
	var s shown
	left := shownRunes / part
	add := func(pieces []Piece, context bool) {
		for _, p := range pieces {
			one := shownPiece{Piece: p, context: context}
			limit, head := personRunes, personRunes/2
			if p.Message.Kind == User {
				one.text = prose(p.Text())
			} else {
				one.text = reported(p.Text())
				limit, head = agentRunes, 0
			}
			limit = min(limit/part, left)
			left -= keepEnds(one.text, min(head/part, limit), limit)
			s.pieces = append(s.pieces, one)
		}
	}
	add(w.Context, true)
	add(w.Pieces, false)
	return s
}

// keepEnds blanks what lies between the first head and the last limit-head code
// points of text that is longer than limit, and returns how many are left that
// are not blank.
func keepEnds(text []byte, head, limit int) int {
	n := 0
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRune(text[at:])
		if !unicode.IsSpace(r) {
			n++
		}
		at += size
	}
	if n <= limit {
		return n
	}
	seen := 0
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRune(text[at:])
		if !unicode.IsSpace(r) {
			if seen >= head && seen < n-(limit-head) {
				blank(text[at : at+size])
			}
			seen++
		}
		at += size
	}
	return limit
}

// personSpeaks reports whether there is anything that the person says by themselves.
func (s shown) personSpeaks() bool {
	for _, p := range s.pieces {
		if !p.context && p.Message.Kind == User && len(bytes.TrimSpace(p.text)) > 0 {
			return true
		}
	}
	return false
}

// prompt renders the messages. What is said in them cannot end a message or
// begin another: the mark at which one begins follows from all that is said, and
// is in none of it.
func (s shown) prompt() string {
	mark := s.mark()
	var b strings.Builder
	b.WriteString(promptHead + mark + "\n")
	for i, p := range s.pieces {
		who := "agent"
		if p.Message.Kind == User {
			who = "person"
		}
		if p.context {
			who += ", before"
		}
		fmt.Fprintf(&b, "\n%s %d %s\n", mark, i+1, who)
		writeShown(&b, p.text)
	}
	fmt.Fprintf(&b, "\n%s end\n", mark)
	return b.String()
}

// writeShown writes text with its runs of empty lines as one.
func writeShown(b *strings.Builder, text []byte) {
	empty := true
	for line := range bytes.Lines(text) {
		line = bytes.TrimRightFunc(line, unicode.IsSpace)
		if len(line) == 0 {
			if !empty {
				b.WriteByte('\n')
			}
			empty = true
			continue
		}
		b.Write(bytes.ToValidUTF8(line, []byte("\uFFFD")))
		b.WriteByte('\n')
		empty = false
	}
}

// markDigits of hex are the mark.
const markDigits = 16

func (s shown) mark() string {
	h := sha256.New()
	for _, p := range s.pieces {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(p.text))))
		h.Write(p.text)
	}
	for {
		sum := h.Sum(nil)
		mark := hex.EncodeToString(sum)[:markDigits]
		if !s.holds(mark) {
			return mark
		}
		h.Write(sum)
	}
}

func (s shown) holds(mark string) bool {
	for _, p := range s.pieces {
		if bytes.Contains(p.text, []byte(mark)) {
			return true
		}
	}
	return false
}
