package retrieve_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"recalld/embed"
	"recalld/retrieve"
)

// chats gives n messages in sessions of 20, of words that repeat like those of
// a language do.
func chats(n int, seed uint64) []retrieve.Document {
	random := rand.New(rand.NewPCG(seed, 1))
	zipf := rand.NewZipf(random, 1.2, 4, 3000)
	start := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	var list []retrieve.Document
	for i := range n {
		var b strings.Builder
		for range 8 + random.IntN(30) {
			fmt.Fprintf(&b, "word%d ", zipf.Uint64())
		}
		kind, speaker := retrieve.User, "user"
		switch i % 5 {
		case 1, 3:
			kind, speaker = retrieve.Reply, "assistant"
		case 4:
			kind, speaker = retrieve.Trace, "tool"
		}
		list = append(list, retrieve.Document{
			Seq: uint64(i + 1), Session: fmt.Sprint("session", i/20), TurnSeq: uint64(i/5 + 1), Ordinal: i % 5,
			Speaker: speaker, Kind: kind, Time: start.Add(time.Duration(i) * time.Hour), Text: b.String(),
		})
	}
	return list
}

// answers gives what an index answers to fixed queries, scores included.
func answers(t *testing.T, x *retrieve.Index) []retrieve.Result {
	t.Helper()
	var list []retrieve.Result
	for i := range 25 {
		q := retrieve.Query{Text: fmt.Sprintf("word%d word%d word%d", i, 3*i+7, 11*i), Relevance: retrieve.Always}
		if i%5 == 0 {
			q.Kinds = []retrieve.Kind{retrieve.User, retrieve.Trace}
		}
		r, err := x.Recall(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for k := range r.Sources {
			r.Sources[k].Took = 0
		}
		r.Indexed = 0
		list = append(list, r)
	}
	return list
}

// TestSameAnswersHoweverFilled: the same documents give the same passages,
// order and scores from memory, from disk, from both, and after a restart.
func TestSameAnswersHoweverFilled(t *testing.T) {
	all := chats(12000, 7)
	o := retrieve.Options{Embedder: embed.BuiltIn()}
	at := t.TempDir()

	disk, err := retrieve.Open(at, o)
	if err != nil {
		t.Fatal(err)
	}
	stop := start(t, disk)
	for rest := all; len(rest) > 0; {
		n := min(777, len(rest))
		if err := disk.Add(t.Context(), rest[:n]); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
	if err := disk.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := answers(t, disk)
	if len(want[1].Passages) != 20 {
		t.Fatalf("%d passages, want 20", len(want[1].Passages))
	}
	stop()

	again, err := retrieve.Open(at, o)
	if err != nil {
		t.Fatal(err)
	}
	if got := again.Held(); got != uint64(len(all)) {
		t.Fatalf("after a restart the index holds %d messages, want %d", got, len(all))
	}
	if diff := cmp.Diff(want, answers(t, again)); diff != "" {
		t.Errorf("after a restart (-before +after):\n%s", diff)
	}
	start(t, again)()

	memory := open(t, o)
	if err := memory.Add(t.Context(), all[:3000]); err != nil {
		t.Fatal(err)
	}
	one := open(t, o)
	for _, d := range all[:3000] {
		if err := one.Add(t.Context(), []retrieve.Document{d}); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range []*retrieve.Index{memory, one} {
		if err := x.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(answers(t, memory), answers(t, one)); diff != "" {
		t.Errorf("one by one differs from together (-together +one):\n%s", diff)
	}
}

// start runs the index's writer; the function it returns ends it and closes
// the index.
func start(t *testing.T, x *retrieve.Index) (stop func()) {
	t.Helper()
	ctx, cancel := contextOf(t)
	done := make(chan struct{})
	go func() { defer close(done); _ = x.Run(ctx) }()
	return func() {
		cancel()
		<-done
		if err := x.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
}

// TestDamagedViews: whatever happened to the files, the index opens, empty or
// whole, and takes the documents again.
func TestDamagedViews(t *testing.T) {
	all := chats(300, 3)
	at := t.TempDir()
	x, err := retrieve.Open(at, retrieve.Options{})
	if err != nil {
		t.Fatal(err)
	}
	stop := start(t, x)
	if err := errors.Join(x.Add(t.Context(), all), x.Flush(t.Context())); err != nil {
		t.Fatal(err)
	}
	want := answers(t, x)
	stop()
	damages := map[string]func(folder string) error{
		"no columns":       func(f string) error { return os.Remove(filepath.Join(f, "columns.db")) },
		"empty columns":    func(f string) error { return os.Truncate(filepath.Join(f, "columns.db"), 0) },
		"cut columns":      func(f string) error { return os.Truncate(filepath.Join(f, "columns.db"), 5000) },
		"no words":         func(f string) error { return os.RemoveAll(filepath.Join(f, "words")) },
		"empty root":       func(f string) error { return os.Truncate(filepath.Join(f, "words", "store", "root.bolt"), 0) },
		"cut root":         func(f string) error { return os.Truncate(filepath.Join(f, "words", "store", "root.bolt"), 9000) },
		"no meta":          func(f string) error { return os.Remove(filepath.Join(f, "words", "index_meta.json")) },
		"died in opening":  func(f string) error { return os.WriteFile(filepath.Join(f, "opening"), nil, 0o600) },
		"cut segments":     cutSegments,
		"everything":       func(f string) error { return os.RemoveAll(f) },
		"a file for words": func(f string) error { return replaceByFile(filepath.Join(f, "words")) },
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
			x, err := retrieve.Open(folder, retrieve.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer start(t, x)()
			if err := errors.Join(x.Add(t.Context(), all[x.Held():]), x.Flush(t.Context())); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, answers(t, x)); diff != "" {
				t.Errorf("after healing (-want +got):\n%s", diff)
			}
		})
	}
}

func cutSegments(folder string) error {
	files, err := filepath.Glob(filepath.Join(folder, "words", "store", "*.zap"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("segments %v: %w", files, err)
	}
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			return err
		}
		if err := os.Truncate(f, info.Size()/2); err != nil {
			return err
		}
	}
	return nil
}

func replaceByFile(path string) error {
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	return os.WriteFile(path, []byte("not a folder"), 0o600)
}

// TestFlushMeasuresLevels: once Flush returns, the gate has its level, also
// where nothing gives meaning.
func TestFlushMeasuresLevels(t *testing.T) {
	for name, o := range map[string]retrieve.Options{"words": {}, "meaning": {Embedder: embed.BuiltIn()}} {
		for n := range 5 {
			x := open(t, o, chats(200+n, 3)...)
			if err := x.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			if g := ask(t, x, retrieve.Query{Text: "word1 word7"}).Gate; g.Parts[2].Value == 0 {
				t.Errorf("%s: the level of coverage is %v", name, g.Parts[2].Value)
			}
		}
	}
}

func TestAddOutOfOrder(t *testing.T) {
	x := open(t, retrieve.Options{}, docs("one")...)
	for _, seq := range []int{1, 3} {
		if err := x.Add(t.Context(), []retrieve.Document{doc(seq, "text")}); !errors.Is(err, retrieve.ErrOrder) {
			t.Errorf("Add(%d) after 1: %v, want ErrOrder", seq, err)
		}
	}
	if got := recall(t, x, "text"); len(got) != 0 {
		t.Errorf("refused documents are found: %v", got)
	}
}

// TestLateMessage: a message that arrives late for its turn has its neighbours
// by its place in the session.
func TestLateMessage(t *testing.T) {
	at := func(seq, turn, ordinal int, text string) retrieve.Document {
		d := doc(seq, text)
		d.Session, d.TurnSeq, d.Ordinal = "s", uint64(turn), ordinal
		return d
	}
	x := open(t, retrieve.Options{}, at(1, 1, 0, "first"), at(2, 2, 0, "second"), at(3, 3, 0, "third"), at(4, 1, 1, "late"), at(5, 0, 0, "earliest"))
	r, err := x.Recall(t.Context(), retrieve.Query{Text: "late", Relevance: retrieve.Always})
	if err != nil {
		t.Fatal(err)
	}
	if p := r.Passages[0]; p.Seq != 4 || p.Previous != 1 || p.Next != 2 {
		t.Errorf("late message is %d between %d and %d, want 4 between 1 and 2", p.Seq, p.Previous, p.Next)
	}
	r, err = x.Recall(t.Context(), retrieve.Query{Text: "earliest", Relevance: retrieve.Always})
	if err != nil {
		t.Fatal(err)
	}
	if p := r.Passages[0]; p.Seq != 5 || p.Previous != 0 || p.Next != 1 {
		t.Errorf("earliest message is %d between %d and %d, want 5 between none and 1", p.Seq, p.Previous, p.Next)
	}
}

// TestHold: while a rebuild catches up, the newest messages are found, and the
// result says so; afterwards they are found once.
func TestHold(t *testing.T) {
	all := chats(200, 5)
	all[199].Text, all[199].Kind = "zebra crossing", retrieve.User
	x := open(t, retrieve.Options{}, all[:50]...)
	if err := x.Hold(t.Context(), all[150:]); err != nil {
		t.Fatal(err)
	}
	check := func(want retrieve.Outcome) {
		t.Helper()
		r, err := x.Recall(t.Context(), retrieve.Query{Text: "zebra", Relevance: retrieve.Always, Kinds: []retrieve.Kind{retrieve.User, retrieve.Trace}})
		if err != nil {
			t.Fatal(err)
		}
		holders := 0
		for _, p := range r.Passages {
			if p.Seq == 200 {
				holders++
			}
		}
		if holders != 1 || r.Passages[0].Seq != 200 || r.Sources[0].Outcome != want {
			t.Errorf("passages %v, words %v; want message 200, %v", r.Passages, r.Sources[0].Outcome, want)
		}
	}
	check(retrieve.Rebuilding)
	if err := x.Add(t.Context(), all[50:]); err != nil {
		t.Fatal(err)
	}
	check(retrieve.Used)
}

// TestHoldIsOnOneScale: during a rebuild an exact match among the newest
// messages comes before weak ones among those caught up with.
func TestHoldIsOnOneScale(t *testing.T) {
	var all []retrieve.Document
	for i := range 200 {
		all = append(all, doc(i+1, fmt.Sprintf("note number %d about things", i)))
	}
	all[199].Text = "note number5999n about things"
	x := open(t, retrieve.Options{}, all[:100]...)
	if err := x.Hold(t.Context(), all[150:]); err != nil {
		t.Fatal(err)
	}
	if got := recall(t, x, "number5999n"); len(got) == 0 || got[0] != 200 {
		t.Errorf("Recall = %v, want 200 first", got)
	}
}

// TestRareWordFirst: a word that one message holds ranks it first, whatever
// meaning says.
func TestRareWordFirst(t *testing.T) {
	all := chats(3000, 11)
	random := rand.New(rand.NewPCG(5, 5))
	var rare []int
	for i := range 200 {
		at := i*15 + 2*random.IntN(3)
		if all[at].Kind == retrieve.Trace {
			continue
		}
		all[at].Text += fmt.Sprintf("DEC-%04d", 7000+i)
		rare = append(rare, i, at+1)
	}
	x := open(t, retrieve.Options{Embedder: embed.BuiltIn()}, all...)
	for k := 0; k < len(rare); k += 2 {
		query := fmt.Sprintf("DEC-%04d", 7000+rare[k])
		if got := recall(t, x, query); len(got) == 0 || got[0] != uint64(rare[k+1]) {
			t.Errorf("Recall(%s) = %v…, want %d first", query, got[:min(3, len(got))], rare[k+1])
		}
	}
}
