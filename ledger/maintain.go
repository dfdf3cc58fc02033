package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// maintenanceMigration keeps, by memory, when it was last looked after and what
// was found. It is no part of the memory's own file: a file that is damaged
// could not say so.
const maintenanceMigration = `
ALTER TABLE memory ADD COLUMN maintained INTEGER NOT NULL DEFAULT 0; -- microseconds since 1970, UTC; 0 is never
ALTER TABLE memory ADD COLUMN trouble TEXT NOT NULL DEFAULT '';
`

// maintenanceBusyMillis is how long a checkpoint waits for readers. Appends wait
// with it.
const maintenanceBusyMillis = 50

// A Maintenance is what became of looking after a memory.
type Maintenance struct {
	At      time.Time // zero: never
	Trouble string    // what was found; empty is nothing. It holds nothing of what was said.
}

// Maintained returns when a memory was last looked after. The error wraps
// ErrNotFound.
func (s *Store) Maintained(ctx context.Context, id string) (Maintenance, error) {
	if s.readOnly {
		return Maintenance{}, nil // nothing is looked after there, and the columns may be missing
	}
	var micros int64
	var m Maintenance
	err := s.reads.QueryRowContext(ctx, "SELECT maintained, trouble FROM memory WHERE id = ?", id).Scan(&micros, &m.Trouble)
	if errors.Is(err, sql.ErrNoRows) {
		return m, fmt.Errorf("memory %q: %w", id, ErrNotFound)
	}
	if err != nil {
		return m, fmt.Errorf("read maintenance: %w", translate(catalogName, err))
	}
	if micros != 0 {
		m.At = time.UnixMicro(micros).UTC()
	}
	return m, nil
}

// NoteMaintenance keeps that a memory was looked after. The error wraps
// ErrReadOnly or ErrNotFound, or is that of the disk.
func (s *Store) NoteMaintenance(ctx context.Context, id string, m Maintenance) error {
	if s.readOnly {
		return fmt.Errorf("note maintenance: %w", ErrReadOnly)
	}
	result, err := s.writes.ExecContext(ctx, "UPDATE memory SET maintained = ?, trouble = ? WHERE id = ?", m.At.UnixMicro(), m.Trouble, id)
	if err != nil {
		return fmt.Errorf("note maintenance: %w", translate(catalogName, err))
	}
	if n, err := result.RowsAffected(); err == nil && n == 0 {
		return fmt.Errorf("note maintenance of memory %q: %w", id, ErrNotFound)
	}
	return nil
}

// Checkpoint moves the log into the file and empties it, as far as nobody reads
// from it just now; the rest is moved by later commits, as always. It holds up
// Appends for as long as that takes. The error is as that of Append.
func (m *Memory) Checkpoint(ctx context.Context) error {
	if err := m.checkpoint(ctx); err != nil {
		return fmt.Errorf("checkpoint: %w", m.translate(err))
	}
	return nil
}

func (m *Memory) checkpoint(ctx context.Context) error {
	always := func() error { return nil } // it makes room rather than taking it
	return m.alone(ctx, always, func(ctx context.Context, w *writer) (sound bool, err error) {
		if _, err := w.conn.ExecContext(ctx, fmt.Sprintf("PRAGMA busy_timeout(%d)", maintenanceBusyMillis)); err != nil {
			return false, err
		}
		var busy, frames, moved int
		if err := w.conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames, &moved); err != nil {
			return false, err
		}
		if _, err := w.conn.ExecContext(ctx, fmt.Sprintf("PRAGMA busy_timeout(%d)", busyMillis)); err != nil {
			return false, err
		}
		return true, nil
	})
}
