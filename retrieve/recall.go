package retrieve

import (
	"cmp"
	"context"
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
// too large for the time. Models are asked while words are ranked, and waited
// for no longer than their share of the deadline, 6 s at most; what they say is
// put to the messages as they were when the query was asked. An answer that is
// ready is given even when the deadline has just passed. An empty query finds
// nothing and is no error. The error wraps ctx's error, ErrClosed, or that of
// the word index.
func (x *Index) Recall(ctx context.Context, q Query) (Result, error) {
	begin := time.Now()
	parsed := parseQuery(q.Text, q.Now)
	if parsed.empty {
		return x.nothing(), nil
	}
	deadline, _ := ctx.Deadline()
	a := &answering{index: x, q: q, parsed: parsed, begin: begin, shares: divide(begin, deadline)}
	soft, cancel := until(ctx, a.shares.soft)
	defer cancel()
	asking, cancel := until(ctx, a.shares.models)
	defer cancel() // ends what has not been answered
	a.askMeaning(asking)
	if err := a.rankWords(ctx, soft); err != nil {
		return Result{}, fmt.Errorf("recall: %w", err)
	}
	if err := a.rank(ctx, soft, asking); err != nil {
		return Result{}, fmt.Errorf("recall: %w", err)
	}
	return a.result, nil
}

// An answering is a query on its way to its answer.
type answering struct {
	index  *Index
	q      Query
	parsed parsedQuery
	begin  time.Time
	shares shares
	// remote is the meaning that a model is asked for; nil: none is.
	remote *remoteQuery
	// crowded: after a wait there was no place to rank again.
	crowded bool

	// What rankWords found.
	snapshot
	words   wordScore
	newest  wordScore // of snapshot.ahead
	measure *measure
	like    likeness
	result  Result
}

// A snapshot is what a query is answered from.
type snapshot struct {
	main, rest view
	held       uint64
	levels     levels
	// ahead holds the newest messages during a rebuild; nil: none.
	ahead *snapshot
}

// snapshot freezes what the terms of a query need. The caller holds mu.
func (x *Index) snapshot(terms []string, rest bool) snapshot {
	s := snapshot{main: x.main.view(terms), held: uint64(len(x.where)), levels: x.levels}
	if rest {
		s.rest = x.rest.view(terms)
	}
	if x.ahead != nil {
		ahead := x.ahead.snapshot(terms, rest)
		s.ahead = &ahead
	}
	return s
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

// rankWords takes the snapshot and ranks it by words, while meaning that needs
// no asking is scanned on another processor. It is all that happens under mu.
func (a *answering) rankWords(ctx, soft context.Context) error {
	x, parsed := a.index, a.parsed
	terms := parsed.lookups()
	if err := x.load(ctx, terms, a.q.wantsRest()); err != nil {
		return err
	}
	defer x.mu.RUnlock() // load leaves it held
	if err := ctx.Err(); err != nil {
		return err
	}
	a.snapshot = x.snapshot(terms, a.q.wantsRest())
	x.describe(&a.result)
	meaning, like := x.startMeaning(soft, a.q, parsed)
	if a.q.off(Words) {
		parsed.terms = nil
		a.parsed.terms = nil
	}
	a.words = a.main.score(soft, parsed, a.main.table.messageUnits())
	a.measure = a.main.measure(soft, parsed, a.words)
	a.result.Sources = append(a.result.Sources, x.wordsOutcome(a.q, a.words.late || a.measure.words.late, time.Since(a.begin)))
	if s := a.ahead; s != nil {
		a.newest = s.main.score(soft, parsed, s.main.table.messageUnits())
		a.words.maximum = max(a.words.maximum, a.newest.maximum)
		a.newest.maximum = a.words.maximum // one scale for both
	}
	a.like = like()
	a.result.Sources = append(a.result.Sources, meaning.outcome, contextOutcome(a.q))
	return nil
}

// rank makes the answer of the snapshot, holding no lock.
func (a *answering) rank(ctx, soft, asking context.Context) error {
	r := &a.result
	expanding := a.expandable()
	if a.q.Relevance == Always {
		expanding.start(asking, a) // whatever meaning says, there will be an answer
	}
	if a.remote != nil {
		a.like, r.Sources[1] = a.remote.finish(ctx, soft, asking, a)
	}
	if ctx.Err() == context.Canceled {
		return ctx.Err()
	}
	judged, l := a.measured()
	r.Gate = judge(judged, l, a.parsed, a.q.Relevance)
	r.PeriodStart, r.PeriodEnd = a.parsed.span(a.q.Now)
	if !r.Gate.Passed && expanding != nil && expanding.err == nil {
		expanding.err = notAsked(r.Gate.Reason)
	}
	expanding.start(asking, a)
	expansion, outcome := expanding.finish(ctx, soft, asking, a)
	r.Sources = append(r.Sources, outcome)
	if ctx.Err() == context.Canceled {
		return ctx.Err()
	}
	if !r.Gate.Passed {
		return nil
	}
	if expansion != nil {
		r.Expansions = expansion.words
	}
	r.Passages = a.passages(soft, judged, l, expansion)
	return nil
}

// measured gives what the gate judges and the levels to judge it by, with all
// that is known of meaning now: while the levels of its vectors have not been
// measured, words speak alone.
func (a *answering) measured() (*measure, levels) {
	m := a.measure
	m.cos = a.like.slices
	if a.like.unread > 0 && a.like.unread < len(m.units.table.messages) {
		m.unread = int(m.units.table.messages[a.like.unread].firstSlice)
	}
	switch {
	case m.cos == nil:
		return m, a.levels
	case a.like.levels.since == 0 && a.remote != nil:
		words := *m
		words.cos, words.unread = nil, 0
		return &words, a.levels
	}
	return m, a.like.levels
}

// passages ranks messages by all evidence and picks the best.
func (a *answering) passages(ctx context.Context, judged *measure, l levels, e *expansion) []Passage {
	q := a.q
	sc := newScorer(a.main.table, a.words, a.like, readCues(a.parsed, a.main.table), q.without())
	f := newFilter(q)
	pass := bar{}
	if q.Relevance == Gated && a.result.Gate.Reason != gatePeriod {
		pass = judged.bar(l)
		q.Limit = min(cmp.Or(q.Limit, defaultLimit), gatedPassages)
	}
	ranked := a.candidates(sc, a.like.messages, f, a.measure, pass, e)
	if q.wantsRest() {
		ranked = append(ranked, a.restCandidates(ctx, a.parsed, a.words, sc, f)...)
	}
	if a.ahead != nil {
		ranked = append(ranked, a.ahead.aheadCandidates(ctx, q, a.parsed, a.newest, a.held)...)
	}
	var proposed []candidate
	if q.Relevance == Always {
		proposed = e.only(ctx, sc, a.like.messages, f)
	}
	return passages(ranked, proposed, q.Limit, slices.Contains(q.without(), partLater))
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
