package ledger_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"recalld/ledger"
)

func TestMaintenanceIsKept(t *testing.T) {
	root := filepath.Join(t.TempDir(), "store")
	s := openStore(t, root, ledger.Options{})
	id, err := s.Ensure(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Maintained(t.Context(), id); err != nil || got != (ledger.Maintenance{}) {
		t.Errorf("of a new memory: %+v, %v", got, err)
	}
	want := ledger.Maintenance{At: time.Date(2026, 3, 2, 3, 17, 0, 5000, time.UTC), Trouble: "a row is damaged"}
	if err := s.NoteMaintenance(t.Context(), id, want); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, root, ledger.Options{})
	if got, err := s.Maintained(t.Context(), id); err != nil || !got.At.Equal(want.At) || got.Trouble != want.Trouble {
		t.Errorf("after a restart: %+v, %v; want %+v", got, err, want)
	}
	if _, err := s.Maintained(t.Context(), "none"); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("of no memory: %v", err)
	}
	if err := s.NoteMaintenance(t.Context(), "none", want); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("of no memory: %v", err)
	}
	if problems, err := s.Verify(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("Verify = %v, %v", problems, err)
	}
}

// TestCheckpoint: the log is empty afterwards, also while others read and
// append, and nothing is lost.
func TestCheckpoint(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "store"), ledger.Options{})
	m := openMemory(t, s, key)
	for n := 1; n <= 20; n++ {
		mustAppend(t, m, crashTurn(n))
	}
	log := filepath.Join(s.Folder(m.ID()), "ledger.db-wal")
	if info, err := os.Stat(log); err != nil || info.Size() == 0 {
		t.Fatalf("the log before: %v, %v", info, err)
	}
	if err := m.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(log); err != nil || info.Size() != 0 {
		t.Errorf("the log after: %v, %v", info, err)
	}
	done := make(chan error)
	go func() {
		for range 20 {
			if err := m.Checkpoint(t.Context()); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for n := 21; n <= 60; n++ {
		mustAppend(t, m, crashTurn(n))
		if _, err := m.Read(t.Context(), 0, 100, 0); err != nil {
			t.Error(err)
		}
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	checkTurns(t, m, 60)
}
