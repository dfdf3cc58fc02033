package embed

import (
	"strings"
	"unicode/utf8"
)

// inner marks a piece of the vocabulary that continues a word.
const inner = "##"

// A vocabulary finds the token of a piece. Pieces that begin a word and pieces
// that continue one are kept apart, so that a lookup needs no new string.
type vocabulary struct {
	begin, within pieceMap
}

// A pieceMap gives the token of each piece; none is longer than maxBytes.
type pieceMap struct {
	tokens   map[string]int32
	maxBytes int
}

// newVocabulary makes piece i the token i. The pieces keep the memory they lie
// in; the map holds nothing but references to it.
func newVocabulary(pieces []string) vocabulary {
	within := 0
	for _, piece := range pieces {
		if strings.HasPrefix(piece, inner) {
			within++
		}
	}
	v := vocabulary{
		begin:  pieceMap{tokens: make(map[string]int32, len(pieces)-within)},
		within: pieceMap{tokens: make(map[string]int32, within)},
	}
	for i, piece := range pieces {
		if rest, ok := strings.CutPrefix(piece, inner); ok {
			v.within.add(rest, int32(i))
		} else {
			v.begin.add(piece, int32(i))
		}
	}
	return v
}

func (m *pieceMap) add(piece string, token int32) {
	m.tokens[piece] = token
	m.maxBytes = max(m.maxBytes, len(piece))
}

// longest returns the longest piece that word begins with, as its token and its
// length in bytes, which is 0 if there is none. Only whole characters match, as
// word and pieces are valid UTF-8.
func (m *pieceMap) longest(word []byte) (token int32, n int) {
	for n := min(len(word), m.maxBytes); n > 0; n-- {
		if n < len(word) && !utf8.RuneStart(word[n]) {
			continue
		}
		if token, ok := m.tokens[string(word[:n])]; ok {
			return token, n
		}
	}
	return 0, 0
}

// appendWord appends the tokens of a word, found from the left, the longest
// piece first (WordPiece). A word that pieces do not cover to its end adds
// nothing: half a word often means something else.
func (v *vocabulary) appendWord(dst []int32, word []byte) []int32 {
	mark := len(dst)
	pieces := &v.begin
	for len(word) > 0 {
		token, n := pieces.longest(word)
		if n == 0 {
			return dst[:mark]
		}
		dst = append(dst, token)
		word = word[n:]
		pieces = &v.within
	}
	return dst
}
