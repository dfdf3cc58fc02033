package retrieve

import (
	_ "embed"
	"strings"
	"unicode"
)

// First-person words and time words are data, a file per language. Where a
// language has no file, the parts of the score that rest on them are 0.
var (
	//go:embed data/first-person.txt
	firstPersonText string
	//go:embed data/time-words.txt
	timeWordsText string

	firstPerson = readSet(firstPersonText)
	timeWords   = readSet(timeWordsText)
)

// wordFlags reports whether a text holds a first-person word and a time word.
// A year, four digits by themselves, is a time word.
func wordFlags(text string) (first, timed bool) {
	for text != "" && !(first && timed) {
		start := strings.IndexFunc(text, isCueRune)
		if start < 0 {
			return first, timed
		}
		text = text[start:]
		end := strings.IndexFunc(text, func(r rune) bool { return !isCueRune(r) })
		if end < 0 {
			end = len(text)
		}
		word := strings.Trim(text[:end], "'’")
		text = text[end:]
		if len(word) > 24 {
			continue
		}
		timed = timed || len(word) == 4 && isDigits(word) || timeWords[strings.ToLower(word)]
		first = first || isFirstPerson(word)
	}
	return first, timed
}

func isCueRune(r rune) bool {
	return r == '\'' || r == '’' || unicode.IsLetter(r) || unicode.IsDigit(r)
}

// isFirstPerson looks a word up. A lone "i" is first person only as a capital:
// in lists and code it is a counter.
func isFirstPerson(word string) bool {
	if word == "i" {
		return false
	}
	return firstPerson[strings.ReplaceAll(strings.ToLower(word), "’", "'")]
}
