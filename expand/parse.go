package expand

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"recalld/llm"
)

const (
	// MaxVariants is the most that one answer has.
	MaxVariants = 6
	// MaxTerms is the most that the variants of one answer have together, and
	// MaxTerm the longest of them in bytes: what a model says must not outweigh
	// what was asked.
	MaxTerms = 12
	MaxTerm  = 64
	// maxTermsEach is the most of one variant. More is a sentence, and must not
	// take the places of the others.
	maxTermsEach = 4
)

// Parse reads a model's answer to query: an object with a list "wordings", or
// the list alone. It returns at most [MaxVariants] variants of at most four
// terms each, separated by single spaces, [MaxTerms] in all.
//
// Of every wording it keeps the terms that are words (there is a letter or
// digit in them), not longer than [MaxTerm], valid UTF-8, in neither the query
// nor an earlier variant (by Unicode's NFKC and lower case), without control
// and format characters and the punctuation around them. The error wraps
// [llm.ErrReply] if the answer is of another shape, and quotes nothing of it.
func Parse(answer, query string) ([]string, error) {
	wordings, err := read(answer)
	if err != nil {
		return nil, err
	}
	seen := wordsOf(query)
	var variants []string
	left := MaxTerms
	for _, wording := range wordings {
		if len(variants) == MaxVariants || left == 0 {
			break
		}
		terms := terms(wording, seen, min(left, maxTermsEach))
		if len(terms) > 0 {
			variants = append(variants, strings.Join(terms, " "))
			left -= len(terms)
		}
	}
	return variants, nil
}

func read(answer string) ([]string, error) {
	answer = strings.TrimSpace(answer)
	var list []string
	if strings.HasPrefix(answer, "[") {
		if err := json.Unmarshal([]byte(answer), &list); err != nil {
			return nil, fmt.Errorf("%w: it is not a list of strings", llm.ErrReply)
		}
		return list, nil
	}
	var object struct {
		Wordings *[]string `json:"wordings"`
	}
	if err := json.Unmarshal([]byte(answer), &object); err != nil || object.Wordings == nil {
		return nil, fmt.Errorf("%w: it is not an object with a list of strings", llm.ErrReply)
	}
	return *object.Wordings, nil
}

// terms returns at most n terms of a wording that are not in seen, and adds them
// to it.
func terms(wording string, seen map[string]bool, n int) []string {
	var kept []string
	for term := range strings.FieldsSeq(strings.Map(printable, wording)) {
		if len(kept) == n {
			break
		}
		term = strings.TrimFunc(term, around)
		if len(term) > MaxTerm || strings.ContainsRune(term, utf8.RuneError) || !hasWord(term) || known(term, seen) {
			continue
		}
		seen[fold(term)] = true
		kept = append(kept, term)
	}
	return kept
}

// printable maps spaces of all kinds to one, and removes control and format
// characters: they are invisible, change how text is shown, or end lines.
func printable(r rune) rune {
	switch {
	case unicode.IsSpace(r):
		return ' '
	case unicode.IsControl(r), unicode.Is(unicode.Cf, r):
		return -1
	}
	return r
}

// around reports whether a rune at the end of a term belongs to the sentence,
// not to the term. (A plus or hash does belong: C++, C#.)
func around(r rune) bool {
	return strings.ContainsRune(".,;:!?…", r) || unicode.In(r, unicode.Pi, unicode.Pf, unicode.Ps, unicode.Pe) ||
		strings.ContainsRune("\"'`*_", r)
}

// known reports whether a term says nothing new: it, or each of the words that
// it is made of, is in seen.
func known(term string, seen map[string]bool) bool {
	folded := fold(term)
	if seen[folded] {
		return true
	}
	for word := range strings.FieldsFuncSeq(folded, between) {
		if !seen[word] {
			return false
		}
	}
	return true
}

// wordsOf returns the words of a query, and what stands between its spaces.
func wordsOf(query string) map[string]bool {
	words := make(map[string]bool)
	folded := fold(strings.Map(printable, query))
	for term := range strings.FieldsSeq(folded) {
		words[strings.TrimFunc(term, around)] = true
	}
	for word := range strings.FieldsFuncSeq(folded, between) {
		words[word] = true
	}
	return words
}

// fold returns the form in which words are compared.
func fold(text string) string { return strings.ToLower(norm.NFKC.String(text)) }

// between reports whether a rune parts words.
func between(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r)
}

func hasWord(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) })
}
