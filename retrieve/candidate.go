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
}

// A candidate is a message with its score.
type candidate struct {
	from  *ranking
	ord   int32
	score float64
	// raised is what latestFirst added to score.
	raised float64
}

// candidates scores the messages that the filter and the bar let through and
// that have any evidence of their own.
func (x *Index) candidates(s *scorer, cos []float32, f filter, m *measure, b bar) []candidate {
	from := &ranking{s.table, s.parts, m.slice, func(m int32) float32 { return s.words.coverage[m] }}
	list := make([]candidate, 0, len(s.table.messages)/2)
	for i := range s.table.messages {
		m := int32(i)
		if s.words.spread[m] == 0 && (cos == nil || cos[m] < weakestCosine) && !s.cues.inPeriod(s.table.messages[m].day) {
			continue
		}
		if f.admits(s.table, m) && b.admits(m) {
			list = append(list, candidate{from: from, ord: m, score: s.score(m)})
		}
	}
	return list
}

// restCandidates scores messages of the other kinds by words alone, against
// the statistics of the default kinds.
func (x *Index) restCandidates(ctx context.Context, parsed parsedQuery, main wordScore, s *scorer, f filter) []candidate {
	u := x.rest.table.messageUnits()
	rest := x.rest.resolve(parsed, u)
	for i := range rest {
		rest[i].rescale(main.terms)
	}
	words := scoreWords(ctx, rest, u)
	maximum := max(words.maximum, main.maximum)
	parts := func(m int32) []Part {
		return []Part{
			{partSpread, float64(words.spread[m] / maximum), s.weights[0]},
			{partCoverage, float64(words.coverage[m]), s.weights[1]},
			{partDate, s.cues.near(x.rest.table.messages[m].day), s.weights[6]},
		}
	}
	from := &ranking{x.rest.table, parts, x.rest.measure(ctx, parsed, words).slice, nil}
	var list []candidate
	for i := range x.rest.table.messages {
		m := int32(i)
		if words.spread[m] > 0 && f.admits(x.rest.table, m) {
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
func (x *Index) aheadCandidates(ctx context.Context, q Query, parsed parsedQuery, words wordScore, held uint64) []candidate {
	m := x.main.measure(ctx, parsed, words)
	s := newScorer(x.main.table, words, nil, readCues(parsed, x.main.table), q.without())
	f := x.newFilter(q)
	list := x.candidates(s, nil, f, m, bar{})
	if q.wantsRest() {
		list = append(list, x.restCandidates(ctx, parsed, words, s, f)...)
	}
	return slices.DeleteFunc(list, func(c candidate) bool { return c.seq() <= held })
}

// passages picks the best candidates, none with the text of another, and cuts
// each at the slice that bears most on the query. Unless plain, later
// statements come before those whose place they take.
func passages(list []candidate, limit int, plain bool) []Passage {
	if limit <= 0 {
		limit = defaultLimit
	}
	wanted := max(limit, laterWindow)
	best := leading(list, wanted)
	slices.SortFunc(best, func(a, b candidate) int { // ties go to the earlier message
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.seq(), b.seq()))
	})
	seen := map[uint64]bool{}
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
	if !plain {
		picked = latestFirst(picked)
	}
	out := make([]Passage, min(limit, len(picked)))
	for i := range out {
		out[i] = picked[i].passage()
	}
	return out
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

// score looks a query up and scores units.
func (l *lexicon) score(ctx context.Context, parsed parsedQuery, u units) wordScore {
	return scoreWords(ctx, l.resolve(parsed, u), u)
}

// measure scores the slices of a table; where every message has one, that is
// done already.
func (l *lexicon) measure(ctx context.Context, parsed parsedQuery, messages wordScore) *measure {
	u := l.table.sliceUnits()
	if l.table.simple() {
		messages.spread = slices.Clone(messages.spread) // the other is normalised later
		return &measure{units: u, words: messages}
	}
	return &measure{units: u, words: l.score(ctx, parsed, u)}
}
