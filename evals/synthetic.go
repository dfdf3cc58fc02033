package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	pb "recalld/proto/recalld/v1"
)

// A synthetic memory has turns of two messages of 30 words. Words follow
// Zipf's law with Mandelbrot's shift, p(rank) ~ (shift + rank)^-exponent. The
// shift stands for the stop words that analysis drops: the most frequent word
// that is left stands in about four messages of ten.
const (
	zipfExponent   = 1.1
	zipfShift      = 10
	vocabularySize = 50_000
	messageWords   = 30
	queryWords     = 8
	sessionTurns   = 20
	syntheticSeed  = 7
)

// A generator makes texts that depend on its seed alone.
type generator struct {
	zipf *rand.Zipf
}

func newGenerator(seed uint64) *generator {
	random := rand.New(rand.NewPCG(syntheticSeed, seed))
	return &generator{rand.NewZipf(random, zipfExponent, zipfShift, vocabularySize-1)}
}

// text gives so many words.
func (g *generator) text(words int) string {
	list := make([]string, words)
	for i := range list {
		list[i] = word(g.zipf.Uint64())
	}
	return strings.Join(list, " ")
}

// word gives the word of a rank: three syllables, other ones for each rank
// below 70³.
func word(rank uint64) string {
	const consonants, vowels = "bdfgklmnprstvz", "aeiou"
	const syllables = uint64(len(consonants) * len(vowels))
	// Multiplying by a number prime to 70 keeps neighbouring ranks apart.
	n := rank * 104_729 % (syllables * syllables * syllables)
	var out [6]byte
	for i := range 3 {
		syllable := n % syllables
		n /= syllables
		out[2*i] = consonants[syllable/uint64(len(vowels))]
		out[2*i+1] = vowels[syllable%uint64(len(vowels))]
	}
	return string(out[:])
}

// turns makes count turns of a memory, beginning with turn first.
func (g *generator) turns(project string, first, count int) []*pb.NewTurn {
	start := time.Date(2024, 1, 1, 9, 0, 0, 0, time.UTC)
	list := make([]*pb.NewTurn, count)
	for i := range list {
		n := first + i
		session := fmt.Sprintf("%s/%d", project, n/sessionTurns)
		at := &pb.SpokenTime{At: timestamppb.New(start.Add(time.Duration(n) * 10 * time.Minute))}
		list[i] = newTurn(session, fmt.Sprintf("turn-%d", n),
			newMessage(fmt.Sprintf("%d-ask", n), pb.Kind_KIND_USER, "user", at, g.text(messageWords)),
			newMessage(fmt.Sprintf("%d-answer", n), pb.Kind_KIND_REPLY, "assistant", at, g.text(messageWords)))
	}
	return list
}
