package main

import (
	"context"
	"path/filepath"

	pb "recalld/proto/recalld/v1"
)

// A meeting of AMI: what was said, act by act, and sentences about it that name
// the acts they rest on.
type meeting struct {
	ID   string `json:"meeting"`
	Acts []struct {
		ID      string `json:"id"`
		Speaker string `json:"speaker"`
		Text    string `json:"text"`
	} `json:"acts"`
	Summary []struct {
		Type     string   `json:"type"`
		Evidence []string `json:"evidence"`
	} `json:"summary"`
}

// topActs is how many acts of a meeting count: those of the surest entries.
const topActs = 20

// meetingRows asks for the acts on which decisions and actions rest, in every
// second meeting. Candidates count as live entries do: it is their order that
// is measured.
func (j *journalRun) meetingRows(ctx context.Context, data string) ([]JournalRow, error) {
	all, err := readLines[meeting](filepath.Join(data, "journal", "ami-decisions-dev.jsonl.gz"))
	if err != nil {
		return nil, err
	}
	var meetings []meeting
	var chats []Chat
	for i := 1; i < len(all); i += 2 {
		m := all[i]
		c := Chat{ID: "meeting/" + m.ID}
		for _, act := range m.Acts {
			c.Lines = append(c.Lines, Line{Kind: pb.Kind_KIND_USER, Speaker: act.Speaker, Text: act.Text})
		}
		meetings, chats = append(meetings, m), append(chats, c)
	}
	found, err := j.read(ctx, "A", chats)
	if err != nil {
		return nil, err
	}
	row := func(name, sentences string, within ...string) JournalRow {
		readings := make([]Reading, len(meetings))
		for i := range meetings {
			t := meetings[i].tally(sentences, found[i], within)
			readings[i] = Reading{Live: t, All: t}
		}
		return newRow("A", "ami", Report, name, readings, "precision", "recall")
	}
	return []JournalRow{row("decisions", "decisions", choice, standing), row("actions", "actions", openWork)}, nil
}

// tally counts acts among the first topActs that are linked to a sentence of a
// type, and sentences that have such an act.
func (m *meeting) tally(sentences string, found []Found, within []string) Tally {
	var t Tally
	linked, top := map[string]bool{}, map[string]bool{}
	for _, s := range m.Summary {
		if s.Type == sentences {
			t.Gold++
			for _, act := range s.Evidence {
				linked[act] = true
			}
		}
	}
	for _, f := range surest(found) {
		if group := groupOf(f.Kind); len(f.Says) == 0 || group != within[0] && group != within[len(within)-1] {
			continue
		}
		act := m.Acts[f.Says[0].Line].ID
		if top[act] || len(top) == topActs {
			continue
		}
		top[act] = true
		if linked[act] {
			t.TP++
		} else {
			t.FP++
		}
	}
	for _, s := range m.Summary {
		if s.Type != sentences {
			continue
		}
		for _, act := range s.Evidence {
			if top[act] {
				t.Hit++
				break
			}
		}
	}
	return t
}
