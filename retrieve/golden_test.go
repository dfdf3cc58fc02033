package retrieve_test

import (
	"compress/gzip"
	"encoding/json"
	"math"
	"os"
	"testing"
	"time"

	"recalld/embed"
	"recalld/retrieve"
)

// goldenData is evaluation data that is not part of the repository: parts of
// scores of one conversation, made by an independent implementation of the
// formula with another stop list and stemmer.
const goldenData = "../../shared/data/locomo/"

// TestGoldenParts holds every part of the score against that implementation,
// on average over thirty questions. It found names that were not recognised in
// the possessive.
func TestGoldenParts(t *testing.T) {
	if _, err := os.Stat(goldenData); err != nil {
		t.Skip("the evaluation data is not here")
	}
	type doc struct {
		ID                   string `json:"_id"`
		Scope, Session, Time string
		Speaker, Text        string
		Caption              string `json:"image_caption"`
	}
	var list []retrieve.Document
	var ids []string
	gzipLines(t, goldenData+"corpus.jsonl.gz", func(d doc) {
		if d.Scope != "conv-26" {
			return
		}
		at, err := time.Parse("3:04 pm on 2 January, 2006", d.Time)
		if err != nil {
			t.Fatal(err)
		}
		if d.Caption != "" {
			d.Text += " [" + d.Caption + "]"
		}
		ids = append(ids, d.ID)
		list = append(list, retrieve.Document{
			Seq: uint64(len(ids)), Session: d.Session, TurnSeq: uint64(len(ids)), Speaker: d.Speaker, Kind: retrieve.User, Time: at, Text: d.Text,
		})
	})
	x := open(t, retrieve.Options{Embedder: embed.BuiltIn()}, list...)
	if err := x.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	off, seen := map[string]float64{}, map[string]float64{}
	lines(t, goldenData+"ranking-golden-conv-26.jsonl", func(g struct {
		Query string
		Top   []map[string]any
	}) {
		r, err := x.Recall(t.Context(), retrieve.Query{Text: g.Query, Limit: 50, Relevance: retrieve.Always})
		if err != nil {
			t.Fatal(err)
		}
		parts := map[any][]retrieve.Part{}
		for _, p := range r.Passages {
			parts[ids[p.Seq-1]] = p.Parts
		}
		for _, want := range g.Top {
			for _, part := range parts[want["id"]] {
				if value, ok := want[part.Name].(float64); ok {
					off[part.Name] += math.Abs(value - part.Value)
					seen[part.Name]++
				}
			}
		}
	})
	for _, name := range []string{"spr", "dcov", "cspr", "smax", "spk", "pqs", "date", "ask", "fp", "when"} {
		if mean := off[name] / seen[name]; seen[name] < 290 || !(mean <= .02) {
			t.Errorf("%s differs by %.4f on average over %v messages, want at most .02 over 290", name, mean, seen[name])
		}
	}
}

// gzipLines calls f with every line of a compressed file of JSON lines.
func gzipLines[T any](t *testing.T, path string, f func(T)) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(r); d.More(); {
		var v T
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		f(v)
	}
}
