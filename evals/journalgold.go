package main

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"slices"

	pb "recalld/proto/recalld/v1"
)

// A goldWindow is a stretch of a chat in which people marked what was decided.
type goldWindow struct {
	ID      string `json:"id"`
	Session string `json:"session_id"`
	Turns   []struct {
		Role string `json:"role"`
		Text string `json:"text"`
	} `json:"turns"`
	Decisions []goldEntry `json:"decisions"`
}

// A goldEntry is one mark: words of a turn, and whether they are clearly one of
// its kind or borderline.
type goldEntry struct {
	Kind    string `json:"kind"`
	Grade   string `json:"grade"`
	Quote   string `json:"quote"`
	Turn    int    `json:"turn"`
	Accepts string `json:"accepts_quote"`
}

func (g *goldEntry) clear() bool { return g.Grade == "clear" }

// seenUntil is how many of a hundred sessions were read while rules were made.
// The rest are the report part.
const seenUntil = 80

// windowSplit: the labelled windows were read while cues were chosen, but for
// those of a fifth of the sessions, by the SHA-256 of their ids.
func windowSplit(session string) Split {
	hash := sha256.Sum256([]byte(session))
	rest := 0
	for _, b := range hash {
		rest = (rest*256 + int(b)) % 100
	}
	if rest < seenUntil {
		return Tune
	}
	return Report
}

// chat gives the window as a chat: a message of the user and the reply to it
// are one turn.
func (w *goldWindow) chat(set string) Chat {
	c := Chat{ID: set + "/" + w.ID}
	for _, t := range w.Turns {
		kind, speaker := roleOf(t.Role)
		c.Lines = append(c.Lines, Line{Kind: kind, Speaker: speaker, Text: t.Text})
	}
	return c
}

// A prediction is what an entry quotes of one line.
type prediction struct {
	line       int
	group      string
	words      []string
	proposal   []string
	confidence float64
}

// predictions of the entries of a window by one side; the same words of a line
// count once in a group.
func (w *goldWindow) predictions(found []Found, byPerson bool, within []string) []prediction {
	var list []prediction
	for i := range found {
		f := &found[i]
		group := groupOf(f.Kind)
		if !slices.Contains(within, group) {
			continue
		}
		for _, said := range f.Says {
			kind, _ := roleOf(w.Turns[said.Line].Role)
			if (kind == pb.Kind_KIND_USER) != byPerson {
				continue
			}
			list = addPrediction(list, prediction{line: said.Line, group: group, words: []string{said.Text}, confidence: f.Confidence}, f)
		}
	}
	return list
}

// addPrediction adds what an entry quotes of a line to the same entry's other
// words there, and leaves out what is there already.
func addPrediction(list []prediction, p prediction, f *Found) []prediction {
	for i := range list {
		if list[i].line == p.line && list[i].group == p.group && slices.Equal(list[i].words, p.words) {
			return list
		}
	}
	for _, words := range f.Proposal {
		p.proposal = append(p.proposal, words.Text)
	}
	return append(list, p)
}

// matches reports whether a prediction is of the same words as a mark. Who
// accepts something may have it marked by their own words or by the proposal.
func (p *prediction) matches(g *goldEntry) bool {
	if g.Turn != p.line || groupOf(g.Kind) != p.group {
		return false
	}
	same := func(mark string) func(string) bool {
		return func(words string) bool { return sameWords(mark, words) }
	}
	return slices.ContainsFunc(p.words, same(g.Quote)) ||
		g.Accepts != "" && (slices.ContainsFunc(p.words, same(g.Accepts)) || slices.ContainsFunc(p.proposal, same(g.Accepts)))
}

// tally scores what was found of one side's words in a window. What matches
// only borderline marks counts neither way; a window without a clear mark of
// that side and those groups holds nothing.
func (w *goldWindow) tally(found []Found, byPerson bool, within []string) Tally {
	var t Tally
	hit := map[int]bool{}
	for _, p := range w.predictions(found, byPerson, within) {
		clear, borderline, fresh := false, false, false
		for i := range w.Decisions {
			g := &w.Decisions[i]
			if !p.matches(g) {
				continue
			}
			if !g.clear() {
				borderline = true
				continue
			}
			clear, fresh = true, fresh || !hit[i]
			hit[i] = true
		}
		switch {
		case fresh:
			t.TP++
		case !clear && !borderline:
			t.FP++
		}
	}
	for i := range w.Decisions {
		g := &w.Decisions[i]
		if g.clear() && w.isPerson(g.Turn) == byPerson && slices.Contains(within, groupOf(g.Kind)) {
			t.Gold++
			if hit[i] {
				t.Hit++
			}
		}
	}
	if t.Gold == 0 {
		t.None = 1
		if t.FP > 0 {
			t.NoneHit = 1
		}
	}
	return t
}

func (w *goldWindow) isPerson(turn int) bool {
	return turn >= 0 && turn < len(w.Turns) && w.Turns[turn].Role == "user"
}

// scored are the windows of a file and what was found in them.
type scored struct {
	name    string
	windows []goldWindow
	found   [][]Found
}

// readWindows reads a gold file. A file without windows, and a line that is none,
// is an error: figures of nothing would look like figures.
func readWindows(path string) ([]goldWindow, error) {
	windows, err := readLines[goldWindow](path)
	if err != nil {
		return nil, err
	}
	if len(windows) == 0 {
		return nil, fmt.Errorf("read %s: it holds no windows", filepath.Base(path))
	}
	for i := range windows {
		if len(windows[i].Turns) == 0 {
			return nil, fmt.Errorf("read %s: window %d has no turns", filepath.Base(path), i+1)
		}
	}
	return windows, nil
}

// goldFiles are the labelled windows among the data.
var goldFiles = []string{"windows-gold-dev", "windows-gold-dev2"}

func goldPath(data, name string) string { return filepath.Join(data, "journal", name+".jsonl") }

// reading scores one window with and without candidates.
func (w *goldWindow) reading(found []Found, byPerson bool, within []string) Reading {
	return Reading{Live: w.tally(live(found), byPerson, within), All: w.tally(found, byPerson, within)}
}

// live keeps the live entries.
func live(found []Found) []Found {
	return slices.DeleteFunc(slices.Clone(found), func(f Found) bool { return !f.Live })
}

// rows of a set of windows: the person's words, in all and by group, and what
// the agent says it left open and chose, apart.
func (s *scored) rows(split Split) []JournalRow {
	row := func(name string, byPerson bool, within ...string) JournalRow {
		var readings []Reading
		for i := range s.windows {
			w := &s.windows[i]
			if split == All || windowSplit(w.Session) == split {
				readings = append(readings, w.reading(s.found[i], byPerson, within))
			}
		}
		return newRow("W", s.name, split, name, readings, "precision", "recall", "f1", "none_hit")
	}
	return []JournalRow{
		row("person", true, groups...), row("person: choice", true, choice), row("person: standing", true, standing), row("person: open", true, openWork),
		row("agent: left open", false, openWork), row("agent: own choices", false, choice),
	}
}
