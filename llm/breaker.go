package llm

import (
	"fmt"
	"sync"
	"time"
)

const (
	// maxFailures in a row open the breaker.
	maxFailures = 3
	// coolDown is how long an open breaker keeps a model from being asked.
	coolDown = 30 * time.Second
	// maxRetryAfter bounds what a server may demand with Retry-After, which may
	// be a date in another century.
	maxRetryAfter = 5 * time.Minute
)

// An outcome is what a call says about its server.
type outcome int

const (
	// unknown says nothing: the caller left.
	unknown outcome = iota
	// answered means that the server lives, even if it refused the text.
	answered
	failed
)

// A breaker keeps a model from being asked while its server is sick. Closed, it
// lets every call pass; after maxFailures in a row it is open for coolDown, and
// then half open: one call passes, the probe, and its outcome closes the
// breaker or opens it again. The zero value with now set is closed.
type breaker struct {
	now func() time.Time

	mu       sync.Mutex // guards everything below
	failures int
	retryAt  time.Time // zero: closed
	probing  bool      // half open, and the probe is under way
	last     string
}

// enter asks to make a call. Without an error, leave must follow with the same
// probe.
func (b *breaker) enter() (probe bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.retryAt.IsZero():
		return false, nil
	case b.now().Before(b.retryAt):
		return false, &skipped{fmt.Sprintf("%s; asked again at %s", b.why(), b.retryAt.Format(time.TimeOnly))}
	case b.probing:
		return false, &skipped{b.why() + "; being asked again now"}
	}
	b.probing = true
	return true, nil
}

func (b *breaker) why() string {
	switch {
	case b.failures == 1:
		return "the server failed"
	case b.failures == 2:
		return "the server failed twice"
	}
	return fmt.Sprintf("the server failed %d times", b.failures)
}

// leave reports how a call went. why is the failure, in words; wait is what the
// server asked for with Retry-After, 0 if it did not.
func (b *breaker) leave(probe bool, o outcome, why string, wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if probe {
		b.probing = false
	}
	switch o {
	case answered:
		b.failures, b.retryAt, b.last = 0, time.Time{}, why // of a refusal
	case failed:
		b.failures++
		b.last = why
		// Calls that were under way when the breaker opened fail too; they do
		// not push the probe further into the future.
		opens := b.failures >= maxFailures && (b.retryAt.IsZero() || probe)
		if opens || probe {
			b.retryAt = b.now().Add(coolDown)
		}
		if wait > 0 {
			if at := b.now().Add(min(wait, maxRetryAfter)); at.After(b.retryAt) {
				b.retryAt = at
			}
		}
	}
}

func (b *breaker) state() State {
	b.mu.Lock()
	defer b.mu.Unlock()
	return State{Failures: b.failures, RetryAt: b.retryAt, LastError: b.last}
}
