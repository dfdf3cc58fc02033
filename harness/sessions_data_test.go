package harness_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"recalld/harness"
)

// counts is what a file of sessions holds.
type counts struct {
	Sessions, Messages, Persons, DistinctIDs, WithoutID int
}

// TestRealSessions reads real sessions and counts them twice: through Read, and
// with a plain decoder that shares no code with it.
func TestRealSessions(t *testing.T) {
	for _, name := range []string{"entire-sessions.jsonl.gz", "specstory-sessions.jsonl.gz"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join("..", "..", "shared", "data", "sessions", name)
			if _, err := os.Stat(path); err != nil {
				t.Skipf("the evaluation data is not here: %v", err)
			}
			want := countPlainly(t, path)
			got := countRead(t, path)
			if got.turns < want.Persons || got.turns > want.Persons+want.Sessions {
				t.Errorf("%d turns; want one for each of %d messages of a person and at most one more a session", got.turns, want.Persons)
			}
			if got.counts != want {
				t.Errorf("Read gives %+v, a plain count %+v", got.counts, want)
			}
			t.Logf("%+v in %d turns", got.counts, got.turns)
		})
	}
}

func open(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func countPlainly(t *testing.T, path string) counts {
	t.Helper()
	plain, err := gzip.NewReader(open(t, path))
	if err != nil {
		t.Fatal(err)
	}
	var c counts
	ids := map[string]bool{}
	lines := bufio.NewScanner(plain)
	lines.Buffer(nil, 1<<26)
	for lines.Scan() {
		var session struct {
			Turns []struct{ Role, UUID string }
		}
		if err := json.Unmarshal(lines.Bytes(), &session); err != nil {
			t.Fatal(err)
		}
		c.Sessions++
		for _, m := range session.Turns {
			c.Messages++
			if m.Role == "user" {
				c.Persons++
			}
			if m.UUID == "" {
				c.WithoutID++
			} else {
				ids[m.UUID] = true
			}
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	// Every message without an id of its own has to get one that no other has.
	c.DistinctIDs = len(ids) + c.WithoutID
	return c
}

func countRead(t *testing.T, path string) (c struct {
	counts
	turns int
}) {
	t.Helper()
	sessions, ids := map[string]bool{}, map[string]bool{}
	for turn, err := range harness.Read(open(t, path), harness.Options{}) {
		if err != nil {
			t.Fatal(err)
		}
		c.turns++
		sessions[turn.GetSessionId()] = true
		if turn.GetSessionTitle() == "" {
			t.Logf("session %s has no title", turn.GetSessionId())
		}
		for i, m := range turn.GetMessages() {
			c.Messages++
			ids[m.GetId()] = true
			if m.GetKind() == user {
				c.Persons++
				if i > 0 {
					t.Errorf("turn %s has a message of the person inside", turn.GetTurnId())
				}
			}
			if m.GetTime() == nil {
				t.Errorf("message %s has no time", m.GetId())
			}
			if len(m.GetId()) < 36 {
				c.WithoutID++
			}
		}
	}
	c.Sessions, c.DistinctIDs = len(sessions), len(ids)
	return c
}
