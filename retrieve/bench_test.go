package retrieve_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"recalld/embed"
	"recalld/retrieve"
)

// A vocabulary of made-up words, used as a language uses its words: Zipf with
// exponent 1.05 over 30,000.
type vocabulary struct {
	random *rand.Rand
	zipf   *rand.Zipf
	words  []string
}

func newVocabulary(seed uint64) *vocabulary {
	random := rand.New(rand.NewPCG(seed, 2))
	v := &vocabulary{random: random, zipf: rand.NewZipf(random, 1.05, 2.7, 29999)}
	syllables := []string{"ka", "ro", "mi", "ten", "sol", "ver", "dun", "al", "pri", "os", "gra", "ne", "qui", "bas", "tor", "lem"}
	seen := map[string]bool{}
	for len(v.words) < 30000 {
		var b strings.Builder
		for range 2 + random.IntN(3) {
			b.WriteString(syllables[random.IntN(len(syllables))])
		}
		if w := b.String(); !seen[w] {
			seen[w] = true
			v.words = append(v.words, w)
		}
	}
	return v
}

func (v *vocabulary) text(n int) string {
	words := make([]string, n)
	for i := range words {
		words[i] = v.words[v.zipf.Uint64()]
	}
	return strings.Join(words, " ")
}

// turns gives n turns of two messages of 30 words, in sessions of 20 turns.
func (v *vocabulary) turns(n int) []retrieve.Document {
	start := time.Date(2025, 1, 1, 9, 0, 0, 0, time.UTC)
	var list []retrieve.Document
	for i := range n {
		for k, kind := range []retrieve.Kind{retrieve.User, retrieve.Reply} {
			list = append(list, retrieve.Document{
				Seq: uint64(len(list) + 1), Session: fmt.Sprint("session", i/20), TurnSeq: uint64(i + 1), Ordinal: k,
				Speaker: []string{"user", "assistant"}[k], Kind: kind, Time: start.Add(time.Duration(i) * time.Hour), Text: v.text(30),
			})
		}
	}
	return list
}

// BenchmarkRecallModel measures recall with a model that is asked and answers
// at once, 768 numbers to a vector, beside the built-in one: what it costs to
// keep and compare its vectors.
func BenchmarkRecallModel(b *testing.B) {
	if testing.Short() {
		b.Skip("short")
	}
	const size = 20000
	turns := newVocabulary(1).turns(size)
	model := newBag("m", 768)
	vectors := model.embed([]string{"a", "b c", "d", "e f g", "h"})
	model.documents = func(_ context.Context, texts []string) ([][]float32, error) {
		list := make([][]float32, len(texts))
		for i, text := range texts {
			list[i] = slices.Clone(vectors[len(text)%len(vectors)])
			list[i][len(text)] += 20
		}
		return list, nil
	}
	model.query = func(_ context.Context, text string) ([]float32, error) { return vectors[len(text)%len(vectors)], nil }
	for name, o := range map[string]retrieve.Options{"builtin": {Embedder: embed.BuiltIn()}, "model": remoteOptions(model, turns)} {
		b.Run(name, func(b *testing.B) {
			folder := b.TempDir()
			x := openAt(b, folder, o, nil)
			ctx, cancel := context.WithCancel(b.Context())
			done := make(chan struct{})
			go func() { defer close(done); _ = x.Run(ctx) }()
			begin := time.Now()
			if err := x.Add(ctx, turns); err != nil {
				b.Fatal(err)
			}
			if err := x.Flush(ctx); err != nil {
				b.Fatal(err)
			}
			if name == "model" {
				if err := x.WaitEmbedded(ctx); err != nil {
					b.Fatal(err)
				}
			}
			rate := size / time.Since(begin).Seconds()
			cancel()
			<-done
			closeIndex(b, x)
			begin = time.Now()
			x = openAt(b, folder, o, turns)
			defer closeIndex(b, x)
			opened := time.Since(begin)
			v := newVocabulary(7)
			for range 50 {
				ask(b, x, retrieve.Query{Text: v.text(8), Relevance: retrieve.Always})
			}
			var took []time.Duration
			for b.Loop() {
				q := retrieve.Query{Text: v.text(8), Relevance: retrieve.Always}
				at := time.Now()
				r := ask(b, x, q)
				took = append(took, time.Since(at))
				if o := outcome(b, r, retrieve.Meaning); o.Outcome != retrieve.Used {
					b.Fatalf("meaning is %+v", o)
				}
			}
			slices.Sort(took)
			b.ReportMetric(rate, "turns/s")
			b.ReportMetric(float64(opened.Milliseconds()), "open-ms")
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
		})
	}
}

// BenchmarkRecall measures recall of queries of 8 words in memories of several
// sizes, with the built-in model; p50 and p95 are of single recalls.
func BenchmarkRecall(b *testing.B) {
	for _, size := range []int{1000, 20000, 100000} {
		b.Run(fmt.Sprint(size, "turns"), func(b *testing.B) {
			if testing.Short() && size > 1000 {
				b.Skip("short")
			}
			v := newVocabulary(1)
			folder := b.TempDir()
			x, err := retrieve.Open(folder, retrieve.Options{Embedder: embed.BuiltIn()})
			if err != nil {
				b.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan struct{})
			go func() { defer close(done); _ = x.Run(ctx) }()
			begin := time.Now()
			if err := x.Add(ctx, v.turns(size)); err != nil {
				b.Fatal(err)
			}
			if err := x.Flush(ctx); err != nil {
				b.Fatal(err)
			}
			rate := float64(size) / time.Since(begin).Seconds()
			cancel()
			<-done
			if err := x.Close(); err != nil {
				b.Fatal(err)
			}
			begin = time.Now()
			if x, err = retrieve.Open(folder, retrieve.Options{Embedder: embed.BuiltIn()}); err != nil {
				b.Fatal(err)
			}
			defer x.Close()
			opened := time.Since(begin)
			for range 50 {
				if _, err := x.Recall(context.Background(), retrieve.Query{Text: v.text(8), Relevance: retrieve.Always}); err != nil {
					b.Fatal(err)
				}
			}
			var took []time.Duration
			for b.Loop() {
				query := v.text(8)
				at := time.Now()
				if _, err := x.Recall(context.Background(), retrieve.Query{Text: query, Relevance: retrieve.Always}); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(at))
			}
			b.ReportMetric(rate, "turns/s")
			b.ReportMetric(float64(opened.Milliseconds()), "open-ms")
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
		})
	}
}
