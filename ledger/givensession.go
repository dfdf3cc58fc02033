package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Lend binds a session to the memory id ahead of its first turn, as an Append
// does: the binding stands for good once a turn rests on it, and until then it
// stands in nobody's way. The error is that of [Store.Reserve], with a memory
// that must be there.
func (s *Store) Lend(ctx context.Context, id, session string) error {
	r, err := s.Reserve(ctx, id, MemoryKey{}, []string{session})
	if err != nil {
		return err
	}
	return r.Release(ctx, []string{session})
}

// SessionReach is [Memory.JournalReach] of one session. Of a session that has no
// turns it is the zero reach.
func (m *Memory) SessionReach(ctx context.Context, session string) (JournalReach, error) {
	if err := m.enter(); err != nil {
		return JournalReach{}, err
	}
	defer m.calls.Done()
	r := JournalReach{Session: session}
	// A window may end inside a turn, which then waits as well.
	err := m.reads.QueryRowContext(ctx, `
		WITH of AS (SELECT s.number, (SELECT max(b.end_turn) FROM batch b WHERE b.session = s.number) AS ends FROM session s WHERE s.id = ?),
		ended AS (SELECT of.number, coalesce(of.ends, 0) AS turn, of.ends IS NOT NULL AND NOT EXISTS (
			SELECT 1 FROM batch b WHERE b.session = of.number AND b.end_turn = of.ends AND b.end_message = 0) AS inside FROM of)
		SELECT e.turn,
			(SELECT count(*) FROM turn t WHERE t.session = e.number AND t.seq <= e.turn) - e.inside,
			(SELECT count(*) FROM turn t WHERE t.session = e.number AND t.seq > e.turn AND t.status <> 1) + e.inside,
			coalesce((SELECT max(t.seq) FROM turn t WHERE t.session = e.number AND t.status <> 1), 0)
		FROM ended e`, session).Scan(&r.EndTurn, &r.Read, &r.Waiting, &r.LastEnded)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return JournalReach{}, fmt.Errorf("read reach of the journal: %w", m.translate(err))
	}
	return r, nil
}
