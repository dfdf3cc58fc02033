package retrieve

import (
	"context"
	"time"
)

const (
	// maxReserve and reserveShare: the smaller of 20 ms and a fifth of the time
	// left is kept back from the deadline to put the answer together.
	maxReserve   = 20 * time.Millisecond
	reserveShare = 5
	// maxModelTime is the most a recall waits for models, deadline or not.
	maxModelTime = 6 * time.Second
	// leastMeaningTime and leastExpansionTime are what it takes at best to embed
	// a query and to have a model write a line. With less there is no asking: it
	// would cost, come to nothing, and count against the model.
	leastMeaningTime   = 10 * time.Millisecond
	leastExpansionTime = 100 * time.Millisecond
)

// Shares are the times at which the parts of a recall end; the zero time is
// never.
type shares struct {
	// models is when waiting for models ends, place when waiting to rank again
	// after it does, soft when ranking leaves out what is not there.
	models, place, soft time.Time
}

// divide divides the time of a recall: models may take two thirds of it, since
// after them vectors are compared and everything is ranked; a sixth is for
// getting a place to rank again.
func divide(begin, deadline time.Time) shares {
	if deadline.IsZero() {
		return shares{models: begin.Add(maxModelTime)}
	}
	left := max(deadline.Sub(begin), 0)
	soft := begin.Add(left - min(maxReserve, left/reserveShare))
	models := min(soft.Sub(begin)*2/3, maxModelTime)
	return shares{models: begin.Add(models), place: soft.Add(-(soft.Sub(begin) - models) / 2), soft: soft}
}

// until is context.WithDeadline, but for the zero time.
func until(ctx context.Context, t time.Time) (context.Context, context.CancelFunc) {
	if t.IsZero() {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, t)
}
