// Package embed turns texts into unit vectors whose cosine says how near two
// texts are in meaning.
//
// [BuiltIn] returns the model that is compiled into the program. It is a static
// token table: a text is cut into tokens ([Static.Tokens]), every token has a
// row of numbers ([Static.Row]), and the vector of the text is the normalised
// sum of its rows. There is no neural network at run time, no model server, no
// file and no network, so it is always ready and costs microseconds a passage.
// Because sums of rows are all there is, a caller may weight the tokens by
// statistics of its own and needs nothing but Tokens and Row for that.
//
// A [Remote] is a model on a server, Ollama's or one that speaks the protocol of
// OpenAI. It may be late, wrong or gone; it says so with errors, and never
// returns a vector that is none. What a model needs to be asked well (prefixes,
// folding, the length of its window) is known by its name.
//
// A text may have no vector: a nil one means "no opinion". A table of English
// word pieces places other scripts so badly that a ranking is better off with
// words alone; [Static.Represents] says which texts those are.
//
// Vectors of different models, or of one model asked differently, must never
// meet: Identity tells them apart.
//
// The package knows nothing of who asks, stores nothing and ranks nothing. Its
// types are safe for concurrent use. Equal texts give equal vectors: of a Static
// on every machine, bit for bit; of a Remote as far as its server does.
package embed

import (
	"context"
	"fmt"
	"math"
	"sync"
)

// identity names the files of the table, the weighting of the tokens and the
// version of the steps from a text to its vector. Whoever changes one of them
// changes the identity, as vectors of two identities must never meet.
const identity = "minilm-static-256/plain/v1"

// A Static is a static token table with its tokeniser. It is made by [BuiltIn];
// the zero value is of no use. Its methods may be called at the same time.
type Static struct {
	load func() *table // parses on the first call, then returns the same table
}

// BuiltIn returns the model in the program: minilm-static-256, 29,523 rows of
// 256 numbers (its NOTICE.md tells where they come from). The call does nothing
// but return; the first use parses the vocabulary, once per returned value,
// in about two milliseconds. Keep one value for the whole program.
//
// It costs 7.9 MB of the program file. The rows stay there as bytes, shared
// between processes and read in by the system as they are touched; only the
// vocabulary's map and the scales, 1.3 MB, are held on the heap.
func BuiltIn() *Static {
	return &Static{load: sync.OnceValue(loadBuiltIn)}
}

// Identity names the model, its dimensions, the weighting ("plain": every token
// counts once) and the version of the preprocessing.
func (s *Static) Identity() string { return identity }

// Dimensions returns the length of every row and vector, 256.
func (s *Static) Dimensions() int { return s.load().dimensions }

// Tokens returns the row numbers of text's tokens in the order of the text,
// repeats included. It takes any bytes and cuts nothing off: a text without a
// known token gives none. The tokens of a text are those of its words, split at
// white space, one after the other. The time is linear in the text's length.
//
// The steps are those of the BERT tokeniser without special tokens: drop
// control and format characters and invalid bytes, fold accents and case, make
// every punctuation character and CJK ideograph a word of its own, and cover
// each word from the left with the longest pieces of the vocabulary. A word
// that cannot be covered, or has more than 100 characters, gives no token.
func (s *Static) Tokens(text string) []int32 {
	return s.load().appendTokens(nil, text)
}

// Row returns the row of a token, 256 numbers in a new slice. The token is one
// that [Static.Tokens] returned; Row panics for a number that is no row.
func (s *Static) Row(token int32) []float32 {
	t := s.load()
	row := make([]float32, t.dimensions)
	t.addRow(row, token, 1)
	return row
}

// AddRow adds weight times the token's row to dst, which has 256 numbers or
// more. It allocates nothing. Like [Static.Row] it panics for a number that is
// no row.
func (s *Static) AddRow(dst []float32, token int32, weight float32) {
	s.load().addRow(dst, token, weight)
}

// Represents reports whether the table has an opinion on text. It has none when
//
//   - more than half of the text's letters are not Latin (an ideograph, a kana
//     or a syllable of Hangul is one letter): single characters of Greek,
//     Cyrillic, Chinese and others are in the vocabulary, but measured on
//     questions in Chinese, Russian, Thai and Japanese, words together with
//     these vectors ranked worse than words alone;
//   - or no token of it holds a Latin letter. Numbers and punctuation alone
//     ("404", "?!", an emoji) have rows too, but near in meaning is not what
//     anyone who asks for a number wants: 403 would be a hit for 404. They are
//     left to the words. Beside a word they count as any other token.
func (s *Static) Represents(text string) bool {
	t := s.load()
	return mostlyLatin(text) && t.meaningful(t.appendTokens(nil, text))
}

// EmbedDocuments returns the unit vector of each text, in the order given; it
// is nil exactly where [Static.Represents] is false. Every token weighs 1. The
// error wraps ctx's, which is looked at before each text, and comes without
// vectors.
func (s *Static) EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error) {
	t := s.load()
	vectors := make([][]float32, len(texts))
	var tokens []int32
	for i, text := range texts {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("embed text %d of %d: %w", i+1, len(texts), err)
		}
		vectors[i], tokens = t.embed(text, tokens[:0])
	}
	return vectors, nil
}

// EmbedQuery returns the unit vector of one text, made like a document's, or
// nil where [Static.Represents] is false. The error wraps ctx's.
func (s *Static) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("embed query: %w", err)
	}
	vector, _ := s.load().embed(text, nil)
	return vector, nil
}

// embed returns text's vector, or nil, and the tokens, for which it uses the
// room of scratch.
func (t *table) embed(text string, scratch []int32) (vector []float32, tokens []int32) {
	if !mostlyLatin(text) {
		return nil, scratch
	}
	tokens = t.appendTokens(scratch, text)
	if !t.meaningful(tokens) {
		return nil, tokens
	}
	vector = make([]float32, t.dimensions)
	for _, token := range tokens {
		t.addRow(vector, token, 1)
	}
	normalise(vector)
	return vector, tokens
}

// normalise scales v to length 1; the zero vector stays as it is.
func normalise(v []float32) {
	var squares float64
	for _, x := range v {
		squares += float64(float64(x) * float64(x)) // the conversion forbids a fused multiply-add: see addRow
	}
	if squares == 0 {
		return
	}
	length := math.Sqrt(squares)
	for i, x := range v {
		v[i] = float32(float64(x) / length)
	}
}
