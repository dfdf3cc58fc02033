package ledger

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
)

// adopt fills a catalog that was just made with the memories whose folders are
// there already, which happens when the catalog was lost: keys and sessions
// stand in each memory's own file. Names, aliases and the secret are not to be
// had again. A folder that cannot be read is left alone; Verify names it.
func (s *Store) adopt(ctx context.Context) error {
	entries, err := os.ReadDir(filepath.Join(s.root, memoriesName))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !isMemoryID(e.Name()) {
			continue
		}
		a, err := s.readAdopted(ctx, e.Name())
		if err != nil {
			continue
		}
		if err := s.inTransaction(ctx, func(tx *sql.Tx) error { return a.record(ctx, tx, e.Name()) }); err != nil {
			return fmt.Errorf("take up memory %s: %w", e.Name(), err)
		}
	}
	return nil
}

// adopted is what a memory's own file tells the catalog.
type adopted struct {
	row      memoryRow
	sessions []string
}

func (s *Store) readAdopted(ctx context.Context, id string) (a adopted, err error) {
	m := &Memory{id: id, path: filepath.Join(s.Folder(id), ledgerName)}
	if err := m.checkFiles(s.Folder(id)); err != nil {
		return a, err
	}
	db, err := openSQLite(m.path, reading)
	if err != nil {
		return a, err
	}
	defer db.Close()
	row, what, err := readMemoryRow(ctx, db)
	if err != nil {
		return a, err
	}
	if what != "" || MemoryID(row.key) != id {
		return a, m.damaged("memory", 1, what)
	}
	a.row = row
	rows, err := db.QueryContext(ctx, "SELECT id FROM session")
	a.sessions, err = collect(rows, err)
	return a, err
}

func (a *adopted) record(ctx context.Context, tx *sql.Tx, id string) error {
	_, err := tx.ExecContext(ctx, "INSERT INTO memory (id, agent, project, name, created) VALUES (?, ?, ?, '', ?)",
		id, a.row.key.Agent, a.row.key.Project, a.row.created.micros)
	if err != nil {
		return err
	}
	for _, session := range a.sessions {
		if _, err := bindSession(ctx, tx, id, session, true); err != nil {
			return err
		}
	}
	return nil
}
