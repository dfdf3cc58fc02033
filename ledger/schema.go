package ledger

import (
	"context"
	"database/sql"
	"fmt"
)

// Migrations are only ever added to, at the end: the version of a file
// (PRAGMA user_version) is the number of them that it has seen.

// ledgerMigrations make the tables of one memory.
//
// Every row bears a seal, a checksum of its other columns (seal.go), because
// SQLite has none. Sequence numbers are row ids, so pages of messages are read
// in order without an index. The messages of a turn arrive in the order of
// their ordinals, so an index on the turn alone gives them in order.
var ledgerMigrations = []string{`
CREATE TABLE memory (
	one     INTEGER PRIMARY KEY CHECK (one = 1),
	agent   TEXT NOT NULL,
	project TEXT NOT NULL,
	created INTEGER NOT NULL,
	secret  BLOB NOT NULL CHECK (length(secret) = 32), -- key of forgotten.key
	seal    BLOB NOT NULL
) STRICT;

CREATE TABLE counters (
	one          INTEGER PRIMARY KEY CHECK (one = 1),
	last_message INTEGER NOT NULL, -- sequence numbers given so far
	last_turn    INTEGER NOT NULL,
	last_session INTEGER NOT NULL,
	sessions     INTEGER NOT NULL, -- rows there are
	turns        INTEGER NOT NULL,
	messages     INTEGER NOT NULL,
	text_bytes   INTEGER NOT NULL,
	forgotten    INTEGER NOT NULL,
	first        INTEGER,          -- earliest and latest time of a message
	last         INTEGER,
	seal         BLOB NOT NULL
) STRICT;

CREATE TABLE session (
	number INTEGER PRIMARY KEY,
	id     TEXT NOT NULL UNIQUE,
	title  TEXT NOT NULL,
	turns  INTEGER NOT NULL,
	open   INTEGER NOT NULL, -- the turn that is open, 0 for none
	first  INTEGER,
	last   INTEGER,
	seal   BLOB NOT NULL
) STRICT;

CREATE TABLE turn (
	seq      INTEGER PRIMARY KEY,
	session  INTEGER NOT NULL REFERENCES session (number),
	id       TEXT NOT NULL,
	status   INTEGER NOT NULL CHECK (status BETWEEN 1 AND 4),
	appended INTEGER NOT NULL,
	seal     BLOB NOT NULL,
	UNIQUE (session, id)
) STRICT;
CREATE INDEX turn_session ON turn (session);

CREATE TABLE message (
	seq     INTEGER PRIMARY KEY,
	id      TEXT NOT NULL UNIQUE,
	turn    INTEGER NOT NULL REFERENCES turn (seq),
	ordinal INTEGER NOT NULL,
	kind    INTEGER NOT NULL CHECK (kind BETWEEN 1 AND 6),
	speaker TEXT NOT NULL,
	time    INTEGER, -- microseconds since 1970, UTC; NULL when unknown
	zone    TEXT NOT NULL,
	content BLOB NOT NULL CHECK (length(content) = 32), -- SHA-256(text)
	salt    BLOB NOT NULL CHECK (length(salt) = 16),
	salted  BLOB NOT NULL CHECK (length(salted) = 32),  -- SHA-256(salt || text)
	seal    BLOB NOT NULL,
	text    BLOB NOT NULL -- last, so that the columns before it need no overflow page
) STRICT;
CREATE INDEX message_turn ON message (turn);

CREATE TABLE forgotten (
	key BLOB PRIMARY KEY CHECK (length(key) = 32), -- HMAC-SHA256(memory.secret, message id)
	at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
`, journalMigration, givenMigration}

// The versions of the schema with which tables came that a file on a disk that
// cannot be written may lack.
const (
	journalSchema = 2
	givenSchema   = 3
)

// catalogMigrations make the tables of the store.
var catalogMigrations = []string{`
CREATE TABLE store (
	one     INTEGER PRIMARY KEY CHECK (one = 1),
	secret  BLOB NOT NULL CHECK (length(secret) = 32),
	created INTEGER NOT NULL
) STRICT;

CREATE TABLE memory (
	id      TEXT PRIMARY KEY,
	agent   TEXT NOT NULL,
	project TEXT NOT NULL,
	name    TEXT NOT NULL,
	created INTEGER NOT NULL,
	UNIQUE (agent, project)
) STRICT, WITHOUT ROWID;

CREATE TABLE alias (
	alias  TEXT PRIMARY KEY,
	memory TEXT NOT NULL REFERENCES memory (id)
) STRICT, WITHOUT ROWID;
CREATE INDEX alias_memory ON alias (memory);

CREATE TABLE binding (
	session TEXT PRIMARY KEY,
	memory  TEXT NOT NULL REFERENCES memory (id)
) STRICT, WITHOUT ROWID;
CREATE INDEX binding_memory ON binding (memory);
`, `
-- 0: an Append made the row, and it stands only while turns rest on it.
ALTER TABLE memory ADD COLUMN kept INTEGER NOT NULL DEFAULT 1;
ALTER TABLE binding ADD COLUMN kept INTEGER NOT NULL DEFAULT 1;
`, spendMigration, maintenanceMigration}

// schemaVersion returns how many migrations a file has seen.
func schemaVersion(ctx context.Context, q querier) (int, error) {
	var version int
	err := q.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version)
	return version, err
}

func newer(version int, migrations []string) error {
	return fmt.Errorf("the file %w (its schema version is %d, this build knows %d)", ErrNewer, version, len(migrations))
}

// readVersion returns the schema version of a file that cannot be migrated,
// since its disk cannot be written: it may be an older one, but no newer one.
func readVersion(ctx context.Context, q querier, migrations []string) (int, error) {
	version, err := schemaVersion(ctx, q)
	if err != nil {
		return 0, fmt.Errorf("read schema version: %w", err)
	}
	if version > len(migrations) {
		return 0, newer(version, migrations)
	}
	return version, nil
}

// migrate brings a file to the newest version in one transaction, and lets
// first fill it when it was empty. A file that needs nothing is not written.
func migrate(ctx context.Context, db *sql.DB, migrations []string, first func(*sql.Tx) error) error {
	version, err := schemaVersion(ctx, db)
	if err != nil {
		return fmt.Errorf("read schema version: %w", err)
	}
	if version > len(migrations) {
		return newer(version, migrations)
	}
	if version == len(migrations) {
		return nil
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin migration: %w", err)
	}
	defer tx.Rollback() // does nothing after the commit
	for v := version; v < len(migrations); v++ {
		if _, err := tx.ExecContext(ctx, migrations[v]); err != nil {
			return fmt.Errorf("migrate to schema version %d: %w", v+1, err)
		}
	}
	if version == 0 {
		if err := first(tx); err != nil {
			return err
		}
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", len(migrations))); err != nil {
		return fmt.Errorf("set schema version: %w", err)
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit migration: %w", err)
	}
	return nil
}
