package ledger

import (
	"database/sql"
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// What a caller can act on.
var (
	// ErrNotFound: there is no such store, memory, session or message.
	ErrNotFound = errors.New("not found")
	// ErrExists: other bytes are stored under a known id, or a session or an
	// alias is bound to another memory.
	ErrExists = errors.New("already exists")
	// ErrLocked: another process has the store open.
	ErrLocked = errors.New("store is locked")
	// ErrReadOnly: the store is on a disk that cannot be written.
	ErrReadOnly = errors.New("store is read-only")
	// ErrFull: the disk is full.
	ErrFull = errors.New("disk is full")
	// ErrPaused: the memory records nothing at present. Reserved: no memory can
	// be paused yet.
	ErrPaused = errors.New("memory is paused")
	// ErrTooLarge: an Append holds more than it may. The error is a *FieldError too.
	ErrTooLarge = errors.New("too large")
	// ErrNewer: a later version of recalld wrote the file.
	ErrNewer = errors.New("was written by a newer version of recalld: use that one")
	// ErrClosed: the Store or the Memory was closed.
	ErrClosed = errors.New("ledger is closed")
)

// A DamageError says that what is stored cannot be trusted. It holds nothing of
// what was said.
type DamageError struct {
	File  string // path inside the store
	Table string // empty when it is not known
	Row   int64  // 0 when it is not known
	What  string
}

func (e *DamageError) Error() string {
	s := "damage in " + e.File
	if e.Table != "" {
		s += ", table " + e.Table
	}
	if e.Row != 0 {
		s += fmt.Sprintf(", row %d", e.Row)
	}
	return s + ": " + e.What
}

// A FieldError says which argument is wrong, what it may be at most, and what it
// was. It holds nothing of what was said.
type FieldError struct {
	Field string // as on the wire, for instance "turns[2].messages[0].kind"
	Limit any    // nil when there is none
	Value any    // nil when it must not be repeated
	What  string

	kind error // ErrTooLarge or nil
}

func (e *FieldError) Error() string {
	s := e.Field + ": " + e.What
	if e.Limit != nil {
		s += fmt.Sprintf(", limit %v", e.Limit)
	}
	if e.Value != nil {
		s += fmt.Sprintf(", got %v", e.Value)
	}
	return s
}

// Unwrap returns ErrTooLarge when the limit is one of size, otherwise nil.
func (e *FieldError) Unwrap() error { return e.kind }

// A FullError says how much room the disk has left and how much must be. It
// wraps ErrFull.
type FullError struct{ Free, MinFree uint64 } // bytes

func (e *FullError) Error() string {
	return fmt.Sprintf("%v: %d bytes are left, %d must be", ErrFull, e.Free, e.MinFree)
}

// Unwrap returns ErrFull.
func (e *FullError) Unwrap() error { return ErrFull }

// translate gives an error of SQLite met in file the meaning a caller can act
// on, keeping the original for errors.As. Errors of other origin pass through.
func translate(file string, err error) error {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_FULL:
		return fmt.Errorf("%w: %w", ErrFull, err)
	case sqlite3.SQLITE_READONLY:
		return fmt.Errorf("%w: %w", ErrReadOnly, err)
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT:
		return &DamageError{File: file, What: e.Error()}
	}
	return err
}

// isFull reports whether SQLite found no room before anything was synced.
func isFull(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_FULL
}

// isMisfit reports whether a statement does not fit the tables. All statements
// are constants, so it is the tables that are wrong.
func isMisfit(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_ERROR
}

// isDamage reports whether err is damage, of a page or of a row.
func isDamage(err error) bool {
	var d *DamageError
	return errors.As(err, &d)
}

// notFound turns "no rows" into ErrNotFound, naming what was looked for.
func notFound(err error, what string) error {
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("%s: %w", what, ErrNotFound)
	}
	return err
}
