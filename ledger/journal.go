package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrConflict: a batch does not follow the last one of the chain. Nothing was
// stored; read what was added and make the batch anew.
var ErrConflict = errors.New("the journal has gone on")

// journalMigration makes the tables of the journal. What entries are is not
// known here: a batch has a body that is kept as it came, and beside it the
// columns by which it is found.
const journalMigration = `
CREATE TABLE closing ( -- turns after which a session's tail was closed early
	turn    INTEGER PRIMARY KEY REFERENCES turn (seq),
	session INTEGER NOT NULL REFERENCES session (number),
	at      INTEGER NOT NULL,
	seal    BLOB NOT NULL
) STRICT;
CREATE INDEX closing_session ON closing (session);

CREATE TABLE batch (
	number     INTEGER PRIMARY KEY, -- dense from 1
	hash       BLOB NOT NULL UNIQUE CHECK (length(hash) = 32),
	previous   BLOB NOT NULL CHECK (length(previous) = 32),
	session    INTEGER REFERENCES session (number), -- NULL when it is no window
	first_turn INTEGER NOT NULL,
	last_turn  INTEGER NOT NULL,
	end_turn   INTEGER NOT NULL, -- where the window ends: after end_byte bytes of
	end_message INTEGER NOT NULL, -- a message, or after the turn if that is 0
	end_byte   INTEGER NOT NULL,
	read_to    INTEGER NOT NULL, -- the last message there was when it was read
	entries    INTEGER NOT NULL,
	dropped    INTEGER NOT NULL,
	at         INTEGER NOT NULL,
	seal       BLOB NOT NULL,
	body       BLOB NOT NULL
) STRICT;
CREATE INDEX batch_session ON batch (session, end_turn);
`

// A JournalBatch is one link of a memory's journal: what was read from one
// window, or one review.
type JournalBatch struct {
	Number         uint64 // dense from 1; given by the ledger
	Hash, Previous [32]byte

	// Of a window; Session is empty for a review.
	Session                      string
	FirstTurn, LastTurn          uint64
	EndTurn, EndMessage, EndByte uint64 // where it ends; EndMessage is 0 at the end of a turn
	ReadTo                       uint64 // number of the last message of the memory when it was read

	Entries, Dropped uint64 // how many it holds, and how many the check dropped
	At               time.Time
	Body             []byte // of whoever wrote it
}

// AddBatch adds a batch to the journal in one transaction and returns its
// number. The error wraps ErrConflict when b.Previous is not the hash of the
// last batch (zero when there is none), ErrNotFound when there is no such
// session, and is otherwise as that of Append.
func (m *Memory) AddBatch(ctx context.Context, b JournalBatch) (uint64, error) {
	var number int64
	err := m.change(ctx, func(ctx context.Context, q querier) error {
		last, hash, err := m.lastBatch(ctx, q)
		if err != nil {
			return err
		}
		if hash != b.Previous {
			return ErrConflict
		}
		row := rowOf(&b)
		number, row.number = last+1, last+1
		if b.Session != "" {
			session, err := m.sessionNumber(ctx, q, b.Session)
			if err != nil {
				return err
			}
			row.session = stamp{session, true}
		}
		_, err = q.ExecContext(ctx, `INSERT INTO batch (number, hash, previous, session, first_turn, last_turn, end_turn, end_message, end_byte,
			read_to, entries, dropped, at, seal, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			row.number, row.hash, row.previous, row.session.sql(), row.firstTurn, row.lastTurn, row.endTurn, row.endMessage, row.endByte,
			row.readTo, row.entries, row.dropped, row.at.micros, row.seal(), row.body)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("add batch: %w", m.translate(err))
	}
	return uint64(number), nil
}

// CloseTail records that the tail of a session is closed after a turn, before it
// fills a window. Closing it again changes nothing.
func (m *Memory) CloseTail(ctx context.Context, session string, turn uint64) error {
	err := m.change(ctx, func(ctx context.Context, q querier) error {
		number, err := m.sessionNumber(ctx, q, session)
		if err != nil {
			return err
		}
		var owner int64
		if err := q.QueryRowContext(ctx, "SELECT session FROM turn WHERE seq = ?", int64(turn)).Scan(&owner); err != nil {
			return notFound(err, fmt.Sprintf("turn %d", turn))
		}
		if owner != number {
			return fmt.Errorf("turn %d of session %q: %w", turn, session, ErrNotFound)
		}
		row := closingRow{turn: int64(turn), session: number, at: stampNow(m.now())}
		_, err = q.ExecContext(ctx, "INSERT INTO closing (turn, session, at, seal) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
			row.turn, row.session, row.at.micros, row.seal())
		return err
	})
	if err != nil {
		return fmt.Errorf("close tail: %w", m.translate(err))
	}
	return nil
}

// change runs f in a transaction of its own. What f refuses is rolled back; after
// any other failure the file is looked at anew, as after a failed Append.
func (m *Memory) change(ctx context.Context, f func(context.Context, querier) error) error {
	return m.alone(ctx, m.checkRoom, func(ctx context.Context, w *writer) (sound bool, err error) {
		if _, err := w.begin.ExecContext(ctx); err != nil {
			return false, fmt.Errorf("begin: %w", err)
		}
		if err := f(ctx, w.conn); err != nil {
			_, undone := w.rollback.ExecContext(ctx)
			return undone == nil && isRefusal(err), err
		}
		if _, err := w.commit.ExecContext(ctx); err != nil {
			return false, fmt.Errorf("commit: %w", err)
		}
		return true, nil
	})
}

// alone runs f with the writer that Appends use, while nobody else has it and
// once may allows it. Unless f says that the file is sound, it is looked at anew.
func (m *Memory) alone(ctx context.Context, may func() error, f func(context.Context, *writer) (sound bool, err error)) error {
	if err := m.enter(); err != nil {
		return err
	}
	defer m.calls.Done()
	if m.readOnly {
		return ErrReadOnly
	}
	select {
	case m.committing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-m.committing }()
	// A caller that gives up must not leave a transaction in doubt.
	ctx = context.WithoutCancel(ctx)
	if m.damage != nil {
		return m.damage
	}
	if err := may(); err != nil {
		return err
	}
	if err := m.readyWriter(ctx); err != nil {
		return err
	}
	sound := false
	var err error
	defer func() {
		if !sound { // also when a panic passes by
			m.dropWriter(err)
		}
	}()
	sound, err = f(ctx, m.writer)
	return err
}

// isRefusal reports whether an error came from looking, not from writing.
func isRefusal(err error) bool {
	return errors.Is(err, ErrConflict) || errors.Is(err, ErrNotFound) || isDamage(err)
}

// lastBatch returns number and hash of the last batch, zero when there is none.
func (m *Memory) lastBatch(ctx context.Context, q querier) (number int64, hash [32]byte, err error) {
	list, err := m.batchRows(ctx, q, "ORDER BY number DESC LIMIT 1")
	if err != nil || len(list) == 0 {
		return 0, hash, err
	}
	return list[0].number, [32]byte(list[0].hash), nil
}

func (m *Memory) sessionNumber(ctx context.Context, q querier, id string) (int64, error) {
	list, err := m.readSessions(ctx, q, "WHERE id = ?", id)
	switch {
	case err != nil:
		return 0, err
	case len(list) == 0:
		return 0, fmt.Errorf("session %q: %w", id, ErrNotFound)
	case list[0].what != "":
		return 0, m.damaged("session", list[0].number, list[0].what)
	case list[0].id != id:
		return 0, m.damaged("session", list[0].number, wrongIndex)
	}
	return list[0].number, nil
}

// JournalHead returns the hash of the last batch and how many there are.
func (m *Memory) JournalHead(ctx context.Context) (hash [32]byte, batches uint64, err error) {
	if err := m.enter(); err != nil {
		return hash, 0, err
	}
	defer m.calls.Done()
	number, hash, err := m.lastBatch(ctx, m.reads)
	if err != nil {
		return hash, 0, fmt.Errorf("read head of the journal: %w", m.translate(err))
	}
	return hash, uint64(number), nil
}

// Batches returns the batches after the number after, oldest first, at most
// limit of them. The error is a *DamageError when a row is damaged: a chain with
// a hole in it is none.
func (m *Memory) Batches(ctx context.Context, after uint64, limit int) ([]JournalBatch, error) {
	if err := m.enter(); err != nil {
		return nil, err
	}
	defer m.calls.Done()
	rows, err := m.batchRows(ctx, m.reads, "WHERE number > ? ORDER BY number LIMIT ?", int64(after), readLimit(limit))
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", m.translate(err))
	}
	var numbers []int64
	for i := range rows {
		if r := &rows[i]; r.session.known && !slices.Contains(numbers, r.session.micros) {
			numbers = append(numbers, r.session.micros)
		}
	}
	sessions, err := m.sessionsByNumber(ctx, numbers)
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", m.translate(err))
	}
	list := make([]JournalBatch, len(rows))
	for i := range rows {
		r := &rows[i]
		if r.number != int64(after)+int64(i)+1 {
			return nil, m.damaged("batch", int64(after)+int64(i)+1, "the row is missing")
		}
		list[i] = r.batch()
		if r.session.known {
			s, ok := sessions[r.session.micros]
			if !ok || s.what != "" {
				return nil, m.damaged("session", r.session.micros, "the row is missing or damaged")
			}
			list[i].Session = s.id
		}
	}
	return list, nil
}

func (m *Memory) batchRows(ctx context.Context, q querier, where string, args ...any) ([]batchRow, error) {
	rows, err := q.QueryContext(ctx, "SELECT "+batchColumns+" FROM batch "+where, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []batchRow
	for rows.Next() {
		r, what, err := scanBatch(rows)
		if err != nil {
			return nil, err
		}
		if what != "" {
			return nil, m.damaged("batch", r.number, what)
		}
		list = append(list, r)
	}
	return list, rows.Err()
}

// Closings returns the turns after which the tail of a session was closed early.
func (m *Memory) Closings(ctx context.Context, session string) ([]uint64, error) {
	if err := m.enter(); err != nil {
		return nil, err
	}
	defer m.calls.Done()
	number, err := m.sessionNumber(ctx, m.reads, session)
	if err != nil {
		return nil, fmt.Errorf("read closings: %w", m.translate(err))
	}
	rows, err := m.reads.QueryContext(ctx, "SELECT turn, session, at, seal FROM closing WHERE session = ? ORDER BY turn", number)
	if err != nil {
		return nil, fmt.Errorf("read closings: %w", m.translate(err))
	}
	defer rows.Close()
	return m.closings(rows)
}

func (m *Memory) closings(rows *sql.Rows) ([]uint64, error) {
	var turns []uint64
	for rows.Next() {
		r, what, err := scanClosing(rows)
		if err == nil && what != "" {
			err = m.damaged("closing", r.turn, what)
		}
		if err != nil {
			return nil, fmt.Errorf("read closings: %w", m.translate(err))
		}
		turns = append(turns, uint64(r.turn))
	}
	return turns, m.translate(rows.Err())
}
