package service

import (
	"sync"
	"time"

	"github.com/robfig/cron/v3"
)

const (
	// firstRetry is how long after its first failure a memory is tried again at
	// the earliest; each further failure doubles that, up to maxRetry.
	firstRetry = time.Minute
	maxRetry   = time.Hour
	// latePeriods is how many periods after it was due a schedule is late.
	latePeriods = 2
)

// runs remembers what became of the runs of each memory.
type runs struct {
	mu    sync.Mutex // guards the following
	byID  map[string]*runState
	swept time.Time // when all memories had last been looked at; zero: not yet
}

type runState struct {
	since    time.Time // before which the memory need not have been there
	last     time.Time // when a run last ended
	done     time.Time // when one had last nothing to do, or did some of it
	attempts uint32    // that failed since the last one that did not
	err      error     // why the last one ended early, if it did
	touched  uint64    // how often turns were added
	settled  uint64    // touched when nothing was left to read, plus one
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

// note keeps how a run ended. One in which the model was not asked, so that it
// costs no more than it may, is no failure: it goes on when it may again.
func (r *runs) note(id string, at time.Time, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	state := r.of(id)
	state.last, state.err = at, err
	switch {
	case err == nil:
		state.attempts, state.done = 0, at
	case isSkipped(err):
		state.done = at
	default:
		state.attempts++
	}
}

// alive says that a run has stored something.
func (r *runs) alive(id string, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of(id).done, r.swept = at, at
}

// meet says that a memory is there, and whether anything can wait in it: turns
// were added since there was nothing left to read, and it is not to be left
// alone for having failed. started is when the server was.
func (r *runs) meet(id string, started, at time.Time) (touched uint64, due bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	state := r.of(id)
	if state.since.IsZero() {
		state.since = latest(started, r.swept)
	}
	if state.settled == state.touched+1 {
		state.done = at
		return state.touched, false
	}
	return state.touched, state.mayRun(at)
}

// mayRun reports whether enough time has passed since the last failure. A clock
// that went back has told nothing.
func (s *runState) mayRun(at time.Time) bool {
	if s.attempts == 0 {
		return true
	}
	pause := firstRetry
	for n := uint32(1); n < s.attempts && pause < maxRetry; n++ {
		pause *= 2
	}
	passed := at.Sub(s.last)
	return passed < 0 || passed >= min(pause, maxRetry)
}

// sweep says that all memories were looked at.
func (r *runs) sweep(at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.swept = at
}

// late reports whether the schedule is late for a memory: two periods after it
// was due, nothing of what waits in it was read. started is when the server was.
func (r *runs) late(id string, schedule cron.Schedule, started, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.isLate(r.of(id), schedule, started, now)
}

// anyLate reports whether it is late for any memory, or for all.
func (r *runs) anyLate(schedule cron.Schedule, started, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, state := range r.byID {
		if r.isLate(state, schedule, started, now) {
			return true
		}
	}
	return isLate(schedule, latest(started, r.swept), now)
}

// isLate is late for a state. A memory that no sweep has met is as late as the
// sweep is. The caller holds mu.
func (r *runs) isLate(state *runState, schedule cron.Schedule, started, now time.Time) bool {
	if state.since.IsZero() {
		return isLate(schedule, latest(started, r.swept), now)
	}
	return isLate(schedule, latest(started, state.since, state.done), now)
}

// isLate reports whether a schedule that last came to pass at a time is two
// periods late.
func isLate(schedule cron.Schedule, last, now time.Time) bool {
	if schedule == nil {
		return false
	}
	due := schedule.Next(last.UTC())
	for range latePeriods {
		if due.IsZero() {
			return false
		}
		due = schedule.Next(due)
	}
	return !due.IsZero() && !now.Before(due)
}

func latest(times ...time.Time) time.Time {
	var last time.Time
	for _, t := range times {
		if t.After(last) {
			last = t
		}
	}
	return last
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
