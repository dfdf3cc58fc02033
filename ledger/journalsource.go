package ledger

import (
	"context"
	"fmt"
	"time"
)

// A SourceMessage is a spoken message with what stands for its text in a hash.
type SourceMessage struct {
	Message
	Inner [32]byte // SHA-256(salt ‖ text)
}

// A SourceTurn is a turn with what was spoken in it.
type SourceTurn struct {
	ID       string
	Seq      uint64
	Status   Status
	Appended time.Time
	Messages []SourceMessage
}

// SpokenTurns returns the turns of a session with from ≤ Seq ≤ to, in order, at
// most limit of them, each with its spoken messages. The error wraps ErrNotFound
// when there is no such session, and is a *DamageError when a row among them is
// damaged: what was decided is not read from half of what was said.
func (m *Memory) SpokenTurns(ctx context.Context, session string, from, to uint64, limit int) ([]SourceTurn, error) {
	if err := m.enter(); err != nil {
		return nil, err
	}
	defer m.calls.Done()
	turns, err := m.spokenTurns(ctx, session, from, to, limit)
	if err != nil {
		return nil, fmt.Errorf("read turns of a session: %w", m.translate(err))
	}
	return turns, nil
}

func (m *Memory) spokenTurns(ctx context.Context, session string, from, to uint64, limit int) ([]SourceTurn, error) {
	tx, err := m.reads.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback() // nothing was written
	number, err := m.sessionNumber(ctx, tx, session)
	if err != nil {
		return nil, err
	}
	list, err := m.turnRows(ctx, tx, number, from, to, limit)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	turns := make([]SourceTurn, len(list))
	at := make(map[int64]int, len(list))
	seqs := make([]int64, len(list))
	for i, r := range list {
		turns[i] = SourceTurn{ID: r.id, Seq: uint64(r.seq), Status: r.status, Appended: r.appended.time()}
		at[r.seq], seqs[i] = i, r.seq
	}
	rows, err := tx.QueryContext(ctx, "SELECT "+messageColumns+", m.salted"+fromMessages+
		"WHERE m.turn IN (SELECT value FROM json_each(?)) AND m.kind IN (1, 2) ORDER BY m.seq", jsonList(seqs))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	f := newFound()
	var salted []byte
	f.cells.bytes(&salted)
	for rows.Next() {
		if err := f.scan(rows); err != nil {
			return nil, err
		}
		r := m.record(f)
		i, asked := at[f.turn]
		switch {
		case r.Damage != nil:
			return nil, r.Damage
		case !asked || f.session != number || len(salted) != 32:
			return nil, m.damaged("message", f.seq, wrongIndex)
		}
		turns[i].Messages = append(turns[i].Messages, SourceMessage{Message: r.Message, Inner: [32]byte(salted)})
	}
	return turns, rows.Err()
}

func (m *Memory) turnRows(ctx context.Context, q querier, session int64, from, to uint64, limit int) ([]turnRow, error) {
	rows, err := q.QueryContext(ctx, `SELECT seq, session, id, status, appended, seal FROM turn
		WHERE session = ? AND seq BETWEEN ? AND ? ORDER BY seq LIMIT ?`, session, int64(from), int64(min(to, maxNumber)), readLimit(limit))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []turnRow
	for rows.Next() {
		r, what, err := scanTurn(rows)
		if err == nil && what == "" && r.session != session {
			what = wrongIndex
		}
		if err == nil && what != "" {
			err = m.damaged("turn", r.seq, what)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, rows.Err()
}

// maxNumber is the largest number a row can have.
const maxNumber = 1<<63 - 1

// ReplyBefore returns the last turn of a session before the turn given in which
// the agent said something, 0 if there is none.
func (m *Memory) ReplyBefore(ctx context.Context, session string, turn uint64) (uint64, error) {
	if err := m.enter(); err != nil {
		return 0, err
	}
	defer m.calls.Done()
	number, err := m.sessionNumber(ctx, m.reads, session)
	var seq int64
	if err == nil {
		err = m.reads.QueryRowContext(ctx, `SELECT coalesce((SELECT t.seq FROM turn t WHERE t.session = ? AND t.seq < ?
			AND EXISTS (SELECT 1 FROM message m WHERE m.turn = t.seq AND m.kind = 2 AND length(m.text) > 0)
			ORDER BY t.seq DESC LIMIT 1), 0)`, number, int64(min(turn, maxNumber))).Scan(&seq)
	}
	if err != nil {
		return 0, fmt.Errorf("look for the last reply: %w", m.translate(err))
	}
	return uint64(seq), nil
}

// A JournalReach is how far the journal of one session reaches.
type JournalReach struct {
	Session   string
	EndTurn   uint64 // in which its last window ends; 0 for none
	Read      uint64 // turns in its windows
	Waiting   uint64 // ended turns after them
	LastEnded uint64 // the last turn that has ended, 0 for none
}

// JournalReach returns how far the journal reaches in every session, in the
// order in which the sessions first appeared.
func (m *Memory) JournalReach(ctx context.Context) ([]JournalReach, error) {
	if err := m.enter(); err != nil {
		return nil, err
	}
	defer m.calls.Done()
	// A window may end inside a turn, which then waits as well.
	rows, err := m.reads.QueryContext(ctx, `
		WITH ends AS (SELECT session, max(end_turn) AS turn FROM batch WHERE session IS NOT NULL GROUP BY session),
		ended AS (SELECT s.number, s.id, coalesce(e.turn, 0) AS turn, e.turn IS NOT NULL AND NOT EXISTS (
			SELECT 1 FROM batch b WHERE b.session = s.number AND b.end_turn = e.turn AND b.end_message = 0) AS inside
			FROM session s LEFT JOIN ends e ON e.session = s.number)
		SELECT id, turn,
			(SELECT count(*) FROM turn t WHERE t.session = number AND t.seq <= ended.turn) - inside,
			(SELECT count(*) FROM turn t WHERE t.session = number AND t.seq > ended.turn AND t.status <> 1) + inside,
			coalesce((SELECT max(t.seq) FROM turn t WHERE t.session = number AND t.status <> 1), 0)
		FROM ended ORDER BY number`)
	if err != nil {
		return nil, fmt.Errorf("read reach of the journal: %w", m.translate(err))
	}
	defer rows.Close()
	var list []JournalReach
	for rows.Next() {
		var r JournalReach
		if err := rows.Scan(&r.Session, &r.EndTurn, &r.Read, &r.Waiting, &r.LastEnded); err != nil {
			return nil, fmt.Errorf("read reach of the journal: %w", m.translate(err))
		}
		list = append(list, r)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read reach of the journal: %w", m.translate(err))
	}
	return list, nil
}

// JournalCounts is how much a journal holds.
type JournalCounts struct {
	Read, Waiting    uint64    // turns
	Entries, Dropped uint64    // stored, and dropped by the check
	Last             time.Time // when the last window was stored; zero for none
}

// JournalCounts returns how much the journal holds.
func (m *Memory) JournalCounts(ctx context.Context) (JournalCounts, error) {
	reach, err := m.JournalReach(ctx)
	if err != nil {
		return JournalCounts{}, err
	}
	if err := m.enter(); err != nil {
		return JournalCounts{}, err
	}
	defer m.calls.Done()
	var c JournalCounts
	for _, r := range reach {
		c.Read, c.Waiting = c.Read+r.Read, c.Waiting+r.Waiting
	}
	var last stamp
	var entries, dropped int64
	var row cells
	err = row.number(&entries).number(&dropped).stamp(&last).scan(m.reads.QueryRowContext(ctx,
		"SELECT coalesce(sum(entries), 0), coalesce(sum(dropped), 0), max(at) FROM batch WHERE session IS NOT NULL"))
	if err != nil {
		return JournalCounts{}, fmt.Errorf("count journal: %w", m.translate(err))
	}
	c.Entries, c.Dropped, c.Last = uint64(entries), uint64(dropped), last.time()
	return c, nil
}

// Grown returns, by session, the turns that got a message after the message
// number after, each with the number of its newest one.
func (m *Memory) Grown(ctx context.Context, after uint64) (map[string]map[uint64]uint64, error) {
	if err := m.enter(); err != nil {
		return nil, err
	}
	defer m.calls.Done()
	rows, err := m.reads.QueryContext(ctx, `SELECT s.id, g.turn, g.last
		FROM (SELECT turn, max(seq) AS last FROM message WHERE seq > ? GROUP BY turn) g
		JOIN turn t ON t.seq = g.turn JOIN session s ON s.number = t.session`, int64(min(after, maxNumber)))
	if err != nil {
		return nil, fmt.Errorf("look for grown turns: %w", m.translate(err))
	}
	defer rows.Close()
	grown := map[string]map[uint64]uint64{}
	for rows.Next() {
		var session string
		var turn, last uint64
		if err := rows.Scan(&session, &turn, &last); err != nil {
			return nil, fmt.Errorf("look for grown turns: %w", m.translate(err))
		}
		if grown[session] == nil {
			grown[session] = map[uint64]uint64{}
		}
		grown[session][turn] = last
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("look for grown turns: %w", m.translate(err))
	}
	return grown, nil
}

// MessagesByID returns messages by id. Ids that are not known are left out. The
// error is a *DamageError when one of them is damaged.
func (m *Memory) MessagesByID(ctx context.Context, ids []string) (map[string]Record, error) {
	if err := m.enter(); err != nil {
		return nil, err
	}
	defer m.calls.Done()
	if len(ids) == 0 {
		return nil, nil
	}
	list, _, err := m.load(ctx, maxReadBytes, "WHERE m.id IN (SELECT value FROM json_each(?))", jsonList(ids))
	var records []Record
	if err == nil {
		records, err = m.fillSessions(ctx, list)
	}
	if err != nil {
		return nil, fmt.Errorf("read messages by id: %w", m.translate(err))
	}
	byID := make(map[string]Record, len(records))
	for _, r := range records {
		if r.Damage != nil {
			return nil, fmt.Errorf("read messages by id: %w", r.Damage)
		}
		byID[r.ID] = r
	}
	return byID, nil
}
