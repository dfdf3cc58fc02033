package main

import (
	"strings"
	"unicode"

	porterstemmer "github.com/blevesearch/go-porterstemmer"
	"github.com/rivo/uniseg"
)

// luceneStopWords are the 33 words that Lucene's English analysis drops.
var luceneStopWords = wordSet(`a an and are as at be but by for if in into is it
	no not of on or such that the their then there these they this to was will with`)

func wordSet(words string) map[string]bool {
	set := make(map[string]bool)
	for _, word := range strings.Fields(words) {
		set[word] = true
	}
	return set
}

// english cuts a text into terms the way Lucene's English analysis does, for
// figures that can be compared with published ones: words by Unicode's rules
// (UAX #29), possessive endings removed, lower case, stop words dropped,
// Porter's stems. It is not how recalld analyses text.
func english(text string) []string {
	var terms []string
	state := -1
	var word string
	for len(text) > 0 {
		word, text, state = uniseg.FirstWordInString(text, state)
		if !strings.ContainsFunc(word, isWordRune) {
			continue
		}
		term := strings.ToLower(withoutPossessive(word))
		if !luceneStopWords[term] {
			terms = append(terms, porterstemmer.StemString(term))
		}
	}
	return terms
}

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

// withoutPossessive removes 's with any of the three apostrophes.
func withoutPossessive(word string) string {
	for _, apostrophe := range []string{"'", "\u2019", "\uff07"} {
		for _, s := range []string{"s", "S"} {
			if stem, ok := strings.CutSuffix(word, apostrophe+s); ok {
				return stem
			}
		}
	}
	return word
}
