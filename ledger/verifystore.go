package ledger

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Verify checks the catalog, and that it and the folders agree; nil means that
// all is sound. The memories themselves are checked by [Memory.Verify].
func (s *Store) Verify(ctx context.Context) ([]Problem, error) {
	v := storeVerification{s: s}
	if err := v.catalog(ctx); err != nil {
		return nil, fmt.Errorf("verify store: %w", err)
	}
	if err := v.folders(ctx); err != nil {
		return nil, fmt.Errorf("verify store: %w", err)
	}
	return v.problems, nil
}

type storeVerification struct {
	s        *Store
	problems []Problem
}

func (v *storeVerification) found(file, table string, row int64, what string) {
	if len(v.problems) < maxProblems {
		v.problems = append(v.problems, Problem{file, table, row, what})
	}
}

// note takes damage among err as found and returns other errors.
func (v *storeVerification) note(err error) error {
	err = translate(catalogName, err)
	if !isDamage(err) && !isMisfit(err) {
		return err
	}
	v.found(catalogName, "", 0, "cannot be read: "+err.Error())
	return nil
}

func (v *storeVerification) catalog(ctx context.Context) error {
	q := v.s.reads
	found, err := checkSchema(ctx, q, catalogMigrations, v.s.readOnly)
	for _, what := range found {
		v.found(catalogName, "", 0, what)
	}
	if err := v.note(err); err != nil {
		return err
	}
	err = checkPages(ctx, q, func(what string) { v.found(catalogName, "", 0, what) })
	if err := v.note(err); err != nil {
		return err
	}
	err = checkForeignKeys(ctx, q, func(table string, row int64, parent string) {
		v.found(catalogName, table, row, "refers to a row of "+parent+" that is missing")
	})
	return v.note(err)
}

// folders checks that each memory of the catalog has a folder and a file, that
// keys belong to ids, and that there is no folder the catalog does not know.
func (v *storeVerification) folders(ctx context.Context) error {
	rows, err := v.s.reads.QueryContext(ctx, "SELECT id, agent, project FROM memory ORDER BY id")
	if err != nil {
		return v.note(err)
	}
	defer rows.Close()
	known := map[string]bool{}
	for rows.Next() {
		var id string
		var k MemoryKey
		if err := rows.Scan(&id, &k.Agent, &k.Project); err != nil {
			return v.note(err)
		}
		known[id] = true
		if MemoryID(k) != id {
			v.found(catalogName, "memory", 0, "a key does not belong to its id")
			continue
		}
		m := Memory{id: id, path: filepath.Join(v.s.Folder(id), ledgerName)}
		if err := m.checkFiles(v.s.Folder(id)); err != nil {
			v.found(ledgerPath(id), "", 0, err.Error())
		}
	}
	if err := v.note(rows.Err()); err != nil {
		return err
	}
	entries, err := os.ReadDir(filepath.Join(v.s.root, memoriesName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if !known[e.Name()] && !v.s.isLeftover(ctx, e.Name()) {
			v.found(memoriesName+"/"+e.Name(), "", 0, "is not in the catalog")
		}
	}
	return nil
}
