package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	pb "recalld/proto/recalld/v1"
)

// smallSet has two memories and three questions, one of which stands apart.
func smallSet() *Set {
	message := func(id, text string) *pb.NewMessage {
		return newMessage(id, pb.Kind_KIND_USER, "Ada", nil, text)
	}
	return &Set{
		Name: "small",
		Memories: []Memory{
			{Project: "one", Turns: []*pb.NewTurn{
				newTurn("s1", "t1", message("a", "red apples ripen"), message("b", "we eat apples")),
				newTurn("s2", "t2", message("c", "boats sail")),
			}},
			{Project: "two", Turns: []*pb.NewTurn{newTurn("s3", "t3", message("d", "green pears"))}},
			{Project: "unasked", Turns: []*pb.NewTurn{newTurn("s4", "t4", message("e", "nobody asks"))}},
		},
		Questions: []Question{
			{
				ID: "q1", Project: "one", Text: "red apples", Categories: []string{"fruit"}, Split: Report,
				Golds: []Gold{{IDs: []string{"b"}}, {Suffix: "_session", Unit: BySession, IDs: []string{"s1"}}},
			},
			{ID: "q2", Project: "one", Text: "sail boats", Categories: []string{"ships"}, Split: Tune, Golds: []Gold{{IDs: []string{"c"}}}},
			{ID: "q3", Project: "two", Text: "green", Categories: []string{"fruit"}, Split: Report, Apart: true, Golds: []Gold{{IDs: []string{"x"}}}},
		},
		Columns: []string{"recall@1", "mrr"},
		Keys:    []string{"mrr"},
	}
}

func runSmall(t *testing.T) (*fakeServer, *Runner, *Run) {
	t.Helper()
	fake, client := startFake(t)
	runner := &Runner{client: client}
	run, err := runner.run(context.Background(), smallSet())
	if err != nil {
		t.Fatal(err)
	}
	return fake, runner, run
}

func TestRun(t *testing.T) {
	fake, _, run := runSmall(t)
	// b comes second although a is listed twice; its session comes first.
	want := Values{"mrr": .5, "recall@1": 0, "recall@5": 1, "mrr_session": 1, "recall@1_session": 1}
	for name, x := range want {
		if run.Values[0][name] != x {
			t.Errorf("%s = %v, want %v", name, run.Values[0][name], x)
		}
	}
	if diff := cmp.Diff([]string{"extra", "spr"}, run.Parts); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
	if len(fake.requests) != 6 {
		t.Fatalf("%d recalls, want one for each question and one for each block", len(fake.requests))
	}
	first, sample := fake.requests[0], fake.requests[3]
	if first.Limit != 50 || first.Relevance != pb.Relevance_RELEVANCE_ALWAYS || first.Expansion != pb.Expansion_EXPANSION_OFF || first.Now != nil {
		t.Errorf("first request: %v", first)
	}
	if sample.Limit != 0 || sample.BudgetBytes != 0 || sample.PassageBytes != 0 {
		t.Errorf("request for a block has limits: %v", sample)
	}
}

func TestRunOfSplit(t *testing.T) {
	_, _, run := runSmall(t)
	part := run.of(Report)
	if len(part.Set.Questions) != 2 || len(part.Values) != 2 || len(part.Took) != 2 || len(part.Blocks) != 2 {
		t.Errorf("report part: %d questions, %d values, %d times, %d blocks; want 2 of each",
			len(part.Set.Questions), len(part.Values), len(part.Took), len(part.Blocks))
	}
	if diff := cmp.Diff([]int{0, 1}, part.Sampled); diff != "" {
		t.Errorf("sampled (-want +got):\n%s", diff)
	}
}

func TestResultShape(t *testing.T) {
	_, _, run := runSmall(t)
	run.Took = []time.Duration{time.Millisecond, time.Second, 3 * time.Millisecond}
	var out bytes.Buffer
	if err := writeJSON("-", run.result(Report), &out); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	metrics := got["metrics"].(map[string]any)
	fruit := got["categories"].(map[string]any)["fruit"].(map[string]any)
	shape := map[string]any{
		"set": got["set"], "split": got["split"], "n": got["n"], "mrr": metrics["mrr"], "fruit": fruit["n"],
		"fruit mrr": fruit["metrics"].(map[string]any)["mrr"], "latency_ms": got["latency_ms"], "bytes": got["bytes"],
		"parts": got["parts"], "sources": got["sources"],
	}
	want := map[string]any{
		"set": "small", "split": "report", "n": 1., "mrr": .5, "fruit": 2., "fruit mrr": .25,
		"latency_ms": map[string]any{"p50": 1., "p95": 3., "p99": 3.},
		"bytes":      map[string]any{"p50": 18., "p95": 23.},
		"parts":      []any{"extra", "spr"},
		"sources":    map[string]any{"words": map[string]any{"used": 2.}},
	}
	if diff := cmp.Diff(want, shape); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
}

func TestGatedRun(t *testing.T) {
	fake, client := startFake(t)
	set := smallSet()
	set.Gated = true
	set.Questions = []Question{
		{ID: "kept", Project: "one", Text: "apples", Related: true},
		{ID: "missed", Project: "one", Text: "quinces", Related: true},
		{ID: "silent", Project: "two", Text: "apples"},
		{ID: "fired", Project: "two", Text: "pears"},
		{ID: "silent too", Project: "two", Text: "boats"},
		{ID: "and this", Project: "two", Text: "trains"},
	}
	run, err := (&Runner{client: client}).run(context.Background(), set)
	if err != nil {
		t.Fatal(err)
	}
	result := run.result(All)
	if diff := cmp.Diff(Values{"kept_related": .5, "fired_unrelated": .25}, result.Metrics); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
	if len(fake.requests) != 6 || fake.requests[0].Relevance != pb.Relevance_RELEVANCE_GATED || fake.requests[0].Limit != 0 {
		t.Errorf("%d requests, first %v; want 6, gated, with the default limits", len(fake.requests), fake.requests[0])
	}
	if len(run.Blocks) != 2 {
		t.Errorf("%d blocks, want those of the two that fired", len(run.Blocks))
	}
}

func TestPassesAndExtra(t *testing.T) {
	fake, client := startFake(t)
	set := smallSet()
	set.Passes = []Pass{{Suffix: "_fused"}, wordsOnly}
	set.Extra = []Values{{"ndcg@10": 1}, {"ndcg@10": 0}, {}}
	run, err := (&Runner{client: client}).run(context.Background(), set)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"mrr_fused", "mrr_words", "ndcg@10", "ndcg@10_fused"} {
		if _, ok := run.Values[0][name]; !ok {
			t.Errorf("%s is missing", name)
		}
	}
	if len(run.Took) != 3 {
		t.Errorf("%d times, want those of the first pass alone", len(run.Took))
	}
	if diff := cmp.Diff(wordsOnly.Sources, fake.requests[4].Sources); diff != "" {
		t.Errorf("sources of the second pass (-want +got):\n%s", diff)
	}
}

func TestAblate(t *testing.T) {
	_, runner, run := runSmall(t)
	list, err := runner.ablate(context.Background(), run)
	if err != nil {
		t.Fatal(err)
	}
	byName := make(map[string]Ablation)
	for _, a := range list {
		byName[a.Without] = a
	}
	// The fake ranks backwards without spr: q1 finds b first, q2 stays.
	want := Ablation{Without: "spr", Metric: "mrr", Value: 1, Difference: .25, Low: 0, High: .5}
	if diff := cmp.Diff(want, byName["spr"]); diff != "" {
		t.Errorf("without spr (-want +got):\n%s", diff)
	}
	if byName["when"].Refused == "" {
		t.Errorf("the refusal of when is not told: %+v", byName["when"])
	}
	for _, name := range []string{"extra", "dcov", "source words", "source meaning", "source context"} {
		if _, ok := byName[name]; !ok {
			t.Errorf("%s was not left out", name)
		}
	}
}

func TestIngestOnceInBatches(t *testing.T) {
	fake, client := startFake(t)
	memory := Memory{Project: "big"}
	for i := range batchTurns + 1 {
		id := fmt.Sprint(i)
		memory.Turns = append(memory.Turns, newTurn("s", id, newMessage(id, pb.Kind_KIND_USER, "user", nil, "x")))
	}
	done := 0
	for range 2 {
		if err := client.ingest(context.Background(), memory, func(n int) { done += n }); err != nil {
			t.Fatal(err)
		}
	}
	if fake.appends != 2 || done != 2*len(memory.Turns) {
		t.Errorf("%d appends, %d messages reported; want 2, %d", fake.appends, done, 2*len(memory.Turns))
	}
}

func TestBatchSizeBoundsBytes(t *testing.T) {
	long := strings.Repeat("x", batchBytes-10)
	turn := func(text string) *pb.NewTurn {
		return newTurn("s", "t", newMessage("m", pb.Kind_KIND_USER, "user", nil, text))
	}
	tests := []struct {
		name  string
		turns []*pb.NewTurn
		want  int
	}{
		{"both fit", []*pb.NewTurn{turn(long), turn("short")}, 2},
		{"the second is too much", []*pb.NewTurn{turn(long), turn(long)}, 1},
		{"one always goes", []*pb.NewTurn{turn(long + long), turn("x")}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := batchSize(tt.turns); got != tt.want {
				t.Errorf("batchSize = %d, want %d", got, tt.want)
			}
		})
	}
}

func TestCovers(t *testing.T) {
	tests := []struct {
		name  string
		reach *pb.Reach
		model string
		want  bool
	}{
		{"nothing yet", nil, "m", false},
		{"words behind", &pb.Reach{Sequence: 4, Indexed: 3, Embedded: 4}, "m", false},
		{"vectors behind", &pb.Reach{Sequence: 4, Indexed: 4, Embedded: 3}, "m", false},
		{"vectors behind, but off", &pb.Reach{Sequence: 4, Indexed: 4}, "off", true},
		{"not all appended", &pb.Reach{Sequence: 3, Indexed: 3, Embedded: 3}, "m", false},
		{"all", &pb.Reach{Sequence: 5, Indexed: 5, Embedded: 5}, "m", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := covers(tt.reach, 4, tt.model); got != tt.want {
				t.Errorf("covers = %t, want %t", got, tt.want)
			}
		})
	}
}

func TestReport(t *testing.T) {
	_, runner, run := runSmall(t)
	ablation, err := runner.ablate(context.Background(), run.of(Report))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	speed := SpeedReport{Sizes: []SpeedSize{{Turns: 1000, Messages: 2000, Recall: Percentiles{P50: 1.5, P95: 4}}}}
	if err := writeJSON(filepath.Join(folder, speedFile), speed, nil); err != nil {
		t.Fatal(err)
	}
	r := &report{
		made:    Provenance{Date: "2024-05-01", Machine: "a machine", Commit: "abc"},
		sets:    []reported{{run: run, ablation: ablation}},
		skipped: []string{"xquad: its data is not there"},
	}
	if err := r.write(folder); err != nil {
		t.Fatal(err)
	}
	text := readText(t, filepath.Join(folder, resultsFile))
	for _, want := range []string{
		"2024-05-01, commit abc, a machine", "## small", "Split report:", "Split tune:",
		"| fruit | 2 |", "| spr | mrr |", "## Speed", "| 1000 |", "- xquad: its data is not there",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s lacks %q", resultsFile, want)
		}
	}
	for _, name := range []string{recallPlot, latencyPlot} {
		if svg := readText(t, filepath.Join(folder, plotFolder, name)); !strings.Contains(svg, "</svg>") {
			t.Errorf("%s is no SVG", name)
		}
	}
}

func readText(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestHarm: the report says which way of expansion costs most, if it is too much.
func TestHarm(t *testing.T) {
	row := func(way string, difference float64) ModelRow {
		return ModelRow{Set: "s", Way: way, Metric: "mrr", Difference: difference}
	}
	for _, tt := range []struct {
		name string
		rows []ModelRow
		want string
	}{
		{"harmless", []ModelRow{row("words alone", -.3), row("expansion always", -.005)}, "it is of no use here, and costs no metric more than .005."},
		{"harmful", []ModelRow{row("expansion when weak", -.006), row("expansion always", -.02)}, "always it takes 0.0200 of mrr of s, more than the .005 that would be harmless."},
	} {
		if got := (&ModelReport{Rows: tt.rows}).harm(); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
