package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// A writer is the one connection that changes a memory, with its statements.
// It belongs to whoever holds Memory.committing.
type writer struct {
	db   *sql.DB
	conn *sql.Conn
	all  []*sql.Stmt

	begin, commit, rollback        *sql.Stmt
	savepoint, release, undo       *sql.Stmt
	session, addSession, upSession *sql.Stmt
	turn, turnByID, addTurn        *sql.Stmt
	upTurn, nextOrdinal            *sql.Stmt
	messages, addMessage           *sql.Stmt
	forgotten, upCounters          *sql.Stmt
}

// errNoSchema says that a file has no tables yet.
var errNoSchema = errors.New("the file is empty")

// openWriter opens the file, brings its schema up to date and prepares
// everything an Append needs.
func openWriter(ctx context.Context, path string) (*writer, error) {
	db, err := openSQLite(path, writing)
	if err != nil {
		return nil, err
	}
	w := &writer{db: db}
	if err := w.prepare(ctx); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

func (w *writer) prepare(ctx context.Context) error {
	// A file without a schema has no key either; only Ensure fills one.
	err := migrate(ctx, w.db, ledgerMigrations, func(*sql.Tx) error { return errNoSchema })
	if err != nil {
		return err
	}
	if w.conn, err = w.db.Conn(ctx); err != nil {
		return err
	}
	for _, s := range []struct {
		stmt  **sql.Stmt
		query string
	}{
		{&w.begin, "BEGIN IMMEDIATE"},
		{&w.commit, "COMMIT"},
		{&w.rollback, "ROLLBACK"},
		{&w.savepoint, "SAVEPOINT one"},
		{&w.release, "RELEASE one"},
		{&w.undo, "ROLLBACK TO one"},
		{&w.session, "SELECT number, id, title, turns, open, first, last, seal FROM session WHERE id = ?"},
		{&w.addSession, "INSERT INTO session (number, id, title, turns, open, first, last, seal) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"},
		{&w.upSession, "UPDATE session SET title = ?, turns = ?, open = ?, first = ?, last = ?, seal = ? WHERE number = ?"},
		{&w.turn, "SELECT seq, session, id, status, appended, seal FROM turn WHERE seq = ?"},
		{&w.turnByID, "SELECT seq, session, id, status, appended, seal FROM turn WHERE session = ? AND id = ?"},
		{&w.addTurn, "INSERT INTO turn (seq, session, id, status, appended, seal) VALUES (?, ?, ?, ?, ?, ?)"},
		{&w.upTurn, "UPDATE turn SET status = ?, seal = ? WHERE seq = ?"},
		{&w.nextOrdinal, "SELECT coalesce(max(ordinal) + 1, 0) FROM message WHERE turn = ?"},
		{&w.messages, "SELECT m.id, m.seq, m.content FROM json_each(?) j CROSS JOIN message m ON m.id = j.value"},
		{&w.addMessage, `INSERT INTO message (seq, id, turn, ordinal, kind, speaker, time, zone, content, salt, salted, seal, text)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`},
		{&w.forgotten, "SELECT count(*) FROM forgotten WHERE key = ?"},
		{&w.upCounters, `UPDATE counters SET last_message = ?, last_turn = ?, last_session = ?, sessions = ?, turns = ?, messages = ?,
			text_bytes = ?, forgotten = ?, first = ?, last = ?, seal = ?`},
	} {
		if *s.stmt, err = w.conn.PrepareContext(ctx, s.query); err != nil {
			return fmt.Errorf("prepare: %w", err)
		}
		w.all = append(w.all, *s.stmt)
	}
	return nil
}

// close ends the connection; SQLite rolls back what was not committed, and the
// last connection to a file moves the log into it.
//
// The statements are closed one by one, before: database/sql forgets those it
// prepared on a single connection, and SQLite keeps a connection with
// statements alive, with its transaction, locks and open files.
func (w *writer) close() error {
	var errs []error
	for _, stmt := range w.all {
		errs = append(errs, stmt.Close())
	}
	if w.conn != nil {
		errs = append(errs, w.conn.Close())
	}
	errs = append(errs, w.db.Close())
	return errors.Join(errs...)
}
