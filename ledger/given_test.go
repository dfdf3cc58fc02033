package ledger_test

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"recalld/ledger"
)

func entry(id, digest string) ledger.Given { return ledger.Given{Entry: id, Digest: []byte(digest)} }

func passage(message, start, end uint64) ledger.Given {
	return ledger.Given{Message: message, Start: start, End: end}
}

func mustGive(t *testing.T, m *ledger.Memory, session string, drop []string, add ...ledger.Given) {
	t.Helper()
	if err := m.Give(t.Context(), session, add, drop); err != nil {
		t.Fatal(err)
	}
}

// wantGiven fails the test unless a session was given just this.
func wantGiven(t *testing.T, m *ledger.Memory, session string, want ...ledger.Given) {
	t.Helper()
	got, err := m.Given(t.Context(), session)
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || err != nil {
		t.Errorf("given to %s: %v (-want +got):\n%s", session, err, diff)
	}
}

func TestGiven(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "store"), ledger.Options{})
	m := openMemory(t, s, key)
	mustAppend(t, m, exchange("s", 1), exchange("s", 2))
	wantGiven(t, m, "s")
	mustGive(t, m, "s", nil, entry("e1", "a"), passage(1, 0, 10), passage(1, 0, 10), passage(2, 0, 0))
	mustGive(t, m, "before its first turn", nil, entry("e1", "a"))
	wantGiven(t, m, "s", entry("e1", "a"), passage(1, 0, 10), passage(2, 0, 0))
	// Noted again, each is noted once: an entry as it was given last.
	mustGive(t, m, "s", []string{"nobody"}, passage(1, 0, 10), entry("e2", "b"), entry("e1", "c"))
	wantGiven(t, m, "s", passage(1, 0, 10), passage(2, 0, 0), entry("e2", "b"), entry("e1", "c"))
	mustGive(t, m, "s", []string{"e2"})
	wantGiven(t, m, "s", passage(1, 0, 10), passage(2, 0, 0), entry("e1", "c"))

	// It is there after the memory was closed.
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	m = openMemory(t, s, key)
	wantGiven(t, m, "s", passage(1, 0, 10), passage(2, 0, 0), entry("e1", "c"))

	for _, want := range []uint64{3, 0} {
		if n, err := m.TakeBack(t.Context(), "s"); n != want || err != nil {
			t.Errorf("TakeBack = %d, %v; want %d", n, err, want)
		}
		wantGiven(t, m, "s")
	}
	wantGiven(t, m, "before its first turn", entry("e1", "a"))
}

func TestGiveRefuses(t *testing.T) {
	m := newMemory(t)
	mustAppend(t, m, exchange("s", 1))
	var field *ledger.FieldError
	for name, err := range map[string]error{
		"no session":      m.Give(t.Context(), "", []ledger.Given{entry("e", "")}, nil),
		"nothing":         m.Give(t.Context(), "s", []ledger.Given{{}}, nil),
		"both":            m.Give(t.Context(), "s", []ledger.Given{{Entry: "e", Message: 1}}, nil),
		"an upside-down":  m.Give(t.Context(), "s", []ledger.Given{passage(1, 2, 1)}, nil),
		"beyond a number": m.Give(t.Context(), "s", []ledger.Given{passage(1, 0, math.MaxUint64)}, nil),
		"a long id":       m.Give(t.Context(), "s", []ledger.Given{entry(fmt.Sprintf("%600d", 1), "")}, nil),
	} {
		if !errors.As(err, &field) {
			t.Errorf("%s: %v, want a FieldError", name, err)
		}
	}
	err := m.Give(t.Context(), "s", []ledger.Given{entry("e", ""), passage(99, 0, 1)}, nil)
	if !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("a message that is not there: %v, want ErrNotFound", err)
	}
	wantGiven(t, m, "s") // all or nothing
	mustAppend(t, m, exchange("s", 2))
}

// TestGivenIsBounded: the oldest is forgotten, of this session alone.
func TestGivenIsBounded(t *testing.T) {
	m := newMemory(t)
	mustAppend(t, m, exchange("s", 1))
	mustGive(t, m, "other", nil, entry("kept", ""))
	for from := 0; from < ledger.MaxGiven+10; from += 1_002 {
		var list []ledger.Given
		for i := range 1_002 {
			list = append(list, passage(1, uint64(from+i), uint64(from+i)))
		}
		mustGive(t, m, "s", nil, list...)
	}
	got, err := m.Given(t.Context(), "s")
	if err != nil || len(got) != ledger.MaxGiven || got[0].Start != 10 {
		t.Errorf("%d are noted, the first %+v, %v", len(got), got[:min(1, len(got))], err)
	}
	wantGiven(t, m, "other", entry("kept", ""))
}

// TestGivenLikeAMap holds what is noted against a model.
func TestGivenLikeAMap(t *testing.T) {
	m := newMemory(t)
	mustAppend(t, m, exchange("s", 1), exchange("s", 2))
	rapid.Check(t, func(r *rapid.T) {
		session := fmt.Sprint("session", rapid.Uint64().Draw(r, "session"))
		var model []ledger.Given
		same := func(a, b ledger.Given) bool {
			return a.Entry == b.Entry && a.Message == b.Message && a.Start == b.Start && a.End == b.End
		}
		without := func(g ledger.Given) {
			for i := range model {
				if same(model[i], g) {
					model = append(model[:i:i], model[i+1:]...)
					return
				}
			}
		}
		for range rapid.IntRange(1, 8).Draw(r, "calls") {
			var add []ledger.Given
			for range rapid.IntRange(0, 4).Draw(r, "size") {
				if rapid.Bool().Draw(r, "entry") {
					add = append(add, entry(rapid.StringMatching("[a-c]").Draw(r, "id"), rapid.StringMatching("[xy]").Draw(r, "digest")))
				} else {
					start := rapid.Uint64Range(0, 2).Draw(r, "start")
					add = append(add, passage(rapid.Uint64Range(1, 4).Draw(r, "message"), start, start+rapid.Uint64Range(0, 1).Draw(r, "more")))
				}
			}
			drop := rapid.SliceOfN(rapid.StringMatching("[a-c]"), 0, 2).Draw(r, "drop")
			if err := m.Give(t.Context(), session, add, drop); err != nil {
				r.Fatal(err)
			}
			for _, id := range drop {
				without(entry(id, ""))
			}
			for _, g := range add {
				known := false
				for i := range model {
					known = known || same(model[i], g)
				}
				if g.Entry != "" {
					without(g)
				}
				if g.Entry != "" || !known {
					model = append(model, g)
				}
			}
			got, err := m.Given(t.Context(), session)
			if diff := cmp.Diff(model, got, cmpopts.EquateEmpty()); diff != "" || err != nil {
				r.Fatalf("%v (-want +got):\n%s", err, diff)
			}
		}
		if n, err := m.TakeBack(t.Context(), session); err != nil || n != uint64(len(model)) {
			r.Fatalf("TakeBack = %d, %v; want %d", n, err, len(model))
		}
	})
}

// TestGivenAtOnce: what several note of one session at once is noted once.
func TestGivenAtOnce(t *testing.T) {
	m := newMemory(t)
	mustAppend(t, m, exchange("s", 1))
	var wait sync.WaitGroup
	for i := range 16 {
		wait.Go(func() {
			if err := m.Give(t.Context(), "s", []ledger.Given{entry("e", fmt.Sprint(i)), passage(1, 0, 5)}, nil); err != nil {
				t.Error(err)
			}
		})
		wait.Go(func() { mustAppend(t, m, exchange("s", 10+i)) })
	}
	wait.Wait()
	if got, err := m.Given(t.Context(), "s"); err != nil || len(got) != 2 {
		t.Errorf("given %v, %v; want an entry and a passage", got, err)
	}
}

// TestDamagedGiven: a damaged row is named by Verify and never taken for true.
func TestDamagedGiven(t *testing.T) {
	for name, change := range map[string]string{
		"digest":  "UPDATE given SET digest = x'ff' WHERE number = 1",
		"entry":   "UPDATE given SET entry = 'other' WHERE number = 1",
		"session": "UPDATE given SET session = 's' WHERE number = 3",
		"message": "UPDATE given SET message = 2 WHERE number = 2",
		"range":   "UPDATE given SET end_byte = 99 WHERE number = 2",
	} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, filepath.Join(t.TempDir(), "store"), ledger.Options{})
			id := closedMemory(t, s)
			m, err := s.Open(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			mustGive(t, m, "s", nil, entry("e", "a"), passage(1, 0, 10))
			mustGive(t, m, "other", nil, entry("theirs", "a"))
			if err := m.Close(); err != nil {
				t.Fatal(err)
			}
			execute(t, filepath.Join(s.Folder(id), "ledger.db"), change)
			if m, err = s.Open(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			got, err := m.Given(t.Context(), "s")
			if err != nil {
				t.Fatal(err)
			}
			for _, g := range got {
				if !cmp.Equal(g, entry("e", "a")) && !cmp.Equal(g, passage(1, 0, 10)) {
					t.Errorf("%+v is returned as truth", g)
				}
			}
			problems, err := m.Verify(t.Context(), ledger.VerifyOptions{}, nil)
			if err != nil || len(problems) == 0 || problems[0].Table != "given" {
				t.Errorf("Verify found %v, %v", problems, err)
			}
		})
	}
}

// TestLend: a session that asked before its first turn is bound, and stands in
// nobody's way until it has one.
func TestLend(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "store"), ledger.Options{})
	one, two := ledger.MemoryKey{Agent: "a", Project: "one"}, ledger.MemoryKey{Agent: "a", Project: "two"}
	m := openMemory(t, s, one)
	openMemory(t, s, two)
	for range 2 {
		if err := s.Lend(t.Context(), ledger.MemoryID(one), "chat"); err != nil {
			t.Fatal(err)
		}
	}
	if id, err := s.SessionMemory(t.Context(), "chat"); err != nil || id != ledger.MemoryID(one) {
		t.Errorf("chat is bound to %s, %v", id, err)
	}
	if err := s.Lend(t.Context(), ledger.MemoryID(two), "chat"); err != nil {
		t.Errorf("a session without a turn stands in the way: %v", err)
	}
	if err := s.Lend(t.Context(), ledger.MemoryID(one), "chat"); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, m, exchange("chat", 1))
	for name, id := range map[string]string{"another memory": ledger.MemoryID(two), "one that is not there": ledger.MemoryID(key)} {
		if err := s.Lend(t.Context(), id, "chat"); !errors.Is(err, ledger.ErrExists) {
			t.Errorf("a session with turns, lent to %s: %v, want ErrExists", name, err)
		}
	}
	if err := s.Lend(t.Context(), ledger.MemoryID(key), "free"); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("a memory that is not there: %v, want ErrNotFound", err)
	}
	if known, err := s.List(t.Context()); err != nil || len(known) != 2 {
		t.Errorf("memories %v, %v; want the two", known, err)
	}
}

func TestSessionReach(t *testing.T) {
	m := newMemory(t)
	mustAppend(t, m, exchange("s", 1), exchange("other", 2), exchange("s", 3), exchange("s", 4))
	mustAdd(t, m, link(0, 1, 1))
	inside := link(1, 2, 3)
	inside.EndMessage, inside.EndByte = 5, 10
	for range 2 {
		all, err := m.JournalReach(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range append(all, ledger.JournalReach{Session: "nowhere"}) {
			if got, err := m.SessionReach(t.Context(), want.Session); err != nil || got != want {
				t.Errorf("SessionReach = %+v, %v; want %+v", got, err, want)
			}
		}
		if inside.Number == 0 {
			mustAdd(t, m, inside)
			inside.Number = 2
		}
	}
}
