package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSameWords(t *testing.T) {
	tests := []struct {
		name, a, b string
		want       bool
	}{
		{"equal", "drop the sidebar", "drop the sidebar", true},
		{"case and apostrophes", "Don’t drop it", "don't DROP it", true},
		{"half of the shorter", "drop the old sidebar", "drop the new header today", true},
		{"less than half", "drop the old sidebar", "keep a header", false},
		{"one word of two", "drop it", "drop everything", false},
		{"all of one word", "yes", "yes", true},
		{"three tenths of the longer", "map: use a", "use a map and lock it with one mutex for every shard we have", false},
		{"contained", "use a map", "We will use a map and lock it with one mutex for every shard", true},
		{"repeated words count as often as they stand", "no no", "no way", false},
		{"other scripts", "мы решили это", "Мы решили", true},
		{"nothing", "", "drop it", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, back := sameWords(tt.a, tt.b), sameWords(tt.b, tt.a); got != tt.want || back != tt.want {
				t.Errorf("sameWords = %v, %v; want %v", got, back, tt.want)
			}
		})
	}
}

// window makes a gold window of turns that take turns, the person first.
func window(turns []string, marks ...goldEntry) goldWindow {
	w := goldWindow{ID: "w", Session: "s", Decisions: marks}
	for i, text := range turns {
		role := "user"
		if i%2 == 1 {
			role = "assistant"
		}
		w.Turns = append(w.Turns, struct {
			Role string `json:"role"`
			Text string `json:"text"`
		}{role, text})
	}
	return w
}

func entry(kind string, line int, words string, proposal ...string) Found {
	f := Found{Kind: kind, Live: true, Says: []Words{{line, words}}}
	for _, p := range proposal {
		f.Proposal = append(f.Proposal, Words{line - 1, p})
	}
	return f
}

func TestWindowTally(t *testing.T) {
	turns := []string{"we drop the sidebar", "which colour, red or blue?", "blue it is, and never use red", "done; the footer is still open"}
	marks := []goldEntry{
		{Kind: "decision", Grade: "clear", Quote: "we drop the sidebar", Turn: 0},
		{Kind: "decision", Grade: "clear", Quote: "go for it", Turn: 2, Accepts: "the blue colour"},
		{Kind: "rule", Grade: "clear", Quote: "never use red", Turn: 2},
		{Kind: "decision", Grade: "borderline", Quote: "paint the fence", Turn: 2},
		{Kind: "open_work", Grade: "clear", Quote: "the footer is still open", Turn: 3},
	}
	tests := []struct {
		name     string
		found    []Found
		byPerson bool
		within   []string
		want     Tally
	}{
		{"nothing", nil, true, groups, Tally{Gold: 3}},
		{"right", []Found{entry("decision", 0, "drop the sidebar")}, true, groups, Tally{TP: 1, Hit: 1, Gold: 3}},
		{"a reversal is a choice", []Found{entry("reversal", 0, "drop the sidebar")}, true, groups, Tally{TP: 1, Hit: 1, Gold: 3}},
		{"another group", []Found{entry("rule", 0, "drop the sidebar")}, true, groups, Tally{FP: 1, Gold: 3}},
		{"another turn", []Found{entry("decision", 2, "drop the sidebar")}, true, groups, Tally{FP: 1, Gold: 3}},
		{"twice the same words", []Found{entry("decision", 0, "drop the sidebar"), entry("reversal", 0, "drop the sidebar")}, true, groups, Tally{TP: 1, Hit: 1, Gold: 3}},
		{"one mark counts once", []Found{entry("decision", 0, "drop the sidebar"), entry("decision", 0, "we drop the sidebar")}, true, groups, Tally{TP: 1, Hit: 1, Gold: 3}},
		{"borderline", []Found{entry("decision", 2, "paint the fence")}, true, groups, Tally{Gold: 3}},
		{"the proposal counts", []Found{entry("decision", 2, "yes", "the blue colour")}, true, groups, Tally{TP: 1, Hit: 1, Gold: 3}},
		{"one group", []Found{entry("rule", 2, "never use red"), entry("decision", 0, "else")}, true, []string{standing}, Tally{TP: 1, Hit: 1, Gold: 1}},
		{"the agent's words are not the person's", []Found{entry("open_work", 3, "the footer is still open")}, true, groups, Tally{Gold: 3}},
		{"the agent's words", []Found{entry("open_work", 3, "the footer is still open")}, false, []string{openWork}, Tally{TP: 1, Hit: 1, Gold: 1}},
		{"a window that holds nothing", nil, false, []string{choice}, Tally{None: 1}},
		{"one that holds nothing, hit", []Found{entry("decision", 1, "red or blue")}, false, []string{choice}, Tally{FP: 1, None: 1, NoneHit: 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := window(turns, marks...)
			if diff := cmp.Diff(tt.want, w.tally(tt.found, tt.byPerson, tt.within)); diff != "" {
				t.Errorf("tally (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRow(t *testing.T) {
	readings := []Reading{
		{Live: Tally{TP: 1, Hit: 1, Gold: 1}, All: Tally{TP: 1, FP: 1, Hit: 1, Gold: 1}},
		{Live: Tally{FP: 1, None: 1, NoneHit: 1}, All: Tally{FP: 1, None: 1, NoneHit: 1}},
		{Live: Tally{Gold: 2}, All: Tally{TP: 2, Hit: 2, Gold: 2}},
		{Live: Tally{None: 1}, All: Tally{None: 1}},
	}
	row := newRow("W", "set", All, "person", readings, "precision", "recall", "f1", "none_hit")
	if diff := cmp.Diff(Values{"precision": .5, "recall": .3333, "f1": .4, "none_hit": .5}, row.Metrics); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(Values{"precision": .6, "recall": 1, "f1": .75, "none_hit": .5}, row.WithCandidates); diff != "" {
		t.Errorf("with candidates (-want +got):\n%s", diff)
	}
	if i := row.Intervals["precision"]; i[0] != 0 || i[1] != 1 {
		t.Errorf("interval of precision %v; want all of it, of two predictions", i)
	}
	if again := newRow("W", "set", All, "person", readings, "precision", "recall", "f1", "none_hit"); !cmp.Equal(row, again) {
		t.Error("the same readings gave other figures")
	}
	if empty := newRow("W", "set", All, "person", readings[3:], "precision", "recall"); len(empty.Metrics) != 0 {
		t.Errorf("metrics of nothing: %v", empty.Metrics)
	}
}

// TestWindowSplit pins the rule: it must not move when somebody looks.
func TestWindowSplit(t *testing.T) {
	for session, want := range map[string]Split{"a": Report, "b": Tune, "session-1": Tune, "session-6": Tune} {
		if got := windowSplit(session); got != want {
			t.Errorf("windowSplit(%s) = %s, want %s", session, got, want)
		}
	}
}

func TestScribe(t *testing.T) {
	journal, client := startFakeJournal(t)
	scribe := newScribe(client, "builtin")
	chats := []Chat{
		{ID: "one", Lines: []Line{says("rule: no tabs"), says("what?"), says("decision: drop it?"), says("open: the footer"), says("reversal: keep it")}},
		{ID: "two", Lines: []Line{says("hello")}},
		{ID: "none"},
	}
	found, err := scribe.readAll(context.Background(), chats, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	want := [][]Found{{
		{ID: "e0", Kind: "rule", Live: true, Confidence: .7, Says: []Words{{0, "no tabs"}}},
		{ID: "e2", Kind: "decision", Confidence: .7, Says: []Words{{2, "drop it?"}}},
		{ID: "e3", Kind: "open_work", Live: true, Confidence: .7, Says: []Words{{3, "the footer"}}},
		{ID: "e4", Kind: "reversal", Live: true, Confidence: .7, Says: []Words{{4, "keep it"}}},
	}, nil, nil}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
	if want := (Checks{Chats: 2, Entries: 4, Dropped: 2}); scribe.checks != want {
		t.Errorf("checks %+v, want %+v", scribe.checks, want)
	}
	if len(journal.consolidated) != 2 || len(journal.server.forgot) != 2 {
		t.Errorf("%d memories consolidated, %d forgotten; want one for each chat", len(journal.consolidated), len(journal.server.forgot))
	}
}

func TestScribeSeesLies(t *testing.T) {
	journal, client := startFakeJournal(t)
	journal.lie = true
	scribe := newScribe(client, "builtin")
	if _, err := scribe.read(context.Background(), &Chat{ID: "x", Lines: []Line{says("rule: no tabs")}}); err != nil {
		t.Fatal(err)
	}
	if scribe.checks.Unbound != 1 || scribe.checks.WrongSpeaker != 0 {
		t.Errorf("checks %+v; want a quote that is not there", scribe.checks)
	}
	journal.lie = false
	if _, err := scribe.read(context.Background(), &Chat{ID: "y", Lines: []Line{says("rule: no tabs!")}}); err != nil {
		t.Fatal(err)
	}
	if scribe.checks.WrongSpeaker != 1 {
		t.Errorf("checks %+v; want a wrong speaker", scribe.checks)
	}
}

func TestModelThatFailsIsCounted(t *testing.T) {
	for _, extractor := range extractors {
		journal, client := startFakeJournal(t)
		journal.fails = modelTries // on the first chat, for good
		scribe := newScribe(client, extractor)
		scribe.pause = 0
		chats := []Chat{{ID: "a", Lines: []Line{says("rule: no tabs")}}, {ID: "b", Lines: []Line{says("rule: no tabs")}}}
		_, err := scribe.readAll(context.Background(), chats, func(int) {})
		if model := extractor == "model"; model != (err == nil) {
			t.Errorf("%s: error %v", extractor, err)
		} else if model && (scribe.checks.Failed != 1 || scribe.checks.Entries != 1 || journal.consolidated[scribe.project(&chats[0])]+journal.consolidated[scribe.project(&chats[1])] != "model") {
			t.Errorf("%s: checks %+v, consolidated %v", extractor, scribe.checks, journal.consolidated)
		}
	}
	journal, client := startFakeJournal(t)
	journal.fails = modelTries - 1
	scribe := newScribe(client, "model")
	scribe.pause = 0
	found, err := scribe.read(context.Background(), &Chat{ID: "c", Lines: []Line{says("rule: no tabs")}})
	if err != nil || len(found) != 1 || scribe.checks.Failed != 0 {
		t.Errorf("a model that recovers: %v, %v, checks %+v", found, err, scribe.checks)
	}
}

const goldLines = `{"id":"g1","session_id":"a","turns":[{"role":"user","text":"decision: drop the sidebar"},{"role":"assistant","text":"open: the footer waits!"},{"role":"user","text":"rule: never use red?"},{"role":"assistant","text":"ok"}],"decisions":[{"kind":"decision","grade":"clear","quote":"drop the sidebar","turn":0,"speaker":"user"},{"kind":"rule","grade":"clear","quote":"never use red","turn":2,"speaker":"user"},{"kind":"open_work","grade":"clear","quote":"the footer waits","turn":1,"speaker":"assistant"}]}
{"id":"g2","session_id":"b","turns":[{"role":"user","text":"decision: look at this"},{"role":"assistant","text":"yes"},{"role":"user","text":"thanks"},{"role":"assistant","text":"welcome"}],"decisions":[]}
`

func TestScoreFile(t *testing.T) {
	_, client := startFakeJournal(t)
	path := filepath.Join(t.TempDir(), "gold.jsonl")
	writeData(t, path, goldLines)
	report, err := scoreFile(context.Background(), newJournalRun(&Runner{client: client}, "builtin", nil), path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Values{"precision": .5, "recall": .5, "none_hit": 1}, report.Metrics); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
	byGroup := map[string]Values{}
	for _, row := range report.Rows {
		byGroup[row.Group] = row.Metrics
	}
	if byGroup["agent: left open"]["precision"] != 1 || byGroup["person: standing"]["recall"] != 0 {
		t.Errorf("rows %v", byGroup)
	}
	if report.Rows[0].WithCandidates["recall"] != 1 {
		t.Errorf("with candidates %v; want all of the person's", report.Rows[0].WithCandidates)
	}
	var out bytes.Buffer
	if err := report.print(&out); err != nil || !strings.Contains(out.String(), "person: standing") {
		t.Errorf("printed %q, %v", out.String(), err)
	}
	var object struct {
		Metrics map[string]float64
	}
	data, err := json.Marshal(report)
	if err != nil || json.Unmarshal(data, &object) != nil || len(object.Metrics) != 3 {
		t.Errorf("JSON %s, %v", data, err)
	}
	if _, err := scoreFile(context.Background(), newJournalRun(&Runner{client: client}, "builtin", nil), path+"x"); !errors.Is(err, errAbsent) {
		t.Errorf("a file that is not there: %v", err)
	}
}

// TestUselessFile gives no figures for a file that holds no windows.
func TestUselessFile(t *testing.T) {
	for name, lines := range map[string]string{
		"empty": "", "blank": "\n\n", "half a line": `{"id":`, "no object": "[]", "something else": `{"question":"why?"}`,
		"one of two": goldLines + `{"id":"w9"}`,
	} {
		path := filepath.Join(t.TempDir(), "gold.jsonl")
		writeData(t, path, lines)
		if windows, err := readWindows(path); err == nil || !strings.Contains(err.Error(), "gold.jsonl") {
			t.Errorf("%s: %d windows, %v; want an error that names the file", name, len(windows), err)
		}
	}
}

// writeJournalData writes a little of every data set of the journal.
func writeJournalData(t *testing.T, data string) {
	t.Helper()
	folder := filepath.Join(data, "journal")
	for _, name := range goldFiles {
		writeData(t, goldPath(data, name), goldLines)
	}
	writeData(t, filepath.Join(folder, "beam-100k-user-turn-labels.jsonl.gz"), `{"chat":"2","id":0,"label":"rule","text":"rule: no tabs"}
{"chat":"2","id":2,"label":"other","text":"preference: short names"}
{"chat":"2","id":4,"label":"decision-silver","text":"decision: one table"}
{"chat":"2","id":6,"label":"unlabelled","text":"rule: ignored"}
{"chat":"1","id":0,"label":"update","text":"reversal: now two tables?"}
`)
	writeData(t, filepath.Join(folder, "beam-100k-reversals-and-rules.jsonl"), `{"chat":"2","kind":"knowledge_update","old":[4],"new":[2]}
{"chat":"2","kind":"knowledge_update","old":[4],"new":[4]}
{"chat":"2","kind":"instruction"}
`)
	writeBeam(t, data)
	writeData(t, filepath.Join(data, "beam-100k", "corpus.jsonl.gz"), `{"_id":"2/0","scope":"2","session":"1","speaker":"user","text":"hello there"}
{"_id":"2/1","scope":"2","session":"1","speaker":"assistant","text":"good morning"}
{"_id":"2/2","scope":"2","session":"1","speaker":"user","text":"decision: one table"}
{"_id":"2/3","scope":"2","session":"1","speaker":"assistant","text":"ok"}
{"_id":"2/4","scope":"2","session":"1","speaker":"user","text":"reversal: no longer one table"}
`)
	snippets := filepath.Join(folder, "mempalace-memory-extraction")
	writeData(t, filepath.Join(snippets, "labels.jsonl"), `{"id":"m1","memories":[{"type":"decision"}]}
{"id":"m2","memories":[{"type":"fact"}]}
`)
	writeData(t, filepath.Join(snippets, "dataset.jsonl"), `{"id":"m1","text":"decision: rye"}
{"id":"m2","text":"it rains"}
`)
	act := func(id, text string) string { return `{"id":"` + id + `","speaker":"A","text":"` + text + `"}` }
	writeData(t, filepath.Join(folder, "ami-decisions-dev.jsonl.gz"), `{"meeting":"x","acts":[],"summary":[]}
{"meeting":"y","acts":[`+act("y1", "decision: a blue case")+`,`+act("y2", "rule: be brief")+`,`+act("y3", "open: ask Cy")+`],"summary":[{"type":"decisions","evidence":["y1"]},{"type":"decisions","evidence":["y9"]},{"type":"actions","evidence":["y3"]}]}
`)
	writeData(t, filepath.Join(folder, "email-intent.jsonl"), `{"split":"test","intent":"Yes","text":"open: send it"}
{"split":"test","intent":"No","text":"it was sent"}
{"split":"train","intent":"Yes","text":"open: ignored"}
`)
}

func TestJournalTasks(t *testing.T) {
	_, client := startFakeJournal(t)
	data := t.TempDir()
	writeJournalData(t, data)
	report, err := runJournal(context.Background(), newJournalRun(&Runner{client: client}, "builtin", nil), data)
	if err != nil {
		t.Fatal(err)
	}
	type key struct {
		task, set, group string
		split            Split
	}
	rows := map[key]Values{}
	for _, row := range report.Rows {
		rows[key{row.Task, row.Set, row.Group, row.Split}] = row.Metrics
	}
	for k, want := range map[key]Values{
		{"W", "windows, both", "person", Report}:       {"precision": 1, "recall": .5, "f1": .6667},
		{"W", "windows-gold-dev", "person", All}:       {"precision": .5, "recall": .5, "f1": .5, "none_hit": 1},
		{"R", "beam", "rules", Report}:                 {"precision": 1, "recall": 1, "f1": 1},
		{"S", "beam", "rules and preferences", Report}: {"precision": .5, "recall": 1, "f1": .6667},
		{"D", "beam", "decisions", Report}:             {"precision": 1, "recall": 1, "f1": 1},
		{"U", "beam", "reversals", Tune}:               {"recall": 0, "f1": 0},
		{"L", "beam", byWords, Report}:                 {"hit@1": 1, "hit@5": 1},
		{"L", "beam", proposed, Report}:                {"hit@1": 0, "hit@5": 0},
		{"M", "snippets", "en", All}:                   {"precision": 1, "recall": 1, "f1": 1},
		{"A", "ami", "decisions", Report}:              {"precision": .5, "recall": .5},
		{"A", "ami", "actions", Report}:                {"precision": 1, "recall": 1},
		{"E", "email-intent", "open work", Report}:     {"precision": 1, "recall": 1, "f1": 1},
	} {
		if diff := cmp.Diff(want, rows[k]); diff != "" {
			t.Errorf("%v (-want +got):\n%s", k, diff)
		}
	}
	var out bytes.Buffer
	if err := report.print(&out); err != nil {
		t.Fatal(err)
	}
	for _, title := range journalTitles {
		if !strings.Contains(out.String(), title) {
			t.Errorf("%q is not printed", title)
		}
	}
}

func TestJournalTasksChosen(t *testing.T) {
	_, client := startFakeJournal(t)
	data := t.TempDir()
	writeJournalData(t, data)
	report, err := runJournal(context.Background(), newJournalRun(&Runner{client: client}, "builtin", []string{"S", "M"}), data)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range report.Rows {
		if row.Task != "S" && row.Task != "M" {
			t.Errorf("task %s was not asked for", row.Task)
		}
	}
	none, err := runJournal(context.Background(), newJournalRun(&Runner{client: client}, "builtin", nil), t.TempDir())
	if err != nil || len(none.Rows) != 0 || len(none.Skipped) != len(journalTasks) {
		t.Errorf("without data: %+v, %v; want every task skipped", none, err)
	}
}

func TestJournalWrongUsage(t *testing.T) {
	for name, args := range map[string][]string{
		"no data":                   {},
		"unknown extractor":         {"--windows", "x", "--extractor", "guess"},
		"unknown task":              {"--data", "x", "--tasks", "R,Q"},
		"a model of another server": {"--windows", "x", "--model", "ollama:small", "--root", "y"},
	} {
		_, _, err := execute(append([]string{"journal"}, args...)...)
		var usage *usageError
		if !errors.As(err, &usage) {
			t.Errorf("%s: error %v, want wrong usage", name, err)
		}
	}
}

func TestModelIsHandedToTheServer(t *testing.T) {
	o := options{}
	j := journalOptions{options: &o, extractor: "model", windows: "x", model: "ollama:small"}
	if err := j.check(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"--extract", "ollama:small"}, o.serve); diff != "" {
		t.Errorf("arguments of the server (-want +got):\n%s", diff)
	}
	env := []string{"OLLAMA_HOST=x", "RECALLD_ROOT=y", "HOME=z"}
	if diff := cmp.Diff([]string{"HOME=z"}, withoutModels(env, false)); diff != "" {
		t.Errorf("without models (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"OLLAMA_HOST=x", "HOME=z"}, withoutModels(env, true)); diff != "" {
		t.Errorf("with models (-want +got):\n%s", diff)
	}
}

func TestReportHoldsTheJournal(t *testing.T) {
	row := newRow("R", "beam", Report, "rules", []Reading{{Live: binary(true, true)}}, "precision", "recall", "f1")
	r := &report{
		journal:      &JournalReport{Extractor: "builtin", Rows: []JournalRow{row}, Checks: Checks{Chats: 1, Entries: 1}},
		journalModel: &JournalReport{Extractor: "model", Model: "ollama:small", Rows: []JournalRow{row}},
	}
	text := r.markdown()
	for _, part := range []string{
		"## Journal\n", "### Built-in extractor\n", "### Model extractor, ollama:small",
		"| R | beam | report | rules | 1 | 1 | 1.00 [1.00, 1.00] | 1.00 [1.00, 1.00] | 1.00 [1.00, 1.00] |", "1 chats, 1 entries",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("the report lacks %q:\n%s", part, text)
		}
	}
	if text := (&report{}).markdown(); strings.Contains(text, "## Journal") {
		t.Error("a report without a journal has a section of it")
	}
}
