package retrieve

import (
	_ "embed"
	"strings"
	"unicode"
)

//go:embed data/chatter.txt
var chatterText string

// chatterWords carry no subject, in any of the languages there is a list for.
var chatterWords = set(strings.Fields(strings.Join(readLines(chatterText), " ")))

// maxChatterWords is the longest message that may be chatter.
const maxChatterWords = 12

// isChatter reports whether a message is made of nothing but words without a
// subject: "ok", "thanks, go ahead", "да, давай". A message without words (a
// thumb up) is chatter as well.
func isChatter(text string) bool {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !isCueRune(r) && r != '-' && !unicode.IsMark(r)
	})
	if len(words) > maxChatterWords {
		return false
	}
	for _, word := range words {
		word = strings.ReplaceAll(strings.Trim(word, "'’-"), "’", "'")
		if word != "" && !chatterWords[word] && !allChatter(word) {
			return false
		}
	}
	return true
}

// allChatter reports whether a hyphenated or numbered word ("go-ahead", "1")
// is made of chatter: numbers by themselves choose among things just said.
func allChatter(word string) bool {
	if isDigits(word) {
		return len(word) <= 2
	}
	parts := strings.Split(word, "-")
	if len(parts) < 2 {
		return false
	}
	for _, part := range parts {
		if !chatterWords[part] {
			return false
		}
	}
	return true
}
