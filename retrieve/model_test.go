package retrieve_test

import (
	"context"
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"recalld/embed"
	"recalld/retrieve"
)

// A bagModel embeds texts as the sum of a random vector for each word: texts
// with words in common are near each other. It stands for a model that is
// asked, and its hooks for all that may go wrong with one.
type bagModel struct {
	name string
	dims int

	// documents and query, if set, are asked in its place.
	documents func(ctx context.Context, texts []string) ([][]float32, error)
	query     func(ctx context.Context, text string) ([]float32, error)

	mu    sync.Mutex
	words map[string][]float32
	// texts counts what it has been handed as documents, queries as queries.
	texts, queries atomic.Int64
}

func newBag(name string, dims int) *bagModel {
	return &bagModel{name: name, dims: dims, words: map[string][]float32{}}
}

func (m *bagModel) Identity() string { return m.name }

func (m *bagModel) EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error) {
	m.texts.Add(int64(len(texts)))
	if m.documents != nil {
		return m.documents(ctx, texts)
	}
	return m.embed(texts), nil
}

func (m *bagModel) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	m.queries.Add(1)
	if m.query != nil {
		return m.query(ctx, text)
	}
	return m.embed([]string{text})[0], nil
}

func (m *bagModel) embed(texts []string) [][]float32 {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([][]float32, len(texts))
	for i, text := range texts {
		sum := make([]float32, m.dims)
		for _, word := range strings.Fields(strings.ToLower(text)) {
			for k, x := range m.word(word) {
				sum[k] += x
			}
		}
		list[i] = sum
	}
	return list
}

func (m *bagModel) word(word string) []float32 {
	v, ok := m.words[word]
	if !ok {
		h := fnv.New64a()
		_, _ = h.Write([]byte(m.name + word))
		random := rand.New(rand.NewPCG(h.Sum64(), 3))
		v = make([]float32, m.dims)
		for k := range v {
			v[k] = float32(random.NormFloat64())
		}
		m.words[word] = v
	}
	return v
}

// textsOf gives the texts of documents as a ledger would.
func textsOf(docs []retrieve.Document) func(context.Context, []uint64) ([]string, error) {
	return func(_ context.Context, seqs []uint64) ([]string, error) {
		list := make([]string, len(seqs))
		for i, seq := range seqs {
			list[i] = docs[seq-1].Text
		}
		return list, nil
	}
}

// remoteOptions are those of a product with a model that is asked.
func remoteOptions(m retrieve.Embedder, docs []retrieve.Document) retrieve.Options {
	return retrieve.Options{Tokens: embed.BuiltIn(), Embedder: m, Texts: textsOf(docs)}
}

// openAt opens an index that is not run, with the documents it does not hold.
func openAt(t testing.TB, folder string, o retrieve.Options, docs []retrieve.Document) *retrieve.Index {
	t.Helper()
	x, err := retrieve.Open(folder, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Add(t.Context(), docs[x.Held():]); err != nil {
		t.Fatal(err)
	}
	return x
}

// runUntil runs an index until what it is to wait for has come, and leaves it
// open.
func runUntil(t *testing.T, x *retrieve.Index, wait ...func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = x.Run(ctx) }()
	for _, f := range wait {
		if err := f(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	<-done
}

func closeIndex(t testing.TB, x *retrieve.Index) {
	t.Helper()
	if err := x.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// outcome gives what became of a source.
func outcome(t testing.TB, r retrieve.Result, s retrieve.Source) retrieve.SourceOutcome {
	t.Helper()
	for _, o := range r.Sources {
		if o.Source == s {
			return o
		}
	}
	t.Fatalf("no word of %v in %v", s, r.Sources)
	return retrieve.SourceOutcome{}
}

func ask(t testing.TB, x *retrieve.Index, q retrieve.Query) retrieve.Result {
	t.Helper()
	r, err := x.Recall(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// everyday are sentences that anybody might have said.
var everyday = []string{
	"The dentist moved my appointment to Sunday.", "We cooked for six people and painted the kitchen.", "My sister bought a blue bicycle.",
	"The concert was cancelled because the doctor was ill.", "Add a test for the function that parses the file.", "The landlord wants to raise the rent.",
}

// spoken are chats of default kinds only, some of them long.
func spoken(n int, seed uint64) []retrieve.Document {
	list := chats(n, seed)
	for i := range list {
		if list[i].Kind == retrieve.Trace {
			list[i].Kind = retrieve.Note
		}
		switch {
		case i%17 == 3:
			list[i].Text = strings.Repeat(list[i].Text+"\n", 12)
		case i%6 == 1: // what the gate's probes bear on a little
			list[i].Text = everyday[i/6%len(everyday)] + " " + list[i].Text
		}
	}
	return list
}

// TestModelNeedsTexts: a model that is asked without a way to get at texts is a
// mistake in the wiring, and says so.
func TestModelNeedsTexts(t *testing.T) {
	if x, err := retrieve.Open(t.TempDir(), retrieve.Options{Embedder: newBag("m", 8)}); err == nil {
		closeIndex(t, x)
		t.Error("Open without Texts succeeded")
	}
}

// TestModelFindsByMeaning: vectors of a model take the place of the built-in
// ones; the reach and the progress say how far they are.
func TestModelFindsByMeaning(t *testing.T) {
	all := spoken(400, 3)
	all[250].Text = "a meeting about the budget of the museum"
	model := newBag("m", 48)
	x := openAt(t, t.TempDir(), remoteOptions(model, all), all)
	defer closeIndex(t, x)

	q := retrieve.Query{Text: "museum budget meeting", Relevance: retrieve.Always}
	before := ask(t, x, q)
	if o := outcome(t, before, retrieve.Meaning); o.Outcome != retrieve.Rebuilding || o.Reason != "the model has read 0 of 400 messages" {
		t.Errorf("before anything was read meaning is %+v", o)
	}
	if e := x.Embedding(); e.Identity != "" || e.Next != "m" || e.Done != 0 || e.Total != 400 || before.Embedded != 0 {
		t.Errorf("before anything was read: %+v, reach %d", e, before.Embedded)
	}
	runUntil(t, x, x.WaitEmbedded)
	after := ask(t, x, q)
	if o := outcome(t, after, retrieve.Meaning); o.Outcome != retrieve.Used {
		t.Errorf("meaning is %+v", o)
	}
	if e := x.Embedding(); e.Identity != "m" || e.Next != "" || e.Done != 400 || e.LastError != nil || after.Embedded != 400 {
		t.Errorf("afterwards: %+v, reach %d", e, after.Embedded)
	}
	if p := after.Passages[0]; p.Seq != 251 || p.Parts[2].Name != "cspr" || p.Parts[2].Value != 1 {
		t.Errorf("first is %d with %+v; want 251, nearest in meaning", p.Seq, p.Parts)
	}
	if p := before.Passages[0]; p.Parts[2].Value != 0 {
		t.Errorf("before, meaning was %v", p.Parts[2].Value)
	}
}

// TestModelSameAnswersHoweverRead: the same messages and model give the same
// answers, whether they came one by one or together, and after a restart.
func TestModelSameAnswersHoweverRead(t *testing.T) {
	all := spoken(700, 9)
	folder := t.TempDir()
	x := openAt(t, folder, remoteOptions(newBag("m", 32), all), all)
	runUntil(t, x, x.WaitEmbedded, x.WaitLevels, x.Flush)
	want := answers(t, x)
	closeIndex(t, x)

	model := newBag("m", 32)
	x = openAt(t, folder, remoteOptions(model, all), all)
	if diff := diffAnswers(want, answers(t, x)); diff != "" {
		t.Errorf("after a restart:\n%s", diff)
	}
	runUntil(t, x, x.WaitEmbedded)
	closeIndex(t, x)
	if n := model.texts.Load(); n != 0 {
		t.Errorf("after a restart %d texts were embedded again", n)
	}

	x = openAt(t, t.TempDir(), remoteOptions(newBag("m", 32), all), all[:1])
	defer closeIndex(t, x)
	for n := 1; n < len(all); n += 1 + n/3 {
		if err := x.Add(t.Context(), all[x.Held():n]); err != nil {
			t.Fatal(err)
		}
		runUntil(t, x, x.WaitEmbedded)
	}
	if err := x.Add(t.Context(), all[x.Held():]); err != nil {
		t.Fatal(err)
	}
	runUntil(t, x, x.WaitEmbedded, x.WaitLevels)
	if diff := diffAnswers(want, answers(t, x)); diff != "" {
		t.Errorf("bit by bit:\n%s", diff)
	}
}

// TestModelSwitch goes from one model to another and back while their vectors
// are kept: the views stay, words answer meanwhile, and no query is compared
// with vectors of another model.
func TestModelSwitch(t *testing.T) {
	all := spoken(300, 4)
	for name, second := range map[string]*bagModel{"another dimension": newBag("b", 96), "the same dimension": newBag("b", 64)} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			first := newBag("a", 64)
			x := openAt(t, folder, remoteOptions(first, all), all)
			runUntil(t, x, x.WaitEmbedded, x.WaitLevels, x.Flush)
			want := answers(t, x)
			closeIndex(t, x)

			// The second model reads a third and then fails.
			read := second.texts.Load()
			second.documents = func(_ context.Context, texts []string) ([][]float32, error) {
				if second.texts.Load()-read > 100 {
					return nil, errors.New("gone")
				}
				return second.embed(texts), nil
			}
			x = openAt(t, folder, remoteOptions(second, all), all)
			if x.Held() != 300 || x.Reach().Indexed != 300 {
				t.Fatalf("the views were made anew: %+v", x.Reach())
			}
			runUntil(t, x, x.WaitEmbeddingError)
			asked := second.queries.Load()
			for _, r := range answers(t, x) {
				if o := outcome(t, r, retrieve.Meaning); o.Outcome != retrieve.Rebuilding {
					t.Fatalf("meaning is %+v while few have been read", o)
				}
			}
			if second.queries.Load() != asked {
				t.Error("queries were embedded that nothing can be compared with")
			}
			closeIndex(t, x)

			// Back: nothing is embedded again.
			first.texts.Store(0)
			x = openAt(t, folder, remoteOptions(first, all), all)
			if diff := diffAnswers(want, answers(t, x)); diff != "" {
				t.Errorf("back with the first model:\n%s", diff)
			}
			if n := first.texts.Load(); n != 0 {
				t.Errorf("%d texts were embedded again", n)
			}
			closeIndex(t, x)

			// The second model goes on where it was, and once it is through the
			// vectors of the first are gone.
			second.documents, second.texts = nil, atomic.Int64{}
			x = openAt(t, folder, remoteOptions(second, all), all)
			done := x.Embedding().Done
			runUntil(t, x, x.WaitEmbedded)
			if n := second.texts.Load(); done == 0 || n >= 400 {
				t.Errorf("it began with %d messages and embedded %d texts", done, n)
			}
			if o := outcome(t, ask(t, x, retrieve.Query{Text: "word1 word2"}), retrieve.Meaning); o.Outcome != retrieve.Used {
				t.Errorf("meaning is %+v", o)
			}
			closeIndex(t, x)
			x = openAt(t, folder, remoteOptions(first, all), all)
			if e := x.Embedding(); e.Done != 0 || e.Next != "a" {
				t.Errorf("the first model's vectors are still there: %+v", e)
			}
			closeIndex(t, x)
		})
	}
}

// TestModelSwitchKeepsBuiltIn: between off, the built-in table and a model the
// views stay, and each answers as if there had been no other.
func TestModelSwitchKeepsBuiltIn(t *testing.T) {
	all := spoken(300, 6)
	folder := t.TempDir()
	off := retrieve.Options{Tokens: embed.BuiltIn()}
	builtIn := retrieve.Options{Embedder: embed.BuiltIn()}
	model := remoteOptions(newBag("m", 40), all)
	var want [3][]retrieve.Result
	for i, o := range []retrieve.Options{off, builtIn, model} {
		x := openAt(t, t.TempDir(), o, all)
		wait := []func(context.Context) error{x.Flush, x.WaitLevels}
		if i == 2 {
			wait = append(wait, x.WaitEmbedded)
		}
		runUntil(t, x, wait...)
		want[i] = answers(t, x)
		closeIndex(t, x)
	}
	for step, i := range []int{1, 2, 0, 2, 1, 0, 1} {
		x := openAt(t, folder, []retrieve.Options{off, builtIn, model}[i], all)
		if step > 0 && x.Reach().Indexed != 300 {
			t.Fatalf("step %d: the views were made anew", step)
		}
		if i == 2 {
			runUntil(t, x, x.Flush, x.WaitLevels, x.WaitEmbedded)
		} else {
			runUntil(t, x, x.Flush, x.WaitLevels)
		}
		if diff := diffAnswers(want[i], answers(t, x)); diff != "" {
			t.Errorf("step %d:\n%s", step, diff)
		}
		closeIndex(t, x)
	}
}

// TestModelKilled: what was embedded before a kill is not embedded again, also
// in the middle of a message.
func TestModelKilled(t *testing.T) {
	all := spoken(200, 8)
	all[60].Text = strings.Repeat(all[60].Text+". ", 250) // more slices than one call takes
	folder := t.TempDir()
	model := newBag("m", 24)
	stop := make(chan struct{})
	defer close(stop)
	for _, after := range []int64{1, 33, 70, 70} {
		hung := make(chan struct{}, 8)
		model.texts.Store(0)
		model.documents = func(_ context.Context, texts []string) ([][]float32, error) {
			if model.texts.Load() > after {
				hung <- struct{}{}
				<-stop
			}
			return model.embed(texts), nil
		}
		x := openAt(t, folder, remoteOptions(model, all), all)
		runUntil(t, x, x.Flush, func(context.Context) error { <-hung; return nil })
		done := x.Embedding().Done
		copied := filepath.Join(t.TempDir(), "views")
		if err := os.CopyFS(copied, os.DirFS(folder)); err != nil { // as a kill leaves it
			t.Fatal(err)
		}
		closeIndex(t, x)
		folder = copied

		x = openAt(t, folder, remoteOptions(model, all), all)
		if got := x.Embedding().Done; got != done {
			t.Errorf("after the kill %d messages are embedded, were %d", got, done)
		}
		closeIndex(t, x)
	}
	model.texts.Store(0)
	model.documents = nil
	x := openAt(t, folder, remoteOptions(model, all), all)
	runUntil(t, x, x.WaitEmbedded, x.WaitLevels)
	got := answers(t, x)
	closeIndex(t, x)
	fresh := newBag("m", 24)
	x = openAt(t, t.TempDir(), remoteOptions(fresh, all), all)
	runUntil(t, x, x.WaitEmbedded, x.WaitLevels)
	defer closeIndex(t, x)
	if diff := diffAnswers(answers(t, x), got); diff != "" {
		t.Errorf("after the kills:\n%s", diff)
	}
	if model.texts.Load() >= fresh.texts.Load()-150 {
		t.Errorf("%d texts were embedded after the kills, %d in all", model.texts.Load(), fresh.texts.Load())
	}
}

// TestModelVectorsDamaged: whatever happens to the file of vectors costs
// vectors only, and none that is wrong is used.
func TestModelVectorsDamaged(t *testing.T) {
	all, others := spoken(150, 1), spoken(150, 2)
	at, foreign := t.TempDir(), t.TempDir()
	x := openAt(t, foreign, remoteOptions(newBag("m", 32), others), others)
	runUntil(t, x, x.Flush, x.WaitEmbedded)
	closeIndex(t, x)
	x = openAt(t, at, remoteOptions(newBag("m", 32), all), all)
	runUntil(t, x, x.Flush, x.WaitEmbedded, x.WaitLevels)
	want := answers(t, x)
	closeIndex(t, x)
	file := func(folder string) string { return filepath.Join(folder, "vectors.db") }
	cut := func(size func(int64) int64) func(string) error {
		return func(f string) error {
			info, err := os.Stat(file(f))
			if err != nil {
				return err
			}
			return os.Truncate(file(f), size(info.Size()))
		}
	}
	damages := map[string]func(string) error{
		"none":            func(string) error { return nil },
		"gone":            func(f string) error { return os.Remove(file(f)) },
		"empty":           cut(func(int64) int64 { return 0 }),
		"cut in half":     cut(func(n int64) int64 { return n / 2 }),
		"cut at the end":  cut(func(n int64) int64 { return n - 4096 }),
		"a folder":        func(f string) error { return errors.Join(os.Remove(file(f)), os.MkdirAll(file(f)+"/x", 0o700)) },
		"another's":       func(f string) error { return errors.Join(os.Remove(file(f)), os.Link(file(foreign), file(f))) },
		"died in opening": func(f string) error { return os.WriteFile(filepath.Join(f, "opening-vectors"), nil, 0o600) },
	}
	for i := range 12 {
		damages["flipped "+string(rune('a'+i))] = func(f string) error {
			data, err := os.ReadFile(file(f))
			if err != nil {
				return err
			}
			random := rand.New(rand.NewPCG(uint64(i), 77))
			for range 1 << i {
				data[8192+random.IntN(len(data)-8192)] ^= 1 << random.IntN(8)
			}
			return os.WriteFile(file(f), data, 0o600)
		}
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "views")
			if err := os.CopyFS(folder, os.DirFS(at)); err != nil {
				t.Fatal(err)
			}
			if err := damage(folder); err != nil {
				t.Fatal(err)
			}
			x := openAt(t, folder, remoteOptions(newBag("m", 32), all), all)
			defer func() { closeIndex(t, x) }()
			if x.Reach().Indexed != 150 {
				t.Errorf("the other views were lost: %+v", x.Reach())
			}
			runUntil(t, x, x.WaitEmbedded, x.WaitLevels)
			if diff := diffAnswers(want, answers(t, x)); diff != "" {
				t.Errorf("after healing:\n%s", diff)
			}
		})
	}
}
