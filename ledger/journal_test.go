package ledger_test

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"recalld/ledger"
)

// link is a batch of the session s that ends after a turn.
func link(previous byte, hash byte, turn uint64) ledger.JournalBatch {
	b := ledger.JournalBatch{Session: "s", FirstTurn: 1, LastTurn: turn, EndTurn: turn, Entries: 2, Dropped: 1, At: start, Body: []byte{hash}}
	b.Previous[0], b.Hash[0] = previous, hash
	return b
}

func mustAdd(t *testing.T, m *ledger.Memory, b ledger.JournalBatch) {
	t.Helper()
	if _, err := m.AddBatch(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

func TestJournalChain(t *testing.T) {
	m := newMemory(t)
	mustAppend(t, m, exchange("s", 1), exchange("other", 2), exchange("s", 3), exchange("s", 4))
	mustAdd(t, m, link(0, 1, 1))
	for name, previous := range map[string]byte{"the beginning": 0, "nothing that is there": 9} {
		if _, err := m.AddBatch(t.Context(), link(previous, 2, 3)); !errors.Is(err, ledger.ErrConflict) {
			t.Errorf("a batch after %s: %v, want ErrConflict", name, err)
		}
	}
	unknown := link(1, 2, 3)
	unknown.Session = "nowhere"
	if _, err := m.AddBatch(t.Context(), unknown); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("a batch of an unknown session: %v", err)
	}
	review := link(1, 2, 0)
	review.Session, review.FirstTurn, review.EndTurn = "", 0, 0
	mustAdd(t, m, review)
	got, err := m.Batches(t.Context(), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	first := link(0, 1, 1)
	first.Number, review.Number = 1, 2
	if diff := cmp.Diff([]ledger.JournalBatch{first, review}, got); diff != "" {
		t.Errorf("batches (-want +got):\n%s", diff)
	}
	if rest, err := m.Batches(t.Context(), 1, 1); err != nil || len(rest) != 1 || rest[0].Number != 2 {
		t.Errorf("batches after the first: %v, %v", rest, err)
	}
	if hash, n, err := m.JournalHead(t.Context()); err != nil || n != 2 || hash != review.Hash {
		t.Errorf("head %v of %d, %v", hash, n, err)
	}
	reach, err := m.JournalReach(t.Context())
	want := []ledger.JournalReach{{Session: "s", EndTurn: 1, Read: 1, Waiting: 2, LastEnded: 4}, {Session: "other", Waiting: 1, LastEnded: 2}}
	if diff := cmp.Diff(want, reach); diff != "" || err != nil {
		t.Errorf("reach %v (-want +got):\n%s", err, diff)
	}
	if c, err := m.JournalCounts(t.Context()); err != nil || c.Read != 1 || c.Waiting != 3 || c.Entries != 2 || c.Dropped != 1 || !c.Last.Equal(start) {
		t.Errorf("counts %+v, %v", c, err)
	}
	inside := link(2, 3, 3)
	inside.EndMessage, inside.EndByte = 5, 10
	mustAdd(t, m, inside)
	reach, err = m.JournalReach(t.Context())
	if err != nil || reach[0].Read != 1 || reach[0].Waiting != 2 || reach[0].EndTurn != 3 {
		t.Errorf("reach when a window ends inside a turn: %+v, %v", reach, err)
	}
}

// TestJournalRace: of many who add after the same batch, one does.
func TestJournalRace(t *testing.T) {
	m := newMemory(t)
	mustAppend(t, m, exchange("s", 1))
	var wait sync.WaitGroup
	results := make([]error, 20)
	for i := range results {
		wait.Go(func() { _, results[i] = m.AddBatch(t.Context(), link(0, byte(i+1), 1)) })
		wait.Go(func() { mustAppend(t, m, exchange("s", 10+i)) })
	}
	wait.Wait()
	added := 0
	for _, err := range results {
		if err == nil {
			added++
		} else if !errors.Is(err, ledger.ErrConflict) {
			t.Error(err)
		}
	}
	if _, n, err := m.JournalHead(t.Context()); added != 1 || n != 1 || err != nil {
		t.Errorf("%d were added, %d are there, %v", added, n, err)
	}
}

func TestCloseTail(t *testing.T) {
	m := newMemory(t)
	mustAppend(t, m, exchange("s", 1), exchange("other", 2), exchange("s", 3))
	for range 2 {
		if err := m.CloseTail(t.Context(), "s", 3); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		session string
		turn    uint64
	}{{"s", 2}, {"s", 99}, {"nowhere", 1}} {
		if err := m.CloseTail(t.Context(), tt.session, tt.turn); !errors.Is(err, ledger.ErrNotFound) {
			t.Errorf("CloseTail(%q, %d) = %v, want ErrNotFound", tt.session, tt.turn, err)
		}
	}
	if got, err := m.Closings(t.Context(), "s"); err != nil || len(got) != 1 || got[0] != 3 {
		t.Errorf("closings %v, %v", got, err)
	}
}

func TestSpokenTurns(t *testing.T) {
	m := newMemory(t)
	turn := exchange("s", 1)
	turn.Messages = append(turn.Messages, ledger.Message{ID: "trace", Kind: ledger.KindTrace, Text: []byte("output")})
	silent := ledger.Turn{Session: "s", ID: "silent", Status: ledger.StatusFinished, Messages: []ledger.Message{{ID: "silent", Kind: ledger.KindUser, Text: []byte("hm")}}}
	mustAppend(t, m, turn, exchange("other", 2), silent, exchange("s", 4))
	turns, err := m.SpokenTurns(t.Context(), "s", 1, 3, 0)
	if err != nil || len(turns) != 2 || turns[0].Seq != 1 || turns[1].Seq != 3 || len(turns[0].Messages) != 2 || string(turns[1].Messages[0].Text) != "hm" {
		t.Fatalf("turns %+v, %v", turns, err)
	}
	if turns[0].Messages[0].Inner == turns[0].Messages[1].Inner || turns[0].Messages[0].Inner == [32]byte{} {
		t.Error("messages lack hashes of their own")
	}
	for before, want := range map[uint64]uint64{1: 0, 2: 1, 3: 1, 4: 1, 5: 4} {
		if got, err := m.ReplyBefore(t.Context(), "s", before); err != nil || got != want {
			t.Errorf("ReplyBefore(%d) = %d, %v; want %d", before, got, err, want)
		}
	}
	head, err := m.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	late := ledger.Turn{Session: "s", ID: turn.ID, Messages: []ledger.Message{{ID: "late", Kind: ledger.KindUser, Text: []byte("late")}}}
	mustAppend(t, m, late)
	grown, err := m.Grown(t.Context(), head)
	if diff := cmp.Diff(map[string]map[uint64]uint64{"s": {1: head + 1}}, grown); diff != "" || err != nil {
		t.Errorf("grown %v (-want +got):\n%s", err, diff)
	}
	byID, err := m.MessagesByID(t.Context(), []string{"late", "nobody"})
	if err != nil || len(byID) != 1 || byID["late"].Session != "s" || string(byID["late"].Text) != "late" {
		t.Errorf("messages by id %v, %v", byID, err)
	}
}

// TestJournalOfAnOlderFile: a file without the tables of the journal gets them
// when it is opened, and keeps what it has.
func TestJournalOfAnOlderFile(t *testing.T) {
	root := filepath.Join(t.TempDir(), "store")
	s := openStore(t, root, ledger.Options{})
	id := closedMemory(t, s)
	path := filepath.Join(s.Folder(id), "ledger.db")
	execute(t, path, "DROP TABLE given", "DROP TABLE batch", "DROP TABLE closing", "PRAGMA user_version = 1")
	m := openMemory(t, s, key)
	if c, err := m.Counts(t.Context()); err != nil || c.Turns != 1 {
		t.Errorf("counts %+v, %v", c, err)
	}
	mustAdd(t, m, link(0, 1, 1))
	verify(t, m)
}

// TestDamagedJournal: damage of a batch is named and never returned as truth.
func TestDamagedJournal(t *testing.T) {
	for name, change := range map[string]string{
		"body":     "UPDATE batch SET body = x'ff' WHERE number = 1",
		"previous": "UPDATE batch SET previous = zeroblob(32) WHERE number = 2",
		"missing":  "DELETE FROM batch WHERE number = 1",
	} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, filepath.Join(t.TempDir(), "store"), ledger.Options{})
			id := closedMemory(t, s, link(0, 1, 1), link(1, 2, 1))
			execute(t, filepath.Join(s.Folder(id), "ledger.db"), change)
			m, err := s.Open(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			var damage *ledger.DamageError
			if _, err := m.Batches(t.Context(), 0, 0); !errors.As(err, &damage) || damage.Table != "batch" {
				t.Errorf("Batches: %v, want damage of batch", err)
			}
			problems, err := m.Verify(t.Context(), ledger.VerifyOptions{}, nil)
			if err != nil || len(problems) == 0 {
				t.Errorf("Verify found %v, %v", problems, err)
			}
		})
	}
}

// closedMemory makes a memory with one turn and batches, and closes it.
func closedMemory(t *testing.T, s *ledger.Store, batches ...ledger.JournalBatch) string {
	t.Helper()
	id, err := s.Ensure(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.Open(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, m, exchange("s", 1))
	for _, b := range batches {
		mustAdd(t, m, b)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	return id
}

// execute runs statements on a file that nobody has open.
func execute(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatal(fmt.Errorf("%s: %w", s, err))
		}
	}
}
