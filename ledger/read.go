package ledger

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"slices"
)

// Limits of one read.
const (
	maxReadMessages = 10_000
	maxReadBytes    = 64 << 20
)

// selectMessages reads messages with the turn they belong to. Sessions are few
// and their rows change, so they are read apart (fillSessions).
const (
	selectMessages = "SELECT " + messageColumns + fromMessages
	messageColumns = messageHead + ", m.text" + messagePlace
	messageHead    = "m.seq, m.id, m.turn, m.ordinal, m.kind, m.speaker, m.time, m.zone, m.content, m.seal"
	messagePlace   = ", t.session, t.id"
	fromMessages   = " FROM message m LEFT JOIN turn t ON t.seq = m.turn "
)

// A found message is a row of selectMessages. It is used for row after row, so
// that a row costs no more than its texts.
type found struct {
	messageRow
	cells   cells
	rowSeal []byte
	text    []byte // until the next row
}

func newFound() *found {
	f := &found{}
	small(f.cells.number(&f.seq).text(&f.id).number(&f.turn).number(&f.ordinal), &f.kind).
		text(&f.speaker).stamp(&f.time).text(&f.zone).bytes(&f.content).bytes(&f.rowSeal).bytes(&f.text).
		number(&f.session).text(&f.turnID)
	return f
}

func (f *found) scan(rows *sql.Rows) error { return f.cells.scan(rows) }

// check returns what is wrong with the message, or "".
func (f *found) check() string {
	if what := judge(nil, &f.cells, f.rowSeal, f.seal()); what != "" {
		return what
	}
	if sum := sha256.Sum256(f.text); !bytes.Equal(sum[:], f.content) {
		return "the text does not match its SHA-256"
	}
	return ""
}

// record returns the message as it may be shown: checked, or marked damaged.
// The session is not filled in yet.
func (m *Memory) record(f *found) Record {
	if what := f.check(); what != "" {
		return m.damagedRecord(f.seq, what)
	}
	return Record{
		Message: Message{
			ID: f.id, Kind: f.kind, Speaker: f.speaker, Time: f.time.time(), Zone: f.zone, Text: bytes.Clone(f.text),
			Seq: uint64(f.seq), Ordinal: int(f.ordinal),
		},
		TurnID: f.turnID, TurnSeq: uint64(f.turn),
	}
}

func (m *Memory) damagedRecord(seq int64, what string) Record {
	return Record{Message: Message{Seq: uint64(seq), Damage: m.damaged("message", seq, what)}}
}

// A loaded record remembers the number of its session until that is read.
type loaded struct {
	Record
	session int64
}

// load runs selectMessages with what follows it, until limitBytes of text are
// read, but always one row. It reports whether it stopped at the limit.
func (m *Memory) load(ctx context.Context, limitBytes int, where string, args ...any) (list []loaded, full bool, err error) {
	rows, err := m.reads.QueryContext(ctx, selectMessages+where, args...)
	if err != nil {
		return nil, false, err
	}
	defer rows.Close()
	size := 0
	f := newFound()
	for rows.Next() {
		if err := f.scan(rows); err != nil {
			return nil, false, err
		}
		size += len(f.text)
		if size > limitBytes && len(list) > 0 {
			return list, true, nil
		}
		list = append(list, loaded{m.record(f), f.session})
	}
	return list, false, rows.Err()
}

// loadSingly is load for a range with a damaged page in it: the rows on other
// pages are still found one by one.
func (m *Memory) loadSingly(ctx context.Context, first, last int64, limitBytes int) (list []loaded, full bool, err error) {
	size := 0
	for seq := first; seq <= last; seq++ {
		one, _, err := m.load(ctx, limitBytes, "WHERE m.seq = ?", seq)
		if isDamage(m.translate(err)) {
			one, err = []loaded{{Record: m.damagedRecord(seq, "the page it is on cannot be read")}}, nil
		}
		if err != nil {
			return nil, false, err
		}
		if len(one) == 0 {
			continue
		}
		if size += len(one[0].Text); size > limitBytes && len(list) > 0 {
			return list, true, nil
		}
		list = append(list, one[0])
	}
	return list, false, nil
}

// fillSessions reads the sessions of a list and takes the numbers off it.
func (m *Memory) fillSessions(ctx context.Context, list []loaded) ([]Record, error) {
	var numbers []int64
	for i := range list {
		if list[i].Damage == nil && !slices.Contains(numbers, list[i].session) {
			numbers = append(numbers, list[i].session)
		}
	}
	sessions, err := m.sessionsByNumber(ctx, numbers)
	if err != nil {
		return nil, err
	}
	records := make([]Record, len(list))
	for i := range list {
		r := &list[i].Record
		if r.Damage == nil {
			row, ok := sessions[list[i].session]
			switch {
			case !ok:
				*r = m.damagedRecord(int64(r.Seq), "its session is missing")
			case row.what != "":
				*r = Record{Message: Message{Seq: r.Seq, Damage: m.damaged("session", row.number, row.what)}}
			default:
				r.Session, r.SessionTitle = row.id, row.title
			}
		}
		records[i] = *r
	}
	return records, nil
}

func (m *Memory) sessionsByNumber(ctx context.Context, numbers []int64) (map[int64]checkedSession, error) {
	if len(numbers) == 0 {
		return nil, nil
	}
	list, err := m.readSessions(ctx, m.reads, "WHERE number IN (SELECT value FROM json_each(?))", jsonList(numbers))
	if err != nil {
		return nil, fmt.Errorf("read sessions: %w", err)
	}
	byNumber := make(map[int64]checkedSession, len(list))
	for _, row := range list {
		byNumber[row.number] = row
	}
	return byNumber, nil
}

// jsonList returns a list as one argument for json_each. Of numbers and texts
// there is none that cannot be written.
func jsonList[T int64 | uint64 | string](list []T) string {
	b, err := json.Marshal(list)
	if err != nil {
		panic(fmt.Sprintf("ledger: list of %T: %v", list, err))
	}
	return string(b)
}

// Read returns the messages with after < Seq, in order and without gaps: at
// most limit of them (0 is 10,000, which is also the most) holding at most
// limitBytes of text (0 is 64 MiB), but always one when there is one. A message
// that is damaged has its place and says so in Damage.
func (m *Memory) Read(ctx context.Context, after uint64, limit, limitBytes int) ([]Record, error) {
	if err := m.enter(); err != nil {
		return nil, err
	}
	defer m.calls.Done()
	head := m.head.Load()
	if after >= head {
		return nil, nil
	}
	return m.readRange(ctx, int64(after)+1, int64(min(head, after+uint64(readLimit(limit)))), limitBytes)
}

// ReadBefore returns the newest limit messages with Seq <= upTo, in ascending
// order and without gaps; limit as in [Memory.Read]. More than 64 MiB of text
// are not read at once: then the older ones are left out.
func (m *Memory) ReadBefore(ctx context.Context, upTo uint64, limit int) ([]Record, error) {
	if err := m.enter(); err != nil {
		return nil, err
	}
	defer m.calls.Done()
	last := int64(min(upTo, m.head.Load()))
	if last == 0 {
		return nil, nil
	}
	first := max(1, last-int64(readLimit(limit))+1)
	first, err := m.fitBackwards(ctx, first, last)
	if err != nil && !isDamage(m.translate(err)) {
		return nil, fmt.Errorf("read messages up to %d: %w", upTo, err)
	}
	return m.readRange(ctx, first, last, 0)
}

// fitBackwards returns the lowest number from which on to last the texts hold
// no more than one read may. The length of a text is known without reading it.
func (m *Memory) fitBackwards(ctx context.Context, first, last int64) (int64, error) {
	rows, err := m.reads.QueryContext(ctx, "SELECT seq, length(text) FROM message WHERE seq BETWEEN ? AND ? ORDER BY seq DESC", first, last)
	if err != nil {
		return first, err
	}
	defer rows.Close()
	fits, size := last, int64(0)
	for rows.Next() {
		var seq, n int64
		if err := rows.Scan(&seq, &n); err != nil {
			return first, err
		}
		if size += n; size > maxReadBytes && seq < last {
			return fits, nil
		}
		fits = seq
	}
	if err := rows.Err(); err != nil {
		return first, err
	}
	return first, nil
}

func readLimit(limit int) int {
	if limit <= 0 || limit > maxReadMessages {
		return maxReadMessages
	}
	return limit
}

// readRange reads the messages from first to last, both included and both
// given out already, each of them: where there is no row, there is damage.
func (m *Memory) readRange(ctx context.Context, first, last int64, limitBytes int) ([]Record, error) {
	if limitBytes <= 0 || limitBytes > maxReadBytes {
		limitBytes = maxReadBytes
	}
	list, full, err := m.load(ctx, limitBytes, "WHERE m.seq BETWEEN ? AND ? ORDER BY m.seq", first, last)
	if isDamage(m.translate(err)) {
		list, full, err = m.loadSingly(ctx, first, last, limitBytes)
	}
	if err != nil {
		return nil, fmt.Errorf("read messages from %d: %w", first, m.translate(err))
	}
	if full {
		last = int64(list[len(list)-1].Seq)
	}
	whole := make([]loaded, 0, last-first+1)
	for seq := first; seq <= last; seq++ {
		for len(list) > 0 && int64(list[0].Seq) < seq {
			list = list[1:] // out of order: a damaged page
		}
		if len(list) > 0 && int64(list[0].Seq) == seq {
			whole, list = append(whole, list[0]), list[1:]
			continue
		}
		whole = append(whole, loaded{Record: m.damagedRecord(seq, "the row is missing")})
	}
	records, err := m.fillSessions(ctx, whole)
	if err != nil {
		return nil, fmt.Errorf("read messages from %d: %w", first, m.translate(err))
	}
	return records, nil
}

// Message returns one message whole. The error wraps ErrNotFound, or is a
// *DamageError when what is stored is not what was said.
func (m *Memory) Message(ctx context.Context, id string) (Record, error) {
	if err := checkName("message_id", id, true); err != nil {
		return Record{}, err
	}
	if err := m.enter(); err != nil {
		return Record{}, err
	}
	defer m.calls.Done()
	list, _, err := m.load(ctx, maxReadBytes, "WHERE m.id = ?", id)
	if err == nil && len(list) == 0 {
		return Record{}, fmt.Errorf("message %q: %w", id, ErrNotFound)
	}
	var records []Record
	if err == nil {
		records, err = m.fillSessions(ctx, list)
	}
	if err == nil && records[0].Damage != nil {
		err = records[0].Damage
	}
	if err == nil && records[0].ID != id {
		// The index led to another row than the one that bears the id.
		err = m.damaged("message", int64(records[0].Seq), wrongIndex)
	}
	if err != nil {
		return Record{}, fmt.Errorf("read message %q: %w", id, m.translate(err))
	}
	return records[0], nil
}

// Sequences returns the numbers of messages by id, without their texts. Ids that
// are not known are left out, and so are messages that are damaged.
func (m *Memory) Sequences(ctx context.Context, ids []string) (map[string]uint64, error) {
	asked := make(map[string]bool, len(ids))
	for _, id := range ids {
		asked[id] = true
	}
	numbers := map[string]uint64{}
	err := m.eachRow(ctx, len(ids), "m.id", jsonList(ids), func(f *found) {
		if asked[f.id] {
			numbers[f.id] = uint64(f.seq)
		}
	})
	return numbers, err
}

// IDs returns the ids of messages by number, without their texts. Numbers that
// were not given out yet are left out, and so are messages that are damaged.
func (m *Memory) IDs(ctx context.Context, seqs []uint64) (map[uint64]string, error) {
	ids := map[uint64]string{}
	err := m.eachRow(ctx, len(seqs), "m.seq", jsonList(seqs), func(f *found) { ids[uint64(f.seq)] = f.id })
	return ids, err
}

// eachRow calls f for the messages whose column has one of n values. Their rows
// are checked; their texts, which the seal covers by hash, are not read.
func (m *Memory) eachRow(ctx context.Context, n int, column, values string, f func(*found)) error {
	if err := m.enter(); err != nil {
		return err
	}
	defer m.calls.Done()
	if n == 0 {
		return nil
	}
	rows, err := m.reads.QueryContext(ctx, "SELECT "+messageHead+", x''"+messagePlace+fromMessages+
		"WHERE "+column+" IN (SELECT value FROM json_each(?))", values)
	if err != nil {
		return fmt.Errorf("look up messages: %w", m.translate(err))
	}
	defer rows.Close()
	row := newFound()
	for rows.Next() {
		if err := row.scan(rows); err != nil {
			return fmt.Errorf("look up messages: %w", m.translate(err))
		}
		if judge(nil, &row.cells, row.rowSeal, row.seal()) == "" {
			f(row)
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("look up messages: %w", m.translate(err))
	}
	return nil
}

// MessagesBySeq returns the messages with these numbers, in this order. The
// error wraps ErrNotFound when a number was not given out yet. A message that
// is damaged has its place and says so in Damage.
func (m *Memory) MessagesBySeq(ctx context.Context, seqs []uint64) ([]Record, error) {
	if err := m.enter(); err != nil {
		return nil, err
	}
	defer m.calls.Done()
	if len(seqs) == 0 {
		return nil, nil
	}
	head := m.head.Load()
	for _, seq := range seqs {
		if seq == 0 || seq > head {
			return nil, fmt.Errorf("message %d of %d: %w", seq, head, ErrNotFound)
		}
	}
	list, _, err := m.load(ctx, math.MaxInt, "WHERE m.seq IN (SELECT value FROM json_each(?))", jsonList(seqs))
	if isDamage(m.translate(err)) {
		list, err = m.loadEach(ctx, seqs)
	}
	var records []Record
	if err == nil {
		records, err = m.fillSessions(ctx, list)
	}
	if err != nil {
		return nil, fmt.Errorf("read messages by number: %w", m.translate(err))
	}
	bySeq := make(map[uint64]Record, len(records))
	for _, r := range records {
		bySeq[r.Seq] = r
	}
	asked := make([]Record, len(seqs))
	for i, seq := range seqs {
		r, ok := bySeq[seq]
		if !ok {
			r = m.damagedRecord(int64(seq), "the row is missing")
		}
		asked[i] = r
	}
	return asked, nil
}

func (m *Memory) loadEach(ctx context.Context, seqs []uint64) ([]loaded, error) {
	var list []loaded
	for _, seq := range seqs {
		one, _, err := m.loadSingly(ctx, int64(seq), int64(seq), math.MaxInt)
		if err != nil {
			return nil, err
		}
		list = append(list, one...)
	}
	return list, nil
}
