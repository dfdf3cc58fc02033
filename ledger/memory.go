package ledger

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// A Memory is one history, opened. Only one may be open for an id at a time.
type Memory struct {
	id       string
	key      MemoryKey
	secret   []byte
	path     string // of the file
	now      func() time.Time
	minFree  uint64
	readOnly bool
	schema   int // version of the file's schema

	reads *sql.DB
	head  atomic.Uint64

	// committing is a semaphore of one: whoever put a value in owns the writer.
	committing chan struct{}
	writer     *writer // nil when it must be opened before the next commit
	unsynced   bool    // the last commit failed in a way that leaves doubt about the log
	damage     error   // found on opening; nothing is written to such a file

	queueMu sync.Mutex
	queue   []*request
	closed  bool
	calls   sync.WaitGroup // under way; grows only while not closed
}

// Open opens the memory id. The error wraps ErrNotFound, ErrNewer, or is a
// *DamageError. A file whose counters do not agree with its rows opens for
// reading: Append then fails with the *DamageError.
func (s *Store) Open(ctx context.Context, id string) (*Memory, error) {
	known, err := s.exists(ctx, id)
	if err == nil && (!known || !isMemoryID(id)) {
		err = ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("open memory %q: %w", id, err)
	}
	m := &Memory{
		id: id, path: filepath.Join(s.Folder(id), ledgerName),
		now: s.now, minFree: s.minFree, readOnly: s.readOnly,
		committing: make(chan struct{}, 1),
	}
	if err := m.open(ctx, s.Folder(id)); err != nil {
		m.closeFiles()
		return nil, fmt.Errorf("open memory %s: %w", id, m.translate(err))
	}
	return m, nil
}

func (m *Memory) translate(err error) error {
	if m.readOnly && m.schema < len(ledgerMigrations) && isMisfit(err) {
		return fmt.Errorf("what an older version of recalld did not keep: %w: %w", ErrReadOnly, err)
	}
	if isMisfit(err) {
		return m.damaged("", 0, foreignTables)
	}
	return translate(ledgerPath(m.id), err)
}

const foreignTables = "the tables are not those of this version"

func (m *Memory) damaged(table string, row int64, what string) *DamageError {
	return &DamageError{File: ledgerPath(m.id), Table: table, Row: row, What: what}
}

func (m *Memory) open(ctx context.Context, folder string) error {
	if err := m.checkFiles(folder); err != nil {
		return err
	}
	a := readOnly
	if !m.readOnly {
		a = reading
		// The writer opens first: after a crash it is the one to read the log.
		w, err := openWriter(ctx, m.path)
		if isMisfit(err) || errors.Is(err, errNoSchema) {
			return m.damaged("", 0, foreignTables)
		}
		if err != nil {
			return err
		}
		m.writer = w
	}
	var err error
	if m.reads, err = openSQLite(m.path, a); err != nil {
		return err
	}
	if m.schema, err = readVersion(ctx, m.reads, ledgerMigrations); err != nil {
		return err
	}
	row, what, err := readMemoryRow(ctx, m.reads)
	if err != nil {
		return err
	}
	if what == "" && MemoryID(row.key) != m.id {
		what = "the file belongs to another memory"
	}
	if what != "" {
		return m.damaged("memory", 1, what)
	}
	m.key, m.secret = row.key, row.secret
	head, err := m.look(ctx, m.reads)
	if err != nil && !isDamage(err) {
		return err
	}
	m.damage = err
	m.head.Store(uint64(head))
	return nil
}

// checkFiles refuses links and whatever else is no ledger of ours.
func (m *Memory) checkFiles(folder string) error {
	err := checkFolder(filepath.Dir(folder))
	if err == nil {
		err = checkFolder(folder)
	}
	if err == nil {
		err = checkDatabase(m.path)
	}
	if err == nil {
		return nil
	}
	what := err.Error()
	if errors.Is(err, fs.ErrNotExist) {
		what = "the file is missing"
	}
	return m.damaged("", 0, what)
}

// readMemoryRow returns the row that says whose file it is, and what is wrong
// with it or "".
func readMemoryRow(ctx context.Context, q querier) (row memoryRow, what string, err error) {
	var seal []byte
	var c cells
	c.text(&row.key.Agent).text(&row.key.Project).stamp(&row.created).bytes(&row.secret).bytes(&seal)
	err = c.scan(q.QueryRowContext(ctx, "SELECT agent, project, created, secret, seal FROM memory"))
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return row, "", fmt.Errorf("read key: %w", err)
	}
	return row, judge(err, &c, seal, row.seal()), nil
}

// look compares the counters with the ends of the tables and returns the
// number of the last message. It takes microseconds, so that every opening can
// afford it; Verify counts.
func (m *Memory) look(ctx context.Context, q querier) (head int64, err error) {
	var lastMessage, lastTurn int64
	err = q.QueryRowContext(ctx, "SELECT coalesce((SELECT max(seq) FROM message), 0), coalesce((SELECT max(seq) FROM turn), 0)").
		Scan(&lastMessage, &lastTurn)
	if err != nil {
		return 0, fmt.Errorf("read last numbers: %w", m.translate(err))
	}
	c, what, err := readCounters(ctx, q)
	if err != nil {
		return lastMessage, m.translate(err)
	}
	switch {
	case what != "":
	case c.lastMessage != lastMessage:
		what = fmt.Sprintf("the last message is %d, the table ends at %d", c.lastMessage, lastMessage)
	case c.lastTurn != lastTurn:
		what = fmt.Sprintf("the last turn is %d, the table ends at %d", c.lastTurn, lastTurn)
	default:
		return lastMessage, nil
	}
	return lastMessage, m.damaged("counters", 1, what)
}

// readCounters returns the counters, and what is wrong with them or "".
func readCounters(ctx context.Context, q querier) (c countersRow, what string, err error) {
	var seal []byte
	var r cells
	r.number(&c.lastMessage).number(&c.lastTurn).number(&c.lastSession).number(&c.sessions).number(&c.turns).number(&c.messages).
		number(&c.textBytes).number(&c.forgotten).stamp(&c.first).stamp(&c.last).bytes(&seal)
	err = r.scan(q.QueryRowContext(ctx, `SELECT last_message, last_turn, last_session, sessions, turns, messages, text_bytes, forgotten,
		first, last, seal FROM counters`))
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return c, "", fmt.Errorf("read counters: %w", err)
	}
	return c, judge(err, &r, seal, c.seal()), nil
}

// judge says what is wrong with the only row of a table, or "". The error is
// nil or sql.ErrNoRows.
func judge(err error, c *cells, got, want []byte) string {
	switch {
	case err != nil:
		return "the row is missing"
	case c.bad:
		return wrongType
	case !bytes.Equal(got, want):
		return wrongSeal
	}
	return ""
}

// enter counts a call as under way, or returns ErrClosed.
func (m *Memory) enter() error {
	m.queueMu.Lock()
	defer m.queueMu.Unlock()
	if m.closed {
		return ErrClosed
	}
	m.calls.Add(1)
	return nil
}

// Close waits for the calls under way, Appends above all, and closes the file.
// Later calls fail with ErrClosed.
func (m *Memory) Close() error {
	m.queueMu.Lock()
	if m.closed {
		m.queueMu.Unlock()
		return ErrClosed
	}
	m.closed = true
	m.queueMu.Unlock()
	m.calls.Wait()
	if err := m.closeFiles(); err != nil {
		return fmt.Errorf("close memory %s: %w", m.id, m.translate(err))
	}
	return nil
}

// closeFiles closes the readers first, so that the writer is the last one and
// moves the log into the file.
func (m *Memory) closeFiles() error {
	var errs []error
	if m.reads != nil {
		errs = append(errs, m.reads.Close())
	}
	if m.writer != nil {
		errs = append(errs, m.writer.close())
	}
	return errors.Join(errs...)
}

// ID returns the id of the memory.
func (m *Memory) ID() string { return m.id }

// Key returns the key of the memory, as its own file has it.
func (m *Memory) Key() MemoryKey { return m.key }

// Head returns the number of the last message, 0 when there is none. It costs
// nothing; the error is ErrClosed or nil.
func (m *Memory) Head(context.Context) (uint64, error) {
	if err := m.enter(); err != nil {
		return 0, err
	}
	defer m.calls.Done()
	return m.head.Load(), nil
}

// Counts is how much a memory holds.
type Counts struct {
	Sessions, Turns, Messages, TextBytes uint64
	First, Last                          time.Time // of what was said; zero when unknown
}

// Counts returns how much there is. The numbers are kept with every commit, so
// this costs one small read.
func (m *Memory) Counts(ctx context.Context) (Counts, error) {
	if err := m.enter(); err != nil {
		return Counts{}, err
	}
	defer m.calls.Done()
	c, what, err := readCounters(ctx, m.reads)
	if err == nil && what != "" {
		err = m.damaged("counters", 1, what)
	}
	if err != nil {
		return Counts{}, m.translate(err)
	}
	return Counts{
		Sessions: uint64(c.sessions), Turns: uint64(c.turns), Messages: uint64(c.messages), TextBytes: uint64(c.textBytes),
		First: c.first.time(), Last: c.last.time(),
	}, nil
}

// A SessionInfo is what is known of a session.
type SessionInfo struct {
	ID, Title   string
	Turns       uint64
	First, Last time.Time // of what was said; zero when unknown
}

// Sessions returns all sessions in the order in which they first appeared. The
// error is a *DamageError when a row is damaged.
func (m *Memory) Sessions(ctx context.Context) ([]SessionInfo, error) {
	if err := m.enter(); err != nil {
		return nil, err
	}
	defer m.calls.Done()
	rows, err := m.readSessions(ctx, m.reads, "ORDER BY number")
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", m.translate(err))
	}
	list := make([]SessionInfo, len(rows))
	for i, r := range rows {
		if r.what != "" {
			return nil, fmt.Errorf("list sessions: %w", m.damaged("session", r.number, r.what))
		}
		list[i] = SessionInfo{ID: r.id, Title: r.title, Turns: uint64(r.turns), First: r.first.time(), Last: r.last.time()}
	}
	return list, nil
}

// A checkedSession is a row of session and what is wrong with it, or "".
type checkedSession struct {
	sessionRow
	what string
}

func (m *Memory) readSessions(ctx context.Context, q querier, where string, args ...any) ([]checkedSession, error) {
	rows, err := q.QueryContext(ctx, "SELECT number, id, title, turns, open, first, last, seal FROM session "+where, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []checkedSession
	for rows.Next() {
		var r checkedSession
		if err := scanSession(rows, &r); err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, rows.Err()
}

func scanSession(row interface{ Scan(...any) error }, r *checkedSession) error {
	var seal []byte
	var c cells
	c.number(&r.number).text(&r.id).text(&r.title).number(&r.turns).number(&r.open).stamp(&r.first).stamp(&r.last).bytes(&seal)
	if err := c.scan(row); err != nil {
		return err
	}
	r.what = judge(nil, &c, seal, r.sessionRow.seal())
	return nil
}
