package retrieve

import (
	"context"
	"errors"
	"time"
)

// maxAsked is how many questions to one model may be under way for one index.
// It is far more than rank at once; only calls that outlive their queries can
// fill it.
const maxAsked = 16

// Slots bound how many questions are under way.
type slots chan struct{}

func newSlots() slots { return make(slots, maxAsked) }

// An asked question is under way on its own goroutine.
type asked[T any] struct {
	answer chan answer[T] // has room for one: the goroutine never waits
}

type answer[T any] struct {
	value T
	err   error
}

// ask puts a question to a model, if there is a slot for it. A panic of the
// model's client is an error.
func ask[T any](s slots, question func() (T, error)) (asked[T], error) {
	select {
	case s <- struct{}{}:
	default:
		return asked[T]{}, errBusy
	}
	a := asked[T]{make(chan answer[T], 1)}
	go func() {
		defer func() { <-s }()
		value, err := contained(question)
		a.answer <- answer[T]{value, err}
	}()
	return a, nil
}

// contained calls f and makes an error of its panic, whose value may hold words
// of a text and is left out.
func contained[T any](f func() (T, error)) (value T, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errModelPanic
		}
	}()
	return f()
}

// ready reports whether wait would not wait.
func (a asked[T]) ready() bool { return len(a.answer) > 0 }

// wait gives the answer, or ctx's error when that ends first. An answer that is
// there wins over a ctx that has ended.
func (a asked[T]) wait(ctx context.Context) (T, error) {
	select {
	case got := <-a.answer:
		return got.value, got.err
	default:
	}
	select {
	case got := <-a.answer:
		return got.value, got.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// maxReadTime is the most the reading of one batch may take: a model may have
// to be loaded first, and read on a slow processor.
const maxReadTime = 2 * time.Minute

// insist asks and waits, for as long as reading may take. A model that does not
// heed its context is left behind when ctx is done.
func insist[T any](ctx context.Context, s slots, question func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, maxReadTime)
	defer cancel()
	a, err := ask(s, func() (T, error) { return question(ctx) })
	if err != nil {
		var none T
		return none, err
	}
	return a.wait(ctx)
}

// A notAsked says why a question was not put, or its answer not used, although
// nothing failed.
type notAsked string

func (n notAsked) Error() string { return "not asked: " + string(n) }

// Skipped gives the reason.
func (n notAsked) Skipped() string { return string(n) }

const (
	errBusy      = notAsked("busy: too many questions are under way")
	errShort     = notAsked("too little time")
	errNoOpinion = notAsked("the model has no opinion on this text")
)

var (
	errModelPanic = errors.New("the model's client panicked")
	errDimension  = errors.New("vectors of another dimension")
	errNoNumbers  = errors.New("a vector that is none")
	errCrowded    = errors.New("no place to rank was free in time")
)

// outcomeOf says what became of a question to a model. Of an error's text it
// repeats only what says why a question was not put.
func outcomeOf(err error) (o Outcome, reason string) {
	var skipped interface{ Skipped() string }
	switch {
	case err == nil:
		return Used, ""
	case errors.As(err, &skipped):
		return Skipped, skipped.Skipped()
	case errors.Is(err, errCrowded):
		return Late, errCrowded.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return Late, "the deadline came first"
	case errors.Is(err, context.Canceled):
		return Cancelled, "the call was cancelled"
	case errors.Is(err, ErrClosed):
		return Cancelled, "the views were replaced"
	case errors.Is(err, errDimension):
		return Failed, "the model gave a vector of another dimension"
	case errors.Is(err, errNoNumbers):
		return Failed, "the model gave a vector that is none"
	}
	return Failed, "the model failed"
}
