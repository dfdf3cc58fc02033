package ledger

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// spendMigration makes the account of what model servers cost.
const spendMigration = `
CREATE TABLE spend (
	day     TEXT NOT NULL,    -- YYYY-MM-DD, UTC
	memory  TEXT NOT NULL,
	purpose TEXT NOT NULL,
	model   TEXT NOT NULL,
	calls   INTEGER NOT NULL,
	tokens  INTEGER NOT NULL,
	micros  INTEGER NOT NULL, -- that the calls took
	PRIMARY KEY (day, memory, purpose, model)
) STRICT, WITHOUT ROWID;
`

// keptSpend is how long spending is kept.
const keptSpend = 400 * 24 * time.Hour

// A Spend is what the calls of one model for one purpose have cost.
type Spend struct {
	Purpose, Model string
	Calls, Tokens  uint64
	Took           time.Duration
}

// AddSpend adds s to what a memory spent today (UTC). The error wraps
// ErrReadOnly, or is that of the disk.
func (s *Store) AddSpend(ctx context.Context, memory string, add Spend) error {
	if s.readOnly {
		return fmt.Errorf("add spend: %w", ErrReadOnly)
	}
	now := s.now().UTC()
	err := s.inTransaction(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "DELETE FROM spend WHERE day < ?", now.Add(-keptSpend).Format(time.DateOnly)); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO spend (day, memory, purpose, model, calls, tokens, micros) VALUES (?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT DO UPDATE SET calls = calls + excluded.calls, tokens = tokens + excluded.tokens, micros = micros + excluded.micros`,
			now.Format(time.DateOnly), memory, add.Purpose, add.Model, int64(add.Calls), int64(add.Tokens), add.Took.Microseconds())
		return err
	})
	if err != nil {
		return fmt.Errorf("add spend: %w", err)
	}
	return nil
}

// SpendToday returns what a memory spent today (UTC), by purpose and model; of
// all memories together if memory is empty.
func (s *Store) SpendToday(ctx context.Context, memory string) ([]Spend, error) {
	return s.sumSpend(ctx, s.now().UTC().Format(time.DateOnly), memory)
}

// SpendSoFar returns what all memories spent since spending is kept, by purpose
// and model.
func (s *Store) SpendSoFar(ctx context.Context) ([]Spend, error) {
	return s.sumSpend(ctx, "", "")
}

// sumSpend sums over one day or, if day is empty, all, and so with memory.
func (s *Store) sumSpend(ctx context.Context, day, memory string) ([]Spend, error) {
	if s.readOnly {
		return nil, nil // nothing is spent there, and the table may be missing
	}
	rows, err := s.reads.QueryContext(ctx, `SELECT purpose, model, sum(calls), sum(tokens), sum(micros) FROM spend
		WHERE ?1 IN ('', day) AND ?2 IN ('', memory) GROUP BY purpose, model ORDER BY purpose, model`, day, memory)
	if err != nil {
		return nil, fmt.Errorf("read spend: %w", translate(catalogName, err))
	}
	defer rows.Close()
	var list []Spend
	for rows.Next() {
		var one Spend
		var calls, tokens, micros int64
		if err := rows.Scan(&one.Purpose, &one.Model, &calls, &tokens, &micros); err != nil {
			return nil, fmt.Errorf("read spend: %w", translate(catalogName, err))
		}
		one.Calls, one.Tokens, one.Took = uint64(calls), uint64(tokens), time.Duration(micros)*time.Microsecond
		list = append(list, one)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read spend: %w", translate(catalogName, err))
	}
	return list, nil
}

// TokensToday returns the tokens that a memory, and that all memories, spent
// today (UTC).
func (s *Store) TokensToday(ctx context.Context, memory string) (own, all uint64, err error) {
	if s.readOnly {
		return 0, 0, nil
	}
	var mine, ours int64
	err = s.reads.QueryRowContext(ctx, `SELECT coalesce(sum(tokens) FILTER (WHERE memory = ?2), 0), coalesce(sum(tokens), 0)
		FROM spend WHERE day = ?1`, s.now().UTC().Format(time.DateOnly), memory).Scan(&mine, &ours)
	if err != nil {
		return 0, 0, fmt.Errorf("read spend: %w", translate(catalogName, err))
	}
	return uint64(mine), uint64(ours), nil
}
