package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"recalld/ledger"
)

var otherKey = ledger.MemoryKey{Agent: "agent", Project: "other"}

// reserve reserves the memory of k and fails the test when that fails.
func reserve(t testing.TB, s *ledger.Store, k ledger.MemoryKey, sessions ...string) *ledger.Reservation {
	t.Helper()
	r, err := s.Reserve(t.Context(), ledger.MemoryID(k), k, sessions)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// release ends a reservation and fails the test when that fails.
func release(t testing.TB, r *ledger.Reservation, stored ...string) {
	t.Helper()
	if err := r.Release(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
}

// owner names the memory a session is bound to, "" for none.
func owner(t testing.TB, s *ledger.Store, session string) string {
	t.Helper()
	id, err := s.SessionMemory(t.Context(), session)
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		t.Fatal(err)
	}
	return id
}

// store appends a turn of a session to the memory of k.
func store(t testing.TB, s *ledger.Store, k ledger.MemoryKey, session string) {
	t.Helper()
	m, err := s.Open(t.Context(), ledger.MemoryID(k))
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, m, exchange(session, 1))
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
}

// dropped drops the memory of k and fails the test unless that does as wanted,
// to the catalog and to the folder.
func dropped(t testing.TB, s *ledger.Store, k ledger.MemoryKey, want bool) {
	t.Helper()
	id := ledger.MemoryID(k)
	got, err := s.Drop(t.Context(), id)
	if err != nil || got != want {
		t.Errorf("Drop = %v, %v, want %v", got, err, want)
	}
	_, err = os.Lstat(s.Folder(id))
	_, resolveErr := s.Resolve(t.Context(), id)
	if os.IsNotExist(err) != want || errors.Is(resolveErr, ledger.ErrNotFound) != want {
		t.Errorf("after Drop = %v: folder %v, catalog %v", want, err, resolveErr)
	}
}

// TestReserveUndone: what was bound for an Append that stores nothing is free
// again, and the memory goes; what had turns stays.
func TestReserveUndone(t *testing.T) {
	s := openStore(t, t.TempDir(), ledger.Options{})
	r := reserve(t, s, key, "s1", "s2", ledger.NotesSession, "s1")
	for _, session := range []string{"s1", "s2"} {
		if owner(t, s, session) != ledger.MemoryID(key) {
			t.Errorf("session %s is not bound while it is reserved", session)
		}
	}
	if owner(t, s, ledger.NotesSession) != "" {
		t.Error("notes are bound")
	}
	dropped(t, s, key, false) // an Append rests on it
	release(t, r)
	if owner(t, s, "s1")+owner(t, s, "s2") != "" {
		t.Error("sessions without turns stay bound")
	}
	dropped(t, s, key, true)

	r = reserve(t, s, key, "s1", "s2")
	store(t, s, key, "s1")
	release(t, r) // what was stored is looked up where nobody knows
	if owner(t, s, "s1") != ledger.MemoryID(key) || owner(t, s, "s2") != "" {
		t.Errorf("s1 is bound to %q, s2 to %q", owner(t, s, "s1"), owner(t, s, "s2"))
	}
	dropped(t, s, key, false)
	if problems, err := s.Verify(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("Verify = %+v, %v", problems, err)
	}
}

// TestReserveRefuses: a refusal makes nothing.
func TestReserveRefuses(t *testing.T) {
	s := openStore(t, t.TempDir(), ledger.Options{})
	release(t, reserve(t, s, key, "s1"), "s1")
	store(t, s, key, "s1")
	for _, tt := range []struct {
		name string
		id   string
		key  ledger.MemoryKey
		want error
	}{
		{"session of another memory", ledger.MemoryID(otherKey), otherKey, ledger.ErrExists},
		{"unknown memory", strings.Repeat("0", 64), ledger.MemoryKey{}, ledger.ErrExists},
	} {
		if _, err := s.Reserve(t.Context(), tt.id, tt.key, []string{"new", "s1"}); !errors.Is(err, tt.want) || strings.Contains(err.Error(), ledger.MemoryID(key)) {
			t.Errorf("%s: error %v, want %v that does not name the other memory", tt.name, err, tt.want)
		}
	}
	if _, err := s.Reserve(t.Context(), strings.Repeat("0", 64), ledger.MemoryKey{}, []string{"new"}); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("error %v, want ErrNotFound", err)
	}
	if _, err := s.Reserve(t.Context(), ledger.MemoryID(key), key, []string{"new", strings.Repeat("x", 513)}); err == nil {
		t.Error("a session id that is too long was taken")
	}
	if list, err := s.List(t.Context()); err != nil || len(list) != 1 || owner(t, s, "new") != "" {
		t.Errorf("after refusals: %+v, %v, new bound to %q", list, err, owner(t, s, "new"))
	}
}

// TestReserveTogether: of two Appends to one new session the end of one takes
// nothing from the other, in either order.
func TestReserveTogether(t *testing.T) {
	for _, first := range []int{0, 1} {
		t.Run(fmt.Sprint(first), func(t *testing.T) {
			s := openStore(t, t.TempDir(), ledger.Options{})
			both := []*ledger.Reservation{reserve(t, s, key, "s"), reserve(t, s, key, "s")}
			release(t, both[first])
			if owner(t, s, "s") == "" {
				t.Error("the session of an Append under way was unbound")
			}
			dropped(t, s, key, false)
			if _, err := s.Reserve(t.Context(), ledger.MemoryID(otherKey), otherKey, []string{"s"}); !errors.Is(err, ledger.ErrExists) {
				t.Errorf("the session of an Append under way was given away: %v", err)
			}
			release(t, both[1-first])
			if owner(t, s, "s") != "" {
				t.Error("the session stays bound after both")
			}
			dropped(t, s, key, true)
		})
	}
}

// TestReserveKept: what Bind makes stays, also if an Append was there first.
func TestReserveKept(t *testing.T) {
	s := openStore(t, t.TempDir(), ledger.Options{})
	r := reserve(t, s, key, "s")
	if _, bound, err := s.Bind(t.Context(), ledger.Binding{Session: "s", Key: key}); err != nil || bound {
		t.Fatalf("Bind = %v, %v", bound, err)
	}
	release(t, r)
	if owner(t, s, "s") != ledger.MemoryID(key) {
		t.Error("the session that Bind asked for was unbound")
	}
	dropped(t, s, key, false)
	if _, err := s.Ensure(t.Context(), otherKey); err != nil {
		t.Fatal(err)
	}
	release(t, reserve(t, s, otherKey, "new"))
	dropped(t, s, otherKey, false)
	if _, err := s.Reserve(t.Context(), ledger.MemoryID(otherKey), otherKey, []string{"s"}); !errors.Is(err, ledger.ErrExists) {
		t.Errorf("a bound session without turns was given away: %v", err)
	}
}

// TestReserveAfterKill: what a killed Append left stands in nobody's way.
func TestReserveAfterKill(t *testing.T) {
	again := map[string]func(*testing.T, *ledger.Store){
		"the same memory": func(t *testing.T, s *ledger.Store) {
			release(t, reserve(t, s, key, "s"), "s")
			if owner(t, s, "s") != ledger.MemoryID(key) {
				t.Errorf("bound to %q", owner(t, s, "s"))
			}
		},
		"another memory": func(t *testing.T, s *ledger.Store) {
			r := reserve(t, s, otherKey, "s")
			store(t, s, otherKey, "s")
			release(t, r, "s")
			if owner(t, s, "s") != ledger.MemoryID(otherKey) {
				t.Errorf("bound to %q", owner(t, s, "s"))
			}
			release(t, reserve(t, s, key))
			dropped(t, s, key, true)
		},
		"Bind": func(t *testing.T, s *ledger.Store) {
			if id, bound, err := s.Bind(t.Context(), ledger.Binding{Session: "s", Key: otherKey}); err != nil || !bound || id != ledger.MemoryID(otherKey) {
				t.Errorf("Bind = %s, %v, %v", id, bound, err)
			}
		},
		"a folder without its row": func(t *testing.T, s *ledger.Store) {
			elsewhere := openStore(t, t.TempDir(), ledger.Options{})
			id, err := elsewhere.Ensure(t.Context(), otherKey)
			if err == nil {
				err = os.Rename(elsewhere.Folder(id), s.Folder(id))
			}
			if err != nil {
				t.Fatal(err)
			}
			if problems, err := s.Verify(t.Context()); err != nil || len(problems) > 0 {
				t.Errorf("Verify = %+v, %v", problems, err)
			}
			release(t, reserve(t, s, otherKey, "new"), "new")
			store(t, s, otherKey, "new")
		},
	}
	for name, then := range again {
		t.Run(name, func(t *testing.T) {
			root := filepath.Join(t.TempDir(), "store")
			s, err := ledger.OpenStore(root, ledger.Options{})
			if err != nil {
				t.Fatal(err)
			}
			reserve(t, s, key, "s") // never released
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			then(t, openStore(t, root, ledger.Options{}))
		})
	}
}

// TestReserveRace: of many that want a session at once for one memory or the
// other, those of one get it; in the end it is where its turns are.
func TestReserveRace(t *testing.T) {
	s := openStore(t, t.TempDir(), ledger.Options{})
	keys := []ledger.MemoryKey{key, otherKey}
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			k := keys[i%2]
			r, err := s.Reserve(context.Background(), ledger.MemoryID(k), k, []string{"race"})
			if err != nil {
				if !errors.Is(err, ledger.ErrExists) {
					t.Errorf("Reserve: %v", err)
				}
				return
			}
			if got := owner(t, s, "race"); got != ledger.MemoryID(k) {
				t.Errorf("reserved for %s, bound to %q", ledger.MemoryID(k), got)
			}
			if err := r.Release(context.Background(), nil); err != nil {
				t.Errorf("Release: %v", err)
			}
			if _, err := s.Drop(context.Background(), ledger.MemoryID(k)); err != nil {
				t.Errorf("Drop: %v", err)
			}
		})
	}
	all.Wait()
	if list, err := s.List(t.Context()); err != nil || len(list) != 0 || owner(t, s, "race") != "" {
		t.Errorf("left: %+v, %v, bound to %q", list, err, owner(t, s, "race"))
	}
}

// TestLookUps: numbers by id and ids by number, without what is not there.
func TestLookUps(t *testing.T) {
	m := newMemory(t)
	empty := exchange("s", 2)
	empty.Messages[0].Text = nil
	mustAppend(t, m, exchange("s", 1), empty)
	numbers, err := m.Sequences(t.Context(), []string{"s/2/reply", "nobody", "s/1/user", "s/2/user", "s/1/user"})
	if diff := cmp.Diff(map[string]uint64{"s/1/user": 1, "s/2/user": 3, "s/2/reply": 4}, numbers); err != nil || diff != "" {
		t.Errorf("Sequences (-want +got):\n%s\n%v", diff, err)
	}
	ids, err := m.IDs(t.Context(), []uint64{4, 0, 2, 9})
	if diff := cmp.Diff(map[uint64]string{2: "s/1/reply", 4: "s/2/reply"}, ids); err != nil || diff != "" {
		t.Errorf("IDs (-want +got):\n%s\n%v", diff, err)
	}
	if numbers, err := m.Sequences(t.Context(), nil); err != nil || len(numbers) != 0 {
		t.Errorf("Sequences of none = %v, %v", numbers, err)
	}
}

// TestBadExpressionIsNotRepeated: what is wrong is said without the words.
func TestBadExpressionIsNotRepeated(t *testing.T) {
	for _, query := range []string{"/(canary/", "/canary[z-a]/", "/canary**/", "/canary{3,1}/", `/\canary/`, "/(?canary)/", "/canary{9999}/"} {
		_, err := ledger.ParsePattern(query)
		var field *ledger.FieldError
		if !errors.As(err, &field) || field.Field != "query" || strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), "z-a") {
			t.Errorf("ParsePattern(%q): error %v, want one for query that repeats nothing of it", query, err)
		}
	}
}
