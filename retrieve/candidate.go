package retrieve

import (
	"cmp"
	"context"
	"math"
	"slices"
)

// A ranking is where candidates come from.
type ranking struct {
	table *table
	parts func(ord int32) []Part
	slice func(ord int32) int32
	// coverage is the share of the query a message holds; nil: not known.
	coverage func(ord int32) float32
	// expansion is what proposed words add; nil: nothing.
	expansion *expansion
}

// A candidate is a message with its score.
type candidate struct {
	from  *ranking
	ord   int32
	score float64
	// raised is what latestFirst added to score.
	raised float64
}

// bears reports whether a message has any evidence of its own.
func (s *scorer) bears(m int32, cos []float32) bool {
	return s.words.spread[m] != 0 || cos != nil && cos[m] >= weakestCosine || s.cues.inPeriod(s.table.messages[m].day)
}

// candidates scores the messages that the filter and the bar let through and
// that have any evidence of their own; e may be nil.
func (s *snapshot) candidates(sc *scorer, cos []float32, f filter, m *measure, b bar, e *expansion) []candidate {
	from := &ranking{sc.table, sc.parts, m.slice, func(m int32) float32 { return sc.words.coverage[m] }, e}
	list := make([]candidate, 0, len(sc.table.messages)/2)
	for i := range sc.table.messages {
		if m := int32(i); sc.bears(m, cos) && f.admits(sc.table, m) && b.admits(m) {
			list = append(list, candidate{from: from, ord: m, score: sc.score(m) + e.adds(m)})
		}
	}
	return list
}

// restCandidates scores messages of the other kinds by words alone, against
// the statistics of the default kinds.
func (s *snapshot) restCandidates(ctx context.Context, parsed parsedQuery, main wordScore, sc *scorer, f filter) []candidate {
	t := s.rest.table
	u := t.messageUnits()
	rest := s.rest.resolve(parsed, u)
	for i := range rest {
		rest[i].rescale(main.terms)
	}
	words := scoreWords(ctx, rest, u)
	maximum := max(words.maximum, main.maximum)
	parts := func(m int32) []Part {
		return []Part{
			{partSpread, float64(words.spread[m] / maximum), sc.weights[0]},
			{partCoverage, float64(words.coverage[m]), sc.weights[1]},
			{partDate, sc.cues.near(t.messages[m].day), sc.weights[6]},
		}
	}
	from := &ranking{t, parts, s.rest.measure(ctx, parsed, words).slice, nil, nil}
	var list []candidate
	for i := range t.messages {
		m := int32(i)
		if words.spread[m] > 0 && f.admits(t, m) {
			list = append(list, candidate{from: from, ord: m, score: sumParts(parts(m))})
		}
	}
	return list
}

// rescale gives a term the idf it has among the default kinds.
func (t *scoredTerm) rescale(main []scoredTerm) {
	for _, m := range main {
		if m.queryTerm.forms[0] != t.queryTerm.forms[0] {
			continue
		}
		t.idf = m.idf
		for i := range t.forms {
			t.forms[i].idf = m.idf
		}
	}
}

func sumParts(parts []Part) float64 {
	sum := 0.0
	for _, p := range parts {
		sum += p.Value * p.Weight
	}
	return sum
}

// aheadCandidates ranks the newest messages during a rebuild, those the index
// does not hold itself yet.
func (s *snapshot) aheadCandidates(ctx context.Context, q Query, parsed parsedQuery, words wordScore, held uint64) []candidate {
	m := s.main.measure(ctx, parsed, words)
	sc := newScorer(s.main.table, words, likeness{}, readCues(parsed, s.main.table), q.without())
	f := newFilter(q)
	list := s.candidates(sc, nil, f, m, bar{}, nil)
	if q.wantsRest() {
		list = append(list, s.restCandidates(ctx, parsed, words, sc, f)...)
	}
	return slices.DeleteFunc(list, func(c candidate) bool { return c.seq() <= held })
}

// passages picks the best candidates, none with the text of another, and cuts
// each at the slice that bears most on the query. Unless plain, later
// statements come before those whose place they take. What was found by
// proposed words only comes after all others and weighs no more than the last
// of them.
func passages(list, proposed []candidate, limit int, plain bool) []Passage {
	if limit <= 0 {
		limit = defaultLimit
	}
	seen := map[uint64]bool{}
	picked := pick(list, max(limit, laterWindow), seen)
	if !plain {
		picked = latestFirst(picked)
	}
	picked = picked[:min(limit, len(picked))]
	most := math.Inf(1)
	if len(picked) > 0 {
		most = picked[len(picked)-1].score
	}
	if n := limit - len(picked); n > 0 && most > 0 {
		for _, c := range pick(proposed, n, seen) {
			picked = append(picked, c.atMost(most))
		}
	}
	return parts(picked, candidate.passage)
}

// pick gives the best candidates, none with a text that was seen.
func pick(list []candidate, wanted int, seen map[uint64]bool) []candidate {
	best := leading(list, wanted)
	slices.SortFunc(best, func(a, b candidate) int { // ties go to the earlier message
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.seq(), b.seq()))
	})
	var picked []candidate
	for _, c := range best {
		if len(picked) == wanted {
			break
		}
		if hash := c.message().textHash; !seen[hash] {
			seen[hash] = true
			picked = append(picked, c)
		}
	}
	return picked
}

// leading keeps, of many candidates, those that can be among the best n even
// if most of them repeat another's text: ordering the rest would be in vain.
func leading(list []candidate, n int) []candidate {
	const spare = 8
	if len(list) <= 4*spare*n {
		return list
	}
	scores := make([]float64, 0, 2*spare*n)
	threshold := math.Inf(-1)
	for i := range list {
		if s := list[i].score; s > threshold {
			if scores = append(scores, s); len(scores) == cap(scores) {
				slices.Sort(scores)
				scores = scores[:copy(scores, scores[spare*n:])]
				threshold = scores[0]
			}
		}
	}
	slices.Sort(scores)
	threshold = scores[max(0, len(scores)-spare*n)]
	kept := make([]candidate, 0, 2*spare*n)
	texts := map[uint64]bool{}
	for _, c := range list {
		if c.score >= threshold {
			kept = append(kept, c)
			texts[c.message().textHash] = true
		}
	}
	if len(texts) < n {
		return list
	}
	return kept
}

func (c candidate) message() *message { return &c.from.table.messages[c.ord] }

func (c candidate) seq() uint64 { return c.message().seq }

func (c candidate) passage() Passage {
	t := c.from.table
	slice := t.slices[c.from.slice(c.ord)]
	p := Passage{Seq: c.seq(), Score: c.score, Parts: c.from.parts(c.ord), Range: Range{int(slice.start), int(slice.end)}}
	p.ExpansionParts = c.from.expansion.parts(c.ord)
	if c.raised > 0 {
		p.Parts = append(p.Parts, Part{partLater, c.raised, 1})
	}
	if n := t.prev[c.ord]; n != none {
		p.Previous = t.messages[n].seq
	}
	if n := t.next[c.ord]; n != none {
		p.Next = t.messages[n].seq
	}
	return p
}
