package ledger

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"slices"
)

// maxProblems bounds what Verify reports of one memory; a file that is damaged
// all over need not be described row by row.
const maxProblems = 1_000

// A Problem is damage that Verify found. It holds nothing of what was said.
type Problem struct {
	File  string // path inside the store
	Table string // empty when it is not known
	Row   int64  // 0 when it is not known
	What  string
}

// VerifyOptions say how much is looked at. The zero value checks the structure.
type VerifyOptions struct {
	Deep   bool // read and hash every message
	Sample int  // deep: only one message in this many; 0 and 1 read all
}

// Verify checks the memory and returns what is wrong with it; nil means that it
// is sound. The structure: SQLite's own check of pages and indexes, foreign
// keys, schema, whose file it is, the checksums of all rows but messages,
// counters against rows, dense numbers, ordinals, open turns. Deep: checksum,
// SHA-256 and salted hash of each message.
//
// The structure is checked on one snapshot; Appends may go on meanwhile.
// progress, if not nil, is told how many messages were read of how many are to
// be. The error is of ctx or of reading at all, never damage.
func (m *Memory) Verify(ctx context.Context, o VerifyOptions, progress func(done, total uint64)) ([]Problem, error) {
	if o.Sample < 0 {
		return nil, &FieldError{Field: "sample", What: "is negative", Limit: 0, Value: o.Sample}
	}
	if err := m.enter(); err != nil {
		return nil, err
	}
	defer m.calls.Done()
	v := verification{m: m, file: ledgerPath(m.id), sample: int64(max(o.Sample, 1)), progress: progress}
	if err := v.structure(ctx); err != nil {
		return nil, fmt.Errorf("verify memory %s: %w", m.id, err)
	}
	if o.Deep {
		if err := v.messages(ctx); err != nil {
			return nil, fmt.Errorf("verify memory %s: %w", m.id, err)
		}
	}
	return v.problems, nil
}

type verification struct {
	m        *Memory
	file     string
	sample   int64
	progress func(done, total uint64)
	problems []Problem
}

func (v *verification) found(table string, row int64, format string, args ...any) {
	if len(v.problems) < maxProblems {
		v.problems = append(v.problems, Problem{v.file, table, row, fmt.Sprintf(format, args...)})
	}
}

// note takes damage among err as found and returns other errors.
func (v *verification) note(table string, err error) error {
	err = v.m.translate(err)
	if !isDamage(err) {
		return err
	}
	v.found(table, 0, "cannot be read: %v", err)
	return nil
}

// structure runs all checks that do not read texts. Each goes on where another
// one found damage.
func (v *verification) structure(ctx context.Context) error {
	tx, err := v.m.reads.BeginTx(ctx, nil)
	if err != nil {
		return v.note("", err)
	}
	defer tx.Rollback() // nothing was written
	found, err := checkSchema(ctx, tx, ledgerMigrations, v.m.readOnly)
	for _, what := range found {
		v.found("", 0, "%s", what)
	}
	if err := v.note("", err); err != nil {
		return err
	}
	for _, check := range []struct {
		table string
		since int // schema version with which the table came
		run   func(context.Context, querier) error
	}{
		{"", 0, v.pages},
		{"", 0, v.foreignKeys},
		{"memory", 0, v.key},
		{"counters", 0, v.counters},
		{"session", 0, v.sessions},
		{"turn", 0, v.turns},
		{"message", 0, v.order},
		{"closing", journalSchema, v.closings},
		{"batch", journalSchema, v.batches},
		{"given", givenSchema, v.given},
	} {
		if v.m.schema < check.since {
			continue
		}
		if err := v.note(check.table, check.run(ctx, tx)); err != nil {
			return err
		}
	}
	return nil
}

// checkSchema compares the schema of a file with what the migrations make, of a
// file that cannot be written with what its own version of them made.
func checkSchema(ctx context.Context, q querier, migrations []string, readOnly bool) (wrong []string, err error) {
	version, err := schemaVersion(ctx, q)
	if err != nil {
		return nil, err
	}
	if readOnly && version > 0 && version < len(migrations) {
		migrations = migrations[:version]
	}
	if version != len(migrations) {
		return []string{fmt.Sprintf("the schema version is %d, not %d", version, len(migrations))}, nil
	}
	got, err := readSchema(ctx, q)
	if err != nil {
		return nil, err
	}
	reference, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, err
	}
	defer reference.Close()
	reference.SetMaxOpenConns(1) // each connection would be a database of its own
	for _, m := range migrations {
		if _, err := reference.ExecContext(ctx, m); err != nil {
			return nil, fmt.Errorf("make reference schema: %w", err)
		}
	}
	want, err := readSchema(ctx, reference)
	if err != nil {
		return nil, err
	}
	if !slices.Equal(got, want) {
		wrong = append(wrong, "the tables are not those of this version")
	}
	return wrong, nil
}

func readSchema(ctx context.Context, q querier) ([]string, error) {
	rows, err := q.QueryContext(ctx, "SELECT type || ' ' || name || ' ' || tbl_name || ' ' || coalesce(sql, '') FROM sqlite_schema ORDER BY 1")
	return collect(rows, err)
}

func (v *verification) pages(ctx context.Context, q querier) error {
	return checkPages(ctx, q, func(what string) { v.found("", 0, "%s", what) })
}

// checkPages runs SQLite's own check of pages, cells, indexes and constraints.
func checkPages(ctx context.Context, q querier, found func(what string)) error {
	rows, err := q.QueryContext(ctx, "PRAGMA integrity_check(100)")
	lines, err := collect(rows, err)
	for _, line := range lines {
		if line != "ok" {
			found(line)
		}
	}
	return err
}

func (v *verification) foreignKeys(ctx context.Context, q querier) error {
	return checkForeignKeys(ctx, q, func(table string, row int64, parent string) {
		v.found(table, row, "refers to a row of %s that is missing", parent)
	})
}

func checkForeignKeys(ctx context.Context, q querier, found func(table string, row int64, parent string)) error {
	rows, err := q.QueryContext(ctx, "PRAGMA foreign_key_check")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var table, parent string
		var row sql.NullInt64 // NULL in a table without row ids
		var key int64
		if err := rows.Scan(&table, &row, &parent, &key); err != nil {
			return err
		}
		found(table, row.Int64, parent)
	}
	return rows.Err()
}

func (v *verification) key(ctx context.Context, q querier) error {
	row, what, err := readMemoryRow(ctx, q)
	if err != nil {
		return err
	}
	if what == "" && MemoryID(row.key) != v.m.id {
		what = "the file belongs to another memory"
	}
	if what != "" {
		v.found("memory", 1, "%s", what)
	}
	return nil
}

// counters compares the counters with what is there.
func (v *verification) counters(ctx context.Context, q querier) error {
	c, what, err := readCounters(ctx, q)
	if err != nil {
		return err
	}
	if what != "" {
		v.found("counters", 1, "%s", what)
		return nil
	}
	var n countersRow
	var r cells // a time that is none makes its extremes none
	r.number(&n.lastMessage).number(&n.messages).number(&n.textBytes).stamp(&n.first).stamp(&n.last)
	err = r.scan(q.QueryRowContext(ctx, `SELECT coalesce(max(seq), 0), count(*), coalesce(sum(length(text)), 0), min(time), max(time) FROM message`))
	if err != nil {
		return err
	}
	err = q.QueryRowContext(ctx, `SELECT
		(SELECT coalesce(max(seq), 0) FROM turn), (SELECT count(*) FROM turn),
		(SELECT coalesce(max(number), 0) FROM session), (SELECT count(*) FROM session), (SELECT count(*) FROM forgotten)`).
		Scan(&n.lastTurn, &n.turns, &n.lastSession, &n.sessions, &n.forgotten)
	if err != nil {
		return err
	}
	for _, pair := range []struct {
		name      string
		got, want int64
	}{
		{"last_message", c.lastMessage, n.lastMessage},
		{"last_turn", c.lastTurn, n.lastTurn},
		{"last_session", c.lastSession, n.lastSession},
		{"messages", c.messages, n.messages},
		{"turns", c.turns, n.turns},
		{"sessions", c.sessions, n.sessions},
		{"text_bytes", c.textBytes, n.textBytes},
		{"forgotten", c.forgotten, n.forgotten},
		{"first", c.first.micros, n.first.micros},
		{"last", c.last.micros, n.last.micros},
	} {
		if pair.got != pair.want {
			v.found("counters", 1, "%s is %d, counted %d", pair.name, pair.got, pair.want)
		}
	}
	return nil
}

// sessions checks each session against its turns and messages.
func (v *verification) sessions(ctx context.Context, q querier) error {
	list, err := v.m.readSessions(ctx, q, "ORDER BY number")
	if err != nil {
		return err
	}
	for i, row := range list {
		if row.what != "" {
			v.found("session", row.number, "%s", row.what)
			continue
		}
		if row.number != int64(i)+1 {
			v.found("session", row.number, "is number %d of the table", i+1)
		}
		var n sessionRow
		var open int64
		err := q.QueryRowContext(ctx, `SELECT
			(SELECT count(*) FROM turn WHERE session = ?1),
			(SELECT count(*) FROM turn WHERE session = ?1 AND status = 1),
			(SELECT coalesce(max(seq), 0) FROM turn WHERE session = ?1 AND status = 1)`, row.number).
			Scan(&n.turns, &open, &n.open)
		if err != nil {
			return err
		}
		if row.turns != n.turns {
			v.found("session", row.number, "turns is %d, counted %d", row.turns, n.turns)
		}
		if row.open != n.open || open > 1 {
			v.found("session", row.number, "turn %d is said to be open; %d are, the last of them %d", row.open, open, n.open)
		}
	}
	return nil
}

// turns checks the checksums of all turns and that their numbers are dense.
func (v *verification) turns(ctx context.Context, q querier) error {
	rows, err := q.QueryContext(ctx, "SELECT seq, session, id, status, appended, seal FROM turn ORDER BY seq")
	if err != nil {
		return err
	}
	defer rows.Close()
	last := int64(0)
	for rows.Next() {
		r, what, err := scanTurn(rows)
		if err != nil {
			return err
		}
		if r.seq != last+1 {
			v.found("turn", r.seq, "follows turn %d", last)
		}
		last = r.seq
		if what != "" {
			v.found("turn", r.seq, "%s", what)
		}
	}
	return rows.Err()
}

// order checks that messages are numbered densely, and densely in their turns.
func (v *verification) order(ctx context.Context, q querier) error {
	rows, err := q.QueryContext(ctx, "SELECT seq, turn, ordinal FROM message ORDER BY seq")
	if err != nil {
		return err
	}
	defer rows.Close()
	last, next := int64(0), map[int64]int64{}
	for rows.Next() {
		var seq, turn, ordinal int64
		var c cells
		if err := c.number(&seq).number(&turn).number(&ordinal).scan(rows); err != nil {
			return err
		}
		if seq != last+1 {
			v.found("message", seq, "follows message %d", last)
		}
		if ordinal != next[turn] {
			v.found("message", seq, "is number %d of turn %d, not %d", ordinal, turn, next[turn])
		}
		last, next[turn] = seq, ordinal+1
	}
	return rows.Err()
}

// messages reads and hashes messages page by page, so that no snapshot is kept
// for long.
func (v *verification) messages(ctx context.Context) error {
	head := int64(v.m.head.Load())
	// Which of the messages a sample reads changes from second to second, so
	// that samples taken now and then come to see all.
	offset := (v.m.now().Unix()%v.sample + v.sample) % v.sample
	for from := int64(1); from <= head; from += verifyPage {
		to := min(head, from+verifyPage-1)
		bad, err := v.messagePage(ctx, v.m.reads, from, to, offset)
		if isDamage(v.m.translate(err)) {
			bad, err = v.messagesSingly(ctx, from, to, offset)
		}
		if err != nil {
			return v.m.translate(err)
		}
		for _, p := range bad {
			v.found("message", p.Row, "%s", p.What)
		}
		if v.progress != nil {
			v.progress(uint64(to), uint64(head))
		}
	}
	return nil
}

const verifyPage = 1_000

func (v *verification) messagePage(ctx context.Context, q querier, from, to, offset int64) (bad []Problem, err error) {
	rows, err := q.QueryContext(ctx, "SELECT "+messageColumns+", m.salt, m.salted"+fromMessages+
		"WHERE m.seq BETWEEN ? AND ? AND m.seq % ? = ? ORDER BY m.seq", from, to, v.sample, offset)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	f := newFound()
	var salt, salted []byte
	f.cells.bytes(&salt).bytes(&salted)
	for rows.Next() {
		if err := f.scan(rows); err != nil {
			return nil, err
		}
		what := f.check()
		if what == "" {
			inner := sha256.New()
			inner.Write(salt)
			inner.Write(f.text)
			if !bytes.Equal(inner.Sum(nil), salted) {
				what = "the text does not match its salted SHA-256"
			}
		}
		if what != "" {
			bad = append(bad, Problem{Row: f.seq, What: what})
		}
	}
	return bad, rows.Err()
}

// messagesSingly finds the rows of a page that cannot be read.
func (v *verification) messagesSingly(ctx context.Context, from, to, offset int64) (bad []Problem, err error) {
	for seq := from; seq <= to; seq++ {
		one, err := v.messagePage(ctx, v.m.reads, seq, seq, offset)
		if isDamage(v.m.translate(err)) {
			one, err = []Problem{{Row: seq, What: "the page it is on cannot be read"}}, nil
		}
		if err != nil {
			return nil, err
		}
		bad = append(bad, one...)
	}
	return bad, nil
}
