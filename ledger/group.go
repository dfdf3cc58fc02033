package ledger

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
)

// Limits of what is committed together: enough to make the sync of the disk
// cheap, little enough that the first to wait does not wait long.
const (
	maxGroupTurns = 2_000
	maxGroupBytes = 32 << 20
)

// saltBytes is the length of a message's salt.
const saltBytes = 16

// A request is an Append that waits for its commit.
type request struct {
	turns   []Turn
	hashes  [][]hashes // by turn and message
	bytes   int
	done    chan struct{} // closed once results or err is set
	results []AppendResult
	err     error
}

// hashes is what is computed of a message before it waits for the writer.
type hashes struct {
	id      string // the client's or derived
	content [sha256.Size]byte
	salt    [saltBytes]byte
	salted  [sha256.Size]byte
}

// newRequest hashes the texts, on the caller's own time.
func newRequest(turns []Turn) *request {
	r := &request{turns: turns, hashes: make([][]hashes, len(turns)), done: make(chan struct{})}
	for i := range turns {
		t := &turns[i]
		r.hashes[i] = make([]hashes, len(t.Messages))
		for j := range t.Messages {
			m, h := &t.Messages[j], &r.hashes[i][j]
			if h.id = m.ID; h.id == "" {
				h.id = derivedID(t.Session, t.ID, j, m.Text)
			}
			h.content = sha256.Sum256(m.Text)
			rand.Read(h.salt[:])
			inner := sha256.New()
			inner.Write(h.salt[:])
			inner.Write(m.Text)
			inner.Sum(h.salted[:0])
			r.bytes += len(m.Text)
		}
	}
	return r
}

// Append stores turns, all or none, and returns when they are on disk: one
// result for each turn, one outcome for each message, in the order given.
//
// A message whose id is known in the memory is a duplicate when its bytes are
// the same, wherever it comes again; with other bytes the error wraps
// ErrExists. An unknown one is added to its turn, which is made if need be. A
// turn of which nothing is stored because everything is known from other turns
// (copied history) is not made. The first message of a new turn ends a turn of
// the same session that is still open, as interrupted. The status of a turn
// only moves away from open.
//
// An error that wraps ErrExists, ErrTooLarge, ErrReadOnly, ErrFull or ErrClosed
// or is a *FieldError or *DamageError means that nothing was stored. After any
// other error, send the same again: what was stored is then a duplicate.
// If ctx ends while the call waits for its turn, nothing is stored.
//
// The caller must not change the texts before Append returns.
func (m *Memory) Append(ctx context.Context, turns []Turn) ([]AppendResult, error) {
	if err := checkTurns(turns); err != nil {
		return nil, err
	}
	if err := m.enter(); err != nil {
		return nil, fmt.Errorf("append: %w", err)
	}
	defer m.calls.Done()
	if m.readOnly {
		return nil, fmt.Errorf("append: %w", ErrReadOnly)
	}
	if len(turns) == 0 {
		return nil, nil
	}
	r := newRequest(turns)
	m.queueMu.Lock()
	m.queue = append(m.queue, r)
	m.queueMu.Unlock()
	if err := m.await(ctx, r); err != nil {
		return nil, fmt.Errorf("append: %w", err)
	}
	return r.results, nil
}

// await returns when r is done. Of those that wait, one at a time gets the
// writer and commits for all.
func (m *Memory) await(ctx context.Context, r *request) error {
	for {
		select {
		case <-r.done:
			return r.err
		case m.committing <- struct{}{}:
			m.commitGroup()
		case <-ctx.Done():
			if m.withdraw(r) {
				return ctx.Err()
			}
			// Somebody is committing it: what becomes of it is known in a moment.
			<-r.done
			return r.err
		}
	}
}

// withdraw takes r out of the queue; it reports false when it has left already.
func (m *Memory) withdraw(r *request) bool {
	m.queueMu.Lock()
	defer m.queueMu.Unlock()
	i := slices.Index(m.queue, r)
	if i < 0 {
		return false
	}
	m.queue = slices.Delete(m.queue, i, i+1)
	return true
}

// takeGroup takes the requests to commit next, in the order they came.
func (m *Memory) takeGroup() []*request {
	m.queueMu.Lock()
	defer m.queueMu.Unlock()
	var turns, size, n int
	for n < len(m.queue) {
		r := m.queue[n]
		turns, size = turns+len(r.turns), size+r.bytes
		if n > 0 && (turns > maxGroupTurns || size > maxGroupBytes) {
			break
		}
		n++
	}
	group := slices.Clone(m.queue[:n])
	m.queue = slices.Delete(m.queue, 0, n)
	return group
}

// commitGroup commits what waits, tells those who wait, and gives the writer up.
func (m *Memory) commitGroup() {
	defer func() { <-m.committing }()
	group := m.takeGroup()
	if len(group) == 0 {
		return
	}
	err := errors.New("the writer stopped") // stands only if a panic passes by
	defer func() {
		for _, r := range group {
			if err != nil {
				r.results, r.err = nil, err
			}
			close(r.done)
		}
	}()
	err = m.translate(m.store(group))
}

// store commits a group. The requests get their own results or errors; an error
// returned is one for all of them. The context of no caller is used: one that
// gives up must not take the others' commit along.
func (m *Memory) store(group []*request) (err error) {
	ctx := context.Background()
	if m.damage != nil {
		return m.damage
	}
	if err := m.checkRoom(); err != nil {
		return err
	}
	if err := m.readyWriter(ctx); err != nil {
		return err
	}
	failed := true
	defer func() {
		if failed { // also when a panic passes by
			m.dropWriter(err)
		}
	}()
	head, err := m.transact(ctx, group)
	if err != nil {
		return err
	}
	failed = false
	m.head.Store(uint64(head))
	return nil
}

func (m *Memory) checkRoom() error {
	if m.minFree == 0 {
		return nil
	}
	room, err := freeBytes(m.path)
	if err != nil {
		return fmt.Errorf("look for room on the disk: %w", err)
	}
	if room < m.minFree {
		return &FullError{Free: room, MinFree: m.minFree}
	}
	return nil
}

// dropWriter ends the writer after a failed commit. Whether it failed before
// or after something was written to the log is known to nobody.
func (m *Memory) dropWriter(err error) {
	m.unsynced = m.unsynced || !isFull(err)
	m.writer.close() // its transaction failed already; the next opening looks at the file anew
	m.writer = nil
}

// readyWriter opens a writer where the last one was dropped. Unless only room
// was missing, it first moves the log into the file and syncs that: the pages
// of a log whose sync failed count as clean for the kernel, so that another
// sync of the same pages would succeed without writing them.
func (m *Memory) readyWriter(ctx context.Context) error {
	if m.writer != nil {
		return nil
	}
	w, err := openWriter(ctx, m.path)
	if err != nil {
		return fmt.Errorf("reopen after a failed commit: %w", err)
	}
	if m.unsynced {
		err = checkpoint(ctx, w.conn)
	}
	var head int64
	if err == nil {
		head, err = m.look(ctx, w.conn)
	}
	if err != nil {
		w.close()
		return fmt.Errorf("reopen after a failed commit: %w", err)
	}
	m.writer, m.unsynced = w, false
	m.head.Store(uint64(head)) // a commit that failed after all may have been kept
	return nil
}
