package embed

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// The versions of [prepare] and [cut], part of an identity. Whoever changes what
// they make of a text changes them.
const (
	plainVersion   = "plain-v1"
	uncasedVersion = "uncased-v1"
)

// prepare cleans a text for a model: bytes that are no UTF-8 vanish, control
// characters and runs of white space become one space, as some servers end a
// text at a NUL and none of these has a meaning.
//
// For uncased models it does besides what their own tokenisers do and the one
// of Ollama leaves out. Measured with all-minilm there, against the reference:
// accents kept gave a cosine of .13, typographic marks .70, symbols that touch
// a word .94; with this, .99999. So accents go, these symbols stand alone, and
// typographic marks take their ASCII form. Case is left to the server.
func prepare(text string, uncased bool) string {
	var b strings.Builder
	b.Grow(len(text))
	space := false // owed before the next character
	put := func(s string) {
		if space && b.Len() > 0 {
			b.WriteByte(' ')
		}
		space = false
		b.WriteString(s)
	}
	for text != "" {
		r, size := utf8.DecodeRuneInString(text)
		c := text[:size]
		text = text[size:]
		switch {
		case r == utf8.RuneError && size == 1:
		case unicode.IsSpace(r) || unicode.IsControl(r):
			space = true
		case !uncased:
			put(c)
		case r < utf8.RuneSelf:
			if !strings.ContainsRune("$+<=>^`|~", r) {
				put(c)
				continue
			}
			space = true
			put(c)
			space = true
		case unicode.In(r, unicode.Mn, unicode.Cf):
		default:
			if s := asciiOf(r); s != "" {
				put(s)
				continue
			}
			put(withoutAccents(c))
		}
	}
	return b.String()
}

// withoutAccents decomposes one character and drops its marks. What is left
// stays decomposed, as the vocabularies of these models are.
func withoutAccents(c string) string {
	if norm.NFD.IsNormalString(c) {
		return c
	}
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, norm.NFD.String(c))
}

// asciiOf gives the ASCII form of a typographic mark, or "".
func asciiOf(r rune) string {
	switch r {
	case '‘', '’', '‚', '‛', '′', '‹', '›':
		return "'"
	case '“', '”', '„', '‟', '″', '«', '»':
		return `"`
	case '‐', '‑', '‒', '–', '—', '―', '−':
		return "-"
	case '…':
		return "..."
	}
	return ""
}

// tokenQuarters estimates what a character costs a model, in quarters of a
// token: prose has about four bytes a token, numbers less than two,
// punctuation one. Uncased BERT knows most other alphabets by
// the letter, larger vocabularies by the syllable. It need not be right: a
// server that refuses a text is given half of it.
func tokenQuarters(r rune, uncased bool) int {
	switch {
	case 'a' <= r && r <= 'z', r == ' ':
		return 1
	case '0' <= r && r <= '9', 'A' <= r && r <= 'Z':
		return 3
	case r < utf8.RuneSelf:
		return 4
	case r < 0x800 && !uncased:
		return 2
	case r < 0x10000:
		return 4
	}
	return 8
}

// An end is the part of a text that is kept when it must be cut.
type end bool

const (
	// head: what a passage is about stands at its beginning.
	head end = false
	// tail: the question stands at the end of a long query.
	tail end = true
)

// cut keeps as much of one end of text as is estimated to make that many
// tokens, in whole characters.
func cut(text string, tokens int, keep end, uncased bool) string {
	budget := 4 * tokens
	if len(text) <= budget/8 {
		return text // at 8 quarters a byte there is nothing dearer
	}
	for rest := text; rest != ""; {
		r, size := utf8.DecodeRuneInString(rest)
		if keep == tail {
			r, size = utf8.DecodeLastRuneInString(rest)
		}
		if budget -= tokenQuarters(r, uncased); budget < 0 {
			if keep == tail {
				return text[len(rest):]
			}
			return text[:len(text)-len(rest)]
		}
		if keep == tail {
			rest = rest[:len(rest)-size]
		} else {
			rest = rest[size:]
		}
	}
	return text
}

// cutBytes keeps up to n bytes of one end of text, whole characters.
func cutBytes(text string, n int, keep end) string {
	if n >= len(text) {
		return text
	}
	if keep == tail {
		from := len(text) - n
		for from < len(text) && !utf8.RuneStart(text[from]) {
			from++
		}
		return text[from:]
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
