package ledger_test

import (
	"os"
	"testing"

	"recalld/ledger"
)

// TestCloseLeavesOnlyTheFile: a writer whose statements were not closed kept its
// connection, and with it the log and open files, for the life of the process.
func TestCloseLeavesOnlyTheFile(t *testing.T) {
	s := openStore(t, t.TempDir(), ledger.Options{})
	m := openMemory(t, s, key)
	mustAppend(t, m, exchange("s", 1))
	if _, err := m.Read(t.Context(), 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(s.Folder(m.ID()))
	if err != nil || len(entries) != 1 || entries[0].Name() != "ledger.db" {
		t.Errorf("the folder holds %v, %v, want only ledger.db", entries, err)
	}
	again := openMemory(t, s, key)
	if counts, err := again.Counts(t.Context()); err != nil || counts.Turns != 1 {
		t.Errorf("Counts = %+v, %v", counts, err)
	}
}
