package main

import (
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	pb "recalld/proto/recalld/v1"
)

// writeData writes a file of a data set, gzipped when its name ends so.
func writeData(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	var out io.WriteCloser = file
	if strings.HasSuffix(path, ".gz") {
		out = gzip.NewWriter(file)
	}
	if _, err := io.WriteString(out, text); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(out.Close(), closeOnce(out, file)); err != nil {
		t.Fatal(err)
	}
}

func closeOnce(out io.WriteCloser, file *os.File) error {
	if out == file {
		return nil
	}
	return file.Close()
}

const locomoCorpus = `{"_id":"conv-26/D1:1","scope":"conv-26","session":"session_1","time":"1:56 pm on 8 May, 2023","speaker":"Ada","text":"I planted a quince tree.","image_caption":"a small tree"}
{"_id":"conv-26/D2:1","scope":"conv-26","session":"session_2","time":"9:05 am on 12 June, 2023","speaker":"Bo","text":"Ada, the harvest was great.","image_caption":null}
{"_id":"conv-44/D1:1","scope":"conv-44","session":"session_1","time":"1:56 pm on 8 May, 2023","speaker":"Cy","text":"My boat leaks."}
{"_id":"conv-47/D1:1","scope":"conv-47","session":"session_1","time":"1:56 pm on 8 May, 2023","speaker":"Dee","text":"I bake rye bread."}
`

const locomoQueries = `{"_id":"conv-26/q0","scope":"conv-26","text":"What did Ada plant, and how was ADA's harvest?","category":"multi-hop"}
{"_id":"conv-44/q0","scope":"conv-44","text":"What of Cy leaks?","category":"single-hop"}
{"_id":"conv-47/q0","scope":"conv-47","text":"What does Cy bake?","category":"adversarial"}
`

const locomoQrels = "query-id\tcorpus-id\tscore\nconv-26/q0\tconv-26/D1:1\t1\nconv-26/q0\tconv-26/D2:1\t1\n" +
	"conv-44/q0\tconv-44/D1:1\t1\nconv-47/q0\tconv-47/D1:1\t1\n"

func writeLocomo(t *testing.T, data string) {
	writeData(t, filepath.Join(data, "locomo", "corpus.jsonl.gz"), locomoCorpus)
	writeData(t, filepath.Join(data, "locomo", "queries.jsonl.gz"), locomoQueries)
	writeData(t, filepath.Join(data, "locomo", "qrels.tsv.gz"), locomoQrels)
}

const beamCorpus = `{"_id":"1/0","scope":"1","session":"1","time":"March-15-2024","speaker":"user","text":"I deploy on Fridays."}
{"_id":"1/1","scope":"1","session":"1","time":"March-15-2024","speaker":"assistant","text":"Better on Mondays."}
{"_id":"1/2","scope":"1","session":"2","time":"rough","speaker":"assistant","text":"An answer to nothing."}
{"_id":"2/0","scope":"2","session":"1","time":"April-05-2024","speaker":"user","text":"Integrals are hard."}
`

func writeBeam(t *testing.T, data string) {
	writeData(t, filepath.Join(data, "beam-100k", "corpus.jsonl.gz"), beamCorpus)
	writeData(t, filepath.Join(data, "beam-100k", "queries.jsonl.gz"),
		`{"_id":"1/x/0","scope":"1","text":"When do I deploy?","category":"information_extraction"}`+"\n"+
			`{"_id":"2/x/0","scope":"2","text":"What is hard?","category":"information_extraction"}`+"\n")
	writeData(t, filepath.Join(data, "beam-100k", "qrels.tsv.gz"),
		"query-id\tcorpus-id\tscore\n1/x/0\t1/1\t1\n2/x/0\t2/0\t1\n")
}

const entireSessions = `{"session_id":"s-one","turns":[{"role":"user","time":"2026-02-11T15:31:21.085Z","uuid":"u1","text":"Use the git user for shadow branches"},{"role":"assistant","time":"2026-02-11T15:31:25Z","uuid":"u2","text":"Done."},{"role":"assistant","time":"2026-02-11T15:31:26Z","uuid":"u3","text":" "},{"role":"user","time":"2026-02-11T15:32:00Z","text":"Thanks"}]}
{"session_id":"s-two","turns":[{"role":"user","time":"2026-02-11T15:31:21.085Z","uuid":"u1","text":"Use the git user for shadow branches"},{"role":"user","time":"2026-02-12T08:00:00Z","uuid":"u9","text":"Now fix the linter"}]}
`

const specstorySessions = `{"session_id":"p-one","turns":[{"role":"user","meta":"- sidechain (2026-01-16 16:48:38Z)","text":"Search the repository"},{"role":"user","meta":"(2026-01-16 16:50:00Z)","text":"Move the release workflow"},{"role":"assistant","meta":"(model 2026-01-16 16:51:00Z)","text":"Moved."}]}
{"session_id":"p-two","turns":[{"role":"user","meta":"no time","text":"Move the release workflow"}]}
{"session_id":"p-six","turns":[{"role":"user","meta":"no time","text":"<command-name>/model</command-name>"},{"role":"user","meta":"no time","text":"Sign the binaries"}]}
`

const commitPairs = `{"commit":"aaa","subject":"Use the git user for shadow branches","sessions":["s-one"]}
{"commit":"bbb","subject":"quiet the linter","sessions":["s-two"]}
`

func writeCoding(t *testing.T, data string) {
	writeData(t, filepath.Join(data, "sessions", "entire-sessions.jsonl.gz"), entireSessions)
	writeData(t, filepath.Join(data, "sessions", "specstory-sessions.jsonl.gz"), specstorySessions)
	writeData(t, filepath.Join(data, "sessions", "entire-commit-session-pairs.jsonl"), commitPairs)
}

// A line is what a message of a memory comes to.
type line struct{ Session, Turn, ID, Kind, Speaker, Time, Text string }

func linesOf(memory Memory) []line {
	var lines []line
	for _, turn := range memory.Turns {
		for _, m := range turn.Messages {
			at := ""
			if m.Time != nil {
				at = m.Time.At.AsTime().Format(time.RFC3339)
			}
			kind := strings.TrimPrefix(m.Kind.String(), "KIND_")
			lines = append(lines, line{turn.SessionId, turn.TurnId, m.Id, kind, m.Speaker, at, string(m.Text)})
		}
	}
	return lines
}

func mustLoad(t *testing.T, load func(string) (*Set, error), data string) *Set {
	t.Helper()
	set, err := load(data)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestLoadLocomoTurn(t *testing.T) {
	data := t.TempDir()
	writeLocomo(t, data)
	set := mustLoad(t, loadLocomoTurn, data)
	want := []line{
		{"locomo/conv-26/session_1", "conv-26/D1:1", "conv-26/D1:1", "USER", "Ada", "2023-05-08T13:56:00Z", "I planted a quince tree. [a small tree]"},
		{"locomo/conv-26/session_2", "conv-26/D2:1", "conv-26/D2:1", "USER", "Bo", "2023-06-12T09:05:00Z", "Ada, the harvest was great."},
	}
	if diff := cmp.Diff(want, linesOf(set.Memories[0])); diff != "" {
		t.Errorf("first memory (-want +got):\n%s", diff)
	}
	if len(set.Memories) != 3 {
		t.Errorf("%d memories, want 3", len(set.Memories))
	}
	questions := []Question{
		{
			ID: "conv-26/q0", Project: "locomo/conv-26", Text: "What did Ada plant, and how was ADA's harvest?",
			Categories: []string{"multi-hop", "all"}, Split: Tune,
			Golds: []Gold{{IDs: []string{"conv-26/D1:1", "conv-26/D2:1"}}},
		},
		{
			ID: "conv-44/q0", Project: "locomo/conv-44", Text: "What of Cy leaks?",
			Categories: []string{"single-hop", "all"}, Split: Report, Golds: []Gold{{IDs: []string{"conv-44/D1:1"}}},
		},
		{
			ID: "conv-47/q0", Project: "locomo/conv-47", Text: "What does Cy bake?",
			Categories: []string{"adversarial", "all"}, Split: Report, Apart: true, Golds: []Gold{{IDs: []string{"conv-47/D1:1"}}},
		},
	}
	if diff := cmp.Diff(questions, set.Questions, cmp.AllowUnexported(pb.SpokenTime{})); diff != "" {
		t.Errorf("questions (-want +got):\n%s", diff)
	}
	set.only(Report)
	if len(set.Questions) != 2 || len(set.Memories) != 2 {
		t.Errorf("report part has %d questions, %d memories; want 2, 2", len(set.Questions), len(set.Memories))
	}
}

func TestLoadLocomoSessionAndMerged(t *testing.T) {
	data := t.TempDir()
	writeLocomo(t, data)
	gold := mustLoad(t, loadLocomoSession, data).Questions[0].Golds[0]
	want := Gold{Unit: BySession, IDs: []string{"locomo/conv-26/session_1", "locomo/conv-26/session_2"}}
	if diff := cmp.Diff(want, gold); diff != "" {
		t.Errorf("gold sessions (-want +got):\n%s", diff)
	}
	merged := mustLoad(t, loadLocomoMerged, data)
	if len(merged.Memories) != 1 || merged.Memories[0].messages() != 4 {
		t.Fatalf("merged: %d memories, %d messages; want 1, 4", len(merged.Memories), merged.Memories[0].messages())
	}
	if got := merged.Memories[0].Turns[2].SessionId; got != "locomo-merged/conv-44/session_1" {
		t.Errorf("merged session %q does not name its conversation", got)
	}
}

func TestLoadBeam(t *testing.T) {
	data := t.TempDir()
	writeBeam(t, data)
	set := mustLoad(t, loadBeam, data)
	want := []line{
		{"beam/1/1", "turn-1/0", "1/0", "USER", "user", "2024-03-15T00:00:00Z", "I deploy on Fridays."},
		{"beam/1/1", "turn-1/0", "1/1", "REPLY", "assistant", "2024-03-15T00:00:00Z", "Better on Mondays."},
		{"beam/1/2", "turn-1/2", "1/2", "REPLY", "assistant", "", "An answer to nothing."},
	}
	if diff := cmp.Diff(want, linesOf(set.Memories[0])); diff != "" {
		t.Errorf("first memory (-want +got):\n%s", diff)
	}
	golds := []Gold{{IDs: []string{"1/1"}}, {Suffix: "_exchange", Unit: ByExchange, IDs: []string{"turn-1/0"}}}
	if diff := cmp.Diff(golds, set.Questions[0].Golds); diff != "" {
		t.Errorf("golds (-want +got):\n%s", diff)
	}
	if set.Questions[0].Split != Tune || set.Questions[1].Split != Report {
		t.Errorf("splits %s, %s; want tune for the odd chat, report for the even", set.Questions[0].Split, set.Questions[1].Split)
	}
}

func TestLoadSessions(t *testing.T) {
	data := t.TempDir()
	writeCoding(t, data)
	set := mustLoad(t, loadSessions, data)
	want := []line{
		{"sessions/entire/s-one", "turn-u1", "u1", "USER", "user", "2026-02-11T15:31:21Z", "Use the git user for shadow branches"},
		{"sessions/entire/s-one", "turn-u1", "u2", "REPLY", "assistant", "2026-02-11T15:31:25Z", "Done."},
		{"sessions/entire/s-one", "turn-s-one/3", "s-one/3", "USER", "user", "2026-02-11T15:32:00Z", "Thanks"},
		{"sessions/entire/s-two", "turn-u9", "u9", "USER", "user", "2026-02-12T08:00:00Z", "Now fix the linter"},
	}
	if diff := cmp.Diff(want, linesOf(set.Memories[0])); diff != "" {
		t.Errorf("memory (-want +got):\n%s", diff)
	}
	categories := []string{set.Questions[0].Categories[0], set.Questions[1].Categories[0]}
	if diff := cmp.Diff([]string{"verbatim", "non-verbatim"}, categories); diff != "" {
		t.Errorf("categories (-want +got):\n%s", diff)
	}
	gold := []Gold{{Unit: BySession, IDs: []string{"sessions/entire/s-two"}}}
	if diff := cmp.Diff(gold, set.Questions[1].Golds); diff != "" {
		t.Errorf("gold (-want +got):\n%s", diff)
	}
}

// TestHashSplit uses published values of SHA-256: of "abc" it ends in d, of
// "" in 5, of "hello" in 4.
func TestHashSplit(t *testing.T) {
	for key, want := range map[string]Split{"abc": Tune, "": Tune, "hello": Report} {
		if got := hashSplit(key); got != want {
			t.Errorf("hashSplit(%q) = %s, want %s", key, got, want)
		}
	}
}

func TestLoadXquadAndScifact(t *testing.T) {
	data := t.TempDir()
	for _, folder := range xquadFolders {
		writeDocuments(t, filepath.Join(data, "tokenisation", folder))
	}
	writeDocuments(t, filepath.Join(data, "scifact"))
	xquad := mustLoad(t, loadXquad, data)
	if len(xquad.Memories) != 5 || xquad.Questions[2].Categories[0] != "zh" || len(xquad.passes()) != 2 {
		t.Errorf("xquad: %d memories, third question of %v, %d passes", len(xquad.Memories), xquad.Questions[2].Categories, len(xquad.passes()))
	}
	scifact := mustLoad(t, loadScifact, data)
	if got := string(scifact.Memories[0].Turns[0].Messages[0].Text); got != "Cells Stem cells divide." {
		t.Errorf("text of a document is %q", got)
	}
	want := []Values{{"ndcg@10": 1, "recall@100": 1}}
	if diff := cmp.Diff(want, scifact.Extra, near); diff != "" {
		t.Errorf("plain BM25; a query without answers does not count (-want +got):\n%s", diff)
	}
}

func writeDocuments(t *testing.T, folder string) {
	writeData(t, filepath.Join(folder, "corpus.jsonl.gz"),
		`{"_id":"d0","title":"Cells","text":"Stem cells divide."}`+"\n"+`{"_id":"d1","text":"Rain falls."}`+"\n")
	writeData(t, filepath.Join(folder, "queries.jsonl.gz"),
		`{"_id":"q0","text":"Do stem cells divide?"}`+"\n"+`{"_id":"q1","text":"Unanswered"}`+"\n")
	writeData(t, filepath.Join(folder, "qrels.tsv.gz"), "query-id\tcorpus-id\tscore\nq0\td0\t1\nq1\td1\t0\n")
}

func TestAbsentDataIsSkipped(t *testing.T) {
	for _, l := range loaders {
		if _, err := l.load(t.TempDir()); !errors.Is(err, errAbsent) {
			t.Errorf("%s without data: %v, want errAbsent", l.name, err)
		}
	}
}

func TestBrokenDataNamesTheLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.jsonl")
	writeData(t, path, "{}\n\n{]\n")
	_, err := readLines[queryLine](path)
	if err == nil || !strings.Contains(err.Error(), "x.jsonl: line 3") {
		t.Errorf("readLines = %v, want file and line 3", err)
	}
}
