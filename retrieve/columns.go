package retrieve

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"go.etcd.io/bbolt"
)

var (
	rowsBucket   = []byte("rows")
	metaBucket   = []byte("meta")
	identityKey  = []byte("identity")
	columnsLimit = 2 * time.Second // wait for another process's lock
)

// columns keep on disk what ranking needs of each message besides postings:
// one bbolt file, keyed by sequence number.
type columns struct {
	db *bbolt.DB
}

// openColumns opens or creates the file. A file of another identity is an
// error: its rows were made by another analysis or token table.
func openColumns(path, identity string) (c *columns, err error) {
	defer guarded("open columns", &err)()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: columnsLimit})
	if err != nil {
		return nil, fmt.Errorf("open columns: %w", err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		meta, err := tx.CreateBucketIfNotExists(metaBucket)
		if err != nil {
			return err
		}
		if _, err := tx.CreateBucketIfNotExists(rowsBucket); err != nil {
			return err
		}
		switch was := meta.Get(identityKey); {
		case was == nil:
			return meta.Put(identityKey, []byte(identity))
		case string(was) != identity:
			return fmt.Errorf("made for %q, not %q", was, identity)
		}
		return nil
	})
	if err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("open columns: %w", err)
	}
	return &columns{db}, nil
}

// write stores rows; rows stored before under the same numbers are replaced.
func (c *columns) write(rows []row) (err error) {
	defer guarded("write columns", &err)()
	err = c.db.Update(func(tx *bbolt.Tx) error {
		bucket := tx.Bucket(rowsBucket)
		bucket.FillPercent = .95 // keys only ever ascend
		for _, r := range rows {
			key := binary.BigEndian.AppendUint64(nil, r.Seq)
			if err := bucket.Put(key, appendRow(nil, r)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("write columns: %w", err)
	}
	return nil
}

// read calls f with the rows 1 to last, in order. A missing row is an error.
func (c *columns) read(last uint64, f func(row)) (err error) {
	defer guarded("read columns", &err)()
	return c.db.View(func(tx *bbolt.Tx) error {
		want := uint64(1)
		cursor := tx.Bucket(rowsBucket).Cursor()
		for k, v := cursor.First(); k != nil && want <= last; k, v = cursor.Next() {
			if len(k) != 8 || binary.BigEndian.Uint64(k) != want {
				break
			}
			r, err := readRow(want, v)
			if err != nil {
				return fmt.Errorf("read columns: row %d: %w", want, err)
			}
			f(r)
			want++
		}
		if want <= last {
			return fmt.Errorf("read columns: row %d is missing", want)
		}
		return nil
	})
}

func (c *columns) close() error { return c.db.Close() }

// Keys of levels: of those with a token table's meaning, or without any table;
// and of words alone where there is one that gives no meaning now.
var (
	levelsKey     = []byte("levels")
	wordLevelsKey = []byte("levels of words")
)

// encodedLevels is how many bytes levels take.
const encodedLevels = 24

// appendLevels encodes levels.
func appendLevels(b []byte, l levels) []byte {
	b = binary.BigEndian.AppendUint64(b, l.since)
	b = binary.BigEndian.AppendUint64(b, math.Float64bits(l.coverage))
	return binary.BigEndian.AppendUint64(b, math.Float64bits(l.sense))
}

// readLevels decodes what appendLevels encoded; anything else is none.
func readLevels(b []byte) levels {
	if len(b) < encodedLevels {
		return levels{}
	}
	return levels{
		since:    binary.BigEndian.Uint64(b),
		coverage: math.Float64frombits(binary.BigEndian.Uint64(b[8:])),
		sense:    math.Float64frombits(binary.BigEndian.Uint64(b[16:])),
	}
}

// keepLevels stores levels with the identity of what they were measured with.
func (c *columns) keepLevels(key []byte, l levels, identity string) (err error) {
	defer guarded("write levels", &err)()
	b := append(appendLevels(nil, l), identity...)
	err = c.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(metaBucket).Put(key, b) })
	if err != nil {
		return fmt.Errorf("write levels: %w", err)
	}
	return nil
}

// keptLevels gives the levels stored last, or none if they were measured with
// something else.
func (c *columns) keptLevels(key []byte, identity string) (l levels, err error) {
	defer guarded("read levels", &err)()
	err = c.db.View(func(tx *bbolt.Tx) error {
		b := tx.Bucket(metaBucket).Get(key)
		if len(b) >= encodedLevels && string(b[encodedLevels:]) == identity {
			l = readLevels(b)
		}
		return nil
	})
	return l, err
}
