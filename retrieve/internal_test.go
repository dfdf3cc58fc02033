package retrieve

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// unitVectors gives n random unit vectors; every tenth is missing.
func unitVectors(n, dims int, seed uint64) [][]float32 {
	random := rand.New(rand.NewPCG(seed, 9))
	list := make([][]float32, n)
	for i := range list {
		if i%10 == 9 {
			continue
		}
		v := make([]float32, dims)
		for k := range v {
			v[k] = float32(random.NormFloat64())
		}
		length := magnitude(v)
		for k := range v {
			v[k] /= length
		}
		list[i] = v
	}
	return list
}

// TestVectorStores holds the flat matrix against chromem-go, its oracle, and
// both against what passes from one to the other while growing.
func TestVectorStores(t *testing.T) {
	const dims = 64
	vectors := unitVectors(3*flatBlock/2, dims, 1)
	query := unitVectors(1, dims, 2)[0]
	oracle, flat, grown := newChromemStore(), newFlatStore(dims), newVectorStore(dims)
	for i, v := range vectors {
		for _, s := range []vectorStore{oracle, flat, grown} {
			s.append(v)
		}
		if n := i + 1; n != 1 && n != 10 && n != flatFrom && n != flatFrom+1 && n != len(vectors) {
			continue
		}
		want := make([]float32, i+1)
		if err := oracle.dots(t.Context(), query, want); err != nil {
			t.Fatal(err)
		}
		for name, s := range map[string]vectorStore{"flat": flat, "growing": grown} {
			got := make([]float32, s.len())
			if err := s.dots(t.Context(), query, got); err != nil {
				t.Fatal(err)
			}
			near := cmp.Comparer(func(a, b float32) bool { return math.Abs(float64(a-b)) < 1e-5 })
			if diff := cmp.Diff(want, got, near); diff != "" {
				t.Fatalf("%s differs from chromem at %d vectors (-chromem +%s):\n%s", name, i+1, name, diff)
			}
		}
	}
}

// TestVectorStoresHeedTheirContext: a scan that did not finish is an error,
// although chromem-go gives what it had without one.
func TestVectorStoresHeedTheirContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, s := range map[string]vectorStore{"chromem": newChromemStore(), "flat": newFlatStore(8)} {
		for _, v := range unitVectors(20, 8, 3) {
			s.append(v)
		}
		if err := s.dots(ctx, unitVectors(1, 8, 4)[0], make([]float32, 20)); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want context.Canceled", name, err)
		}
	}
}

// BenchmarkVectors finds the size from which the flat matrix is worth having.
func BenchmarkVectors(b *testing.B) {
	const dims = 256
	query := unitVectors(1, dims, 2)[0]
	for _, n := range []int{100, 256, 1000, 20000} {
		for name, s := range map[string]vectorStore{"chromem": newChromemStore(), "flat": newFlatStore(dims)} {
			for _, v := range unitVectors(n, dims, 1) {
				s.append(v)
			}
			b.Run(fmt.Sprint(n, "/", name), func(b *testing.B) {
				dst := make([]float32, n)
				for b.Loop() {
					if err := s.dots(context.Background(), query, dst); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// aTable is a token table of few rows.
type aTable struct{ rows [][]float32 }

func (a aTable) Identity() string       { return "a table" }
func (a aTable) Dimensions() int        { return len(a.rows[0]) }
func (a aTable) Represents(string) bool { return true }
func (a aTable) Tokens(string) []int32  { return nil }
func (a aTable) AddRow(dst []float32, token int32, weight float32) {
	for i, x := range a.rows[token] {
		dst[i] += weight * x
	}
}
func (a aTable) EmbedDocuments(context.Context, []string) ([][]float32, error) { return nil, nil }
func (a aTable) EmbedQuery(context.Context, string) ([]float32, error)         { return nil, nil }

// TestMeaning holds the cosines of slices and messages against the plain
// formula: idf-weighted sum, unit length, less the mean, unit length.
func TestMeaning(t *testing.T) {
	const dims, messages = 16, 300
	model := aTable{unitVectors(40, dims, 5)}
	for i, row := range model.rows {
		if row == nil {
			model.rows[i] = unitVectors(1, dims, uint64(100+i))[0]
		}
	}
	random := rand.New(rand.NewPCG(6, 6))
	tab := newTable(true)
	var lists [][]uint16 // by message
	for i := range messages {
		r := row{Seq: uint64(i + 1), Session: "s", Kind: User}
		var whole []uint16
		for range 1 + i%3 {
			var tokens []uint16
			for range random.IntN(12) {
				tokens = append(tokens, uint16(random.IntN(40)))
			}
			whole = append(whole, tokens...)
			r.Slices = append(r.Slices, sliceRow{Tokens: tokens})
		}
		lists = append(lists, whole)
		tab.add(r)
	}
	m := newMeaning(model).refreshed(tableTokens{tab.tokens, tab.messages}, messages)
	point := int(refreshPoint(messages))
	if m.since != uint64(point) || point >= messages {
		t.Fatalf("statistics at %d of %d", m.since, messages)
	}
	embed := plainMeaning(model, lists, point)
	query := []uint16{1, 2, 3, 3}
	cos, err := m.cosines(t.Context(), toFloat32(embed(query)))
	if err != nil {
		t.Fatal(err)
	}
	slice := 0
	for i, whole := range lists {
		check := func(what string, tokens []uint16, got float32) {
			if want := dot(embed(tokens), embed(query)); math.Abs(want-float64(got)) > .02 {
				t.Errorf("%s of message %d: cosine %.4f, want %.4f", what, i, got, want)
			}
		}
		check("whole", whole, cos.messages[i])
		for range tab.messages[i].slices {
			check("slice", tab.tokens[slice], cos.slices[slice])
			slice++
		}
	}
}

// plainMeaning gives the function from tokens to vectors, by the book.
func plainMeaning(model aTable, lists [][]uint16, point int) func([]uint16) []float64 {
	df, n := map[uint16]int{}, 0
	for _, list := range lists[:point] {
		seen := map[uint16]bool{}
		for _, token := range list {
			seen[token] = true
		}
		for token := range seen {
			df[token]++
		}
		if len(list) > 0 {
			n++
		}
	}
	unit := func(v []float64) []float64 {
		length := math.Sqrt(dot(v, v))
		for i := range v {
			if length > 0 {
				v[i] /= length
			}
		}
		return v
	}
	sum := func(list []uint16) []float64 {
		v := make([]float64, model.Dimensions())
		for _, token := range list {
			w := math.Log(1 + (float64(n-df[token])+.5)/(float64(df[token])+.5))
			for i, x := range model.rows[token] {
				v[i] += w * float64(x)
			}
		}
		return unit(v)
	}
	mean := make([]float64, model.Dimensions())
	for _, list := range lists[:point] {
		for i, x := range sum(list) {
			mean[i] += x / float64(n)
		}
	}
	return func(list []uint16) []float64 {
		v := sum(list)
		if len(list) == 0 {
			return v
		}
		for i := range v {
			v[i] -= mean[i]
		}
		return unit(v)
	}
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

func toFloat32(v []float64) []float32 {
	out := make([]float32, len(v))
	for i, x := range v {
		out[i] = float32(x)
	}
	return out
}

func TestRefreshPoint(t *testing.T) {
	want := map[uint64]bool{0: true}
	for k := range 100 {
		want[uint64(math.Ceil(math.Exp2(float64(k)/4)))] = true
	}
	last := uint64(0)
	for seq := uint64(0); seq < 5000; seq++ {
		if want[seq] {
			last = seq
		}
		if got := refreshPoint(seq); got != last {
			t.Fatalf("refreshPoint(%d) = %d, want %d", seq, got, last)
		}
	}
}

// TestVectorFile: what is saved comes back to the bit; what is torn, foreign
// or of another identity does not come back at all.
func TestVectorFile(t *testing.T) {
	model := aTable{unitVectors(9, 16, 7)}
	tab := newTable(true)
	for i := range 500 {
		tab.add(row{Seq: uint64(i + 1), Session: "s", Kind: User, Slices: []sliceRow{{Tokens: []uint16{uint16(i % 9), uint16(i % 7)}}, {}}})
	}
	m := newMeaning(model).refreshed(tableTokens{tab.tokens, tab.messages}, 500)
	path := filepath.Join(t.TempDir(), "vectors")
	if err := m.save(path, "one"); err != nil {
		t.Fatal(err)
	}
	again, err := loadMeaning(model, path, "one")
	if err != nil {
		t.Fatal(err)
	}
	query := m.mean
	want, err := m.cosines(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	got, err := again.cosines(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(cosines{})); diff != "" {
		t.Errorf("cosines differ after loading:\n%s", diff)
	}
	if _, err := loadMeaning(model, path, "two"); !errors.Is(err, errVectors) {
		t.Errorf("vectors of another identity: %v", err)
	}
	for _, size := range []int64{0, 10, 100, 5000} {
		damaged := filepath.Join(t.TempDir(), "vectors")
		if err := copyPart(path, damaged, size); err != nil {
			t.Fatal(err)
		}
		if _, err := loadMeaning(model, damaged, "one"); !errors.Is(err, errVectors) {
			t.Errorf("vectors cut at %d: %v", size, err)
		}
	}
}

// TestBM25 holds our BM25 over bleve's postings against a plain one over words
// in maps, for several k1 and b.
func TestBM25(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 8))
	zipf := rand.NewZipf(random, 1.3, 3, 200)
	var ids, texts []string
	var words [][]string
	for i := range 400 {
		var list []string
		for range 3 + random.IntN(60) {
			list = append(list, fmt.Sprint("w", zipf.Uint64()))
		}
		ids, texts, words = append(ids, fmt.Sprint(i)), append(texts, joinWords(list)), append(words, list)
	}
	c, err := OpenCorpus(filepath.Join(t.TempDir(), "corpus"), splitWords)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for i := 0; i < len(ids); i += 100 { // several segments
		if err := c.Add(ids[i:i+100], texts[i:i+100]); err != nil {
			t.Fatal(err)
		}
	}
	for _, bm := range []BM25{{K1: .9, B: .4}, {K1: 1.2, B: .75}, {K1: 2, B: 0}, {K1: .4, B: 1}} {
		for range 50 {
			query := []string{fmt.Sprint("w", zipf.Uint64()), fmt.Sprint("w", zipf.Uint64()), fmt.Sprint("w", zipf.Uint64()), "absent"}
			hits, err := c.Search(joinWords(query), bm, len(ids))
			if err != nil {
				t.Fatal(err)
			}
			want := plainBM25(words, query, bm.K1, bm.B)
			if len(hits) != len(want) {
				t.Fatalf("%v %v: %d hits, want %d", bm, query, len(hits), len(want))
			}
			for i, h := range hits {
				if math.Abs(h.Score-want[h.ID]) > 1e-9 || i > 0 && h.Score > hits[i-1].Score {
					t.Fatalf("%v %v: hit %d is %v, want %v in descending order", bm, query, i, h, want[h.ID])
				}
			}
		}
	}
}

// plainBM25 is BM25 as the textbook has it.
func plainBM25(docs [][]string, query []string, k1, b float64) map[string]float64 {
	total := 0
	df := map[string]int{}
	tf := make([]map[string]int, len(docs))
	for i, doc := range docs {
		total += len(doc)
		tf[i] = map[string]int{}
		for _, w := range doc {
			if tf[i][w]++; tf[i][w] == 1 {
				df[w]++
			}
		}
	}
	n, average := float64(len(docs)), float64(total)/float64(len(docs))
	scores := map[string]float64{}
	for i, doc := range docs {
		for _, w := range query {
			if f := float64(tf[i][w]); f > 0 {
				idf := math.Log(1 + (n-float64(df[w])+.5)/(float64(df[w])+.5))
				scores[fmt.Sprint(i)] += idf * f * (k1 + 1) / (f + k1*(1-b+b*float64(len(doc))/average))
			}
		}
	}
	return scores
}

// FuzzRow checks that readRow survives any bytes and accepts only what
// appendRow writes.
func FuzzRow(f *testing.F) {
	r := row{Session: "s", Speaker: "user", Kind: User, TurnSeq: 3, Ordinal: 1, Micros: 12, Day: noDay, Length: 4, Flags: flagAsks,
		TextHash: 99, Slices: []sliceRow{{Range: Range{0, 12}, Length: 4, Tokens: []uint16{1, 2, 65535}}, {Range: Range{5, 30}}}}
	whole := appendRow(nil, r)
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := readRow(7, data)
		if err != nil {
			return
		}
		again, err := readRow(7, appendRow(nil, r))
		if err != nil {
			t.Fatalf("a row that was read cannot be read again: %v", err)
		}
		if diff := cmp.Diff(r, again); diff != "" {
			t.Errorf("read differs:\n%s", diff)
		}
	})
}

// TestQueryLargerThanTheCache: a query whose posting lists do not fit the cache
// is answered all the same, and the cache shrinks again.
func TestQueryLargerThanTheCache(t *testing.T) {
	folder := t.TempDir()
	fill := func(x *Index) {
		for i := range 40 {
			text := fmt.Sprintf("alpha beta gamma delta epsilon note%d", i)
			if err := x.Add(t.Context(), []Document{{Seq: uint64(i + 1), Session: "s", TurnSeq: uint64(i + 1), Kind: User, Text: text}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := x.work(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	x, err := Open(folder, Options{})
	if err != nil {
		t.Fatal(err)
	}
	fill(x)
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	if x, err = Open(folder, Options{}); err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	x.main.limit = 50
	for range 3 {
		r, err := x.Recall(t.Context(), Query{Text: "alpha beta gamma delta epsilon note7", Relevance: Always})
		if err != nil || len(r.Passages) == 0 || r.Passages[0].Seq != 8 {
			t.Fatalf("passages %v, error %v; want message 8 first", r.Passages, err)
		}
	}
	x.trim()
	x.trim()
	if x.main.youngSize > x.main.limit {
		t.Errorf("%d postings are still cached, limit %d", x.main.youngSize, x.main.limit)
	}
}
