package retrieve

import (
	_ "embed"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/english"
	"golang.org/x/text/unicode/norm"
)

// unfolded gives the compatibility-normalised lower case of a word, accents
// kept, apostrophes dropped.
func unfolded(word string) string {
	if isPlain(word) {
		return strings.ToLower(word)
	}
	s := strings.ToLower(norm.NFKC.String(word))
	return strings.Map(func(r rune) rune {
		if isApostrophe(r) {
			return -1
		}
		return r
	}, s)
}

// isPlain reports whether a word needs no normalisation beyond its case.
func isPlain(word string) bool {
	for i := range len(word) {
		if word[i] >= utf8.RuneSelf || word[i] == '\'' {
			return false
		}
	}
	return true
}

// fold drops the accents of Latin and Greek letters and writes ß as ss and ё as
// е, so that words are found however they were typed. Marks of other scripts
// are letters there and stay.
func fold(lower string) string {
	if isPlain(lower) {
		return lower
	}
	var b strings.Builder
	var base rune
	for _, r := range norm.NFKD.String(lower) {
		switch {
		case unicode.Is(unicode.Mn, r) && (foldsMarks(base) || r == '\u0307'):
			continue
		case base == 'е' && r == '\u0308':
			continue
		case r == 'ß':
			b.WriteString("ss")
		case r == 'ø':
			b.WriteByte('o')
		case r == 'ł':
			b.WriteByte('l')
		case r == 'ı':
			b.WriteByte('i')
		case r == 'æ':
			b.WriteString("ae")
		case r == 'œ':
			b.WriteString("oe")
		case r == 'đ':
			b.WriteByte('d')
		default:
			b.WriteRune(r)
		}
		if !unicode.Is(unicode.Mn, r) {
			base = r
		}
	}
	return norm.NFC.String(b.String())
}

func foldsMarks(base rune) bool {
	return base < utf8.RuneSelf && base > 0 || unicode.In(base, unicode.Latin, unicode.Greek)
}

// stem reduces an English word to its Porter2 stem. A word with anything but
// the letters a to z, or of fewer than three, is its own stem.
func stem(word string) string {
	if len(word) < 3 {
		return word
	}
	for i := range len(word) {
		if word[i] < 'a' || word[i] > 'z' {
			return word
		}
	}
	if len(word) > maxTermBytes {
		return word
	}
	env := snowballstem.NewEnv(word)
	english.Stem(env)
	return env.Current()
}

//go:embed data/stopwords-en.txt
var stopWordsText string

// stopWords say little by themselves. The list is data: one word a line,
// folded and without apostrophes.
var stopWords = readSet(stopWordsText)

//go:embed data/stop-characters.txt
var stopCharactersText string

// stopCharacters make a pair of an unspaced script a stop word.
var stopCharacters = strings.Join(readLines(stopCharactersText), "")

// readSet reads one entry a line; lines that begin with # are comments.
func readSet(text string) map[string]bool { return set(readLines(text)) }

func isStopWord(lower string) bool { return stopWords[lower] }
