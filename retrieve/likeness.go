package retrieve

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A likeness is how near messages and slices are to a query in meaning. The
// zero value says nothing.
type likeness struct {
	cosines
	// unread is the first message that no model has read yet; 0: all have been.
	unread int
	// levels are those of the gate measured with the same vectors; since 0: not
	// measured yet.
	levels levels
}

// A meaningRun is the ranking by meaning under way.
type meaningRun struct {
	outcome SourceOutcome
}

// startMeaning scans the token table's vectors on another processor while words
// are scored. The function it returns waits, and gives nothing when there are
// no cosines: the scan looks at its context every two thousand vectors, so the
// wait is short.
func (x *Index) startMeaning(ctx context.Context, q Query, parsed parsedQuery) (*meaningRun, func() likeness) {
	run := &meaningRun{SourceOutcome{Source: Meaning, Outcome: Off}}
	nothing := func() likeness { return likeness{} }
	switch {
	case q.off(Meaning):
		run.outcome.Reason = switchedOff
		return run, nothing
	case x.meaning == nil:
		run.outcome.Reason = "no model"
		return run, nothing
	}
	begin := time.Now()
	query := x.meaning.query(parsed.text)
	if query == nil {
		run.outcome.Outcome, run.outcome.Reason = outcomeOf(errNoOpinion)
		return run, nothing
	}
	type result struct {
		cos cosines
		err error
	}
	done := make(chan result, 1)
	go func() {
		cos, err := x.meaning.cosines(ctx, query)
		done <- result{cos, err}
	}()
	return run, func() likeness {
		got := <-done
		run.outcome.Took = time.Since(begin)
		run.outcome.Outcome, run.outcome.Reason = scanOutcome(got.err)
		if got.err != nil {
			return likeness{}
		}
		return likeness{cosines: got.cos, levels: x.levels}
	}
}

// scanOutcome says what became of a scan of vectors.
func scanOutcome(err error) (Outcome, string) {
	o, reason := outcomeOf(err)
	if o == Failed {
		reason = "the vectors could not be read"
	}
	return o, reason
}

// A remoteQuery is a query whose vector a model is asked for.
type remoteQuery struct {
	begin   time.Time
	asked   asked[[]float32]
	waiting bool
	outcome SourceOutcome // unless waiting
}

// askMeaning has the model embed the query, before anything else is done; it
// leaves remote nil where no model is asked for meaning at all.
func (a *answering) askMeaning(asking context.Context) {
	r := a.index.remote
	if r == nil || a.q.off(Meaning) {
		return
	}
	a.remote = &remoteQuery{begin: a.begin}
	o := a.index.notReady()
	if empty := saysNothing(a.parsed.text); empty != "" && a.q.Relevance == Gated {
		o.Outcome, o.Reason = Skipped, empty // the gate will be closed whatever it means
	} else if o.Outcome == 0 && a.shares.models.Sub(a.begin) < leastMeaningTime {
		o.Outcome, o.Reason = outcomeOf(errShort)
	}
	if a.remote.outcome = o; o.Outcome != 0 {
		return
	}
	question := a.parsed.text
	got, err := ask(r.slots, func() ([]float32, error) { return r.embedder.EmbedQuery(asking, question) })
	if err != nil {
		a.remote.outcome.Outcome, a.remote.outcome.Reason = outcomeOf(err)
		return
	}
	a.remote.asked, a.remote.waiting = got, true
}

// notReady says why queries cannot be compared yet; the zero outcome if they
// can.
func (x *Index) notReady() SourceOutcome {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.remote.notReady(x.main.table)
}

// notReady is the same. The caller holds mu.
func (r *remote) notReady(t *table) SourceOutcome {
	o := SourceOutcome{Source: Meaning}
	switch total := len(t.messages); {
	case r.usable(t):
	case total > 0 && r.done == total && r.space == nil:
		o.Outcome, o.Reason = Skipped, "the model has no opinion on any message"
	default:
		o.Outcome, o.Reason = Rebuilding, fmt.Sprintf("the model has read %d of %d messages", r.done, total)
	}
	return o
}

// finish waits for the query's vector and compares it.
func (m *remoteQuery) finish(ctx, soft, asking context.Context, a *answering) (likeness, SourceOutcome) {
	o := m.outcome
	if !m.waiting {
		return likeness{}, o
	}
	o.Source = Meaning
	var like likeness
	vector, err := await(ctx, asking, a, m.asked)
	switch {
	case err != nil:
		if o.Outcome, o.Reason = outcomeOf(err); errors.Is(err, context.DeadlineExceeded) {
			a.index.remote.noteLate()
		}
	case vector == nil:
		o.Outcome, o.Reason = outcomeOf(errNoOpinion)
	default:
		like, o = a.index.compare(soft, vector, a.main.table)
	}
	o.Took = time.Since(m.begin)
	return like, o
}

// compare scans the model's vectors for the messages of a frozen table.
func (x *Index) compare(ctx context.Context, vector []float32, t *table) (likeness, SourceOutcome) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	r := x.remote
	o := r.notReady(x.main.table)
	if o.Outcome != 0 {
		return likeness{}, o
	}
	query := unit(vector)
	switch {
	case query == nil:
		o.Outcome, o.Reason = outcomeOf(errNoNumbers)
		return likeness{}, o
	case len(query) != r.dims():
		o.Outcome, o.Reason = outcomeOf(errDimension)
		return likeness{}, o
	}
	if query = r.space.less(query); query == nil {
		o.Outcome, o.Reason = outcomeOf(errNoOpinion)
		return likeness{}, o
	}
	cos, err := r.space.cosines(ctx, query)
	if o.Outcome, o.Reason = scanOutcome(err); err != nil {
		return likeness{}, o
	}
	like := likeness{levels: r.levels}
	like.slices, like.messages = fitTo(cos.slices, len(t.slices)), fitTo(cos.messages, len(t.messages))
	if n := len(cos.messages); n < len(t.messages) {
		like.unread = n
	}
	return like, o
}

// fitTo cuts a list to a length or fills it with zeros.
func fitTo(list []float32, n int) []float32 {
	if len(list) >= n {
		return list[:n]
	}
	return append(slices.Grow(list, n-len(list)), make([]float32, n-len(list))...)
}

// await waits for a model's answer, no longer than asking, and lets others rank
// meanwhile. Without a place to rank again in time the answer is not used.
func await[T any](ctx, asking context.Context, a *answering, question asked[T]) (T, error) {
	var none T
	if a.crowded {
		return none, errCrowded
	}
	if question.ready() || a.q.Yield == nil {
		return question.wait(asking)
	}
	resume := a.q.Yield()
	value, err := question.wait(asking)
	waiting, cancel := until(ctx, a.shares.place)
	defer cancel()
	if resume(waiting) != nil {
		a.crowded = true
		return none, errCrowded
	}
	return value, err
}
