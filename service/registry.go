package service

import (
	"context"
	"log/slog"
	"sync"

	"recalld/ledger"
	"recalld/retrieve"
)

// A registry holds the memories that are open: at most limit of them, each once.
// One more is opened by closing the one that was not used for longest; one in
// use is never closed.
type registry struct {
	store *ledger.Store
	views func(memory string) retrieve.Options
	limit int
	log   *slog.Logger

	// starts hands memories to run, which owns their goroutines; ended is
	// closed once it takes no more.
	starts chan *memory
	ended  chan struct{}

	mu       sync.Mutex // guards the following and the fields of memory that say so
	memories map[string]*memory
	tick     uint64        // counts uses, for the order of last use
	changed  chan struct{} // closed, and made anew, when a use ends or a memory goes
	stopping bool
}

func newRegistry(store *ledger.Store, views func(memory string) retrieve.Options, limit int, log *slog.Logger) *registry {
	return &registry{
		store: store, views: views, limit: limit, log: log,
		starts:   make(chan *memory),
		ended:    make(chan struct{}),
		memories: map[string]*memory{},
		changed:  make(chan struct{}),
	}
}

// run lives the lives of memories until ctx is done and all of them are closed.
func (r *registry) run(ctx context.Context) {
	var lives sync.WaitGroup
	for {
		select {
		case m := <-r.starts:
			lives.Go(func() { m.live(ctx) })
		case <-ctx.Done():
			close(r.ended)
			r.stop()
			lives.Wait()
			return
		}
	}
}

// stop lets every memory close once nobody uses it.
func (r *registry) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopping = true
	for _, m := range r.memories {
		m.retire()
	}
}

// acquire opens the memory id if need be and returns it for use until release
// is called. It waits for room, at most until ctx is done.
func (r *registry) acquire(ctx context.Context, id string) (m *memory, release func(), err error) {
	return r.enter(ctx, id, false)
}

// peek is acquire for a walk over many memories: one that is opened for it
// takes no place from another and is closed right after, so that the walk
// leaves the open ones as they are.
func (r *registry) peek(ctx context.Context, id string) (m *memory, release func(), err error) {
	return r.enter(ctx, id, true)
}

func (r *registry) enter(ctx context.Context, id string, brief bool) (*memory, func(), error) {
	m, err := r.claim(ctx, id, brief)
	if err != nil {
		return nil, nil, err
	}
	release := sync.OnceFunc(func() { r.release(m) })
	select {
	case <-m.opened:
	case <-ctx.Done():
		release()
		return nil, nil, ctx.Err()
	}
	if m.openErr != nil {
		release()
		return nil, nil, m.openErr
	}
	return m, release, nil
}

// claim returns the entry of a memory with one more use, made and started if
// there was none.
func (r *registry) claim(ctx context.Context, id string, brief bool) (*memory, error) {
	for {
		m, fresh, wait, err := r.tryClaim(id, brief)
		if err != nil {
			return nil, err
		}
		if fresh {
			if err := r.start(ctx, m); err != nil {
				r.remove(m)
				return nil, err
			}
		}
		if m != nil {
			return m, nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// start hands m over to run.
func (r *registry) start(ctx context.Context, m *memory) error {
	select {
	case r.starts <- m:
		return nil
	case <-r.ended:
		return errEnding
	case <-ctx.Done():
		return ctx.Err()
	}
}

// tryClaim returns the entry of a memory, or what to wait for before the next try.
func (r *registry) tryClaim(id string, brief bool) (m *memory, fresh bool, wait <-chan struct{}, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopping {
		return nil, false, nil, errEnding
	}
	m, known := r.memories[id]
	if known && m.retired {
		return nil, false, r.changed, nil
	}
	takesPlace := !brief && (!known || m.brief)
	if takesPlace && r.places() >= r.limit {
		r.retireOldest()
		return nil, false, r.changed, nil
	}
	if !known {
		m = newMemory(r, id)
		m.brief = brief
		r.memories[id] = m
	}
	m.uses++
	if !brief {
		m.brief = false
		r.tick++
		m.used = r.tick
	}
	return m, !known, nil, nil
}

// places counts what the limit is about. The caller holds mu.
func (r *registry) places() int {
	n := 0
	for _, m := range r.memories {
		if !m.brief {
			n++
		}
	}
	return n
}

// retireOldest closes the memory that was not used for longest, if one is not in
// use and none is on its way out already. The caller holds mu.
func (r *registry) retireOldest() {
	var oldest *memory
	for _, m := range r.memories {
		switch {
		case m.brief:
		case m.retired:
			return
		case m.uses > 0:
		case oldest == nil || m.used < oldest.used:
			oldest = m
		}
	}
	if oldest != nil {
		oldest.retire()
	}
}

func (r *registry) release(m *memory) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m.uses--
	if m.uses == 0 && m.brief {
		m.retire()
	}
	r.signal()
}

// fail lets nobody use m any more, whose opening ended with err, and tells
// those who wait for it.
func (r *registry) fail(m *memory, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m.openErr = err
	m.retire()
	close(m.opened)
}

// remove forgets an entry whose memory is closed, or was never opened.
func (r *registry) remove(m *memory) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.memories, m.id)
	r.signal()
}

// discard closes the memory id once nobody uses it and lets the store drop it
// if nothing rests on it. It waits for that, at most until ctx is done. What
// is left when the server stops does no harm.
func (r *registry) discard(ctx context.Context, id string) {
	r.mu.Lock()
	m, known := r.memories[id]
	switch {
	case r.stopping:
		r.mu.Unlock()
		return
	case !known:
		// This entry lets nobody open the memory meanwhile.
		m = newMemory(r, id)
		m.brief, m.retired, m.drop = true, true, true
		r.memories[id] = m
	default:
		m.drop = true
		m.retire()
	}
	r.mu.Unlock()
	if !known {
		r.dropClosed(m)
		r.remove(m)
		return
	}
	for {
		r.mu.Lock()
		gone, wait := r.memories[id] != m, r.changed
		r.mu.Unlock()
		if gone {
			return
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return
		}
	}
}

// dropClosed lets the store drop the memory of m, which is closed, if that was
// asked for.
func (r *registry) dropClosed(m *memory) {
	r.mu.Lock()
	drop := m.drop
	r.mu.Unlock()
	if !drop {
		return
	}
	if _, err := r.store.Drop(context.Background(), m.id); err != nil {
		r.log.Error("drop memory", "memory", m.id, "cause", err.Error())
	}
}

// signal wakes all who wait for a change. The caller holds mu.
func (r *registry) signal() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// awaitUnused waits until nobody uses m, which is retired and so gets no more
// users.
func (r *registry) awaitUnused(m *memory) {
	for {
		r.mu.Lock()
		uses, wait := m.uses, r.changed
		r.mu.Unlock()
		if uses == 0 {
			return
		}
		<-wait
	}
}

// isOpen reports whether a memory holds a place.
func (r *registry) isOpen(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	m, ok := r.memories[id]
	return ok && !m.brief && !m.retired
}

// count returns how many memories are open, or on their way.
func (r *registry) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.memories)
}
