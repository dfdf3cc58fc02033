package expand

import (
	"context"
	"sync"
	"time"
)

// flights are the calls under way. Those who ask the same share one, and it
// goes on until it ends or the last of them has left. (The kept library for
// this cannot break off a call that nobody waits for any more.) The zero value
// is empty.
type flights struct {
	mu     sync.Mutex // guards flying, and the waiters of each flight in it
	flying map[key]*flight
}

type flight struct {
	waiters int
	cancel  context.CancelCauseFunc

	done     chan struct{} // closed once what follows is set
	variants []string
	err      error
}

// join waits for the flight of k, which it starts with call if there is none.
// It returns when ctx is done.
func (fs *flights) join(ctx context.Context, k key, timeout time.Duration, call func(context.Context) ([]string, error)) ([]string, error) {
	fs.mu.Lock()
	f := fs.flying[k]
	if f == nil {
		f = fs.start(ctx, k, timeout, call)
	}
	f.waiters++
	fs.mu.Unlock()

	select {
	case <-f.done:
		return f.variants, f.err
	case <-ctx.Done():
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	select {
	case <-f.done: // an answer that is there wins
		return f.variants, f.err
	default:
	}
	f.waiters--
	if f.waiters == 0 {
		// Whoever comes next needs a flight that is not being broken off.
		fs.land(k, f)
		// The cause tells the client whether the model was too slow.
		f.cancel(context.Cause(ctx))
	}
	return nil, ctx.Err()
}

// start sends a flight off. The mutex is held.
func (fs *flights) start(ctx context.Context, k key, timeout time.Duration, call func(context.Context) ([]string, error)) *flight {
	f := &flight{done: make(chan struct{})}
	if fs.flying == nil {
		fs.flying = make(map[key]*flight)
	}
	fs.flying[k] = f
	ctx, f.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	go func() {
		defer f.cancel(nil)
		ctx, stop := context.WithTimeout(ctx, timeout)
		defer stop()
		f.variants, f.err = call(ctx)
		fs.mu.Lock()
		fs.land(k, f)
		fs.mu.Unlock()
		close(f.done)
	}()
	return f
}

// land forgets a flight, unless another one has its place. The mutex is held.
func (fs *flights) land(k key, f *flight) {
	if fs.flying[k] == f {
		delete(fs.flying, k)
	}
}
