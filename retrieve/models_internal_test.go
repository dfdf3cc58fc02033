package retrieve

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// TestDivide: what a recall does when, for deadlines of every size.
func TestDivide(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const ms = time.Millisecond
	tests := []struct{ deadline, models, place, soft time.Duration }{
		{50 * ms, 26666666, 33333333, 40 * ms},
		{300 * ms, 186666666, 233333333, 280 * ms},
		{2000 * ms, 1320 * ms, 1650 * ms, 1980 * ms},
		{60000 * ms, 6000 * ms, 32990 * ms, 59980 * ms},
	}
	for _, tt := range tests {
		s := divide(begin, begin.Add(tt.deadline))
		if s.models.Sub(begin) != tt.models || s.place.Sub(begin) != tt.place || s.soft.Sub(begin) != tt.soft {
			t.Errorf("divide(%v) = %v, %v, %v; want %v, %v, %v", tt.deadline,
				s.models.Sub(begin), s.place.Sub(begin), s.soft.Sub(begin), tt.models, tt.place, tt.soft)
		}
	}
	if s := divide(begin, time.Time{}); !s.soft.IsZero() || !s.place.IsZero() || s.models.Sub(begin) != maxModelTime {
		t.Errorf("without a deadline: %+v", s)
	}
	for d := -5 * ms; d < 10*time.Second; d += 7 * ms {
		s := divide(begin, begin.Add(d))
		if s.models.After(s.place) || s.place.After(s.soft) || s.soft.After(begin.Add(max(d, 0))) {
			t.Fatalf("divide(%v) = %v, %v, %v", d, s.models.Sub(begin), s.place.Sub(begin), s.soft.Sub(begin))
		}
	}
}

// TestWeak: what the words of a query must hold for a model not to be asked.
func TestWeak(t *testing.T) {
	for coverage, want := range map[float64]bool{0: true, .3: true, .499: true, .5: false, 1: false} {
		if got := weak(coverage); got != want {
			t.Errorf("weak(%v) = %v", coverage, got)
		}
	}
}

// TestReadProposals: of what a model says only new words count, few and short
// ones.
func TestReadProposals(t *testing.T) {
	many := strings.Fields("one1 two2 three3 four4 five5 six6 seven7 eight8 nine9 ten10 eleven11 twelve12 thirteen13 fourteen14")
	tests := []struct {
		name     string
		query    string
		variants []string
		want     []string
	}{
		{"nothing", "car", nil, nil},
		{"new words", "car trouble", []string{"Vehicle breakdown", "automobile"}, []string{"vehicle", "breakdown", "automobile"}},
		{"the query itself, inflected and in capitals", "painted the fence", []string{"PAINTING fences", "a painted fence"}, nil},
		{"repeats", "car", []string{"engine engines", "Engine"}, []string{"engine"}},
		{"stop words", "car", []string{"the of and to be"}, nil},
		{"everyday words", "car", []string{"good people", "a long time", "the day that the garage burnt"}, []string{"garage", "burnt"}},
		{"twelve", "car", []string{strings.Join(many, " ")}, many[:12]},
		{"six variants", "car", []string{"aaa", "bbb", "ccc", "ddd", "eee", "fff", "ggg"}, []string{"aaa", "bbb", "ccc", "ddd", "eee", "fff"}},
		{"a long word", "car", []string{strings.Repeat("x", 65) + " short"}, []string{"short"}},
		{"a long variant", "car", []string{strings.Repeat("word ", 200), "short"}, []string{"short"}},
		{"no UTF-8", "car", []string{"bad\xff bytes", "garage"}, []string{"garage"}},
		{"control characters and marks", "car", []string{"\x00\x1b[31mred\x07!", "{\"a\":1}"}, []string{"31mred", "1"}},
		{"tags", "car", []string{"<think>engine</think>"}, []string{"engine"}},
		{"accents", "car", []string{"garage métro"}, []string{"garage", "métro"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			terms, words := readProposals(tt.variants, parseQuery(tt.query, time.Time{}))
			if diff := cmp.Diff(tt.want, words); diff != "" || len(terms) != len(words) {
				t.Errorf("%d terms, words (-want +got):\n%s", len(terms), diff)
			}
		})
	}
}

func FuzzReadProposals(f *testing.F) {
	f.Add("car trouble", "vehicle", "automobile breakdown")
	f.Add("", "\xff\xfe", "<a>x</a>")
	f.Add("東京 タワー", "東京都 塔", "th\u0301e")
	f.Fuzz(func(t *testing.T, query, one, two string) {
		parsed := parseQuery(query, time.Time{})
		terms, words := readProposals([]string{one, two, one}, parsed)
		if len(terms) > maxProposed || len(terms) != len(words) {
			t.Fatalf("%d terms, %d words", len(terms), len(words))
		}
		own := map[string]bool{}
		for _, term := range parsed.terms {
			own[term.forms[0]] = true
		}
		for i, term := range terms {
			if own[term.forms[0]] || len(words[i]) > 3*maxProposedBytes || !utf8.ValidString(words[i]) {
				t.Errorf("term %q, word %q", term.forms, words[i])
			}
			own[term.forms[0]] = true
		}
	})
}

// TestJudgeUnread: of slices that no model has read yet words alone decide, at
// the gate and at the bar of a passage.
func TestJudgeUnread(t *testing.T) {
	tab := newTable(true)
	for i := range 4 {
		tab.add(row{Seq: uint64(i + 1), Session: fmt.Sprint(i), Kind: User, Slices: make([]sliceRow, 1)})
	}
	l := levels{since: 4, coverage: -1, sense: -1.5}
	terms := make([]scoredTerm, 3)
	judged := func(coverage, cos []float32, unread int) (Gate, []bool) {
		near := []float32{3, 3, 3, 3}
		m := &measure{units: tab.sliceUnits(), words: wordScore{coverage: coverage, near: near, spread: coverage, terms: terms, rareMass: 3}, cos: cos, unread: unread}
		g := judge(m, l, parsedQuery{text: "which plumber sent it"}, Gated)
		b := m.bar(l)
		return g, []bool{b.admits(0), b.admits(1), b.admits(2), b.admits(3)}
	}
	covered := []float32{.1, .1, .1, .9}
	words, admitted := judged(covered, nil, 0)
	if !words.Passed || !admitted[3] || admitted[0] {
		t.Fatalf("by words alone: %+v, %v", words, admitted)
	}
	read, admitted := judged(covered, []float32{.1, .1, .1, 0}, 0)
	if read.Passed || admitted[3] {
		t.Errorf("read and far in meaning: %+v, %v", read, admitted)
	}
	unread, admitted := judged(covered, []float32{.1, .1, .1, 0}, 3)
	if unread.Measure != words.Measure || !unread.Passed || !admitted[3] || admitted[0] {
		t.Errorf("unread: %+v, %v; want the measure of words alone, %v", unread, admitted, words.Measure)
	}
	if sum := unread.Parts[0].Value*unread.Parts[0].Weight + unread.Parts[1].Value*unread.Parts[1].Weight; math.Abs(sum-unread.Measure) > 1e-9 {
		t.Errorf("the parts %v make %v, not %v", unread.Parts, sum, unread.Measure)
	}
	near, admitted := judged([]float32{.9, .1, .1, .1}, []float32{.9, .1, .1, 0}, 3)
	if !near.Passed || !admitted[0] || admitted[3] || near.Measure <= unread.Measure-3 {
		t.Errorf("near in meaning: %+v, %v", near, admitted)
	}
}

// TestAccept: which of a model's vectors are taken.
func TestAccept(t *testing.T) {
	nan := float32(math.NaN())
	tests := []struct {
		name string
		dims int
		in   [][]float32
		want [][]float32
		then int
		err  error
	}{
		{"the first sets the dimension", 0, [][]float32{nil, {3, 4}, {0, 2}}, [][]float32{nil, {.6, .8}, {0, 1}}, 2, nil},
		{"no vectors set none", 0, [][]float32{nil, {0, 0}, {nan, 1}}, [][]float32{nil, nil, nil}, 0, nil},
		{"one of another is none", 2, [][]float32{{1, 2, 2}, {0, 2}}, [][]float32{nil, {0, 1}}, 2, nil},
		{"all of another are refused", 2, [][]float32{{1, 2, 2}, nil}, nil, 0, errDimension},
		{"too large is none", 0, [][]float32{make([]float32, maxDimensions+1)}, [][]float32{nil}, 0, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x := &Index{remote: &remote{}}
			got, err := x.accept(tt.in, tt.dims)
			if !errors.Is(err, tt.err) || got != tt.then {
				t.Errorf("dimension %d, error %v; want %d, %v", got, err, tt.then, tt.err)
			}
			if diff := cmp.Diff(tt.want, tt.in); tt.err == nil && diff != "" {
				t.Errorf("vectors (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRemoteSpace holds the cosines of a model's vectors against the plain
// formula: a message is the direction of the sum of its slices' unit vectors;
// less the mean of the first messages; unit length.
func TestRemoteSpace(t *testing.T) {
	const dims, messages, point = 12, 400, 363
	vectors := unitVectors(3*messages, dims, 11)
	tab := newTable(true)
	r := &remote{}
	for i := range messages {
		tab.add(row{Seq: uint64(i + 1), Session: "s", Kind: User, Slices: make([]sliceRow, 1+i%3)})
	}
	at := 0
	of := make([][][]float32, messages)
	for i := range messages {
		n := 1 + i%3
		of[i] = vectors[at : at+n]
		at += n
		r.hold(tab, of[i], dims)
	}
	space := r.space.restated(tab.messages, refreshPoint(messages))
	if space.since != point {
		t.Fatalf("statistics at %d, want %d", space.since, point)
	}
	less := plainLess(of[:point], dims)
	query := unitVectors(1, dims, 12)[0]
	cos, err := space.cosines(t.Context(), space.less(append([]float32(nil), query...)))
	if err != nil {
		t.Fatal(err)
	}
	q := less([][]float32{query})
	slice := 0
	for i, list := range of {
		if want := dot(less(list), q); math.Abs(want-float64(cos.messages[i])) > 1e-4 {
			t.Errorf("message %d: cosine %v, want %v", i, cos.messages[i], want)
		}
		for k := range list {
			if want := dot(less(list[k:k+1]), q); math.Abs(want-float64(cos.slices[slice])) > 1e-4 {
				t.Errorf("slice %d of message %d: cosine %v, want %v", k, i, cos.slices[slice], want)
			}
			slice++
		}
	}
}

// plainLess gives, by the book, the function from the vectors of a message's
// slices to its direction less the mean of the messages given.
func plainLess(messages [][][]float32, dims int) func([][]float32) []float64 {
	unit := func(v []float64) []float64 {
		if length := math.Sqrt(dot(v, v)); length > 0 {
			for k := range v {
				v[k] /= length
			}
		}
		return v
	}
	direction := func(list [][]float32) []float64 {
		sum := make([]float64, dims)
		for _, v := range list {
			for k, x := range v {
				sum[k] += float64(x)
			}
		}
		return unit(sum)
	}
	mean, n := make([]float64, dims), 0.0
	for _, list := range messages {
		if d := direction(list); dot(d, d) > 0 {
			n++
			for k, x := range d {
				mean[k] += x
			}
		}
	}
	return func(list [][]float32) []float64 {
		v := direction(list)
		if dot(v, v) == 0 {
			return v
		}
		for k := range v {
			v[k] -= mean[k] / n
		}
		return unit(v)
	}
}

// TestFullDiskIsNoDamage: vectors are put aside for damage only.
func TestFullDiskIsNoDamage(t *testing.T) {
	db, err := openVectorDB(filepath.Join(t.TempDir(), "v"), "m")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openVectorDB(db.db.Path(), "m"); err == nil || isDamage(err) {
		t.Errorf("a file in use: %v, damage %v", err, isDamage(err))
	}
	if err := db.close(); err != nil {
		t.Fatal(err)
	}
	if isDamage(errors.New("model")) || isDamage(fmt.Errorf("x: %w", context.Canceled)) {
		t.Error("another's error is taken for damage")
	}
	if err := storing("read", func() error { panic("page 7: already freed") }); !isDamage(err) {
		t.Errorf("%v is not taken for damage", err)
	}
}

// FuzzStoredVector: what is decoded was encoded under the same key.
func FuzzStoredVector(f *testing.F) {
	whole := storedVector{key: []byte("k"), print: 7, vector: []float32{1, 2}}.encode()
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Add([]byte{})
	f.Add(storedVector{key: []byte("k"), print: 9}.encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		s := storedVector{key: []byte("k")}
		if s.decode(data, 2) && string(s.encode()) != string(data) {
			t.Errorf("%x was read as %+v", data, s)
		}
		other := storedVector{key: []byte("another")}
		if s.decode(data, 2) && other.decode(data, 2) {
			t.Errorf("%x is the value of two keys", data)
		}
	})
}

// A waking model counts how often it is woken.
type wakingModel struct{ woken atomic.Int64 }

func (*wakingModel) Identity() string { return "waking" }

func (m *wakingModel) EmbedDocuments(ctx context.Context, _ []string) ([][]float32, error) {
	m.woken.Add(1)
	<-ctx.Done() // it never loads
	return nil, ctx.Err()
}

func (*wakingModel) EmbedQuery(context.Context, string) ([]float32, error) { return nil, nil }

// TestWakePause: a model that is late for every query is woken now and then only.
func TestWakePause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := new(wakingModel)
		x := &Index{remote: newRemote(model)}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); x.wakeModel(ctx) }()
		for range 600 {
			x.remote.noteLate()
			time.Sleep(time.Second)
		}
		if got, want := model.woken.Load(), int64(5); got != want { // three, a pause, and two
			t.Errorf("woken %d times in ten minutes, want %d", got, want)
		}
		cancel()
		<-ended
	})
}
