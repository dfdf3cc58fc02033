package embed

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxWordRunes is the longest word that is looked up, in characters after
// folding; the model's own tokeniser drops longer ones too. It also bounds the
// work on one word, which grows faster than its length.
const maxWordRunes = 100

// appendTokens appends the tokens of text. Pieces of text between white space
// do not influence each other, so each is folded and cut on its own.
func (v *vocabulary) appendTokens(dst []int32, text string) []int32 {
	s := splitter{vocabulary: v, tokens: dst}
	for text != "" {
		var chunk string
		var ascii bool
		chunk, text, ascii = cutSpace(text)
		if ascii {
			s.ascii(chunk)
		} else {
			s.unicode(chunk)
		}
	}
	return s.tokens
}

// cutSpace cuts text at its first white space, which is in neither part, and
// reports whether the part before is ASCII.
func cutSpace(text string) (before, after string, ascii bool) {
	ascii = true
	for i := 0; i < len(text); {
		r, size := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(text[i:])
		}
		if isSpace(r) {
			return text[:i], text[i+size:], ascii
		}
		ascii = ascii && r < utf8.RuneSelf
		i += size
	}
	return text, "", ascii
}

// A splitter collects the characters of a word and hands it to the vocabulary
// when it ends.
type splitter struct {
	vocabulary *vocabulary
	tokens     []int32

	word  [maxWordRunes * utf8.UTFMax]byte
	bytes int // used of word
	runes int // of the word; above maxWordRunes they are counted only

	clean, decomposed []byte // reused from chunk to chunk
}

// ascii takes a chunk without white space that needs no folding but of case.
func (s *splitter) ascii(chunk string) {
	for i := range len(chunk) {
		switch c := chunk[i]; {
		case 'a' <= c && c <= 'z' || '0' <= c && c <= '9':
			s.add(rune(c))
		case 'A' <= c && c <= 'Z':
			s.add(rune(c) + 'a' - 'A')
		case c > ' ' && c < 0x7f:
			s.alone(rune(c))
		}
		// What is left is a control character, which vanishes.
	}
	s.end()
}

// unicode takes any chunk without white space.
func (s *splitter) unicode(chunk string) {
	s.clean = s.clean[:0]
	for _, r := range chunk {
		switch {
		case isDropped(r):
		case isIdeograph(r):
			s.clean = append(s.clean, ' ')
			s.clean = utf8.AppendRune(s.clean, r)
			s.clean = append(s.clean, ' ')
		default:
			s.clean = utf8.AppendRune(s.clean, r)
		}
	}
	s.decomposed = norm.NFD.Append(s.decomposed[:0], s.clean...)
	for rest := s.decomposed; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		rest = rest[size:]
		switch {
		case r == ' ':
			s.end()
		case unicode.Is(unicode.Mn, r): // an accent, now apart from its letter
		case isPunctuation(r):
			s.alone(r)
		default:
			// Each character for itself: a final capital sigma becomes
			// the plain small one, as in the vocabulary.
			s.add(unicode.ToLower(r))
		}
	}
	s.end()
}

// add adds a character to the word.
func (s *splitter) add(r rune) {
	if s.runes++; s.runes > maxWordRunes {
		return
	}
	if r < utf8.RuneSelf {
		s.word[s.bytes] = byte(r)
		s.bytes++
		return
	}
	s.bytes += utf8.EncodeRune(s.word[s.bytes:], r)
}

// alone ends the word before r and makes r a word.
func (s *splitter) alone(r rune) {
	s.end()
	s.add(r)
	s.end()
}

// end ends the word, if there is one.
func (s *splitter) end() {
	if s.runes > 0 && s.runes <= maxWordRunes {
		s.tokens = s.vocabulary.appendWord(s.tokens, s.word[:s.bytes])
	}
	s.bytes, s.runes = 0, 0
}

// isSpace counts the ASCII separators 0x1c to 0x1f as white space, which
// [unicode.IsSpace] does not.
func isSpace(r rune) bool {
	if r < utf8.RuneSelf {
		return r == ' ' || '\t' <= r && r <= '\r' || 0x1c <= r && r <= 0x1f
	}
	return unicode.IsSpace(r)
}

// isDropped reports whether r vanishes from a text: controls, format
// characters, private use, surrogates, and the replacement character, which is
// also what an invalid byte is read as.
func isDropped(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' || r == 0x7f
	}
	return r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs)
}

// isPunctuation counts every ASCII character that is no letter, digit, space
// or control, symbols like $ and + included; beyond ASCII, Unicode's
// punctuation.
func isPunctuation(r rune) bool {
	if r < utf8.RuneSelf {
		return '!' <= r && r <= '/' || ':' <= r && r <= '@' || '[' <= r && r <= '`' || '{' <= r && r <= '~'
	}
	return unicode.IsPunct(r)
}

// isIdeograph holds the ranges in which the BERT tokeniser makes every
// character a word. Kana, Hangul and Thai are not among them.
func isIdeograph(r rune) bool {
	return r >= 0x3400 && (r <= 0x4DBF ||
		0x4E00 <= r && r <= 0x9FFF ||
		0xF900 <= r && r <= 0xFAFF ||
		0x20000 <= r && r <= 0x2A6DF ||
		0x2A700 <= r && r <= 0x2B73F ||
		0x2B740 <= r && r <= 0x2B81F ||
		0x2B920 <= r && r <= 0x2CEAF ||
		0x2F800 <= r && r <= 0x2FA1F)
}
