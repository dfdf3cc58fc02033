package ledger

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
)

// An Outcome says what became of a message of an Append. The numbers are those
// of the wire.
type Outcome uint8

// The outcomes of an Append.
const (
	Stored    Outcome = 1
	Duplicate Outcome = 2 // the same bytes were there already
	Forgotten Outcome = 3 // the words were forgotten earlier and stay forgotten
)

// A MessageResult tells what became of one message.
type MessageResult struct {
	ID      string // the client's or the derived one
	Outcome Outcome
	Seq     uint64 // 0 when it was forgotten
}

// An AppendResult tells what became of one turn. Seq and Status are 0 when the
// turn was not made, because it held nothing that was not known from elsewhere.
type AppendResult struct {
	Session  string
	TurnID   string
	Seq      uint64
	Status   Status
	Messages []MessageResult
}

// transact stores a group in one transaction and returns the number of the last
// message. A request that cannot be stored is undone by itself.
func (m *Memory) transact(ctx context.Context, group []*request) (head int64, err error) {
	w := m.writer
	if _, err := w.begin.ExecContext(ctx); err != nil {
		return 0, fmt.Errorf("begin: %w", err)
	}
	c, what, err := readCounters(ctx, w.conn)
	if err != nil {
		return 0, err
	}
	if what != "" {
		return 0, m.damaged("counters", 1, what)
	}
	before := c
	for _, r := range group {
		if err := m.storeRequest(ctx, &c, r); err != nil {
			return 0, err
		}
	}
	if c != before {
		_, err := w.upCounters.ExecContext(ctx, c.lastMessage, c.lastTurn, c.lastSession, c.sessions, c.turns, c.messages,
			c.textBytes, c.forgotten, c.first.sql(), c.last.sql(), c.seal())
		if err != nil {
			return 0, fmt.Errorf("write counters: %w", err)
		}
	}
	if _, err := w.commit.ExecContext(ctx); err != nil {
		return 0, fmt.Errorf("commit: %w", err)
	}
	return c.lastMessage, nil
}

// storeRequest stores one request inside the transaction, or sets its err and
// leaves the transaction and c as they were. It returns an error when the
// whole transaction has failed.
func (m *Memory) storeRequest(ctx context.Context, c *countersRow, r *request) error {
	w := m.writer
	if _, err := w.savepoint.ExecContext(ctx); err != nil {
		return fmt.Errorf("set savepoint: %w", err)
	}
	s := storing{m: m, w: w, c: *c, now: stampNow(m.now()), sessions: map[string]*sessionRow{}}
	results, err := s.turns(ctx, r)
	if errors.Is(err, ErrExists) || isDamage(err) {
		r.err = err
		if _, err := w.undo.ExecContext(ctx); err != nil {
			return fmt.Errorf("undo to savepoint: %w", err)
		}
	} else if err != nil {
		return err
	} else {
		r.results, *c = results, s.c
	}
	if _, err := w.release.ExecContext(ctx); err != nil {
		return fmt.Errorf("release savepoint: %w", err)
	}
	return nil
}

// A storing is the work on one request.
type storing struct {
	m   *Memory
	w   *writer
	c   countersRow // as it will be
	now stamp

	known    map[string]knownMessage
	sessions map[string]*sessionRow // looked up so far; written back at the end
	order    []*sessionRow          // those that changed, each once
}

type knownMessage struct {
	seq     int64
	content []byte
}

func (s *storing) turns(ctx context.Context, r *request) ([]AppendResult, error) {
	if err := s.lookUp(ctx, r.hashes); err != nil {
		return nil, err
	}
	results := make([]AppendResult, len(r.turns))
	for i := range r.turns {
		result, err := s.turn(ctx, &r.turns[i], r.hashes[i])
		if err != nil {
			return nil, err
		}
		results[i] = result
	}
	for _, row := range s.order {
		_, err := s.w.upSession.ExecContext(ctx, row.title, row.turns, row.open, row.first.sql(), row.last.sql(), row.seal(), row.number)
		if err != nil {
			return nil, fmt.Errorf("write session: %w", err)
		}
	}
	return results, nil
}

// lookUpChunk is how many ids are looked up by one statement.
const lookUpChunk = 1_000

// lookUp finds out which messages of a request are known.
func (s *storing) lookUp(ctx context.Context, turns [][]hashes) error {
	s.known = map[string]knownMessage{}
	var ids []string
	for _, messages := range turns {
		for i := range messages {
			ids = append(ids, messages[i].id)
			if len(ids) == lookUpChunk {
				if err := s.lookUpIDs(ctx, ids); err != nil {
					return err
				}
				ids = ids[:0]
			}
		}
	}
	return s.lookUpIDs(ctx, ids)
}

func (s *storing) lookUpIDs(ctx context.Context, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	list, err := json.Marshal(ids)
	if err != nil {
		return fmt.Errorf("list message ids: %w", err)
	}
	rows, err := s.w.messages.QueryContext(ctx, string(list))
	if err != nil {
		return fmt.Errorf("look up messages: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		var k knownMessage
		if err := rows.Scan(&id, &k.seq, &k.content); err != nil {
			return fmt.Errorf("look up messages: %w", err)
		}
		s.known[id] = k
	}
	return rows.Err()
}

// turn stores one turn.
func (s *storing) turn(ctx context.Context, t *Turn, hs []hashes) (AppendResult, error) {
	result := AppendResult{Session: t.Session, TurnID: t.ID, Messages: make([]MessageResult, len(t.Messages))}
	session, err := s.session(ctx, t.Session)
	if err != nil {
		return result, err
	}
	row, err := s.turnByID(ctx, session, t.ID)
	if err != nil {
		return result, err
	}
	ordinal := int64(-1) // not known yet
	for j := range t.Messages {
		h := &hs[j]
		outcome, seq, err := s.outcome(ctx, h)
		if err != nil {
			return result, err
		}
		if outcome == Stored {
			if row == nil {
				if session, row, err = s.addTurn(ctx, session, t); err != nil {
					return result, err
				}
				ordinal = 0
			}
			if ordinal < 0 {
				if err := s.w.nextOrdinal.QueryRowContext(ctx, row.seq).Scan(&ordinal); err != nil {
					return result, fmt.Errorf("look up place in turn: %w", err)
				}
			}
			if seq, err = s.addMessage(ctx, session, row, ordinal, &t.Messages[j], h); err != nil {
				return result, err
			}
			ordinal++
		}
		result.Messages[j] = MessageResult{ID: h.id, Outcome: outcome, Seq: uint64(seq)}
	}
	if row == nil {
		return result, nil
	}
	if t.SessionTitle != "" && t.SessionTitle != session.title {
		session.title = t.SessionTitle
		s.changed(session)
	}
	if err := s.end(ctx, session, row, t.Status); err != nil {
		return result, err
	}
	result.Seq, result.Status = uint64(row.seq), row.status
	return result, nil
}

// outcome decides what becomes of a message.
func (s *storing) outcome(ctx context.Context, h *hashes) (Outcome, int64, error) {
	if k, ok := s.known[h.id]; ok {
		if !bytes.Equal(k.content, h.content[:]) {
			return 0, 0, fmt.Errorf("message %q has other bytes: %w", h.id, ErrExists)
		}
		return Duplicate, k.seq, nil
	}
	if s.c.forgotten == 0 {
		return Stored, 0, nil
	}
	var n int
	if err := s.w.forgotten.QueryRowContext(ctx, forgottenKey(s.m.secret, h.id)).Scan(&n); err != nil {
		return 0, 0, fmt.Errorf("look up forgotten message: %w", err)
	}
	if n > 0 {
		return Forgotten, 0, nil
	}
	return Stored, 0, nil
}

// session returns the row of a session, nil when there is none yet.
func (s *storing) session(ctx context.Context, id string) (*sessionRow, error) {
	if row, ok := s.sessions[id]; ok {
		return row, nil
	}
	var r checkedSession
	err := scanSession(s.w.session.QueryRowContext(ctx, id), &r)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look up session: %w", err)
	}
	if r.what != "" {
		return nil, s.m.damaged("session", r.number, r.what)
	}
	if r.id != id {
		return nil, s.m.damaged("session", r.number, wrongIndex)
	}
	s.sessions[id] = &r.sessionRow
	return &r.sessionRow, nil
}

// changed notes that a session must be written back.
func (s *storing) changed(row *sessionRow) {
	for _, other := range s.order {
		if other == row {
			return
		}
	}
	s.order = append(s.order, row)
}

// turnByID returns the row of a turn, nil when there is none yet.
func (s *storing) turnByID(ctx context.Context, session *sessionRow, id string) (*turnRow, error) {
	if session == nil {
		return nil, nil
	}
	row, err := s.scanTurn(s.w.turnByID.QueryRowContext(ctx, session.number, id))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err == nil && (row.session != session.number || row.id != id) {
		return nil, s.m.damaged("turn", row.seq, wrongIndex)
	}
	return row, err
}

func (s *storing) scanTurn(row *sql.Row) (*turnRow, error) {
	r, what, err := scanTurn(row)
	if err != nil {
		return nil, fmt.Errorf("look up turn: %w", err)
	}
	if what != "" {
		return nil, s.m.damaged("turn", r.seq, what)
	}
	return &r, nil
}

// scanTurn reads a row of turn, and what is wrong with it or "".
func scanTurn(row interface{ Scan(...any) error }) (r turnRow, what string, err error) {
	var seal []byte
	var c cells
	small(c.number(&r.seq).number(&r.session).text(&r.id), &r.status).stamp(&r.appended).bytes(&seal)
	if err := c.scan(row); err != nil {
		return r, "", err
	}
	return r, judge(nil, &c, seal, r.seal()), nil
}

// addTurn makes a turn, and its session if need be, and ends the turn of the
// session that was open.
func (s *storing) addTurn(ctx context.Context, session *sessionRow, t *Turn) (*sessionRow, *turnRow, error) {
	if session == nil {
		s.c.lastSession++
		s.c.sessions++
		session = &sessionRow{number: s.c.lastSession, id: t.Session, title: t.SessionTitle}
		_, err := s.w.addSession.ExecContext(ctx, session.number, session.id, session.title, 0, 0, nil, nil, session.seal())
		if err != nil {
			return nil, nil, fmt.Errorf("write session: %w", err)
		}
		s.sessions[t.Session] = session
	}
	if session.open != 0 {
		earlier, err := s.scanTurn(s.w.turn.QueryRowContext(ctx, session.open))
		if err != nil {
			return nil, nil, err
		}
		if err := s.end(ctx, session, earlier, StatusInterrupted); err != nil {
			return nil, nil, err
		}
	}
	s.c.lastTurn++
	s.c.turns++
	row := &turnRow{seq: s.c.lastTurn, session: session.number, id: t.ID, status: max(t.Status, StatusOpen), appended: s.now}
	if _, err := s.w.addTurn.ExecContext(ctx, row.seq, row.session, row.id, row.status, row.appended.sql(), row.seal()); err != nil {
		return nil, nil, fmt.Errorf("write turn: %w", err)
	}
	session.turns++
	if row.status == StatusOpen {
		session.open = row.seq
	}
	s.changed(session)
	return session, row, nil
}

// end moves a turn from open to another status; any other move is none.
func (s *storing) end(ctx context.Context, session *sessionRow, row *turnRow, to Status) error {
	if row.status != StatusOpen || to <= StatusOpen {
		return nil
	}
	row.status = to
	if _, err := s.w.upTurn.ExecContext(ctx, row.status, row.seal(), row.seq); err != nil {
		return fmt.Errorf("end turn: %w", err)
	}
	if session.open == row.seq {
		session.open = 0
		s.changed(session)
	}
	return nil
}

func (s *storing) addMessage(ctx context.Context, session *sessionRow, t *turnRow, ordinal int64, m *Message, h *hashes) (int64, error) {
	s.c.lastMessage++
	s.c.messages++
	s.c.textBytes += int64(len(m.Text))
	row := messageRow{
		seq: s.c.lastMessage, id: h.id, turn: t.seq, session: session.number, turnID: t.id, ordinal: ordinal,
		kind: m.Kind, speaker: m.Speaker, zone: m.Zone, time: stampOf(m.Time), content: h.content[:],
	}
	text := m.Text
	if text == nil {
		text = []byte{} // nil would be NULL
	}
	_, err := s.w.addMessage.ExecContext(ctx, row.seq, row.id, row.turn, row.ordinal, row.kind, row.speaker, row.time.sql(), row.zone,
		row.content, h.salt[:], h.salted[:], row.seal(), text)
	if err != nil {
		return 0, fmt.Errorf("write message: %w", err)
	}
	s.known[row.id] = knownMessage{seq: row.seq, content: row.content}
	widen(&session.first, &session.last, row.time)
	s.changed(session)
	widen(&s.c.first, &s.c.last, row.time)
	return row.seq, nil
}

// The columns content and salted are checked to have this length.
var _ [32]byte = [sha256.Size]byte{}
