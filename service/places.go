package service

import (
	"context"
	"runtime"
	"sync"

	"google.golang.org/grpc/codes"
)

// Places bound how many recalls rank at once. Ranking is bound by processors:
// more of them at once would make all late, where one after the other most are
// in time.
type places chan struct{}

// newPlaces has two places for each processor, so that none idles while a
// recall waits for the disk.
func newPlaces() places { return make(places, 2*runtime.GOMAXPROCS(0)) }

// enter takes a place until leave is called. It waits until ctx is done: for a
// call that gets none by then there is no time left to rank, and the error says
// that there are too many.
func (p places) enter(ctx context.Context) (leave func(), err error) {
	select {
	case p <- struct{}{}:
		return sync.OnceFunc(func() { <-p }), nil
	case <-ctx.Done():
	}
	if ctx.Err() == context.Canceled {
		return nil, ctx.Err()
	}
	return nil, &fieldError{
		field: "recalls", what: "too many at once for this deadline", limit: cap(p), code: codes.ResourceExhausted,
	}
}
