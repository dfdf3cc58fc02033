package embed

import (
	"unicode"
	"unicode/utf8"
)

// mostlyLatin reports whether at least half of text's letters are Latin; a text
// without letters is. Bytes that are no UTF-8 are no letters.
func mostlyLatin(text string) bool {
	latin, other := 0, 0
	for _, r := range text {
		switch {
		case isLatin(r):
			latin++
		case r >= utf8.RuneSelf && unicode.IsLetter(r):
			other++
		}
	}
	return latin >= other
}

// isLatin reports whether r is a letter of the Latin script.
func isLatin(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
	}
	return unicode.Is(unicode.Latin, r) && unicode.IsLetter(r)
}
