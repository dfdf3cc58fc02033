package retrieve

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

// Embedding says how far the messages have been embedded.
func (x *Index) Embedding() Embedding {
	x.mu.RLock()
	defer x.mu.RUnlock()
	total := len(x.main.table.messages)
	switch r := x.remote; {
	case r != nil:
		e := Embedding{Done: uint64(r.done), Total: uint64(total), LastError: r.lastErr}
		if r.usable(x.main.table) {
			e.Identity = r.identity
		} else {
			e.Next = r.identity
		}
		return e
	case x.meaning != nil:
		done := uint64(total)
		if x.meaning.behind {
			done = uint64(upTo(x.main.table.messages, x.meaning.since))
		}
		return Embedding{Identity: x.meaning.table.Identity(), Done: done, Total: uint64(total)}
	}
	return Embedding{}
}

// A chore is what the embedding loop does next.
type chore uint8

const (
	rest chore = iota
	readMessages
	takeMean
	readProbes
	takeLevels
	dropOthers
)

// next says what is to be done: messages first, then what judging well by their
// vectors takes. The caller holds the index's mu.
func (r *remote) next(t *table, held, target uint64) chore {
	unread := r.done < len(t.messages)
	switch {
	case r.meanDue(t, held):
		return takeMean
	case unread:
		return readMessages
	case r.enough(t) && r.missesProbes():
		return readProbes
	case r.enough(t) && r.levelsDue():
		return takeLevels
	case r.others && len(t.messages) > 0 && held >= target:
		return dropOthers
	}
	return rest
}

func (r *remote) missesProbes() bool {
	return slices.ContainsFunc(probes, func(p string) bool { _, ok := r.probes[p]; return !ok })
}

// embed has the model read what the index holds, until ctx is done. A failure
// is tried again after a pause that grows to a minute; meanwhile words answer.
func (x *Index) embed(ctx context.Context) {
	pause := firstBackOff
	for {
		var do chore
		err := x.waitFor(ctx, func() bool {
			do = x.remote.next(x.main.table, uint64(len(x.where)), x.target)
			return do != rest
		})
		if err != nil {
			return // ctx is done
		}
		_, err = contained(func() (struct{}, error) { return struct{}{}, x.do(ctx, do) })
		if isDamage(err) {
			err = errors.Join(err, x.renewVectors())
		}
		if ctx.Err() != nil {
			return
		}
		x.noteEmbedding(err)
		if err == nil {
			pause = firstBackOff
			continue
		}
		if sleep(ctx, pause) != nil {
			return
		}
		pause = min(2*pause, maxBackOff)
	}
}

// noteEmbedding keeps what became of the last attempt.
func (x *Index) noteEmbedding(err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if failed := x.remote.lastErr != nil; failed != (err != nil) {
		x.signal()
	}
	x.remote.lastErr = err
}

func (x *Index) do(ctx context.Context, do chore) error {
	switch do {
	case readMessages:
		return x.readMessages(ctx)
	case takeMean:
		x.restate()
		return nil
	case readProbes:
		return x.readProbes(ctx)
	case takeLevels:
		return x.takeLevels(ctx)
	default:
		return x.dropOthers()
	}
}

// wakePause is the least between two attempts to wake a model. One that is always
// too slow is then not asked much more often because of them.
const wakePause = time.Minute

// An attempt is made wakeDelay after the late query has left, and a few times: it
// may be caught by the end of a loading that another query began and gave up.
const (
	wakeDelay    = 300 * time.Millisecond
	wakeAttempts = 3
)

// wakeModel has the model embed a text that nobody waits for, after a query that
// it was too late for, until ctx is done. A server that unloads models that were
// not used for a while loads one when a query comes, and some give that up when
// the caller leaves: if every query leaves before the model is there, it never
// is. What becomes of the attempt is seen by the next query.
func (x *Index) wakeModel(ctx context.Context) {
	r := x.remote
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.late:
		}
		for range wakeAttempts {
			if sleep(ctx, wakeDelay) != nil {
				return
			}
			_, err := insist(ctx, r.slots, func(ctx context.Context) ([][]float32, error) {
				return r.embedder.EmbedDocuments(ctx, probes[:1])
			})
			if err == nil {
				break
			}
		}
		if sleep(ctx, wakePause) != nil {
			return
		}
		select {
		case <-r.late: // of the time in between
		default:
		}
	}
}

// noteLate has the model woken.
func (r *remote) noteLate() {
	select {
	case r.late <- struct{}{}:
	default:
	}
}

// beginAnew drops all vectors of the identity: under its name is another model.
func (x *Index) beginAnew() error {
	r := x.remote
	if err := r.db.begin(); err != nil {
		return err
	}
	x.forget()
	return nil
}

// renewVectors puts a damaged file of vectors aside and begins anew.
func (x *Index) renewVectors() error {
	r := x.remote
	path := filepath.Join(x.folder, vectorsFile)
	_ = r.db.close() // it is damaged
	if err := moveFileAside(path); err != nil {
		return err
	}
	db, err := openVectorDB(path, r.identity)
	if err != nil {
		return err
	}
	r.db = db
	x.forget()
	return nil
}

// forget lets go of all vectors in memory: they are not on disk any more.
func (x *Index) forget() {
	r := x.remote
	r.probes = map[string][]float32{}
	x.mu.Lock()
	defer x.mu.Unlock()
	r.space, r.done, r.levels = nil, 0, levels{}
	x.signal()
}

// dropOthers lets go of the vectors of other models: now that all messages have
// been read there is no going back to them for free.
func (x *Index) dropOthers() error {
	if err := x.remote.db.dropOthers(); err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.remote.others = false
	x.signal()
	return nil
}

// restate takes the mean of the vectors at the last refresh point.
func (x *Index) restate() {
	r := x.remote
	x.mu.RLock()
	s, messages := r.space, x.main.table.messages
	since := refreshPoint(r.through(x.main.table, uint64(len(x.where))))
	x.mu.RUnlock()
	next := s.restated(messages, since) // only this goroutine appends to s
	x.mu.Lock()
	defer x.mu.Unlock()
	r.space = next
	x.signal()
}

// readProbes has the model embed the next probes of the gate. They are asked
// one by one, as queries: many models read a query in another way than what it
// is compared with, and a level measured with the one says little of the other.
func (x *Index) readProbes(ctx context.Context) error {
	r := x.remote
	var list []storedVector
	var failed error
	for _, probe := range probes {
		if _, ok := r.probes[probe]; ok {
			continue
		}
		if len(list) == maxTexts {
			break
		}
		v, err := insist(ctx, r.slots, func(ctx context.Context) ([]float32, error) { return r.embedder.EmbedQuery(ctx, probe) })
		if v = unit(v); err == nil && v != nil && len(v) != r.dims() {
			err = errDimension
		}
		if err != nil {
			failed = fmt.Errorf("embed probes: %w", err)
			break
		}
		list = append(list, storedVector{key: []byte(probe), vector: v})
	}
	if err := r.db.writeProbes(list); err != nil {
		return errors.Join(failed, err)
	}
	for _, s := range list {
		r.probes[string(s.key)] = s.vector
	}
	return failed
}

// takeLevels measures what the probes reach among the messages that the mean
// was taken of.
func (x *Index) takeLevels(ctx context.Context) error {
	r := x.remote
	x.mu.RLock()
	since := r.space.since
	x.mu.RUnlock()
	next, err := x.measureLevels(ctx, since, func(i int, _ parsedQuery) []float32 {
		v := r.space.less(slices.Clone(r.probes[probes[i]]))
		if v == nil {
			return nil
		}
		cos, err := r.space.cosines(ctx, v)
		if err != nil {
			return nil // ctx has ended, which is an error of the whole
		}
		return cos.slices
	})
	if err != nil {
		return fmt.Errorf("measure levels: %w", err)
	}
	if err := r.db.keepLevels(next); err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	r.levels = next
	x.signal()
	return nil
}
