package ledger_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"recalld/ledger"
)

// A model is what a memory should hold, kept the simplest way.
type model struct {
	turns    []*ledger.Turn // in order; Messages hold what was stored
	messages map[string]ledger.Message
	titles   map[string]string
}

// append tells what a memory should answer, and remembers it.
func (m *model) append(turns []ledger.Turn) ([]ledger.AppendResult, bool) {
	now := map[string]string{}
	for id, message := range m.messages {
		now[id] = string(message.Text)
	}
	for _, t := range turns {
		for _, message := range t.Messages {
			if text, ok := now[message.ID]; ok && text != string(message.Text) {
				return nil, false
			}
			now[message.ID] = string(message.Text)
		}
	}
	var results []ledger.AppendResult
	for _, t := range turns {
		results = append(results, m.turn(t))
	}
	return results, true
}

func (m *model) turn(t ledger.Turn) ledger.AppendResult {
	result := ledger.AppendResult{Session: t.Session, TurnID: t.ID, Messages: []ledger.MessageResult{}}
	var row *ledger.Turn
	for _, other := range m.turns {
		if other.Session == t.Session && other.ID == t.ID {
			row = other
		}
	}
	for _, message := range t.Messages {
		if known, ok := m.messages[message.ID]; ok {
			result.Messages = append(result.Messages, ledger.MessageResult{ID: message.ID, Outcome: ledger.Duplicate, Seq: known.Seq})
			continue
		}
		if row == nil {
			for _, other := range m.turns {
				if other.Session == t.Session && other.Status == ledger.StatusOpen {
					other.Status = ledger.StatusInterrupted
				}
			}
			row = &ledger.Turn{Session: t.Session, ID: t.ID, Status: max(t.Status, ledger.StatusOpen), Seq: uint64(len(m.turns) + 1)}
			m.turns = append(m.turns, row)
		}
		message.Seq, message.Ordinal = uint64(len(m.messages)+1), len(row.Messages)
		m.messages[message.ID] = message
		row.Messages = append(row.Messages, message)
		result.Messages = append(result.Messages, ledger.MessageResult{ID: message.ID, Outcome: ledger.Stored, Seq: message.Seq})
	}
	if row == nil {
		return result
	}
	if t.SessionTitle != "" {
		m.titles[t.Session] = t.SessionTitle
	}
	if row.Status == ledger.StatusOpen && t.Status > ledger.StatusOpen {
		row.Status = t.Status
	}
	result.Seq, result.Status = row.Seq, row.Status
	return result
}

// history is what History should return for everything.
func (m *model) history() []ledger.Turn {
	var list []ledger.Turn
	for _, t := range m.turns {
		whole := *t
		whole.SessionTitle = m.titles[t.Session]
		list = append(list, whole)
	}
	return list
}

// anyTurn draws turns of few sessions, ids and texts, so that turns grow, come
// again, come in other sessions, and now and then say something else.
func anyTurn(t *rapid.T) ledger.Turn {
	turn := ledger.Turn{
		Session: rapid.SampledFrom([]string{"a", "b", ledger.NotesSession}).Draw(t, "session"),
		ID:      fmt.Sprint(rapid.IntRange(1, 6).Draw(t, "turn")),
		Status:  ledger.Status(rapid.IntRange(0, 4).Draw(t, "status")),
	}
	if rapid.IntRange(0, 4).Draw(t, "titled") == 0 {
		turn.SessionTitle = rapid.SampledFrom([]string{"x", "y"}).Draw(t, "title")
	}
	for range rapid.IntRange(0, 3).Draw(t, "messages") {
		id := rapid.IntRange(1, 25).Draw(t, "message")
		text := fmt.Sprint("text ", id)
		if rapid.IntRange(0, 30).Draw(t, "other") == 0 {
			text = "other"
		}
		turn.Messages = append(turn.Messages, ledger.Message{ID: fmt.Sprint(id), Kind: ledger.Kind(id%6 + 1), Text: []byte(text)})
	}
	return turn
}

// TestProperties runs random Appends against the model, opening the memory anew
// in between.
func TestProperties(t *testing.T) {
	s := openStore(t, t.TempDir(), ledger.Options{Now: func() time.Time { return start }})
	count := 0
	rapid.Check(t, func(rt *rapid.T) {
		count++
		ctx := t.Context()
		id, err := s.Ensure(ctx, ledger.MemoryKey{Agent: "rapid", Project: fmt.Sprint(count)})
		if err != nil {
			rt.Fatal(err)
		}
		m, err := s.Open(ctx, id)
		if err != nil {
			rt.Fatal(err)
		}
		defer func() { m.Close() }()
		want := model{messages: map[string]ledger.Message{}, titles: map[string]string{}}
		rt.Repeat(map[string]func(*rapid.T){
			"append": func(rt *rapid.T) {
				turns := rapid.SliceOfN(rapid.Custom(anyTurn), 1, 4).Draw(rt, "turns")
				results, err := m.Append(ctx, turns)
				expected, ok := want.append(turns)
				if !ok {
					if !errors.Is(err, ledger.ErrExists) {
						rt.Fatalf("error %v, want ErrExists", err)
					}
					return
				}
				if diff := cmp.Diff(expected, results); err != nil || diff != "" {
					rt.Fatalf("Append: %v (-want +got):\n%s", err, diff)
				}
			},
			"reopen": func(rt *rapid.T) {
				if err := m.Close(); err != nil {
					rt.Fatal(err)
				}
				if m, err = s.Open(ctx, id); err != nil {
					rt.Fatal(err)
				}
			},
			"": func(rt *rapid.T) {
				turns, _, err := m.History(ctx, ledger.HistoryQuery{Limit: ledger.MaxHistoryTurns})
				for i := range turns {
					turns[i].Appended = time.Time{}
				}
				if diff := cmp.Diff(want.history(), turns); err != nil || diff != "" {
					rt.Fatalf("History: %v (-want +got):\n%s", err, diff)
				}
				if head, err := m.Head(ctx); err != nil || head != uint64(len(want.messages)) {
					rt.Fatalf("Head = %d, %v, want %d", head, err, len(want.messages))
				}
			},
		})
		problems, err := m.Verify(ctx, ledger.VerifyOptions{Deep: true}, nil)
		if err != nil || len(problems) > 0 {
			rt.Fatalf("Verify = %+v, %v", problems, err)
		}
	})
}
