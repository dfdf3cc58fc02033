package retrieve_test

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"

	"recalld/embed"
	"recalld/retrieve"
)

// lines calls f with every line of a file of JSON lines.
func lines[T any](t *testing.T, path string, f func(T)) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	s := bufio.NewScanner(file)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		var v T
		if err := json.Unmarshal(s.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		f(v)
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
}

// TestSample asks the golden questions of the history that ships with recalld.
// Chatter and unrelated prompts get nothing through the gate. The least number
// of questions whose answer is among the first ten is what was reached; a
// change that lowers it has to say why.
func TestSample(t *testing.T) {
	const folder = "../cmd/recalld/sample/"
	kinds := map[string]retrieve.Kind{"user": retrieve.User, "reply": retrieve.Reply, "trace": retrieve.Trace, "note": retrieve.Note}
	var list []retrieve.Document
	var ids []string
	turn := uint64(0)
	type said struct{ ID, Kind, Speaker, Time, Text string }
	lines(t, folder+"turns.jsonl", func(line struct {
		Session  string `json:"session_id"`
		Messages []said
	}) {
		turn++
		for i, m := range line.Messages {
			at, err := time.Parse(time.RFC3339, m.Time)
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, m.ID)
			list = append(list, retrieve.Document{
				Seq: uint64(len(ids)), Session: line.Session, TurnSeq: turn, Ordinal: i,
				Speaker: m.Speaker, Kind: kinds[m.Kind], Time: at, Text: m.Text,
			})
		}
	})
	x := open(t, retrieve.Options{Embedder: embed.BuiltIn()}, list...)
	if err := x.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	asked, found, first := 0, 0, 0
	lines(t, folder+"golden.jsonl", func(q struct {
		Query, Kind string
		Expect      []string
	}) {
		query := retrieve.Query{Text: q.Query, Relevance: retrieve.Always, Limit: 10}
		if len(q.Expect) == 0 {
			query.Relevance = retrieve.Gated
		}
		r, err := x.Recall(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		if len(q.Expect) == 0 {
			if len(r.Passages) > 0 {
				t.Errorf("%s %q gets %d passages, gate %+v", q.Kind, q.Query, len(r.Passages), r.Gate)
			}
			return
		}
		asked++
		for i, p := range r.Passages {
			if slices.Contains(q.Expect, ids[p.Seq-1]) {
				found++
				if i == 0 {
					first++
				}
				return
			}
		}
		t.Logf("%s %q is not among the first ten", q.Kind, q.Query)
	})
	t.Logf("of %d questions %d are answered among the first ten, %d first", asked, found, first)
	if found < 42 || first < 27 {
		t.Errorf("%d of %d answered among the first ten, %d first; want 42 and 27", found, asked, first)
	}
}
