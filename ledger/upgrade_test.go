package ledger_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"recalld/ledger"
)

// The steps that take a file of today back to an earlier version of its schema.
var (
	catalogBack = []string{ // to 2
		"DROP TABLE spend", "ALTER TABLE memory DROP COLUMN trouble", "ALTER TABLE memory DROP COLUMN maintained", "PRAGMA user_version = 2",
	}
	ledgerBack = map[int][]string{
		2: {"DROP TABLE given", "PRAGMA user_version = 2"},
		1: {"DROP TABLE given", "DROP TABLE batch", "DROP TABLE closing", "PRAGMA user_version = 1"},
	}
)

// alter runs statements on a file of a store that is closed.
func alter(path string, statements ...string) error {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

// ledgerFile is the file of the only memory of a store.
func ledgerFile(root string) string {
	return filepath.Join(root, "memories", ledger.MemoryID(key), "ledger.db")
}

// age takes a store that is closed back to earlier versions.
func age(root string, version int) error {
	return errors.Join(alter(filepath.Join(root, "catalog.db"), catalogBack...), alter(ledgerFile(root), ledgerBack[version]...))
}

// TestUpgrade opens stores that earlier versions left: nothing of them changes
// but what they lack.
func TestUpgrade(t *testing.T) {
	for version := range ledgerBack {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			root := filepath.Join(t.TempDir(), "store")
			s, m, err := openBoth(root, ledger.Options{})
			if err != nil {
				t.Fatal(err)
			}
			mustAppend(t, m, exchange("s", 1), exchange("s", 2))
			if version >= 2 {
				mustAdd(t, m, link(0, 1, 1))
				if err := m.CloseTail(t.Context(), "s", 2); err != nil {
					t.Fatal(err)
				}
			}
			before := journalOf(t, m)
			if err := errors.Join(m.Close(), s.Close(), age(root, version)); err != nil {
				t.Fatal(err)
			}
			s = openStore(t, root, ledger.Options{})
			m = openMemory(t, s, key) // verifies at the end
			if diff := cmp.Diff(before, journalOf(t, m)); diff != "" {
				t.Errorf("the journal (-before +after):\n%s", diff)
			}
			if problems, err := s.Verify(t.Context()); err != nil || len(problems) > 0 {
				t.Errorf("verify store: %+v, %v", problems, err)
			}
			wantGiven(t, m, "s")
			mustGive(t, m, "s", nil, entry("e1", "a"), passage(1, 0, 4))
			wantGiven(t, m, "s", entry("e1", "a"), passage(1, 0, 4))
			mustAppend(t, m, exchange("s", 3))
			if err := s.AddSpend(t.Context(), m.ID(), ledger.Spend{Purpose: "extract", Model: "m", Calls: 1, Tokens: 2, Took: time.Second}); err != nil {
				t.Error(err)
			}
			if last, err := s.Maintained(t.Context(), m.ID()); err != nil || last != (ledger.Maintenance{}) {
				t.Errorf("maintained %+v, %v", last, err)
			}
		})
	}
}

// journalOf is what a test compares of a journal.
func journalOf(t *testing.T, m *ledger.Memory) (all struct {
	Batches []ledger.JournalBatch
	Head    [32]byte
	Closed  []uint64
}) {
	t.Helper()
	var errs [3]error
	all.Batches, errs[0] = m.Batches(t.Context(), 0, 0)
	all.Head, _, errs[1] = m.JournalHead(t.Context())
	all.Closed, errs[2] = m.Closings(t.Context(), "s")
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestNewerFile refuses what a later version wrote and says what to do.
func TestNewerFile(t *testing.T) {
	for name, path := range map[string]func(root string) string{
		"catalog": func(root string) string { return filepath.Join(root, "catalog.db") },
		"memory":  ledgerFile,
	} {
		t.Run(name, func(t *testing.T) {
			root := filepath.Join(t.TempDir(), "store")
			s, m, err := openBoth(root, ledger.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(m.Close(), s.Close(), alter(path(root), "PRAGMA user_version = 99")); err != nil {
				t.Fatal(err)
			}
			s, m, err = openBoth(root, ledger.Options{})
			if !errors.Is(err, ledger.ErrNewer) || !strings.Contains(fmt.Sprint(err), "99") {
				t.Errorf("opened with %v, want ErrNewer", err)
			}
			if err == nil {
				m.Close()
				s.Close()
			}
		})
	}
}

// agedReadOnly opens a store of an earlier version on a disk that cannot be
// written, where it stays as it is.
func agedReadOnly(root string, version, turns int) error {
	s, m, err := openBoth(root, ledger.Options{})
	if err != nil {
		return err
	}
	ctx := context.Background()
	if err := soundly(m, turns); err != nil {
		return err
	}
	if problems, err := s.Verify(ctx); err != nil || len(problems) > 0 {
		return fmt.Errorf("verify store: %+v, %w", problems, err)
	}
	if list, err := m.Given(ctx, "s"); err != nil || len(list) > 0 {
		return fmt.Errorf("given: %v, %w", list, err)
	}
	if err := m.Give(ctx, "s", []ledger.Given{entry("e1", "a")}, nil); !errors.Is(err, ledger.ErrReadOnly) {
		return fmt.Errorf("give: %w, want ErrReadOnly", err)
	}
	_, err = m.Batches(ctx, 0, 0)
	if version < 2 && !errors.Is(err, ledger.ErrReadOnly) || version >= 2 && err != nil {
		return fmt.Errorf("batches: %w", err)
	}
	return errors.Join(m.Close(), s.Close())
}
