package ledger

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
)

// Limits of one page of history.
const (
	MaxHistoryTurns     = 200
	defaultHistoryTurns = 50
	defaultHistoryBytes = 2_000_000
)

// messageOverhead is what a message costs on a page besides its texts: tags,
// lengths, times and numbers.
const messageOverhead = 64

// A HistoryQuery asks for a page of turns. The zero value asks for the newest.
type HistoryQuery struct {
	Session  string // empty: all sessions
	Before   uint64 // turns with a smaller Seq; 0 starts at the newest
	Limit    int    // turns, to MaxHistoryTurns; 0 is 50
	Kinds    []Kind // empty: all; turns with no message of these kinds are left out
	MaxBytes int    // of texts and ids on the page; 0 is 2,000,000
}

// History returns the newest turns that q asks for, the oldest of them first,
// and the number to give as Before for the next older page, 0 when there is
// none. One turn is always on the page if there is one, whatever its size. The
// error wraps ErrNotFound for an unknown session, and is a *FieldError or a
// *DamageError of a turn; a damaged message says so in its Damage.
func (m *Memory) History(ctx context.Context, q HistoryQuery) (turns []Turn, next uint64, err error) {
	if err := checkHistory(&q); err != nil {
		return nil, 0, err
	}
	if err := m.enter(); err != nil {
		return nil, 0, err
	}
	defer m.calls.Done()
	tx, err := m.reads.BeginTx(ctx, nil) // turns grow: a page is of one moment
	if err != nil {
		return nil, 0, fmt.Errorf("read history: %w", m.translate(err))
	}
	defer tx.Rollback() // nothing was written
	p := page{m: m, tx: tx, q: q, sessions: map[int64]*sessionRow{}}
	if err := p.read(ctx); err != nil {
		return nil, 0, fmt.Errorf("read history: %w", m.translate(err))
	}
	slices.Reverse(p.turns)
	return p.turns, p.next, nil
}

func checkHistory(q *HistoryQuery) error {
	if err := checkName("session_id", q.Session, false); err != nil {
		return err
	}
	if q.Limit < 0 || q.Limit > MaxHistoryTurns {
		return &FieldError{Field: "limit", What: "is out of range", Limit: MaxHistoryTurns, Value: q.Limit}
	}
	if q.Limit == 0 {
		q.Limit = defaultHistoryTurns
	}
	if q.MaxBytes <= 0 {
		q.MaxBytes = defaultHistoryBytes
	}
	if q.Before == 0 || q.Before > math.MaxInt64 {
		q.Before = math.MaxInt64
	}
	return checkKinds(q.Kinds)
}

func checkKinds(kinds []Kind) error {
	for i, k := range kinds {
		if k < KindUser || k > KindMark {
			return &FieldError{Field: fmt.Sprintf("kinds[%d]", i), What: "is unknown", Limit: uint8(KindMark), Value: uint8(k)}
		}
	}
	return nil
}

// A page of history while it is read, newest turn first.
type page struct {
	m        *Memory
	tx       *sql.Tx
	q        HistoryQuery
	number   int64 // of the session asked for, 0 for all
	sessions map[int64]*sessionRow

	turns []Turn
	bytes int
	next  uint64
}

func (p *page) read(ctx context.Context) error {
	of, args, err := p.scope(ctx)
	if err != nil {
		return err
	}
	before := int64(p.q.Before)
	for before > 1 {
		// One row more than fits tells whether there is an older page.
		rows, err := p.rows(ctx, of, append(args, before, p.q.Limit+1-len(p.turns)))
		if err != nil {
			return err
		}
		for i := range rows {
			done, err := p.add(ctx, &rows[i])
			if err != nil || done {
				return err
			}
			before = rows[i].seq
		}
		if len(rows) == 0 {
			return nil
		}
	}
	return nil
}

// scope returns the condition on turns for the session and kinds asked for.
func (p *page) scope(ctx context.Context) (string, []any, error) {
	of, args := "WHERE ", []any(nil)
	if p.q.Session != "" {
		list, err := p.m.readSessions(ctx, p.tx, "WHERE id = ?", p.q.Session)
		switch {
		case err != nil:
			return "", nil, err
		case len(list) == 0:
			return "", nil, fmt.Errorf("session %q: %w", p.q.Session, ErrNotFound)
		case list[0].what != "":
			return "", nil, p.m.damaged("session", list[0].number, list[0].what)
		case list[0].id != p.q.Session:
			return "", nil, p.m.damaged("session", list[0].number, wrongIndex)
		}
		p.number = list[0].number
		of, args = of+"session = ? AND ", append(args, p.number)
	}
	if len(p.q.Kinds) > 0 {
		of += "EXISTS (SELECT 1 FROM message m WHERE m.turn = turn.seq AND m.kind IN (SELECT value FROM json_each(?))) AND "
		args = append(args, kindList(p.q.Kinds))
	}
	return of, args, nil
}

func kindList(kinds []Kind) string {
	numbers := make([]int64, len(kinds))
	for i, k := range kinds {
		numbers[i] = int64(k)
	}
	return jsonList(numbers)
}

func (p *page) rows(ctx context.Context, of string, args []any) ([]turnRow, error) {
	rows, err := p.tx.QueryContext(ctx, "SELECT seq, session, id, status, appended, seal FROM turn "+of+"seq < ? ORDER BY seq DESC LIMIT ?", args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []turnRow
	for rows.Next() {
		r, what, err := scanTurn(rows)
		if err != nil {
			return nil, err
		}
		if what != "" {
			return nil, p.m.damaged("turn", r.seq, what)
		}
		if p.number != 0 && r.session != p.number {
			return nil, p.m.damaged("turn", r.seq, wrongIndex)
		}
		list = append(list, r)
	}
	return list, rows.Err()
}

// add puts a turn on the page; it reports true when the page was full without it.
func (p *page) add(ctx context.Context, r *turnRow) (full bool, err error) {
	size, err := p.size(ctx, r)
	if err != nil {
		return false, err
	}
	if n := len(p.turns); n > 0 && (n == p.q.Limit || p.bytes+size > p.q.MaxBytes) {
		p.next = p.turns[n-1].Seq
		return true, nil
	}
	session, err := p.session(ctx, r.session)
	if err != nil {
		return false, err
	}
	turn := Turn{
		Session: session.id, SessionTitle: session.title, ID: r.id, Status: r.status,
		Seq: uint64(r.seq), Appended: r.appended.time(),
	}
	if turn.Messages, err = p.messages(ctx, r); err != nil {
		return false, err
	}
	p.turns = append(p.turns, turn)
	p.bytes += size
	return false, nil
}

// size returns what a turn takes on the page, without reading its texts.
func (p *page) size(ctx context.Context, r *turnRow) (int, error) {
	var n, size int
	err := p.tx.QueryRowContext(ctx, `SELECT count(*), coalesce(sum(length(text) + octet_length(id) + octet_length(speaker) + octet_length(zone)), 0)
		FROM message WHERE turn = ?1 AND (?2 IS NULL OR kind IN (SELECT value FROM json_each(?2)))`, r.seq, p.kinds()).Scan(&n, &size)
	if err != nil {
		return 0, fmt.Errorf("measure turn %d: %w", r.seq, err)
	}
	return size + (n+1)*messageOverhead + len(r.id), nil
}

func (p *page) kinds() any {
	if len(p.q.Kinds) == 0 {
		return nil
	}
	return kindList(p.q.Kinds)
}

func (p *page) session(ctx context.Context, number int64) (*sessionRow, error) {
	if row, ok := p.sessions[number]; ok {
		return row, nil
	}
	list, err := p.m.readSessions(ctx, p.tx, "WHERE number = ?", number)
	if err != nil {
		return nil, fmt.Errorf("read session: %w", err)
	}
	if len(list) == 0 {
		return nil, p.m.damaged("session", number, "the row is missing")
	}
	if list[0].what != "" {
		return nil, p.m.damaged("session", number, list[0].what)
	}
	p.sessions[number] = &list[0].sessionRow
	return p.sessions[number], nil
}

func (p *page) messages(ctx context.Context, r *turnRow) ([]Message, error) {
	rows, err := p.tx.QueryContext(ctx, selectMessages+`WHERE m.turn = ?1 AND (?2 IS NULL OR m.kind IN (SELECT value FROM json_each(?2)))
		ORDER BY m.seq`, r.seq, p.kinds())
	if err != nil {
		return nil, fmt.Errorf("read turn %d: %w", r.seq, err)
	}
	defer rows.Close()
	var list []Message
	f := newFound()
	for rows.Next() {
		if err := f.scan(rows); err != nil {
			return nil, fmt.Errorf("read turn %d: %w", r.seq, err)
		}
		message := p.m.record(f).Message
		if message.Damage == nil && f.turn != r.seq {
			return nil, p.m.damaged("message", f.seq, wrongIndex)
		}
		list = append(list, message)
	}
	return list, rows.Err()
}
