package retrieve_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"recalld/retrieve"
)

// open gives an index over texts, one message of the person each, with its
// writer running.
func open(t testing.TB, o retrieve.Options, docs ...retrieve.Document) *retrieve.Index {
	t.Helper()
	x, err := retrieve.Open(t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	run(t, x)
	if err := x.Add(t.Context(), docs); err != nil {
		t.Fatal(err)
	}
	return x
}

// run starts the index's writer and ends it with the test.
func run(t testing.TB, x *retrieve.Index) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = x.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
		if err := x.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
}

func doc(seq int, text string) retrieve.Document {
	return retrieve.Document{Seq: uint64(seq), Session: fmt.Sprint("s", seq), TurnSeq: uint64(seq), Speaker: "user", Kind: retrieve.User, Text: text}
}

func docs(texts ...string) []retrieve.Document {
	var list []retrieve.Document
	for i, text := range texts {
		list = append(list, doc(i+1, text))
	}
	return list
}

func recall(t testing.TB, x *retrieve.Index, query string) []uint64 {
	t.Helper()
	r, err := x.Recall(t.Context(), retrieve.Query{Text: query, Relevance: retrieve.Always, Limit: 50})
	if err != nil {
		t.Fatalf("Recall(%q): %v", query, err)
	}
	var list []uint64
	for _, p := range r.Passages {
		list = append(list, p.Seq)
	}
	return list
}

// TestHardQueries holds one-line texts and queries that tokenizers of other
// tools miss. A query passes when its text is among the hits, by words alone.
func TestHardQueries(t *testing.T) {
	texts, queries := readHard(t)
	x := open(t, retrieve.Options{}, docs(texts...)...)
	missed := 0
	for _, q := range queries {
		t.Run(fmt.Sprintf("%d %s", q.text, q.query), func(t *testing.T) {
			for _, seq := range recall(t, x, q.query) {
				if seq == uint64(q.text) {
					return
				}
			}
			missed++
			t.Errorf("Recall(%q) misses text %d: %s", q.query, q.text, texts[q.text-1])
		})
	}
	if len(queries) != 63 {
		t.Errorf("%d queries, want 63", len(queries))
	}
	t.Logf("found %d of %d", len(queries)-missed, len(queries))
}

type hardQuery struct {
	text  int
	query string
}

// readHard reads testdata/hard.txt: a text on a line by itself, then its
// queries, each indented by a tab.
func readHard(t *testing.T) (texts []string, queries []hardQuery) {
	f, err := os.Open("testdata/hard.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if query, ok := strings.CutPrefix(s.Text(), "\t"); ok {
			queries = append(queries, hardQuery{len(texts), query})
		} else {
			texts = append(texts, s.Text())
		}
	}
	return texts, queries
}

// TestRawStrings puts what other tools take for a query language: none of it
// is an error, and none of it changes meaning.
func TestRawStrings(t *testing.T) {
	x := open(t, retrieve.Options{}, docs("common text about foo and bar", "date 2026-03-01 and word12345")...)
	for _, q := range []string{
		"/(a+)+$/", "/.*.*.*.*.*x/", "*a*b*c*", "word*", "wrod12345~2", "+common +text", "text:", "\"unclosed", "a^", "(", "\\",
		"AND", "foo:bar:baz", ">=", "2026-03-01", "/[/", "~", "-", "+", ":", "a OR", "*",
	} {
		r, err := x.Recall(t.Context(), retrieve.Query{Text: q, Relevance: retrieve.Always})
		if err != nil {
			t.Errorf("Recall(%q): %v", q, err)
		}
		if strings.Trim(q, "(\\>=~-+:*") == "" && !r.NothingToSearch {
			t.Errorf("Recall(%q) searched", q)
		}
	}
	for q, want := range map[string]uint64{"+common +text": 1, "foo:bar:baz": 1, "text:": 1, "2026-03-01": 2} {
		if got := recall(t, x, q); len(got) == 0 || got[0] != want {
			t.Errorf("Recall(%q) = %v, want %d first", q, got, want)
		}
	}
}

// TestSourcesOff: a source that is switched off says so and has no part in the
// answer.
func TestSourcesOff(t *testing.T) {
	x := open(t, retrieve.Options{}, docs("the gauge reports every fifteen minutes", "nothing of the kind")...)
	for _, source := range []retrieve.Source{retrieve.Words, retrieve.Meaning, retrieve.Context, retrieve.Expansion} {
		r, err := x.Recall(t.Context(), retrieve.Query{Text: "gauge reports", Relevance: retrieve.Always, WithoutSources: []retrieve.Source{source}})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range r.Sources {
			if o.Source == source && o.Outcome != retrieve.Off {
				t.Errorf("%v switched off: outcome %v", source, o.Outcome)
			}
		}
		if source == retrieve.Words && len(r.Passages) > 0 {
			t.Errorf("without words and meaning %d passages", len(r.Passages))
		}
	}
}

// TestLateWords: when time ends, the rarest word has still been looked for.
func TestLateWords(t *testing.T) {
	x := open(t, retrieve.Options{}, docs("common words and a zugzwang", "common words", "common words again")...)
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(time.Hour))
	defer cancel()
	r, err := x.Recall(ctx, retrieve.Query{Text: "common words zugzwang", Relevance: retrieve.Always})
	if err != nil || len(r.Passages) == 0 || r.Passages[0].Seq != 1 {
		t.Fatalf("passages %v, error %v; want message 1 first", r.Passages, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := x.Recall(ended, retrieve.Query{Text: "zugzwang"}); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled recall: %v, want context.Canceled", err)
	}
}
