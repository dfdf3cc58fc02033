package consolidate

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A sentence is a range of bytes of a message.
type sentence struct {
	start, end int
	line       int  // where its line begins
	bullet     bool // the first of a list's item
}

// wrapped is how long a line must be for the next one to go on with it: what is
// typed has no line breaks but meant ones, what is pasted from an editor has.
const wrapped = 60

// sentences splits text, of which parts may be blanked, into sentences of at
// least one letter, without bullets, marks of emphasis and space around them.
func sentences(text []byte) []sentence {
	var out []sentence
	line := 0
	for start := 0; start < len(text); {
		end, next := sentenceEnd(text, start)
		s := sentence{start: start, end: end, line: line}
		body := text[start:end]
		space := len(body) - len(bytes.TrimLeft(body, " \t\r\n"))
		if n := bulletSize(body[space:]); n > 0 && start == line {
			s.bullet = true
			space += n
		}
		s.start += space
		s.start, s.end = trimRange(text, s.start, s.end)
		if bytes.ContainsFunc(text[s.start:s.end], unicode.IsLetter) || bytes.ContainsFunc(text[s.start:s.end], unicode.IsDigit) {
			out = append(out, s)
		}
		if next > 0 && text[next-1] == '\n' {
			line = next
		}
		start = next
	}
	return out
}

// bold begins and ends words that are emphasised.
const bold = "**"

// trimRange takes space, marks of emphasis and of headings off both ends, but
// for a mark whose other half stays.
func trimRange(text []byte, start, end int) (int, int) {
	const marks = " \t\r\n*_#"
	from, to := start, end
	for start < end && strings.IndexByte(marks, text[start]) >= 0 {
		start++
	}
	for end > start && strings.IndexByte(marks, text[end-1]) >= 0 {
		end--
	}
	if bytes.Count(text[start:end], []byte(bold))%2 == 1 {
		if at := bytes.LastIndex(text[from:start], []byte(bold)); at >= 0 {
			start = from + at
		} else if at := bytes.Index(text[end:to], []byte(bold)); at >= 0 {
			end += at + len(bold)
		}
	}
	return start, end
}

// sentenceEnd returns where the sentence at start ends and where the next begins.
func sentenceEnd(text []byte, start int) (end, next int) {
	lineStart := start
	for at := start; at < len(text); {
		r, size := utf8.DecodeRune(text[at:])
		switch {
		case r == '\n':
			if !goesOn(text[lineStart:at], text[at+1:]) {
				return at, at + 1
			}
			lineStart = at + 1
		case r == '。' || r == '！' || r == '？' || r == '।':
			return at + size, at + size
		case r == '.' || r == '!' || r == '?' || r == '…':
			if listNumber(text[lineStart:at]) {
				break // out of the switch: the item goes on
			}
			close := at + size
			for close < len(text) && strings.IndexByte(`.!?"')]*_`, text[close]) >= 0 {
				close++
			}
			if close == len(text) || isSpace(text[close]) && !goesOnLower(text, at, close) {
				return close, close
			}
		}
		at += size
	}
	return len(text), len(text)
}

// listNumber reports whether the line so far is nothing but the number of a
// list's item.
func listNumber(line []byte) bool {
	line = bytes.TrimLeft(line, " \t\r*_#>(")
	if len(line) == 0 || len(line) > 2 {
		return false
	}
	return !bytes.ContainsFunc(line, func(r rune) bool { return r < '0' || r > '9' })
}

// goesOn reports whether next continues a line that was wrapped.
func goesOn(line, next []byte) bool {
	if utf8.RuneCount(line) < wrapped {
		return false
	}
	first, _ := utf8.DecodeRune(next)
	last, _ := utf8.DecodeLastRune(bytes.TrimRight(line, " \r"))
	return unicode.IsLower(first) && (unicode.IsLetter(last) || last == ',')
}

// goesOnLower reports whether the full stop at dot belongs to an abbreviation
// or a number of a list: a small letter follows, or one letter or number stands
// before it.
func goesOnLower(text []byte, dot, close int) bool {
	if text[dot] != '.' {
		return false
	}
	rest := bytes.TrimLeft(text[close:], " ")
	first, _ := utf8.DecodeRune(rest)
	if unicode.IsLower(first) {
		return !bytes.HasPrefix(rest, []byte("i'")) && !bytes.HasPrefix(rest, []byte("i ")) &&
			(dot < 4 || abbreviated(text[:dot]))
	}
	return false
}

// abbreviated reports whether text ends in a word that is short or has a dot in it.
func abbreviated(text []byte) bool {
	word := text[bytes.LastIndexAny(text, " \n(")+1:]
	switch string(bytes.ToLower(word)) {
	case "e.g", "i.e", "vs", "etc", "approx", "resp", "z.b", "d.h", "bzw", "usw", "ca", "cf", "p.ex", "ej":
		return true
	}
	return len(word) == 1 && word[0] >= '0' && word[0] <= '9'
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }
