package consolidate_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	"recalld/consolidate"
)

// day is when the chats of these tests begin.
var day = time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC)

// chat returns a session of finished turns from lines like "> what Ann says" and
// "< what the agent says". A line of the person begins a turn.
func chat(lines ...string) consolidate.Session {
	s := consolidate.Session{ID: "chat"}
	for i, line := range lines {
		mark, text, _ := strings.Cut(line, " ")
		m := message(fmt.Sprintf("m%d", i), uint64(i+1), consolidate.Reply, "agent", text)
		m.Time = day.Add(time.Duration(i) * time.Minute)
		if mark == ">" {
			m.Kind, m.Speaker = consolidate.User, "Ann"
		}
		if mark == ">" || len(s.Turns) == 0 {
			n := uint64(len(s.Turns) + 1)
			s.Turns = append(s.Turns, consolidate.Turn{
				ID: fmt.Sprintf("t%d", n), Seq: n, Status: consolidate.Finished, Appended: m.Time,
			})
		}
		last := &s.Turns[len(s.Turns)-1]
		last.Messages = append(last.Messages, m)
	}
	return s
}

func message(id string, seq uint64, kind consolidate.MessageKind, speaker, text string) consolidate.Message {
	return consolidate.Message{
		ID: id, Seq: seq, Kind: kind, Speaker: speaker, Text: []byte(text),
		Zone: "+02:00", Inner: sha256.Sum256([]byte("salt" + text)),
	}
}

// close ends the tail of a session after its last turn.
func closed(s consolidate.Session) consolidate.Session {
	s.Closed = append(s.Closed, s.Turns[len(s.Turns)-1].Seq)
	return s
}

// moved is a session as another one, appended after so many turns and said at
// another time; the zero time is none.
func moved(s consolidate.Session, id string, turns uint64, at time.Time) consolidate.Session {
	s.ID = id
	for i := range s.Turns {
		t := &s.Turns[i]
		t.Seq += turns
		for j := range t.Messages {
			m := &t.Messages[j]
			m.ID, m.Seq = id+m.ID, m.Seq+100*turns
			if m.Time = m.Time.Add(at.Sub(day)); at.IsZero() {
				m.Time = at
			}
		}
	}
	return s
}

// read returns the entries of every window of a session, checked and admitted.
func read(t *testing.T, s consolidate.Session) []consolidate.Entry {
	t.Helper()
	var all []consolidate.Entry
	for _, b := range batches(t, s) {
		all = append(all, b.Entries...)
	}
	return all
}

// batches returns the chain of a session's windows.
func batches(t *testing.T, s consolidate.Session) []consolidate.Batch {
	t.Helper()
	return history(t, s)
}

// history returns the chain of the windows of several sessions, one appended
// after the other.
func history(t *testing.T, sessions ...consolidate.Session) []consolidate.Batch {
	t.Helper()
	var windows []consolidate.Window
	for _, s := range sessions {
		more, _ := closed(s).Windows(consolidate.Position{})
		windows = append(windows, more...)
	}
	var chain []consolidate.Batch
	var head [32]byte
	standing := consolidate.Fold(nil, nil).Standing()
	for _, w := range windows {
		drafts, err := consolidate.Builtin{}.Extract(context.Background(), w)
		if err != nil {
			t.Fatal(err)
		}
		entries, dropped := consolidate.Check(w, drafts)
		if len(dropped) > 0 {
			t.Errorf("the built-in extractor's drafts were dropped: %v", dropped)
		}
		consolidate.Admit(entries, consolidate.Auto)
		standing.Link(entries)
		b := consolidate.WindowBatch(w, consolidate.Builtin{}.Identity(), entries, head)
		head = b.Hash
		chain = append(chain, b)
	}
	return chain
}

// kinds lists the live entries as "kind: words".
func kinds(entries []consolidate.Entry) []string {
	var out []string
	for _, e := range entries {
		if !e.Candidate {
			out = append(out, e.Kind.String()+": "+e.Text)
		}
	}
	return out
}
