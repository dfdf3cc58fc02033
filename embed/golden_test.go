package embed_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"recalld/embed"
)

// A golden is what another implementation made of a text.
type golden struct {
	Text         string
	Rows         []int32
	Vector       []float64 // every token weighs 1
	MemoryVector []float64 `json:"memory_vector"` // weighted as memoryVectors says
}

// goldenTolerance is what the golden vectors, rounded to six digits, and sums
// of float32 may differ by.
const goldenTolerance = 1e-5

// TestGolden compares with the plain Python of testdata/golden.py.
func TestGolden(t *testing.T) {
	testGolden(t, readGolden(t, filepath.Join("testdata", "golden.jsonl")))
}

// TestTableGolden compares with the texts that came with the table. Some of
// them are from evaluation sets, so they are not part of this repository.
func TestTableGolden(t *testing.T) {
	path := filepath.Join("..", "..", "shared", "models", "minilm-static-256", "golden.jsonl")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		t.Skipf("skipped: %s, the table's own golden texts, is not here", path)
	}
	testGolden(t, readGolden(t, path))
}

func readGolden(t *testing.T, path string) []golden {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []golden
	lines := json.NewDecoder(bytes.NewReader(data))
	for {
		var g golden
		if err := lines.Decode(&g); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%s, text %d: %v", path, len(all)+1, err)
		}
		all = append(all, g)
	}
	if len(all) < 20 {
		t.Fatalf("%s holds %d texts, want at least 20", path, len(all))
	}
	return all
}

func testGolden(t *testing.T, all []golden) {
	model := embed.BuiltIn()
	texts := make([]string, len(all))
	for i, g := range all {
		texts[i] = g.Text
	}
	embedded, err := model.EmbedDocuments(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	memory := memoryVectors(model, texts)
	opinions := 0
	for i, g := range all {
		t.Run(fmt.Sprintf("text %d", i+1), func(t *testing.T) {
			tokens := model.Tokens(g.Text)
			if diff := cmp.Diff(append([]int32{}, g.Rows...), append([]int32{}, tokens...)); diff != "" {
				t.Fatalf("Tokens(%q) (-want +got):\n%s", g.Text, diff)
			}
			plain := unitSum(model, tokens, func(int32) float64 { return 1 })
			checkVector(t, "sum of the rows", plain, g.Vector)
			checkVector(t, "memory vector", memory[i], g.MemoryVector)

			if !model.Represents(g.Text) {
				if embedded[i] != nil {
					t.Errorf("EmbedDocuments gave a vector for %q, which is not represented", g.Text)
				}
				return
			}
			opinions++
			checkVector(t, "EmbedDocuments", widen(embedded[i]), g.Vector)
			query, err := model.EmbedQuery(t.Context(), g.Text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(embedded[i], query); diff != "" {
				t.Errorf("the query's vector is not the document's (-document +query):\n%s", diff)
			}
		})
	}
	if opinions < len(all)/2 {
		t.Errorf("%d of %d texts have a vector, want at least half", opinions, len(all))
	}
}

// memoryVectors does with Tokens and Row alone what a memory does with its
// passages: each token weighs ln(1 + (N-df+.5)/(df+.5)), the sums are
// normalised, their mean is subtracted and they are normalised again. A text
// without tokens stays zero, but counts for N and the mean.
func memoryVectors(model *embed.Static, texts []string) [][]float64 {
	df := make(map[int32]float64)
	for _, text := range texts {
		seen := make(map[int32]bool)
		for _, token := range model.Tokens(text) {
			if !seen[token] {
				seen[token] = true
				df[token]++
			}
		}
	}
	n := float64(len(texts))
	idf := func(token int32) float64 { return math.Log(1 + (n-df[token]+.5)/(df[token]+.5)) }

	vectors := make([][]float64, len(texts))
	mean := make([]float64, model.Dimensions())
	for i, text := range texts {
		vectors[i] = unitSum(model, model.Tokens(text), idf)
		for d, x := range vectors[i] {
			mean[d] += x / n
		}
	}
	for i, text := range texts {
		if len(model.Tokens(text)) == 0 {
			continue
		}
		for d := range mean {
			vectors[i][d] -= mean[d]
		}
		scale(vectors[i])
	}
	return vectors
}

// unitSum returns the normalised weighted sum of the tokens' rows, and zeros
// for no token.
func unitSum(model *embed.Static, tokens []int32, weight func(int32) float64) []float64 {
	sum := make([]float64, model.Dimensions())
	for _, token := range tokens {
		for d, x := range model.Row(token) {
			sum[d] += weight(token) * float64(x)
		}
	}
	scale(sum)
	return sum
}

// scale brings v to length 1 unless it is zero.
func scale(v []float64) {
	squares := 0.0
	for _, x := range v {
		squares += x * x
	}
	if squares > 0 {
		for d := range v {
			v[d] /= math.Sqrt(squares)
		}
	}
}

func widen(v []float32) []float64 {
	wide := make([]float64, len(v))
	for d, x := range v {
		wide[d] = float64(x)
	}
	return wide
}

func checkVector(t *testing.T, what string, got, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s has %d numbers, want %d", what, len(got), len(want))
	}
	for d := range want {
		if !(math.Abs(got[d]-want[d]) <= goldenTolerance) {
			t.Fatalf("%s: number %d is %v, want %v", what, d, got[d], want[d])
		}
	}
}
