package ledger

import (
	"context"
	"fmt"
)

// givenMigration makes the table of what was given to sessions. A session goes
// by its id: what it is given first comes before its first turn.
const givenMigration = `
CREATE TABLE given ( -- what was put into the live context of a session
	number     INTEGER PRIMARY KEY, -- ascending in the order in which it was given
	session    TEXT NOT NULL,
	entry      TEXT NOT NULL, -- id of an entry of the journal; empty for a passage
	digest     BLOB NOT NULL, -- of the entry as it was given; empty for a passage
	message    INTEGER REFERENCES message (seq), -- of a passage
	first_byte INTEGER NOT NULL,
	end_byte   INTEGER NOT NULL,
	at         INTEGER NOT NULL,
	seal       BLOB NOT NULL
) STRICT;
CREATE INDEX given_session ON given (session);
CREATE INDEX given_message ON given (message);
`

// Limits of what is remembered as given. Beyond them the oldest is forgotten: it
// may then be given once more.
const (
	MaxGiven    = 5_000 // to one session
	maxGivenAll = 200_000
)

// A Given is what was put into the live context of a session: an entry of the
// journal, or a range of a message.
type Given struct {
	Entry  string // id; empty for a passage
	Digest []byte // of an entry as it was given; the ledger does not know of what

	Message    uint64 // number, of a passage
	Start, End uint64 // its bytes, half open
}

// Given returns what was given to a session since its context was last reset,
// oldest first. A row that is damaged is left out, and Verify names it: at worst
// something is given once more.
func (m *Memory) Given(ctx context.Context, session string) ([]Given, error) {
	if err := m.enter(); err != nil {
		return nil, err
	}
	defer m.calls.Done()
	if m.schema < givenSchema {
		return nil, nil
	}
	rows, err := m.givenRows(ctx, m.reads, session)
	if err != nil {
		return nil, fmt.Errorf("read what was given: %w", m.translate(err))
	}
	list := make([]Given, len(rows))
	for i := range rows {
		list[i] = rows[i].given()
	}
	return list, nil
}

// givenRows returns the sound rows of a session.
func (m *Memory) givenRows(ctx context.Context, q querier, session string) ([]givenRow, error) {
	rows, err := q.QueryContext(ctx, "SELECT "+givenColumns+" FROM given WHERE session = ? ORDER BY number", session)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []givenRow
	for rows.Next() {
		r, what, err := scanGiven(rows)
		if err != nil {
			return nil, err
		}
		if what == "" && r.session == session {
			list = append(list, r)
		}
	}
	return list, rows.Err()
}

// Give notes in one transaction that add was given to a session, and forgets
// that the entries named in drop were. What is noted already is noted once, an
// entry as it was given last. Of more than [MaxGiven] the oldest is forgotten.
// The error wraps ErrNotFound when a message is not there, and is otherwise as
// that of Append.
func (m *Memory) Give(ctx context.Context, session string, add []Given, drop []string) error {
	if err := checkGiven(session, add); err != nil {
		return fmt.Errorf("note what was given: %w", err)
	}
	if len(add) == 0 && len(drop) == 0 {
		return nil
	}
	err := m.change(ctx, func(ctx context.Context, q querier) error { return m.give(ctx, q, session, add, drop) })
	if err != nil {
		return fmt.Errorf("note what was given: %w", m.translate(err))
	}
	return nil
}

func checkGiven(session string, add []Given) error {
	if err := checkName("session_id", session, true); err != nil {
		return err
	}
	for i := range add {
		if g := &add[i]; (g.Entry == "") == (g.Message == 0) || g.Start > g.End || g.End > maxNumber {
			return &FieldError{Field: fmt.Sprintf("given[%d]", i), What: "is neither an entry nor a range of a message"}
		}
		if err := checkName(fmt.Sprintf("given[%d].entry", i), add[i].Entry, false); err != nil {
			return err
		}
	}
	return nil
}

func (m *Memory) give(ctx context.Context, q querier, session string, add []Given, drop []string) error {
	rows, err := m.givenRows(ctx, q, session)
	if err != nil {
		return err
	}
	passages := map[givenPassage]bool{}
	for i := range rows {
		if r := &rows[i]; r.entry == "" {
			passages[givenPassage{r.message.micros, r.start, r.end}] = true
		}
	}
	var last int64
	if err := q.QueryRowContext(ctx, "SELECT coalesce(max(number), 0) FROM given").Scan(&last); err != nil {
		return err
	}
	for _, id := range drop {
		if err := dropEntry(ctx, q, session, id); err != nil {
			return err
		}
	}
	for i := range add {
		r := givenRowOf(session, &add[i], stampNow(m.now()))
		place := givenPassage{r.message.micros, r.start, r.end}
		switch {
		case r.entry != "":
			err = dropEntry(ctx, q, session, r.entry)
		case passages[place]:
			continue
		default:
			passages[place] = true
			err = hasMessage(ctx, q, r.message.micros)
		}
		if err != nil {
			return err
		}
		last++
		r.number = last
		if _, err := q.ExecContext(ctx, "INSERT INTO given ("+givenColumns+") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
			r.number, r.session, r.entry, r.digest, r.message.sql(), r.start, r.end, r.at.micros, r.seal()); err != nil {
			return err
		}
	}
	return trimGiven(ctx, q, session, last)
}

// A givenPassage is what tells passages apart.
type givenPassage struct{ message, start, end int64 }

func dropEntry(ctx context.Context, q querier, session, entry string) error {
	_, err := q.ExecContext(ctx, "DELETE FROM given WHERE session = ? AND entry = ?", session, entry)
	return err
}

// hasMessage refuses what the foreign key would refuse as well, but with an
// error that says so.
func hasMessage(ctx context.Context, q querier, seq int64) error {
	var one int
	err := q.QueryRowContext(ctx, "SELECT 1 FROM message WHERE seq = ?", seq).Scan(&one)
	return notFound(err, fmt.Sprintf("message %d", seq))
}

// trimGiven keeps the limits.
func trimGiven(ctx context.Context, q querier, session string, last int64) error {
	if _, err := q.ExecContext(ctx, `DELETE FROM given WHERE number IN (
		SELECT number FROM given WHERE session = ? ORDER BY number DESC LIMIT -1 OFFSET ?)`, session, MaxGiven); err != nil {
		return err
	}
	_, err := q.ExecContext(ctx, "DELETE FROM given WHERE number <= ?", last-maxGivenAll)
	return err
}

// TakeBack forgets what was given to a session, because its live context no
// longer holds it, and returns how much that was. The error is as that of Append.
func (m *Memory) TakeBack(ctx context.Context, session string) (uint64, error) {
	if err := checkName("session_id", session, true); err != nil {
		return 0, fmt.Errorf("forget what was given: %w", err)
	}
	var taken int64
	err := m.change(ctx, func(ctx context.Context, q querier) error {
		result, err := q.ExecContext(ctx, "DELETE FROM given WHERE session = ?", session)
		if err == nil {
			taken, err = result.RowsAffected()
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("forget what was given: %w", m.translate(err))
	}
	return uint64(taken), nil
}
