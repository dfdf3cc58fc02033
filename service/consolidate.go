package service

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"recalld/consolidate"
	"recalld/ledger"
)

// A run reads the windows of one memory that are finished and not read yet, and
// adds a batch for each. It holds nothing that an Append or a Recall waits for:
// of the ledger it takes the writer for one short transaction per window. Where
// it is stopped, by whatever, the next one goes on, since a session's place is
// its last batch.
type run struct {
	*memory
	extractor consolidate.Extractor
	closeTail bool
	now       func() time.Time
	progress  func(progress)
	// between is called between reading a window and storing its batch; nil but
	// in tests.
	between func() error

	edition  *edition
	head     [32]byte
	standing *consolidate.Standing
	told     progress
}

// progress is how far a run is.
type progress struct {
	done, total, entries, rejected uint64
	session                        string
}

// idleTail is how long after its last turn was appended a session's tail is
// closed early.
const idleTail = 30 * time.Minute

// maxConflicts is how many reviews may come between reading one window and
// storing it.
const maxConflicts = 20

// consolidate runs the extractor over a memory, once what runs there already is
// done. closeTail closes unfinished windows even if they are not idle.
func (s *Server) consolidate(ctx context.Context, m *memory, closeTail bool, tell func(progress)) (progress, error) {
	select {
	case m.chronicle.running <- struct{}{}:
		defer func() { <-m.chronicle.running }()
	case <-ctx.Done():
		return progress{}, ctx.Err()
	}
	r := &run{memory: m, extractor: s.extractor(), closeTail: closeTail, now: s.now, progress: tell, between: s.betweenStore}
	err := guard(func() error { return r.run(ctx) })
	if ctx.Err() == nil {
		s.runs.note(m.id, s.now(), err)
	}
	return r.told, err
}

func (s *Server) extractor() consolidate.Extractor { return consolidate.Builtin{} }

func (r *run) run(ctx context.Context) error {
	if err := r.reload(ctx); err != nil {
		return err
	}
	windows, err := r.plan(ctx)
	if err != nil {
		return err
	}
	r.told.total = uint64(len(windows))
	r.tell()
	for _, w := range windows {
		if err := ctx.Err(); err != nil {
			return err
		}
		r.told.session = w.session
		// What comes after a window that failed waits with it: an entry is only
		// linked to what was said before it.
		if err := r.window(ctx, w.window); err != nil {
			return err
		}
		r.told.done++
		r.tell()
	}
	return nil
}

func (r *run) tell() {
	if r.progress != nil {
		r.progress(r.told)
	}
}

// reload reads the journal anew.
func (r *run) reload(ctx context.Context) error {
	e, err := r.chronicle.read(ctx, r.memory)
	if err != nil {
		return err
	}
	r.edition, r.head, r.standing = e, e.journal.Head, e.journal.Standing()
	return nil
}

// window extracts one window and stores its batch.
func (r *run) window(ctx context.Context, at window) error {
	readTo, err := r.ledger.Head(ctx)
	if err != nil {
		return err
	}
	w, err := r.readWindow(ctx, at)
	if err != nil {
		return err
	}
	var drafts []consolidate.Draft
	err = guard(func() (err error) {
		drafts, err = r.extractor.Extract(ctx, w)
		return err
	})
	if err != nil {
		return err
	}
	entries, dropped := consolidate.Check(w, drafts)
	for i := range entries {
		entries[i].Text = wordsOf(w, entries[i])
	}
	if r.between != nil {
		if err := r.between(); err != nil {
			return err
		}
	}
	for range maxConflicts {
		err = r.store(ctx, w, entries, dropped, readTo)
		if !errors.Is(err, ledger.ErrConflict) {
			break
		}
		// Somebody reviewed meanwhile: what they said counts for this window.
		if err := r.reload(ctx); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	r.told.entries += uint64(len(entries))
	for _, n := range dropped {
		r.told.rejected += uint64(n)
	}
	return nil
}

// wordsOf is the text of an entry in a form that a batch keeps as it is.
func wordsOf(w consolidate.Window, e consolidate.Entry) string {
	return strings.ToValidUTF8(w.Words(e), replacement)
}

func (r *run) store(ctx context.Context, w consolidate.Window, entries []consolidate.Entry, dropped map[consolidate.Reason]int, readTo uint64) error {
	consolidate.Admit(entries, r.edition.journal.Policy)
	r.standing.Link(entries)
	b := consolidate.WindowBatch(w, r.extractor.Identity(), entries, r.head)
	b.At = r.now()
	row, err := encodeBatch(b, dropped, nil)
	if err != nil {
		return err
	}
	row.ReadTo = readTo
	if _, err := r.ledger.AddBatch(ctx, row); err != nil {
		return err
	}
	r.head = b.Hash
	return nil
}

// runs remembers what became of the runs of each memory.
type runs struct {
	mu   sync.Mutex // guards the following
	byID map[string]*runState
}

type runState struct {
	last     time.Time
	attempts uint32 // that failed since the last one that did not
	err      error
	touched  uint64 // how often turns were added
	settled  uint64 // touched when nothing was left to read, plus one
}

// of returns the state of a memory. The caller holds mu.
func (r *runs) of(id string) *runState {
	if r.byID == nil {
		r.byID = map[string]*runState{}
	}
	state, ok := r.byID[id]
	if !ok {
		state = new(runState)
		r.byID[id] = state
	}
	return state
}

func (r *runs) note(id string, at time.Time, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	state := r.of(id)
	state.last, state.err = at, err
	if err == nil {
		state.attempts = 0
	} else {
		state.attempts++
	}
}

// state returns what is known of the runs of a memory.
func (r *runs) state(id string) runState {
	r.mu.Lock()
	defer r.mu.Unlock()
	return *r.of(id)
}

// touch says that turns were added to a memory.
func (r *runs) touch(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of(id).touched++
}

// settle says that nothing was left to read when a memory had been touched so
// often.
func (r *runs) settle(id string, touched uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of(id).settled = touched + 1
}
