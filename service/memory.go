package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"recalld/ledger"
	"recalld/retrieve"
)

// A memory is one that is open, or on its way there or back. One goroutine
// (live) opens it, keeps its views and closes it.
type memory struct {
	registry *registry
	id       string

	// Guarded by registry.mu.
	uses    int
	used    uint64 // when it was last used, in uses of any memory
	brief   bool   // is closed once nobody uses it
	retired bool   // gets no more users
	drop    bool   // is removed once it is closed, if nothing rests on it

	opened  chan struct{} // closed once the two below are set
	openErr error
	ledger  *ledger.Memory

	leave  chan struct{} // closed when it is retired
	wanted chan struct{} // closed when somebody needs the views
	want   func()
	kick   chan struct{} // room for one: the ledger has more for the views
	anew   chan *rebuild

	chronicle *chronicle
	// rebuilding is a semaphore of one: whoever asks for a rebuild holds it.
	rebuilding chan struct{}

	mu      sync.Mutex // guards the following
	views   *views     // the present ones
	lastErr error      // of carrying the ledger to the views, until that goes on
	damage  error      // of a message that was carried, until the views are made anew
	stuck   bool       // carrying has failed and is tried again later
}

// The views are what ranks a memory's messages. They are replaced as a whole.
type views struct {
	ready chan struct{} // closed once the two below are set
	err   error
	index *retrieve.Index
}

// A rebuild asks for views made anew; they are sent back, not ready yet.
type rebuild struct{ made chan *views }

func newMemory(r *registry, id string) *memory {
	m := &memory{
		registry:   r,
		id:         id,
		opened:     make(chan struct{}),
		leave:      make(chan struct{}),
		wanted:     make(chan struct{}),
		kick:       make(chan struct{}, 1),
		anew:       make(chan *rebuild),
		rebuilding: make(chan struct{}, 1),
		views:      newViews(),
		chronicle:  newChronicle(),
	}
	m.want = sync.OnceFunc(func() { close(m.wanted) })
	return m
}

func newViews() *views { return &views{ready: make(chan struct{})} }

// retire lets m close once nobody uses it. The caller holds registry.mu.
func (m *memory) retire() {
	if !m.retired {
		m.retired = true
		close(m.leave)
	}
}

// live opens the ledger, keeps the views until m is retired and unused, and
// closes both.
func (m *memory) live(ctx context.Context) {
	r := m.registry
	defer r.remove(m)
	opened, err := r.store.Open(ctx, m.id)
	if err != nil {
		r.fail(m, err)
		r.awaitUnused(m)
		return
	}
	m.ledger = opened
	close(m.opened)

	// The end of ctx retires m, but those who use it may finish first.
	working, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	var work sync.WaitGroup
	work.Go(func() { m.keepViews(working) })
	<-m.leave
	r.awaitUnused(m)
	end()
	work.Wait()
	if err := opened.Close(); err != nil {
		r.log.Error("close memory", "memory", m.id, "cause", err.Error())
	}
	r.dropClosed(m)
}

// keepViews keeps views open, from when they are first wanted until ctx is
// done. When they fail they are opened anew after a pause that grows.
func (m *memory) keepViews(ctx context.Context) {
	select {
	case <-m.wanted:
	case <-ctx.Done():
		return
	}
	pause := minPause
	var made chan *views // of the rebuild that ended the round before
	for {
		again, err := m.keepOnce(ctx, made)
		made = nil
		if ctx.Err() != nil {
			return
		}
		if again != nil {
			pause, made = minPause, again.made
			continue
		}
		m.note(err, true)
		m.registry.log.LogAttrs(ctx, slog.LevelError, "keep views", append(causeAttrs(err), slog.String("memory", m.id))...)
		if sleep(ctx, pause) != nil {
			return
		}
		pause = min(2*pause, maxPause)
	}
}

// keepOnce opens the views and keeps them until ctx is done, they fail or a
// rebuild is asked for, which it returns. made is told of the views.
func (m *memory) keepOnce(ctx context.Context, made chan<- *views) (*rebuild, error) {
	v := m.fresh()
	if made != nil {
		made <- v
		m.noteDamage(nil)
		if err := os.RemoveAll(m.folder()); err != nil {
			return nil, m.failViews(v, fmt.Errorf("remove views: %w", err))
		}
	}
	index, err := m.openIndex(ctx)
	if err != nil {
		return nil, m.failViews(v, fmt.Errorf("open views: %w", err))
	}
	v.index = index
	close(v.ready)
	m.note(nil, false)

	working, end := context.WithCancel(ctx)
	defer end()
	ran := make(chan error, 1)
	go func() {
		defer end() // a view that cannot be written gets no more to write
		ran <- guard(func() error { return index.Run(working) })
	}()
	var again *rebuild
	err = guard(func() (err error) {
		again, err = m.feed(working, index)
		return err
	})
	end()
	err = errors.Join(unlessDone(err), unlessDone(<-ran))
	m.replace(v)
	if closeErr := guard(index.Close); closeErr != nil {
		err = errors.Join(err, fmt.Errorf("close views: %w", closeErr))
	}
	return again, err
}

// openIndex opens the views and shows them the newest messages if they are far
// behind. Views that are ahead of the ledger are not its own: they are made anew.
func (m *memory) openIndex(ctx context.Context) (*retrieve.Index, error) {
	head, err := m.ledger.Head(ctx)
	if err != nil {
		return nil, err
	}
	index, err := m.openFolder()
	if err != nil {
		return nil, err
	}
	if index.Held() > head {
		m.registry.log.Warn("views are ahead of the ledger", "memory", m.id)
		if err := errors.Join(guard(index.Close), os.RemoveAll(m.folder())); err != nil {
			return nil, err
		}
		if index, err = m.openFolder(); err != nil {
			return nil, err
		}
	}
	if err := guard(func() error { return m.aim(ctx, index) }); err != nil {
		return nil, errors.Join(err, guard(index.Close))
	}
	return index, nil
}

func (m *memory) openFolder() (index *retrieve.Index, err error) {
	o := m.registry.views(m.id)
	o.Texts = m.texts
	err = guard(func() (err error) {
		index, err = retrieve.Open(m.folder(), o)
		return err
	})
	return index, err
}

// folder is where the views are. The ledger knows nothing of it.
func (m *memory) folder() string {
	return filepath.Join(m.registry.store.Folder(m.id), "views")
}

// fresh returns the present views if they are not ready yet, else new ones in
// their place.
func (m *memory) fresh() *views {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.views.isReady() {
		m.views = newViews()
	}
	return m.views
}

// replace puts new views, not ready yet, in the place of v. Those who still use
// v are told ErrClosed and come for the new ones.
func (m *memory) replace(v *views) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.views == v {
		m.views = newViews()
	}
}

// failViews tells those who wait for v that there are none.
func (m *memory) failViews(v *views, err error) error {
	v.err = err
	close(v.ready)
	return err
}

func (v *views) isReady() bool {
	select {
	case <-v.ready:
		return true
	default:
		return false
	}
}

// ranks returns the present views, opened if need be.
func (m *memory) ranks(ctx context.Context) (*views, error) {
	m.want()
	m.mu.Lock()
	v := m.views
	m.mu.Unlock()
	select {
	case <-v.ready:
		return v, v.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// presentIndex returns the index if the views are open, and opens none.
func (m *memory) presentIndex() *retrieve.Index {
	m.mu.Lock()
	v := m.views
	m.mu.Unlock()
	if !v.isReady() || v.err != nil {
		return nil
	}
	return v.index
}

// note keeps what became of carrying the ledger to the views: nil once it goes
// on again.
func (m *memory) note(err error, stuck bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lastErr, m.stuck = err, stuck
}

// noteDamage keeps the damage of a message that was met on the way.
func (m *memory) noteDamage(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.damage = err
}

// isStuck reports whether carrying the ledger to the views is at a halt.
func (m *memory) isStuck() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stuck
}

// lastError returns what is wrong with carrying the ledger to the views or with
// what was carried, if anything is.
func (m *memory) lastError() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return cmp.Or(m.lastErr, m.damage)
}
