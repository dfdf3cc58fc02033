package ledger_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"recalld/ledger"
)

func TestStoreBind(t *testing.T) {
	s := openStore(t, t.TempDir(), ledger.Options{})
	other := ledger.MemoryKey{Agent: "agent", Project: "other"}
	ctx := t.Context()
	bind := func(b ledger.Binding) (string, bool, error) { t.Helper(); return s.Bind(ctx, b) }

	id, bound, err := bind(ledger.Binding{Session: "s1", Key: key, Name: "my project", Aliases: []string{"0123456789abcdef", "p"}})
	if err != nil || !bound || id != ledger.MemoryID(key) {
		t.Fatalf("Bind = %s, %v, %v", id, bound, err)
	}
	if again, bound, err := bind(ledger.Binding{Session: "s1", Key: key}); err != nil || bound || again != id {
		t.Errorf("Bind again = %s, %v, %v", again, bound, err)
	}
	for _, tt := range []struct {
		name string
		b    ledger.Binding
	}{
		{"session bound elsewhere", ledger.Binding{Session: "s1", Key: other}},
		{"alias of another memory", ledger.Binding{Session: "s2", Key: other, Aliases: []string{"q", "p"}}},
	} {
		if _, _, err := bind(tt.b); !errors.Is(err, ledger.ErrExists) || strings.Contains(err.Error(), id) {
			t.Errorf("%s: error %v, want ErrExists that does not name the other memory", tt.name, err)
		}
		if list, err := s.List(ctx); err != nil || len(list) != 1 {
			t.Errorf("%s: a memory was made: %+v, %v", tt.name, list, err)
		}
	}
	if _, bound, err := bind(ledger.Binding{Session: ledger.NotesSession, Key: key}); err != nil || bound {
		t.Errorf("Bind notes = %v, %v", bound, err)
	}
	otherID, bound, err := bind(ledger.Binding{Session: ledger.NotesSession, Key: other, Name: "other"})
	if err != nil || bound {
		t.Errorf("Bind notes to other = %v, %v", bound, err)
	}
	if _, err := s.SessionMemory(ctx, ledger.NotesSession); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("notes are bound: %v", err)
	}
	for _, ref := range []string{id, "0123456789abcdef", "p", "my project"} {
		if got, err := s.Resolve(ctx, ref); err != nil || got != id {
			t.Errorf("Resolve(%q) = %s, %v", ref, got, err)
		}
	}
	for _, ref := range []string{"nobody", strings.ToUpper(id), strings.Repeat("0", 64), "../" + id} {
		if got, err := s.Resolve(ctx, ref); !errors.Is(err, ledger.ErrNotFound) {
			t.Errorf("Resolve(%q) = %s, %v, want ErrNotFound", ref, got, err)
		}
		if _, err := s.Open(ctx, ref); !errors.Is(err, ledger.ErrNotFound) {
			t.Errorf("Open(%q): %v, want ErrNotFound", ref, err)
		}
	}
	list, err := s.List(ctx)
	want := []ledger.MemoryInfo{
		{ID: otherID, Key: other, Name: "other"},
		{ID: id, Key: key, Name: "my project", Aliases: []string{"0123456789abcdef", "p"}},
	}
	if diff := cmp.Diff(want, list, cmpopts.IgnoreFields(ledger.MemoryInfo{}, "Created")); err != nil || diff != "" {
		t.Errorf("List (-want +got):\n%s\n%v", diff, err)
	}
	problems, err := s.Verify(ctx)
	if err != nil || len(problems) > 0 {
		t.Errorf("Verify = %+v, %v", problems, err)
	}
}

func TestStoreBindRefuses(t *testing.T) {
	s := openStore(t, t.TempDir(), ledger.Options{})
	long := strings.Repeat("x", 513)
	for _, tt := range []struct {
		name, field string
		b           ledger.Binding
	}{
		{"no agent", "agent", ledger.Binding{Key: ledger.MemoryKey{Project: "p"}}},
		{"long project", "project", ledger.Binding{Key: ledger.MemoryKey{Agent: "a", Project: long}}},
		{"NUL in agent", "agent", ledger.Binding{Key: ledger.MemoryKey{Agent: "a\x00b"}}},
		{"invalid session", "session_id", ledger.Binding{Key: key, Session: "\xff"}},
		{"long name", "display_name", ledger.Binding{Key: key, Name: long}},
		{"empty alias", "aliases[1]", ledger.Binding{Key: key, Aliases: []string{"a", ""}}},
		{"alias like an id", "aliases[0]", ledger.Binding{Key: key, Aliases: []string{strings.Repeat("a", 64)}}},
	} {
		_, _, err := s.Bind(t.Context(), tt.b)
		var field *ledger.FieldError
		if !errors.As(err, &field) || field.Field != tt.field {
			t.Errorf("%s: error %v, want a FieldError for %s", tt.name, err, tt.field)
		}
	}
	if list, err := s.List(t.Context()); err != nil || len(list) > 0 {
		t.Errorf("List = %+v, %v, want none", list, err)
	}
}

// TestStoreKeys makes memories of hostile keys. None may leave the store, none
// may share a folder with another.
func TestStoreKeys(t *testing.T) {
	dir := t.TempDir()
	root := filepath.Join(dir, "store ?mode=memory#%41&x=1")
	s := openStore(t, root, ledger.Options{})
	keys := []ledger.MemoryKey{
		{Agent: "../../x"}, {Agent: "/etc/passwd"}, {Agent: "CON"}, {Agent: "a\nb"}, {Agent: "a", Project: "\nb"},
		{Agent: "é"}, {Agent: "e\u0301"}, {Agent: "A"}, {Agent: "a"}, {Agent: "a."}, {Agent: "a "},
		{Agent: "a/b"}, {Agent: "a-b"}, {Agent: "a", Project: "b"}, {Agent: "ab"}, {Agent: ".."}, {Agent: "'; DROP TABLE memory; --"},
	}
	seen := map[string]bool{}
	for _, k := range keys {
		id, err := s.Ensure(t.Context(), k)
		if err != nil {
			t.Errorf("Ensure(%q): %v", k, err)
			continue
		}
		if seen[id] || s.Folder(id) != filepath.Join(root, "memories", id) {
			t.Errorf("Ensure(%q) = %s, folder %s", k, id, s.Folder(id))
		}
		seen[id] = true
		m := openMemory(t, s, k)
		if m.Key() != k {
			t.Errorf("Key = %q, want %q", m.Key(), k)
		}
		mustAppend(t, m, exchange(k.Agent, 1))
		if n, err := m.Counts(t.Context()); err != nil || n.Turns != 1 {
			t.Errorf("memory of %q holds %d turns, %v", k, n.Turns, err)
		}
	}
	for _, id := range []string{"", "..", "../x", strings.Repeat("A", 64), strings.Repeat("g", 64), strings.Repeat("a", 63) + "/"} {
		if got := s.Folder(id); got != "" {
			t.Errorf("Folder(%q) = %s, want nothing", id, got)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("beside the store there is %v, %v", entries, err)
	}
}

func TestStoreSecret(t *testing.T) {
	root := t.TempDir()
	var secrets [][]byte
	for range 2 {
		s, err := ledger.OpenStore(root, ledger.Options{})
		if err != nil {
			t.Fatal(err)
		}
		secrets = append(secrets, s.Secret())
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if len(secrets[0]) != 32 || !bytes.Equal(secrets[0], secrets[1]) {
		t.Errorf("secrets %x and %x of one store", secrets[0], secrets[1])
	}
	if other := openStore(t, t.TempDir(), ledger.Options{}).Secret(); bytes.Equal(other, secrets[0]) {
		t.Error("two stores have one secret")
	}
}

func TestStoreMustExist(t *testing.T) {
	root := filepath.Join(t.TempDir(), "store")
	if _, err := ledger.OpenStore(root, ledger.Options{MustExist: true}); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("error %v, want ErrNotFound", err)
	}
	if _, err := os.Lstat(root); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder was made: %v", err)
	}
}

func TestStoreLock(t *testing.T) {
	root := t.TempDir()
	s := openStore(t, root, ledger.Options{Build: "v1.2.3"})
	_, err := ledger.OpenStore(root, ledger.Options{})
	if !errors.Is(err, ledger.ErrLocked) || !strings.Contains(err.Error(), "process ") || !strings.Contains(err.Error(), "build v1.2.3") {
		t.Errorf("error %v, want ErrLocked naming process and build", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// What a dead process left locks nothing.
	if err := os.WriteFile(filepath.Join(root, "recalld.lock"), []byte("process 1, build old\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	openStore(t, root, ledger.Options{})
}

// TestStoreAdopts loses the catalog and finds the memories again.
func TestStoreAdopts(t *testing.T) {
	root := t.TempDir()
	s, err := ledger.OpenStore(root, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	id, _, err := s.Bind(t.Context(), ledger.Binding{Session: "s", Key: key})
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.Open(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, m, exchange("s", 1), exchange(ledger.NotesSession, 2))
	if err := errors.Join(m.Close(), s.Close(), os.Remove(filepath.Join(root, "catalog.db"))); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(root, "memories", strings.Repeat("0", 64)), 0o700); err != nil {
		t.Fatal(err) // a folder that is no memory hides no other
	}
	s = openStore(t, root, ledger.Options{})
	if got, err := s.SessionMemory(t.Context(), "s"); err != nil || got != id {
		t.Errorf("session belongs to %q, %v, want %s", got, err, id)
	}
	if list, err := s.List(t.Context()); err != nil || len(list) != 1 || list[0].Key != key {
		t.Errorf("List = %+v, %v", list, err)
	}
	problems, err := s.Verify(t.Context())
	if err != nil || len(problems) != 1 {
		t.Errorf("Verify = %+v, %v, want the folder that is no memory", problems, err)
	}
}

// TestMemoryOfAnotherFolder puts the file of one memory where another's was.
func TestMemoryOfAnotherFolder(t *testing.T) {
	root := t.TempDir()
	s := openStore(t, root, ledger.Options{})
	a, err := s.Ensure(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.Ensure(t.Context(), ledger.MemoryKey{Agent: "b"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(s.Folder(a), "ledger.db"), filepath.Join(s.Folder(b), "ledger.db")); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{a, b} {
		_, err := s.Open(t.Context(), id)
		var damage *ledger.DamageError
		if !errors.As(err, &damage) || !strings.Contains(damage.File, id) {
			t.Errorf("Open(%s): error %v, want a DamageError naming its file", id, err)
		}
	}
}
