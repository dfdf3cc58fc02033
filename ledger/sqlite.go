package ledger

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// How a file is opened.
type access int

const (
	writing  access = iota // one connection, transactions begin with the write lock
	reading                // a few connections that refuse to write
	readOnly               // like reading, on a disk that cannot be written
)

// readConnections bounds the read pool. Each connection holds two files open.
const readConnections = 2

// busyMillis is how long a connection waits for another one's lock. Locks are
// held for milliseconds; a checkpoint of a large file may take seconds.
const busyMillis = 10_000

// maxIdleLog is what a log may keep of its length once it is moved into the file.
const maxIdleLog = 16 << 20

// A querier is a *sql.DB, *sql.Conn or *sql.Tx.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// openSQLite opens the existing file at path. Every setting is in the data
// source name, because each connection of a pool needs it. Nothing is written
// outside the folder: temporary tables stay in memory.
func openSQLite(path string, a access) (*sql.DB, error) {
	pragmas := []string{fmt.Sprintf("busy_timeout(%d)", busyMillis)}
	if a != readOnly {
		pragmas = append(pragmas, "journal_mode(WAL)", "synchronous(FULL)", fmt.Sprintf("journal_size_limit(%d)", maxIdleLog))
	}
	pragmas = append(pragmas, "foreign_keys(1)", "cell_size_check(1)", "trusted_schema(0)", "temp_store(MEMORY)")
	options := url.Values{"mode": {"rw"}, "_defensive": {"1"}, "_dqs": {"0"}, "_error_rc": {"1"}}
	connections := 1
	switch a {
	case writing:
		options.Set("_txlock", "immediate")
	case reading:
		pragmas, connections = append(pragmas, "query_only(1)"), readConnections
	case readOnly:
		pragmas, connections = append(pragmas, "query_only(1)"), readConnections
		options.Set("mode", "ro")
		// The file that readers and a writer share cannot be made on such a
		// disk. Without a log it is not needed. With one, each connection
		// keeps its own index of the log, which SQLite does for one that
		// has the file for itself; nobody can write, so nobody is locked out.
		if !holdsFrames(path + "-wal") {
			options.Set("immutable", "1")
		} else if lockless != "" {
			options.Set("vfs", lockless)
			pragmas = append([]string{"locking_mode(EXCLUSIVE)"}, pragmas...)
		}
	}
	options["_pragma"] = pragmas
	db, err := sql.Open("sqlite", fileURI(path)+"?"+options.Encode())
	if err != nil {
		return nil, err
	}
	// Idle connections are kept: the last one to close takes the
	// shared-memory file with it, and a full disk could not hold a new one.
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db, nil
}

// fileURI returns path, which is absolute, in the form SQLite takes without
// mistaking a character of it for something else.
func fileURI(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // C:/... on Windows
	}
	return "file://" + (&url.URL{Path: path}).EscapedPath()
}

func holdsFrames(wal string) bool {
	info, err := os.Lstat(wal)
	return err == nil && info.Size() > 0
}

// checkpoint moves everything from the log into the file, syncs it and empties
// the log. It fails when a reader keeps it from doing all of that.
func checkpoint(ctx context.Context, db querier) error {
	var busy, frames, moved int
	if err := db.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames, &moved); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	if busy != 0 {
		return fmt.Errorf("checkpoint: the log is in use")
	}
	return nil
}
