package consolidate

import (
	"strings"

	porterstemmer "github.com/blevesearch/go-porterstemmer"
)

// maxProposals is how many earlier entries an entry proposes that it might replace.
const maxProposals = 5

// fact returns what a text says in a form in which its repetitions are equal:
// its words in order, without marks and words that change nothing. Order and
// negation stay, so "use A, not B" is no repetition of "use B, not A".
func fact(text string) string {
	return strings.Join(content(text, false), " ")
}

// content returns the words of a text without marks and fillers; short leaves
// out the commonest words of its language too.
func content(text string, short bool) []string {
	l := languageOf(text)
	var out []string
	words := strings.Fields(normalise(text))
	for i, word := range words {
		// "No, use A" says what "use A" says.
		if i == 0 && len(words) > 1 && words[1] == "," && l.is("negation", word) {
			continue
		}
		if strings.ContainsAny(word[:1], ",;:?!.()-") && len(word) == 1 || word == quoted || strings.Trim(word, "–—…，、；：？！。।⟵") == "" {
			continue
		}
		if l.is("filler", word) || short && l.words[word] && !l.is("negation", word) {
			continue
		}
		out = append(out, word)
	}
	return out
}

// stem takes endings off, as English has them, so that "testing" names what
// "tests" does. Words with other letters stay.
func stem(word string) string {
	for i := range len(word) {
		if word[i] < 'a' || word[i] > 'z' {
			return word
		}
	}
	return string(porterstemmer.StemWithoutLowerCasing([]rune(word)))
}

func wordSet(words []string) map[string]bool {
	set := make(map[string]bool, len(words))
	for _, w := range words {
		set[stem(w)] = true
	}
	return set
}
