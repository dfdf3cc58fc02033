package retrieve

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bberrors "go.etcd.io/bbolt/errors"
)

// The buckets of one identity, and its keys.
var (
	vectorsBucket = []byte("vectors") // by sequence number and slice
	probesBucket  = []byte("probes")  // by the text of the probe
	dimensionsKey = []byte("dimensions")
)

// A vectorDB keeps the vectors of models on disk: one bbolt file with a bucket
// for each identity, so that vectors of two never meet. It is a view like the
// others, but one that costs hours and money to make anew: every value says
// which text it belongs to and has a checksum of its own, so that whatever
// happened to the file or to the messages, a vector is right or is not there.
type vectorDB struct {
	db       *bbolt.DB
	identity []byte
}

// A storedVector is the vector of one slice, or of a probe, on its way to or
// from disk. A nil vector is the model's refusal to have an opinion.
type storedVector struct {
	key    []byte
	print  uint64 // of the text it belongs to
	vector []float32
}

// vectorKey is the key of a slice: what sorts is the sequence number.
func vectorKey(seq uint64, slice int) []byte {
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint64(nil, seq), uint16(slice))
}

// openVectorDB opens or creates the file and the identity's buckets.
func openVectorDB(path, identity string) (*vectorDB, error) {
	v := &vectorDB{identity: []byte("identity " + identity)}
	err := storing("open vectors", func() (err error) {
		v.db, err = bbolt.Open(path, 0o600, &bbolt.Options{Timeout: columnsLimit})
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := v.change("open vectors", v.create); err != nil {
		_ = v.close()
		return nil, err
	}
	return v, nil
}

func (v *vectorDB) create(tx *bbolt.Tx) error {
	own, err := tx.CreateBucketIfNotExists(v.identity)
	if err != nil {
		return err
	}
	for _, name := range [][]byte{vectorsBucket, probesBucket} {
		if _, err := own.CreateBucketIfNotExists(name); err != nil {
			return err
		}
	}
	return nil
}

// A storeError is one of the file of vectors.
type storeError struct {
	doing string
	err   error
}

func (e *storeError) Error() string { return e.doing + ": " + e.err.Error() }
func (e *storeError) Unwrap() error { return e.err }

// isDamage reports whether an error says that the file of vectors is damaged,
// and not that it cannot be read or written now.
func isDamage(err error) bool {
	var store *storeError
	if !errors.As(err, &store) || errors.Is(err, bberrors.ErrTimeout) {
		return false
	}
	for _, passing := range []error{
		syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EACCES, syscall.EPERM, syscall.EMFILE, syscall.ENFILE, syscall.EIO, syscall.ENOMEM,
	} {
		if errors.Is(err, passing) {
			return false
		}
	}
	return true
}

// storing makes a storeError of what f returns, or of its panic.
func storing(doing string, f func() error) (err error) {
	defer func() {
		if err != nil {
			err = &storeError{doing, err}
		}
	}()
	defer guarded("bbolt", &err)()
	return f()
}

// view and update run f on the identity's bucket.
func (v *vectorDB) view(doing string, f func(own *bbolt.Bucket) error) error {
	return storing(doing, func() error {
		return v.db.View(func(tx *bbolt.Tx) error { return f(tx.Bucket(v.identity)) })
	})
}

func (v *vectorDB) update(doing string, f func(own *bbolt.Bucket) error) error {
	return v.change(doing, func(tx *bbolt.Tx) error { return f(tx.Bucket(v.identity)) })
}

// change runs f on the whole file.
func (v *vectorDB) change(doing string, f func(tx *bbolt.Tx) error) error {
	return storing(doing, func() error { return v.db.Update(f) })
}

// state gives the dimension of the identity's vectors, 0 before the first, and
// the levels measured with them.
func (v *vectorDB) state() (dims int, l levels, err error) {
	err = v.view("read vectors", func(own *bbolt.Bucket) error {
		if b := own.Get(dimensionsKey); len(b) == 4 {
			dims = int(binary.BigEndian.Uint32(b))
		}
		l = readLevels(own.Get(levelsKey))
		return nil
	})
	return dims, l, err
}

func (v *vectorDB) keepLevels(l levels) error {
	return v.update("write levels", func(own *bbolt.Bucket) error { return own.Put(levelsKey, appendLevels(nil, l)) })
}

// write stores the vectors of slices, in one transaction, with their dimension.
func (v *vectorDB) write(list []storedVector, dims int) error {
	return v.update("write vectors", func(own *bbolt.Bucket) error {
		if dims > 0 {
			if err := own.Put(dimensionsKey, binary.BigEndian.AppendUint32(nil, uint32(dims))); err != nil {
				return err
			}
		}
		return putAll(own.Bucket(vectorsBucket), list)
	})
}

func (v *vectorDB) writeProbes(list []storedVector) error {
	return v.update("write probes", func(own *bbolt.Bucket) error { return putAll(own.Bucket(probesBucket), list) })
}

func putAll(bucket *bbolt.Bucket, list []storedVector) error {
	for _, s := range list {
		if err := bucket.Put(s.key, s.encode()); err != nil {
			return err
		}
	}
	return nil
}

// readProbes gives the vectors of probes that are there, by their text.
func (v *vectorDB) readProbes(dims int) (map[string][]float32, error) {
	found := map[string][]float32{}
	err := v.view("read probes", func(own *bbolt.Bucket) error {
		return own.Bucket(probesBucket).ForEach(func(key, value []byte) error {
			s := storedVector{key: key}
			if s.decode(value, dims) {
				found[string(key)] = s.vector
			}
			return nil
		})
	})
	return found, err
}

// errStop ends a walk over vectors.
var errStop = errors.New("stop")

// walk calls f with each of the wanted slices that next gives, with its vector
// if the one that is stored belongs to the same text and is whole. It ends when
// next or f does. Keys are wanted in ascending order.
func (v *vectorDB) walk(dims int, next func() (storedVector, bool), f func(s storedVector, found bool) bool) error {
	err := v.view("read vectors", func(own *bbolt.Bucket) error {
		cursor := own.Bucket(vectorsBucket).Cursor()
		var key, value []byte
		for first := true; ; first = false {
			s, ok := next()
			if !ok {
				return nil
			}
			if first {
				key, value = cursor.Seek(s.key)
			}
			for key != nil && bytes.Compare(key, s.key) < 0 {
				key, value = cursor.Next()
			}
			print := s.print
			found := bytes.Equal(key, s.key) && s.decode(value, dims) && s.print == print
			s.print = print
			if !found {
				s.vector = nil
			}
			if !f(s, found) {
				return errStop
			}
		}
	})
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}

// begin drops all that is kept of the identity.
func (v *vectorDB) begin() error {
	return v.change("begin vectors anew", func(tx *bbolt.Tx) error {
		if err := tx.DeleteBucket(v.identity); err != nil {
			return err
		}
		return v.create(tx)
	})
}

// others lists the buckets of other identities.
func (v *vectorDB) others() (names [][]byte, err error) {
	err = storing("list vectors", func() error {
		return v.db.View(func(tx *bbolt.Tx) error {
			return tx.ForEach(func(name []byte, _ *bbolt.Bucket) error {
				if !bytes.Equal(name, v.identity) {
					names = append(names, bytes.Clone(name))
				}
				return nil
			})
		})
	})
	return names, err
}

// dropOthers removes the vectors of other identities.
func (v *vectorDB) dropOthers() error {
	names, err := v.others()
	if err != nil {
		return err
	}
	return v.change("remove old vectors", func(tx *bbolt.Tx) error {
		for _, name := range names {
			if err := tx.DeleteBucket(name); err != nil {
				return err
			}
		}
		return nil
	})
}

// maxClosing is how long closing may take: after a panic in it, the library may
// wait for itself.
const maxClosing = 2 * time.Second

func (v *vectorDB) close() error {
	closing, err := ask(make(slots, 1), func() (struct{}, error) {
		return struct{}{}, storing("close vectors", v.db.Close)
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), maxClosing)
	defer cancel()
	_, err = closing.wait(ctx)
	return err
}

// printBytes and sumBytes are what a value has before and after its numbers.
const (
	printBytes = 8
	sumBytes   = 4
)

// encode gives the print, the elements as float32 (half of it would do: at 16
// bits a cosine is off by less than .0005, but what is read back is what was
// written), and a CRC of key and value.
func (s storedVector) encode() []byte {
	b := make([]byte, 0, printBytes+4*len(s.vector)+sumBytes)
	b = binary.BigEndian.AppendUint64(b, s.print)
	for _, x := range s.vector {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return binary.BigEndian.AppendUint32(b, sum(s.key, b))
}

// decode reads what encode gave for the same key. It reports false for a value
// that is damaged or has another dimension.
func (s *storedVector) decode(b []byte, dims int) bool {
	n := len(b) - printBytes - sumBytes
	if n != 0 && n != 4*dims || sum(s.key, b[:printBytes+n]) != binary.BigEndian.Uint32(b[printBytes+n:]) {
		return false
	}
	s.print = binary.BigEndian.Uint64(b)
	if n == 0 {
		s.vector = nil
		return true
	}
	s.vector = make([]float32, dims)
	for i := range s.vector {
		s.vector[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[printBytes+4*i:]))
	}
	return true
}

func sum(key, value []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value)
}
