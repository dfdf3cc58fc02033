package retrieve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// defaultLimit is how many passages a query gets that does not say.
const defaultLimit = 20

// weakestCosine is the least likeness at which a message without any of the
// query's words is an answer at all.
const weakestCosine = .25

// Recall ranks the messages of the memory by how much they bear on q. Words
// are read first; meaning is left out, and named late, if ctx's deadline less a
// reserve ends before it is there; so are the most frequent words, in a memory
// too large for the time. An answer that is ready is given even when the
// deadline has just passed. An empty query finds nothing and is no error. The
// error wraps ctx's error, ErrClosed, or that of the word index.
func (x *Index) Recall(ctx context.Context, q Query) (Result, error) {
	begin := time.Now()
	parsed := parseQuery(q.Text, q.Now)
	if parsed.empty {
		return x.nothing(), nil
	}
	if err := x.load(ctx, parsed.lookups(), q.wantsRest()); err != nil {
		return Result{}, fmt.Errorf("recall: %w", err)
	}
	defer x.mu.RUnlock() // load leaves it held
	soft, cancel := shortened(ctx)
	defer cancel()
	if err := ctx.Err(); err != nil {
		return Result{}, fmt.Errorf("recall: %w", err)
	}
	return x.rank(soft, q, parsed, begin), nil
}

func (x *Index) nothing() Result {
	r := Result{NothingToSearch: true}
	x.mu.RLock()
	defer x.mu.RUnlock()
	x.describe(&r)
	return r
}

// describe says how far the index reaches. The caller holds mu.
func (x *Index) describe(r *Result) {
	reach := x.reach()
	r.Held, r.Indexed, r.Embedded = reach.Held, reach.Indexed, reach.Embedded
}

const (
	// maxReserve and reserveShare: the smaller of 20 ms and a fifth of the time
	// left is kept back from the deadline to put the answer together.
	maxReserve   = 20 * time.Millisecond
	reserveShare = 5
)

// shortened gives the deadline of secondary sources.
func shortened(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return ctx, func() {}
	}
	reserve := min(maxReserve, time.Until(deadline)/reserveShare)
	return context.WithDeadline(ctx, deadline.Add(-reserve))
}

// load reads the posting lists of terms that are on disk only, and returns
// with mu held for reading, so that what was read stays complete.
func (x *Index) load(ctx context.Context, terms []string, rest bool) error {
	x.trim()
	for {
		x.mu.RLock()
		if x.closed {
			x.mu.RUnlock()
			return ErrClosed
		}
		missing := x.missing(x.main, terms)
		var missingRest []string
		if rest {
			missingRest = x.missing(x.rest, terms)
		}
		if len(missing)+len(missingRest) == 0 {
			return nil
		}
		p := x.pin
		p.users.Add(1)
		x.mu.RUnlock()
		err := x.read(ctx, p, x.main, missing)
		if err == nil {
			err = x.read(ctx, p, x.rest, missingRest)
		}
		p.users.Done()
		if err != nil {
			return err
		}
	}
}

func (x *Index) trim() {
	x.mu.RLock()
	full := x.main.full() || x.rest.full()
	x.mu.RUnlock()
	if !full {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.main.trim()
	x.rest.trim()
}

func (x *Index) missing(l *lexicon, terms []string) []string {
	var list []string
	for _, term := range terms {
		if _, ok := l.cachedList(term); !ok {
			list = append(list, term)
		}
	}
	return list
}

// read brings lists from disk into the lexicon, unless the snapshot was
// replaced meanwhile.
func (x *Index) read(ctx context.Context, p *pin, l *lexicon, terms []string) error {
	for _, term := range terms {
		if err := ctx.Err(); err != nil {
			return err
		}
		disk, err := p.reader.postings(ctx, l.field, term)
		if err != nil {
			return err
		}
		x.mu.RLock()
		list := l.convert(disk, x.where)
		x.mu.RUnlock()
		x.mu.Lock()
		if x.pin == p {
			l.keep(term, list)
		}
		x.mu.Unlock()
	}
	return nil
}

// wantsRest reports whether kinds beyond the default ones are asked for.
func (q Query) wantsRest() bool {
	return slices.ContainsFunc(q.Kinds, func(k Kind) bool { return !k.IsDefault() })
}

// rank does all that happens under mu.
func (x *Index) rank(ctx context.Context, q Query, parsed parsedQuery, begin time.Time) Result {
	var r Result
	x.describe(&r)
	cos, meaning := x.startMeaning(ctx, q, parsed)
	if q.off(Words) {
		parsed.terms = nil
	}
	words := x.main.score(ctx, parsed, x.main.table.messageUnits())
	m := x.main.measure(ctx, parsed, words)
	r.Sources = append(r.Sources, x.wordsOutcome(q, words.late || m.words.late, time.Since(begin)))
	var ahead wordScore
	if x.ahead != nil {
		ahead = x.ahead.main.score(ctx, parsed, x.ahead.main.table.messageUnits())
		words.maximum = max(words.maximum, ahead.maximum)
		ahead.maximum = words.maximum // one scale for both
	}
	vectors := meaning()
	m.cos = vectors.slices
	r.Sources = append(r.Sources, cos.outcome, contextOutcome(q), expansionOutcome(q))
	r.Gate = judge(m, x.levels, parsed, q.Relevance)
	r.PeriodStart, r.PeriodEnd = parsed.span(q.Now)
	if !r.Gate.Passed {
		return r
	}
	scores := newScorer(x.main.table, words, vectors.messages, readCues(parsed, x.main.table), q.without())
	f := x.newFilter(q)
	gated := q.Relevance == Gated && r.Gate.Reason != gatePeriod
	pass := bar{}
	if gated {
		pass = m.bar(x.levels)
		q.Limit = min(cmp.Or(q.Limit, defaultLimit), gatedPassages)
	}
	ranked := x.candidates(scores, vectors.messages, f, m, pass)
	if q.wantsRest() {
		ranked = append(ranked, x.restCandidates(ctx, parsed, words, scores, f)...)
	}
	if x.ahead != nil {
		ranked = append(ranked, x.ahead.aheadCandidates(ctx, q, parsed, ahead, uint64(len(x.where)))...)
	}
	r.Passages = passages(ranked, q.Limit, slices.Contains(q.without(), partLater))
	return r
}

func (x *Index) wordsOutcome(q Query, late bool, took time.Duration) SourceOutcome {
	o := SourceOutcome{Source: Words, Outcome: Used, Took: took}
	switch {
	case q.off(Words):
		o.Outcome, o.Reason = Off, switchedOff
	case x.rebuilding():
		o.Outcome, o.Reason = Rebuilding, "the views are being made anew"
	case late:
		o.Outcome, o.Reason = Late, "the deadline came before the most frequent words"
	}
	return o
}

// switchedOff is the reason of a source that the request does without.
const switchedOff = "switched off by the request"

// without lists the parts a query leaves out, by name or with their source.
func (q Query) without() []string {
	list := slices.Clone(q.WithoutParts)
	for _, s := range q.WithoutSources {
		switch s {
		case Context:
			list = append(list, contextParts...)
		}
	}
	return list
}

func (q Query) off(s Source) bool { return slices.Contains(q.WithoutSources, s) }

func contextOutcome(q Query) SourceOutcome {
	o := SourceOutcome{Source: Context, Outcome: Used}
	if q.off(Context) {
		o.Outcome, o.Reason = Off, switchedOff
	}
	return o
}

func expansionOutcome(q Query) SourceOutcome {
	o := SourceOutcome{Source: Expansion, Outcome: Off, Reason: "no model"}
	if q.off(Expansion) || q.Expansion == ExpandOff {
		o.Reason = switchedOff
	}
	return o
}

// A meaningRun is the ranking by meaning under way.
type meaningRun struct {
	outcome SourceOutcome
}

// startMeaning scans the vectors on another processor while words are scored.
// The function it returns waits, and gives nil when there are no cosines: the
// scan looks at its context every two thousand vectors, so the wait is short.
func (x *Index) startMeaning(ctx context.Context, q Query, parsed parsedQuery) (*meaningRun, func() cosines) {
	run := &meaningRun{SourceOutcome{Source: Meaning, Outcome: Off}}
	nothing := func() cosines { return cosines{} }
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
		run.outcome.Outcome, run.outcome.Reason = Skipped, "the model has no opinion on this text"
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
	return run, func() cosines {
		got := <-done
		err := got.err
		run.outcome.Took = time.Since(begin)
		switch {
		case err == nil:
			run.outcome.Outcome = Used
			return got.cos
		case errors.Is(err, context.DeadlineExceeded):
			run.outcome.Outcome, run.outcome.Reason = Late, "the deadline came first"
		case errors.Is(err, context.Canceled):
			run.outcome.Outcome, run.outcome.Reason = Cancelled, "the call was cancelled"
		default:
			run.outcome.Outcome, run.outcome.Reason = Failed, "the vectors could not be read"
		}
		return cosines{}
	}
}
