package service

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"sync"
	"time"

	"recalld/consolidate"
	"recalld/ledger"
	"recalld/retrieve"
)

// given is what a session was given before.
type given struct {
	entries  map[string]string           // id → digest
	passages map[givenPlace]bool         // by message and range
	ranges   map[uint64][]retrieve.Range // not to be given again, by message number
	dropped  []string                    // entries that were given and hold no longer
}

// readGiven reads what the session was given. If the harness drops each block,
// none of it stands in the way of giving it again.
func (t *turn) readGiven(ctx context.Context) {
	t.given = given{entries: map[string]string{}, passages: map[givenPlace]bool{}}
	list, err := t.ledger.Given(ctx, t.req.GetSessionId())
	if err != nil {
		skipped(ctx, "given=failed")
		t.log.Warn("read what was given", "memory", t.id, "cause", err.Error())
		return
	}
	for _, g := range list {
		if g.Entry != "" {
			t.given.entries[g.Entry] = string(g.Digest)
			continue
		}
		t.given.passages[placeOf(&g)] = true
	}
	if !t.req.GetKeptInHistory() {
		return
	}
	t.given.ranges = map[uint64][]retrieve.Range{}
	for _, g := range list {
		if g.Entry == "" {
			t.given.ranges[g.Message] = append(t.given.ranges[g.Message], retrieve.Range{Start: int(g.Start), End: int(g.End)})
		}
	}
}

// A givenPlace is what tells given passages apart.
type givenPlace struct{ message, start, end uint64 }

func placeOf(g *ledger.Given) givenPlace { return givenPlace{g.Message, g.Start, g.End} }

// hasEntry reports whether an entry was given as it is now, under any of the ids
// of those that say the same.
func (g *given) hasEntry(r *consolidate.Record) bool {
	for _, id := range r.IDs {
		if digest, ok := g.entries[id]; ok {
			return digest == digestOf(r)
		}
	}
	return false
}

// compare finds the entries that were given and hold no longer: should they hold
// again, they are given again.
func (g *given) compare(e *edition) {
	live := map[string]bool{}
	for i := range e.journal.Records {
		if r := &e.journal.Records[i]; r.State == consolidate.Live {
			for _, id := range r.IDs {
				live[id] = true
			}
		}
	}
	for id := range g.entries {
		if !live[id] {
			g.dropped = append(g.dropped, id)
		}
	}
	slices.Sort(g.dropped)
}

// digestOf is what an entry says, in short: when it is another one, the entry is
// news. That it was said again is none.
func digestOf(r *consolidate.Record) string {
	h := sha256.New()
	for _, part := range []string{r.Kind.String(), r.State.String(), r.Text, r.DecidedOn} {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write([]byte(part))
	}
	return string(h.Sum(nil)[:digestBytes])
}

const digestBytes = 16

// note puts into the ledger what the block gives. It is waited for as long as
// the deadline allows; the session's next call waits for all of it.
func (t *turn) note(ctx context.Context, entries []consolidate.Record) {
	add := t.news(entries)
	if len(add) == 0 && len(t.given.dropped) == 0 {
		return
	}
	leave := t.leave
	t.leave = nil
	t.use.begin()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer t.use.end()
		if leave != nil {
			defer leave()
		}
		lasting, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTime)
		defer cancel()
		err := guard(func() error { return t.ledger.Give(lasting, t.req.GetSessionId(), add, t.given.dropped) })
		if err != nil {
			skipped(ctx, "given=failed")
			t.log.Warn("note what was given", "memory", t.id, "cause", err.Error())
		}
	}()
	waiting, cancel := withDeadline(ctx, t.answerBy(ctx))
	defer cancel()
	select {
	case <-done:
	case <-waiting.Done():
	}
}

// answerBy is when the answer has to be sent, zero for no deadline.
func (t *turn) answerBy(ctx context.Context) time.Time {
	deadline, ok := ctx.Deadline()
	if !ok {
		return time.Time{}
	}
	return deadline.Add(-deadline.Sub(t.by) / noteReserve)
}

// news is what of the block is not noted yet. What its entries repeat is given
// with them.
func (t *turn) news(entries []consolidate.Record) []ledger.Given {
	var add []ledger.Given
	for i := range entries {
		r := &entries[i]
		if digest := digestOf(r); t.given.entries[r.ID] != digest {
			add = append(add, ledger.Given{Entry: r.ID, Digest: []byte(digest)})
		}
	}
	for _, p := range slices.Concat(t.resp.GetPassages(), t.repeats) {
		g := ledger.Given{Message: p.GetSequence(), Start: p.GetRange().GetStart(), End: p.GetRange().GetEnd()}
		if !t.given.passages[placeOf(&g)] {
			add = append(add, g)
		}
	}
	return add
}

// turns lets the calls for one session follow each other, so that what one
// gives the next one knows of.
type turns struct {
	mu        sync.Mutex // guards the following
	bySession map[string]*sessionTurn
}

type sessionTurn struct {
	calls int           // that have their turn or wait for it
	taken chan struct{} // room for one: whoever put a value in has its turn
}

// enter waits for the calls of a session that came before, until ctx is done or
// the time given, if it is not zero. It reports whether it is the caller's turn,
// which lasts until leave is called.
func (t *turns) enter(ctx context.Context, session string, until time.Time) (leave func(), ok bool) {
	t.mu.Lock()
	s := t.bySession[session]
	if s == nil {
		s = &sessionTurn{taken: make(chan struct{}, 1)}
		t.bySession[session] = s
	}
	s.calls++
	t.mu.Unlock()
	forget := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if s.calls--; s.calls == 0 {
			delete(t.bySession, session)
		}
	}
	waiting, cancel := withDeadline(ctx, until)
	defer cancel()
	select {
	case s.taken <- struct{}{}:
		return sync.OnceFunc(func() { <-s.taken; forget() }), true
	case <-waiting.Done():
		forget()
		return nil, false
	}
}
