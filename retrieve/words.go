package retrieve

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A class says how a run of characters becomes words.
type class uint8

const (
	classOther class = iota // separates
	classWord               // letters and digits of a spaced script
	classPair               // scripts without spaces, and Hangul: overlapping pairs
	classSign               // pictographs: each a word
)

// A word is a stretch of a text that becomes one base token.
type word struct {
	text       string
	start, end int
	class      class
	// joined: exactly one joining mark stands between this word and the last.
	joined bool
	// marked is the word with a mark that belongs to it (c++, c#, .net).
	marked string
}

// pairScripts are written without spaces between words, or (Hangul) glue
// particles to them.
var pairScripts = []*unicode.RangeTable{
	unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao,
	unicode.Khmer, unicode.Myanmar, unicode.Hangul,
}

// classify gives the class of a character. The prolonged sound mark belongs to
// kana although Unicode calls it common.
func classify(r rune) class {
	switch {
	case r < utf8.RuneSelf:
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' {
			return classWord
		}
		return classOther
	case r == utf8.RuneError:
		return classOther
	case r == 'ー' || r == 'ｰ':
		return classPair
	case r >= 0x0e00 && unicode.In(r, pairScripts...):
		return classPair
	case unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r) && r != 0xfe0f && r != 0xfe0e && r != 0x20e3:
		return classWord
	case unicode.Is(unicode.So, r):
		return classSign
	}
	return classOther
}

// joiners stand inside identifiers, paths, versions, dates and numbers.
const joiners = "-_.,:/\\@#'’+"

// forWords calls f with each run of words of the text that have no space
// between them. The slice is reused.
func forWords(text string, f func(run []word)) {
	var run []word
	flush := func() {
		if len(run) > 0 {
			f(run)
			run = run[:0]
		}
	}
	gap := 0 // bytes of marks since the last word; -1 after white space
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		c := classify(r)
		if c == classOther {
			if gap >= 0 && !unicode.IsSpace(r) && strings.ContainsRune(joiners, r) {
				gap++
			} else if unicode.IsSpace(r) || r == utf8.RuneError {
				flush()
				gap = -1
			} else {
				gap += 2
			}
			i += size
			continue
		}
		joined := gap == 1 && len(run) > 0
		end := runEnd(text, i, c)
		switch c {
		case classWord:
			run = append(run, word{text: text[i:end], start: i, end: end, class: c, joined: joined})
			end = possessive(text, end)
			run[len(run)-1].marked = markedForm(text, run[len(run)-1])
		case classPair:
			run = appendPairs(run, text, i, end)
		case classSign:
			run = append(run, word{text: text[i:end], start: i, end: end, class: c})
		}
		i, gap = end, 0
	}
	flush()
}

// runEnd finds the end of the run of one class that begins at i. A sign is a
// run of its own; an apostrophe between letters belongs to the word.
func runEnd(text string, i int, c class) int {
	_, size := utf8.DecodeRuneInString(text[i:])
	end := i + size
	if c == classSign {
		return end
	}
	for end < len(text) {
		r, size := utf8.DecodeRuneInString(text[end:])
		if classify(r) != c {
			if c == classWord && isApostrophe(r) && letterFollows(text, end+size) && !isPossessive(text, end, size) {
				end += size
				continue
			}
			break
		}
		end += size
	}
	return end
}

func isApostrophe(r rune) bool { return r == '\'' || r == '’' || r == 'ʼ' || r == '＇' }

func letterFollows(text string, i int) bool {
	r, _ := utf8.DecodeRuneInString(text[i:])
	return i < len(text) && r != utf8.RuneError && unicode.IsLetter(r) && classify(r) == classWord
}

// isPossessive reports whether "'s" stands at i and ends the word.
func isPossessive(text string, i, size int) bool {
	j := i + size
	if j >= len(text) || text[j] != 's' && text[j] != 'S' {
		return false
	}
	r, _ := utf8.DecodeRuneInString(text[j+1:])
	return j+1 == len(text) || classify(r) != classWord
}

// possessive skips an "'s" at i.
func possessive(text string, i int) int {
	r, size := utf8.DecodeRuneInString(text[i:])
	if i < len(text) && isApostrophe(r) && isPossessive(text, i, size) {
		return i + size + 1
	}
	return i
}

// markedForm gives the form of a short name that keeps its marks: c++, c#, .net.
func markedForm(text string, w word) string {
	lower := strings.ToLower(w.text)
	rest := text[w.end:]
	switch {
	case len(w.text) <= 2 && strings.HasPrefix(rest, "++"):
		return lower + "++"
	case len(w.text) <= 2 && strings.HasPrefix(rest, "#"):
		return lower + "#"
	case lower == "net" && w.start > 0 && text[w.start-1] == '.' && (w.start == 1 || !isWordByte(text[w.start-2])):
		return ".net"
	}
	return ""
}

func isWordByte(b byte) bool { return classify(rune(b)) == classWord }

// appendPairs appends the overlapping pairs of characters of text[start:end],
// or the one character there is. Combining marks stay with their letter.
func appendPairs(run []word, text string, start, end int) []word {
	var bounds []int
	for i := start; i < end; {
		r, size := utf8.DecodeRuneInString(text[i:])
		if len(bounds) == 0 || !unicode.Is(unicode.Mn, r) {
			bounds = append(bounds, i)
		}
		i += size
	}
	bounds = append(bounds, end)
	if len(bounds) == 2 {
		return append(run, word{text: text[start:end], start: start, end: end, class: classPair})
	}
	for k := 0; k+2 < len(bounds); k++ {
		run = append(run, word{text: text[bounds[k]:bounds[k+2]], start: bounds[k], end: bounds[k+2], class: classPair})
	}
	return run
}

// splitName cuts a name where lower case turns to upper, before the last
// capital of an abbreviation, and between letters and digits.
func splitName(name string) []string {
	var pieces []string
	start := 0
	var prev, before rune
	prevAt := 0
	for i, r := range name {
		if i > start {
			switch {
			case unicode.IsDigit(prev) != unicode.IsDigit(r) && !unicode.IsMark(r),
				unicode.IsLower(prev) && unicode.IsUpper(r):
				pieces = append(pieces, name[start:i])
				start = i
			case unicode.IsUpper(before) && unicode.IsUpper(prev) && unicode.IsLower(r) && prevAt > start:
				pieces = append(pieces, name[start:prevAt])
				start = prevAt
			}
		}
		before, prev, prevAt = prev, r, i
	}
	return append(pieces, name[start:])
}
