package ledger

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	catalogName  = "catalog.db"
	memoriesName = "memories"
	ledgerName   = "ledger.db"
)

// secretBytes is the length of the secrets of a store and of a memory.
const secretBytes = 32

// A Store is the folder of all memories, locked against other processes.
type Store struct {
	root     string
	now      func() time.Time
	minFree  uint64
	readOnly bool
	lock     *os.File
	secret   []byte

	writes *sql.DB // nil when readOnly
	reads  *sql.DB

	// making is held while memories and bindings are made or taken away, so that
	// two callers do not fill the same file and none loses what it rests on. It
	// guards pending.
	making  sync.Mutex
	pending pending
}

// OpenStore opens the store in the folder root, which it makes if need be, and
// locks it. The error wraps ErrLocked, naming the holder, when another process
// has it; ErrNotFound when o.MustExist and there is none; ErrNewer; or is a
// *DamageError of the catalog. On a disk that cannot be written the store
// opens for reading, see [Store.ReadOnly].
func OpenStore(root string, o Options) (*Store, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	if o.MustExist {
		if _, err := os.Lstat(filepath.Join(root, catalogName)); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("open store: no store in %s: %w", root, ErrNotFound)
		}
	}
	if err := makeRoot(root); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	lock, readOnly, err := lockRoot(root, o.Build)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	s := &Store{
		root: root, now: o.Now, minFree: o.MinFreeBytes, readOnly: readOnly, lock: lock,
		pending: pending{memories: map[string]int{}, sessions: map[string]*pendingSession{}},
	}
	if s.now == nil {
		s.now = time.Now
	}
	if err := s.open(context.Background()); err != nil {
		s.Close()
		return nil, fmt.Errorf("open store: %w", translate(catalogName, err))
	}
	return s, nil
}

// open makes what is missing and opens the catalog.
func (s *Store) open(ctx context.Context) error {
	path := filepath.Join(s.root, catalogName)
	fresh := false
	if s.readOnly {
		if err := s.openReadOnly(path); err != nil {
			return err
		}
	} else {
		if err := makeFolder(filepath.Join(s.root, memoriesName)); err != nil {
			return err
		}
		if err := makeFile(path); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		var err error
		if fresh, err = s.openCatalog(ctx, path); err != nil {
			return err
		}
	}
	if err := s.reads.QueryRowContext(ctx, "SELECT secret FROM store").Scan(&s.secret); err != nil {
		if errors.Is(err, sql.ErrNoRows) {
			return &DamageError{File: catalogName, Table: "store", What: "the row is missing"}
		}
		return fmt.Errorf("read secret: %w", err)
	}
	if fresh {
		return s.adopt(ctx)
	}
	return nil
}

func (s *Store) openReadOnly(path string) (err error) {
	if err := checkDatabase(path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("no store in %s: %w, and the disk cannot be written", s.root, ErrNotFound)
		}
		return err
	}
	if s.reads, err = openSQLite(path, readOnly); err != nil {
		return err
	}
	_, err = readVersion(context.Background(), s.reads, catalogMigrations)
	return err
}

// openCatalog reports whether the catalog was empty.
func (s *Store) openCatalog(ctx context.Context, path string) (fresh bool, err error) {
	if err := checkDatabase(path); err != nil {
		return false, err
	}
	if s.writes, err = openSQLite(path, writing); err != nil {
		return false, err
	}
	err = migrate(ctx, s.writes, catalogMigrations, func(tx *sql.Tx) error {
		fresh = true
		secret := make([]byte, secretBytes)
		rand.Read(secret)
		_, err := tx.ExecContext(ctx, "INSERT INTO store (one, secret, created) VALUES (1, ?, ?)", secret, s.now().UnixMicro())
		return err
	})
	if err != nil {
		return false, err
	}
	s.reads, err = openSQLite(path, reading)
	return fresh, err
}

// Close closes the catalog and gives the lock up. Memories are closed by
// whoever opened them, before.
func (s *Store) Close() error {
	var errs []error
	for _, db := range []*sql.DB{s.reads, s.writes} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	if s.lock != nil {
		if err := s.lock.Close(); !errors.Is(err, fs.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// ReadOnly reports whether the disk of the store cannot be written. Everything
// that would write then fails with ErrReadOnly.
func (s *Store) ReadOnly() bool { return s.readOnly }

// Secret returns a copy of the 32 random bytes made with the store.
func (s *Store) Secret() []byte { return append([]byte(nil), s.secret...) }

// Folder returns the folder of a memory, in which its views may be kept under
// "views". It is empty if id does not have the form of an id; nothing else that
// a client sends can become part of a path.
func (s *Store) Folder(id string) string {
	if !isMemoryID(id) {
		return ""
	}
	return filepath.Join(s.root, memoriesName, id)
}

// Ensure returns the id of the memory of k and makes it when it is new. The
// error is a *FieldError for a bad key, or wraps ErrReadOnly or ErrFull.
func (s *Store) Ensure(ctx context.Context, k MemoryKey) (string, error) {
	if err := checkKey(k); err != nil {
		return "", err
	}
	s.making.Lock()
	defer s.making.Unlock()
	return MemoryID(k), s.makeMemory(ctx, k, true)
}

// makeMemory makes the memory of k unless it is there. One that is kept stays
// even without turns. The caller holds making.
func (s *Store) makeMemory(ctx context.Context, k MemoryKey, kept bool) error {
	id := MemoryID(k)
	known, err := s.exists(ctx, id)
	switch {
	case err != nil:
		return err
	case known && (s.readOnly || !kept):
		return nil
	case known:
		if _, err := s.writes.ExecContext(ctx, "UPDATE memory SET kept = 1 WHERE id = ? AND kept = 0", id); err != nil {
			return fmt.Errorf("keep memory %s: %w", id, translate(catalogName, err))
		}
		return nil
	case s.readOnly:
		return fmt.Errorf("make memory: %w", ErrReadOnly)
	}
	// The folder comes first: a catalog never names what is not there, and a
	// folder left by a crash is taken up again.
	created := stampNow(s.now())
	if err := makeLedger(ctx, s.Folder(id), k, created); err != nil {
		return fmt.Errorf("make memory %s: %w", id, translate(ledgerPath(id), err))
	}
	const insert = "INSERT INTO memory (id, agent, project, name, created, kept) VALUES (?, ?, ?, '', ?, ?) ON CONFLICT DO NOTHING"
	if _, err := s.writes.ExecContext(ctx, insert, id, k.Agent, k.Project, created.micros, kept); err != nil {
		return fmt.Errorf("record memory %s: %w", id, translate(catalogName, err))
	}
	return nil
}

// ledgerPath names a memory's file in errors, relative to the root.
func ledgerPath(id string) string {
	return memoriesName + "/" + id + "/" + ledgerName
}

// makeLedger makes the folder and the file of a memory, or completes what a
// crash left of them.
func makeLedger(ctx context.Context, folder string, k MemoryKey, created stamp) error {
	if err := makeFolder(folder); err != nil {
		return err
	}
	path := filepath.Join(folder, ledgerName)
	if err := makeFile(path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := checkDatabase(path); err != nil {
		return err
	}
	db, err := openSQLite(path, writing)
	if err != nil {
		return err
	}
	defer db.Close()
	return migrate(ctx, db, ledgerMigrations, func(tx *sql.Tx) error { return fillLedger(ctx, tx, k, created) })
}

// fillLedger writes the two rows that every ledger has.
func fillLedger(ctx context.Context, tx *sql.Tx, k MemoryKey, created stamp) error {
	row := memoryRow{key: k, created: created, secret: make([]byte, secretBytes)}
	rand.Read(row.secret)
	_, err := tx.ExecContext(ctx, "INSERT INTO memory (one, agent, project, created, secret, seal) VALUES (1, ?, ?, ?, ?, ?)",
		k.Agent, k.Project, created.micros, row.secret, row.seal())
	if err != nil {
		return fmt.Errorf("write key: %w", err)
	}
	var c countersRow
	_, err = tx.ExecContext(ctx, `INSERT INTO counters
		(one, last_message, last_turn, last_session, sessions, turns, messages, text_bytes, forgotten, seal)
		VALUES (1, 0, 0, 0, 0, 0, 0, 0, 0, ?)`, c.seal())
	if err != nil {
		return fmt.Errorf("write counters: %w", err)
	}
	return nil
}
