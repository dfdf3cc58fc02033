package llm

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// callTime bounds a call whose context has no nearer end. A small model on a
// slow machine needs minutes for a long answer; ten are enough for it.
const callTime = 10 * time.Minute

// Do makes one call in a protocol that f speaks, under the protections of the
// package: nothing is sent when a cap is spent or the breaker is open; f's HTTP
// client reaches this model's server only, with its key, follows no redirect,
// and ends an answer after maxBytes; what the call cost is charged to purpose.
//
// f must use the context it is given, close the bodies it opens, and return the
// tokens that the server reported, 0 if it reported none: then the bytes sent
// are counted, four to a token, unless the server answered with an error, so
// that a server cannot evade a cap by keeping silent. A cap is checked before a
// call, so the last one, and those under way beside it, may go over it.
//
// An error of f counts as a failure of the server unless it wraps [ErrRefused]
// or the caller has left. It is passed on as it is if it wraps one of this
// package's errors; of any other only its kind is kept, as it may quote an
// answer. The error of a call that was not made has a method Skipped() string
// that gives the reason; that of one that was cut short wraps ctx's error. A
// deadline that passes counts as a failure, for a server that is never heard of
// must not be asked for ever; a cancelled call says nothing, unless the cause of
// the cancellation is context.DeadlineExceeded.
func (c *Client) Do(ctx context.Context, purpose string, maxBytes int64, f func(ctx context.Context, h *http.Client) (tokens uint64, err error)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := c.purse.allow(ctx, c.account); err != nil {
		return err
	}
	probe, err := c.breaker.enter()
	if err != nil {
		return err
	}
	w := &wire{next: c.link, base: c.base, key: c.model.Key, maxBytes: maxBytes, now: c.options.Now}
	var (
		tokens uint64
		began  = c.options.Now()
		result = unknown // also if f panics
		why    string
	)
	defer func() {
		c.breaker.leave(probe, result, why, w.wait)
		c.purse.charge(ctx, c.account, Use{
			Purpose: purpose, Calls: 1, Tokens: w.tokens(tokens), Took: c.options.Now().Sub(began),
		})
	}()
	called, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	tokens, err = f(called, &http.Client{Transport: w})
	err = w.explain(called, err)
	result = judge(called, err)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		why = "no answer in time"
	case err != nil:
		why = err.Error()
	}
	return err
}

// judge tells what a call says about its server.
func judge(ctx context.Context, err error) outcome {
	switch {
	case err == nil, errors.Is(err, ErrRefused):
		return answered
	case ctx.Err() == nil:
		return failed
	// Someone who shares a call among several cancels it when the last of them
	// has left, and says with the cause that they left because of their
	// deadlines.
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return failed
	}
	return unknown
}

// explain returns the error of a call in words that are ours, and by what went
// wrong first: a library may see nothing but a short answer where the
// connection broke.
func (w *wire) explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if done := ctx.Err(); done != nil {
		return done
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case errors.Is(err, ErrRefused), errors.Is(err, ErrMissing):
		return err
	case w.broken != nil:
		return plain(w.broken)
	case w.status >= 400 && errors.Is(err, ErrReply):
		return Status(w.status, nil)
	}
	return plain(err)
}

// tokens returns what a call is charged.
func (w *wire) tokens(reported uint64) uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if reported == 0 && w.status < 400 {
		reported = uint64(w.sent) / bytesPerToken
	}
	return min(reported, maxTokens)
}
