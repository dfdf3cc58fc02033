package retrieve

import (
	"encoding/binary"
	"errors"
	"hash/fnv"
	"math"
	"os"
	"path/filepath"
	"slices"
)

// A remote is the meaning that a model gives which is asked over and over. Its
// messages are read oldest first, so that what has been read is always the
// first so many of the table: an embedded reach is one number, and the order in
// which answers come changes nothing.
//
// Everything in it belongs to one identity: an index is opened with one model,
// and reads and writes that model's bucket alone.
type remote struct {
	embedder Embedder
	identity string
	db       *vectorDB
	slots    slots         // queries under way
	late     chan struct{} // has room for one: a query was answered too late

	// Guarded by the index's mu; changed by Open and the embedding loop only.
	space   *space // nil before the first vector
	done    int    // messages of the main table that have been read
	levels  levels // what probes reach by these vectors; since 0: not yet
	others  bool   // vectors of other identities are still kept
	lastErr error

	// Of the embedding loop alone.
	probes   map[string][]float32 // by text
	surprise surprise
}

// A surprise is a dimension that is not that of the vectors so far, and how
// many answers in a row had it.
type surprise struct{ dims, answers int }

func newRemote(e Embedder) *remote {
	return &remote{embedder: e, identity: e.Identity(), slots: newSlots(), late: make(chan struct{}, 1), probes: map[string][]float32{}}
}

// usableTenths is the part of a memory's messages that must have been read
// before vectors are compared at all. Below it, words answer alone: most
// messages would be ranked by less than the others. Above it, the words of the
// few newest that have not been read speak for their meaning too.
const usableTenths = 9

// enough reports whether nearly all messages have been read.
func (r *remote) enough(t *table) bool {
	return r.space != nil && 10*r.done >= usableTenths*len(t.messages)
}

// usable reports whether queries can be compared.
func (r *remote) usable(t *table) bool { return r.enough(t) && r.space.since > 0 }

// through is the sequence number up to which all messages have been read.
func (r *remote) through(t *table, held uint64) uint64 {
	if r.done < len(t.messages) {
		return t.messages[r.done].seq - 1
	}
	return held
}

// reach is how far messages are found by meaning, weighted as due.
func (r *remote) reach(t *table, held uint64) uint64 {
	switch {
	case !r.usable(t):
		return 0
	case r.meanDue(t, held):
		return r.space.since
	case r.levelsDue():
		return r.levels.since
	}
	return r.through(t, held)
}

// meanDue reports whether a refresh point has been read past.
func (r *remote) meanDue(t *table, held uint64) bool {
	return r.enough(t) && refreshPoint(r.through(t, held)) > r.space.since
}

func (r *remote) levelsDue() bool { return r.space.since > r.levels.since }

// dims is the dimension of the vectors so far; 0 before the first.
func (r *remote) dims() int {
	if r.space == nil {
		return 0
	}
	return len(r.space.mean)
}

// hold appends the vectors of the table's next message to read.
func (r *remote) hold(t *table, vectors [][]float32, dims int) {
	if r.space == nil && dims > 0 {
		s := newSpace(dims)
		r.space = &s
		for i := range r.done {
			s.hold(make([][]float32, t.messages[i].slices))
		}
	}
	if r.space != nil {
		r.space.hold(vectors)
	}
	r.done++
}

// hold appends the unit vectors of one message's slices, nil for none.
func (s *space) hold(units [][]float32) {
	s.first = append(s.first, int32(len(s.lengths)))
	for _, v := range units {
		s.vectors.append(v)
		s.lengths = append(s.lengths, s.shift(v))
	}
	var norm shifted
	if s.since > 0 {
		norm = s.shift(s.total(units))
	}
	s.norms = append(s.norms, norm)
}

// restated gives the space with its mean taken at a sequence number. The two
// share their vectors; nothing may be appended to the first any more.
func (s *space) restated(messages []message, since uint64) *space {
	next := &space{since: since, mean: s.mean, vectors: s.vectors, first: s.first, lengths: make([]shifted, len(s.lengths))}
	total := func(m int) []float32 {
		if s.counts(m) == 1 {
			return s.vectors.at(int(s.first[m]))
		}
		sum := make([]float32, len(s.mean))
		for i := range s.counts(m) {
			for k, x := range s.vectors.at(int(s.first[m]) + i) {
				sum[k] += x
			}
		}
		return sum
	}
	next.takeMean(min(upTo(messages, since), len(s.norms)), total)
	next.norms = parallel(s.first, func(first int32) (norm shifted) {
		m, _ := slices.BinarySearch(s.first, first)
		for i := range s.counts(m) {
			norm = next.shift(s.vectors.at(int(first) + i))
			next.lengths[int(first)+i] = norm
		}
		if s.counts(m) == 1 {
			return norm
		}
		return next.shift(total(m))
	})
	return next
}

// unit gives the direction of a model's vector; nil when it has none, as a zero
// vector or one with an element that is no number.
func unit(v []float32) []float32 {
	length := magnitude(v)
	if !(length > 0) || math.IsInf(float64(length), 0) || len(v) > maxDimensions {
		return nil
	}
	direction := make([]float32, len(v))
	for i, x := range v {
		direction[i] = x / length
	}
	return direction
}

// maxDimensions is the largest vector that is taken for one.
const maxDimensions = 1 << 14

// print tells the text of one slice from all others: that of the message, where
// it was cut, and whose it is.
func (t *table) print(slice int32) uint64 {
	s := t.slices[slice]
	m := t.messages[s.message]
	h := fnv.New64a()
	b := binary.BigEndian.AppendUint64(nil, m.textHash)
	b = binary.BigEndian.AppendUint32(b, uint32(s.start))
	b = binary.BigEndian.AppendUint32(b, uint32(s.end))
	_, _ = h.Write(append(b, t.speakers[m.speaker]...)) // never fails
	return h.Sum64()
}

// vectorsFile is the name of the file of vectors among the views.
const vectorsFile = "vectors.db"

var errTexts = errors.New("a model that is asked needs Options.Texts")

// openRemote opens the vectors of the model and takes into memory what is there
// of them. Damage, and a start that died over them, costs these vectors only:
// they are moved aside and begun anew.
func (x *Index) openRemote() error {
	if x.remote == nil {
		return nil
	}
	if x.options.Texts == nil {
		return errTexts
	}
	path, marker := filepath.Join(x.folder, vectorsFile), filepath.Join(x.folder, "opening-vectors")
	if _, err := os.Stat(marker); err == nil {
		if err := moveFileAside(path); err != nil {
			return err
		}
	}
	if err := os.WriteFile(marker, nil, 0o600); err != nil {
		return err
	}
	err := x.loadRemote(path)
	if isDamage(err) {
		if err := moveFileAside(path); err != nil {
			return err
		}
		err = x.loadRemote(path)
	}
	if err != nil {
		return err
	}
	return os.Remove(marker)
}

// loadRemote takes from disk the vectors of the first messages that have them.
func (x *Index) loadRemote(path string) (err error) {
	r, t := x.remote, x.main.table
	if r.db, err = openVectorDB(path, r.identity); err != nil {
		return err
	}
	if err := x.loadVectors(r, t); err != nil {
		_ = r.db.close()
		r.db, r.space, r.done, r.levels = nil, nil, 0, levels{}
		return err
	}
	return nil
}

func (x *Index) loadVectors(r *remote, t *table) error {
	dims, kept, err := r.db.state()
	if err != nil {
		return err
	}
	slice := int32(0)
	next := func() (storedVector, bool) {
		if int(slice) == len(t.slices) {
			return storedVector{}, false
		}
		s := t.wanted(slice)
		slice++
		return s, true
	}
	var vectors [][]float32
	err = r.db.walk(dims, next, func(s storedVector, found bool) bool {
		if vectors = append(vectors, s.vector); found && len(vectors) == int(t.messages[r.done].slices) {
			r.hold(t, vectors, dims)
			vectors = vectors[:0]
		}
		return found
	})
	if err != nil {
		return err
	}
	if r.probes, err = r.db.readProbes(dims); err != nil {
		return err
	}
	others, err := r.db.others()
	if err != nil {
		return err
	}
	r.others = len(others) > 0
	if r.space == nil {
		return nil
	}
	r.space = r.space.restated(t.messages, refreshPoint(r.through(t, uint64(len(x.where)))))
	if kept.since <= r.space.since {
		r.levels = kept
	}
	return nil
}

// wanted is what is to be known of a slice on disk.
func (t *table) wanted(slice int32) storedVector {
	m := t.messages[t.slices[slice].message]
	return storedVector{key: vectorKey(m.seq, int(slice-m.firstSlice)), print: t.print(slice)}
}
