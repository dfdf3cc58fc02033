package retrieve_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"recalld/embed"
	"recalld/retrieve"
)

// leakFree checks, once all else of the test is cleaned up, that no goroutine is
// left.
func leakFree(t *testing.T) {
	now := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, now) })
}

// skipped is the error of a call that was not made.
type skipped string

func (s skipped) Error() string   { return "not made" }
func (s skipped) Skipped() string { return string(s) }

// An expander is a function as the interface wants it.
type expander func(ctx context.Context, query string) ([]string, error)

func (f expander) Expand(ctx context.Context, query string) ([]string, error) { return f(ctx, query) }

// ownAnswer is what an answer is without its account of models.
func ownAnswer(r retrieve.Result) retrieve.Result {
	r.Sources, r.Embedded, r.Indexed = nil, 0, 0
	return r
}

// embedded opens an index whose messages a model has read, and one without any
// model; neither is run.
func embedded(t *testing.T, model *bagModel, e retrieve.Expander, all []retrieve.Document) (with, off *retrieve.Index) {
	t.Helper()
	o := remoteOptions(model, all)
	o.Expander = e
	with = openAt(t, t.TempDir(), o, all)
	off = openAt(t, t.TempDir(), retrieve.Options{Tokens: embed.BuiltIn()}, all)
	t.Cleanup(func() { closeIndex(t, with); closeIndex(t, off) })
	runUntil(t, with, with.Flush, with.WaitEmbedded, with.WaitLevels)
	runUntil(t, off, off.Flush, off.WaitLevels)
	return with, off
}

// sickQueries are questions of every kind.
func sickQueries() []retrieve.Query {
	var list []retrieve.Query
	for i, text := range []string{"word1 word2 word3", "word40 unknownword", "nothing of the kind at all", "word2999", "ok thanks", "word7 word7 word300 word12"} {
		list = append(list,
			retrieve.Query{Text: text, Relevance: retrieve.Always},
			retrieve.Query{Text: text},
			retrieve.Query{Text: text, Relevance: retrieve.Always, Expansion: retrieve.ExpandAlways, Limit: 3 + i, Kinds: []retrieve.Kind{retrieve.User, retrieve.Trace}})
	}
	return list
}

// sickDeadline is that of recalls with sick models.
const sickDeadline = 300 * time.Millisecond

// A sickness is what may be wrong with models when a query is asked.
type sickness struct {
	name   string
	during func(ctx context.Context) error // before they answer
	vector func(good []float32) []float32  // in the place of a good one
	words  []string                        // that are proposed
	want   retrieve.Outcome                // of meaning
	then   retrieve.Outcome                // of expansion, where it is asked
}

func sicknesses() []sickness {
	stuck := func(context.Context) error { time.Sleep(time.Hour); return nil }
	patient := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	slow := func(ctx context.Context) error { time.Sleep(sickDeadline); return nil }
	return []sickness{
		{name: "stuck, deaf to its context", during: stuck, want: retrieve.Late, then: retrieve.Late},
		{name: "silent", during: patient, want: retrieve.Late, then: retrieve.Late},
		{name: "slow", during: slow, want: retrieve.Late, then: retrieve.Late},
		{name: "failing", during: func(context.Context) error { return errors.New("no") }, want: retrieve.Failed, then: retrieve.Failed},
		{name: "panicking", during: func(context.Context) error { panic("secret") }, want: retrieve.Failed, then: retrieve.Failed},
		{name: "not asked", during: func(context.Context) error { return fmt.Errorf("x: %w", skipped("spent")) }, want: retrieve.Skipped, then: retrieve.Skipped},
		{name: "cancelled by its owner", during: func(context.Context) error { return context.Canceled }, want: retrieve.Cancelled, then: retrieve.Cancelled},
		{name: "timed out by itself", during: func(context.Context) error { return context.DeadlineExceeded }, want: retrieve.Late, then: retrieve.Late},
		{name: "without an opinion", vector: func([]float32) []float32 { return nil }, want: retrieve.Skipped, then: retrieve.Used},
		{name: "of another dimension", vector: func(v []float32) []float32 { return append(v, 1) }, want: retrieve.Failed, then: retrieve.Used, words: []string{"nowhere zzz"}},
		{name: "not a number", vector: func(v []float32) []float32 { v[3] = float32(math.NaN()); return v }, want: retrieve.Failed, then: retrieve.Used, words: []string{"", "the of", "?!"}},
		{name: "infinite", vector: func(v []float32) []float32 { v[0] = float32(math.Inf(1)); return v }, want: retrieve.Failed, then: retrieve.Used, words: []string{"\xff\xfe word9"}},
		{name: "zero", vector: func(v []float32) []float32 { clear(v); return v }, want: retrieve.Failed, then: retrieve.Used, words: []string{strings.Repeat("word9 ", 5000)}},
	}
}

// TestSickModels: whatever models do, the answer is that without any, in time,
// and says what became of them.
func TestSickModels(t *testing.T) {
	leakFree(t)
	all := chats(400, 21)
	model := newBag("m", 32)
	var during func(context.Context) error
	var propose []string
	with, off := embedded(t, model, expander(func(ctx context.Context, _ string) ([]string, error) {
		if during != nil {
			if err := during(ctx); err != nil {
				return nil, err
			}
		}
		return propose, nil
	}), all)
	for _, tt := range sicknesses() {
		t.Run(tt.name, func(t *testing.T) {
			during, propose = tt.during, tt.words
			model.query = func(ctx context.Context, text string) ([]float32, error) {
				if tt.during != nil {
					if err := tt.during(ctx); err != nil {
						return nil, err
					}
				}
				v := model.embed([]string{text})[0]
				if tt.vector != nil {
					v = tt.vector(v)
				}
				return v, nil
			}
			for _, q := range sickQueries() {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithTimeout(t.Context(), sickDeadline)
					defer cancel()
					begin := time.Now()
					got, err := with.Recall(ctx, q)
					if took := time.Since(begin); err != nil || took > sickDeadline-20*time.Millisecond {
						t.Fatalf("%q took %v, error %v", q.Text, took, err)
					}
					if diff := cmp.Diff(ownAnswer(ask(t, off, q)), ownAnswer(got)); diff != "" {
						t.Errorf("%q differs from the answer without models (-without +with):\n%s", q.Text, diff)
					}
					meaning, expansion := outcome(t, got, retrieve.Meaning), outcome(t, got, retrieve.Expansion)
					if meaning.Outcome != tt.want && meaning.Reason != "chatter" {
						t.Errorf("%q: meaning is %+v, want %v", q.Text, meaning, tt.want)
					}
					if o := expansion.Outcome; o != tt.then && o != retrieve.Skipped {
						t.Errorf("%q: expansion is %+v, want %v", q.Text, expansion, tt.then)
					}
					if q.Expansion == retrieve.ExpandAlways && q.Text == "word1 word2 word3" && expansion.Outcome != tt.then {
						t.Errorf("expansion is %+v, want %v", expansion, tt.then)
					}
					for _, o := range got.Sources {
						if strings.Contains(o.Reason, "secret") || strings.ContainsAny(o.Reason, "0123456789") {
							t.Errorf("a reason tells too much: %q", o.Reason)
						}
					}
					time.Sleep(2 * time.Hour) // let the stragglers finish
				})
			}
		})
	}
}

// TestSickReaders: a model that does not read what it is handed, or lies about
// it, leaves the answers as they are without it; one bad text costs its own
// vector only.
func TestSickReaders(t *testing.T) {
	leakFree(t)
	all := spoken(120, 5)
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop) })
	var calls atomic.Int64
	good := newBag("m", 16)
	tests := map[string]struct {
		documents func(ctx context.Context, texts []string) ([][]float32, error)
		reads     bool
	}{
		"failing":  {documents: func(context.Context, []string) ([][]float32, error) { return nil, errors.New("no") }},
		"skipping": {documents: func(context.Context, []string) ([][]float32, error) { return nil, skipped("spent") }},
		"stuck":    {documents: func(context.Context, []string) ([][]float32, error) { <-stop; return nil, nil }},
		"panic":    {documents: func(context.Context, []string) ([][]float32, error) { panic("no") }},
		"too few": {documents: func(_ context.Context, texts []string) ([][]float32, error) {
			return good.embed(texts)[1:], nil
		}},
		"too many": {documents: func(_ context.Context, texts []string) ([][]float32, error) {
			return append(good.embed(texts), nil), nil
		}},
		"no opinion on anything": {reads: true, documents: func(_ context.Context, texts []string) ([][]float32, error) {
			return make([][]float32, len(texts)), nil
		}},
		"no numbers": {reads: true, documents: func(_ context.Context, texts []string) ([][]float32, error) {
			list := good.embed(texts)
			for i := range list {
				list[i][i%16] = float32(math.NaN())
			}
			return list, nil
		}},
	}
	off := openAt(t, t.TempDir(), retrieve.Options{Tokens: embed.BuiltIn()}, all)
	defer closeIndex(t, off)
	runUntil(t, off, off.Flush, off.WaitLevels)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			model := newBag("m", 16)
			calls.Store(0)
			model.documents = func(ctx context.Context, texts []string) ([][]float32, error) {
				calls.Add(1)
				return tt.documents(ctx, texts)
			}
			x := openAt(t, t.TempDir(), remoteOptions(model, all), all)
			defer closeIndex(t, x)
			wait := x.WaitEmbeddingError
			if tt.reads {
				wait = x.WaitEmbedded
			} else if name == "stuck" {
				wait = func(context.Context) error { return nil }
			}
			runUntil(t, x, x.Flush, x.WaitLevels, wait)
			for _, q := range sickQueries() {
				if diff := cmp.Diff(ownAnswer(ask(t, off, q)), ownAnswer(ask(t, x, q))); diff != "" {
					t.Errorf("%q differs from the answer without a model:\n%s", q.Text, diff)
				}
			}
			if e := x.Embedding(); tt.reads != (e.Done == e.Total) || e.Identity != "" {
				t.Errorf("progress is %+v", e)
			}
		})
	}
}

// TestOneBadText: texts that a model has no vector for are ranked by words, the
// others by meaning too.
func TestOneBadText(t *testing.T) {
	all := spoken(200, 5)
	all[100].Text = "a poisonous text about zeppelins"
	model := newBag("m", 16)
	model.documents = func(_ context.Context, texts []string) ([][]float32, error) {
		list := model.embed(texts)
		for i, text := range texts {
			if strings.Contains(text, "poisonous") {
				list[i] = [][]float32{nil, make([]float32, 16), {1, 2}}[i%3]
			}
		}
		return list, nil
	}
	x := openAt(t, t.TempDir(), remoteOptions(model, all), all)
	defer closeIndex(t, x)
	runUntil(t, x, x.WaitEmbedded)
	r := ask(t, x, retrieve.Query{Text: "zeppelins", Relevance: retrieve.Always})
	if o := outcome(t, r, retrieve.Meaning); o.Outcome != retrieve.Used || len(r.Passages) == 0 || r.Passages[0].Seq != 101 {
		t.Errorf("meaning %+v, passages %v; want 101 first", o, seqs(r))
	}
}

// TestNoLevelsYet: while the gate's probes have not been embedded, meaning ranks
// and the gate judges by words alone.
func TestNoLevelsYet(t *testing.T) {
	all := spoken(300, 5)
	model := newBag("m", 32)
	model.query = func(_ context.Context, text string) ([]float32, error) {
		if !strings.Contains(text, "word") {
			return nil, errors.New("no") // a probe
		}
		return model.embed([]string{text})[0], nil
	}
	x := openAt(t, t.TempDir(), remoteOptions(model, all), all)
	defer closeIndex(t, x)
	off := openAt(t, t.TempDir(), retrieve.Options{Tokens: embed.BuiltIn()}, all)
	defer closeIndex(t, off)
	runUntil(t, x, x.Flush, x.WaitLevels, x.WaitEmbeddingError)
	runUntil(t, off, off.Flush, off.WaitLevels)
	if e := x.Embedding(); e.Done != e.Total || x.Reach().Embedded != 0 {
		t.Fatalf("progress %+v, reach %+v", e, x.Reach())
	}
	for i := range 20 {
		q := retrieve.Query{Text: fmt.Sprintf("word%d word%d word%d", i+20, 3*i+300, 11*i), Relevance: retrieve.Relevance(i % 2)}
		with, without := ask(t, x, q), ask(t, off, q)
		if diff := cmp.Diff(without.Gate, with.Gate); diff != "" {
			t.Errorf("%q: the gate (-without +with):\n%s", q.Text, diff)
		}
		if o := outcome(t, with, retrieve.Meaning); o.Outcome != retrieve.Used {
			t.Errorf("%q: meaning is %+v", q.Text, o)
		}
	}
}

// TestChangedModel: vectors of another dimension are refused, and after three
// answers of nothing else everything is embedded anew.
func TestChangedModel(t *testing.T) {
	all := spoken(90, 5)
	before, after := newBag("m", 16), newBag("m", 20)
	model := newBag("m", 16)
	changed := false
	model.documents = func(_ context.Context, texts []string) ([][]float32, error) {
		if changed {
			return after.embed(texts), nil
		}
		return before.embed(texts), nil
	}
	model.query = func(ctx context.Context, text string) ([]float32, error) {
		if changed {
			return after.EmbedQuery(ctx, text)
		}
		return before.EmbedQuery(ctx, text)
	}
	x := openAt(t, t.TempDir(), remoteOptions(model, all), all[:80])
	defer closeIndex(t, x)
	runUntil(t, x, x.WaitEmbedded)
	changed = true
	q := retrieve.Query{Text: "word1 word2", Relevance: retrieve.Always}
	if o := outcome(t, ask(t, x, q), retrieve.Meaning); o.Outcome != retrieve.Failed {
		t.Errorf("with a query of another dimension meaning is %+v", o)
	}
	if err := x.Add(t.Context(), all[80:]); err != nil {
		t.Fatal(err)
	}
	for range 2 { // each round ends with the first refusal
		runUntil(t, x, x.WaitEmbeddingError)
		if e := x.Embedding(); e.Done != 80 || e.LastError == nil {
			t.Errorf("after a refusal: %+v", e)
		}
		x.ForgetEmbeddingError()
	}
	runUntil(t, x, x.WaitEmbeddingError)
	if e := x.Embedding(); e.Done != 0 {
		t.Errorf("after the third refusal: %+v", e)
	}
	runUntil(t, x, x.WaitEmbedded)
	if o := outcome(t, ask(t, x, q), retrieve.Meaning); o.Outcome != retrieve.Used {
		t.Errorf("embedded anew, meaning is %+v", o)
	}
}

// TestUnreadNewest: the newest messages, which the model has not read yet, are
// found by their words and not ranked behind for want of a vector.
func TestUnreadNewest(t *testing.T) {
	all := spoken(400, 41)
	for i := range 4 {
		all[150+i].Text = fmt.Sprintf("the lighthouse keeper counted ships again, %d of them", i)
	}
	all[397].Text = "the lighthouse keeper counted ships tonight"
	model := newBag("m", 48)
	x := openAt(t, t.TempDir(), remoteOptions(model, all), all[:390])
	defer closeIndex(t, x)
	runUntil(t, x, x.WaitEmbedded, x.WaitLevels)
	if err := x.Add(t.Context(), all[390:]); err != nil {
		t.Fatal(err)
	}
	for _, relevance := range []retrieve.Relevance{retrieve.Gated, retrieve.Always} {
		r := ask(t, x, retrieve.Query{Text: "lighthouse keeper ships tonight", Relevance: relevance})
		if o := outcome(t, r, retrieve.Meaning); o.Outcome != retrieve.Used || r.Embedded != 390 {
			t.Errorf("meaning is %+v, reach %d", o, r.Embedded)
		}
		if len(r.Passages) == 0 || r.Passages[0].Seq != 398 {
			t.Errorf("%v: passages %v, gate %+v; want 398 first", relevance, seqs(r), r.Gate)
		}
	}
}

func seqs(r retrieve.Result) (list []uint64) {
	for _, p := range r.Passages {
		list = append(list, p.Seq)
	}
	return list
}
