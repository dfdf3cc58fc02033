package retrieve

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
)

// Decay of a term's weight with the distance to the message that holds it.
const (
	spreadNear = .5  // the neighbours
	spreadFar  = .25 // theirs
	cosNear    = .3
	cosFar     = .15
)

// The shares of words and meaning in the score of a session.
const (
	sessionWords   = .6
	sessionMeaning = .4
)

// A wordScore is what the words of a query say about every unit of a table.
type wordScore struct {
	// spread is the BM25 of the message and its neighbours: per term the
	// largest of the message's own weight, half a neighbour's and a quarter of
	// the next one's; summed over terms.
	spread []float32
	// coverage is the share of the query's idf that the message and its
	// neighbours hold, with the same decay.
	coverage []float32
	// maximum is the largest spread.
	maximum float32
	// terms are the query's terms as the memory knows them.
	terms []scoredTerm
	// mass is the query's idf, unseen terms included.
	mass float64
	// near is the idf, weighted by general rarity, of the distinct terms that a
	// message or a neighbour holds; rareMass is that of the whole query.
	near     []float32
	rareMass float64
	// late: time ended before the most frequent terms were scored.
	late bool
}

// A scoredTerm is a query term with its postings.
type scoredTerm struct {
	queryTerm
	forms []scoredForm
	// idf is that of its rarest known form, or that of an unseen term.
	idf  float64
	seen bool
	// rarity is how rare it is in general.
	rarity float64
}

type scoredForm struct {
	term         string
	idf          float64
	older, newer []posting
}

// otherAccents is what a word is worth that differs from the query's in its
// accents, where the memory knows the query's own: thé is not the.
const otherAccents = .5

func (t *scoredTerm) preferAccented() {
	known := func(f scoredForm) bool { return f.term == t.accented }
	if t.accented == "" || !slices.ContainsFunc(t.forms, known) {
		return
	}
	for i := range t.forms {
		if !known(t.forms[i]) {
			t.forms[i].idf *= otherAccents
		}
	}
}

// resolve looks the terms of a query up among units.
func (v view) resolve(q parsedQuery, u units) []scoredTerm {
	terms := make([]scoredTerm, 0, len(q.terms))
	for _, t := range q.terms {
		s := scoredTerm{queryTerm: t, forms: v.resolveForms(t.forms, u), rarity: rarity(t.forms[0])}
		if len(s.forms) == 0 {
			s.forms = v.resolveForms(t.parts, u)
		}
		s.seen = len(s.forms) > 0
		s.preferAccented()
		if !s.seen {
			s.idf = idf(u.n, 0)
		}
		for _, f := range s.forms {
			s.idf = max(s.idf, f.idf)
		}
		terms = append(terms, s)
	}
	if q.long {
		terms = rarest(terms, maxLongTerms)
	}
	return terms
}

func (v view) resolveForms(forms []string, u units) []scoredForm {
	var list []scoredForm
	end := u.sliceEnd()
	for _, form := range forms {
		lists := v.lists[form]
		older, newer := before(lists.older, end), before(lists.newer, end)
		if df := u.count(older) + u.count(newer); df > 0 {
			list = append(list, scoredForm{form, idf(u.n, df), older, newer})
		}
	}
	return list
}

// before gives the postings of slices before end.
func before(list []posting, end int32) []posting {
	if n := len(list); n == 0 || list[n-1].slice < end {
		return list
	}
	n, _ := slices.BinarySearchFunc(list, end, func(p posting, end int32) int { return cmp.Compare(p.slice, end) })
	return list[:n]
}

// count counts the units in a posting list, in which the slices of one message
// stand together.
func (u units) count(list []posting) int {
	if u.slices || u.table.simple() {
		return len(list)
	}
	n, last := 0, none
	for _, p := range list {
		if m := u.table.slices[p.slice].message; m != last {
			n++
			last = m
		}
	}
	return n
}

// rarest keeps the k rarest known terms, and all unseen ones: coverage is
// measured against both. Ties go to the later in the text.
func rarest(terms []scoredTerm, k int) []scoredTerm {
	known := make([]int, 0, len(terms))
	for i, t := range terms {
		if t.seen {
			known = append(known, i)
		}
	}
	slices.SortStableFunc(known, func(a, b int) int {
		switch x, y := terms[a], terms[b]; {
		case x.idf != y.idf && x.idf > y.idf:
			return -1
		case x.idf != y.idf:
			return 1
		default:
			return y.at - x.at
		}
	})
	drop := map[int]bool{}
	for _, i := range known[min(k, len(known)):] {
		drop[i] = true
	}
	var kept []scoredTerm
	for i, t := range terms {
		if !drop[i] {
			kept = append(kept, t)
		}
	}
	return kept
}

// scoreWords scores units, the rarest terms first: when ctx ends, the rest,
// which says least and costs most, is left out.
func scoreWords(ctx context.Context, terms []scoredTerm, u units) wordScore {
	s := wordScore{spread: make([]float32, u.n), coverage: make([]float32, u.n), near: make([]float32, u.n), terms: terms}
	sp := newSpreader(u)
	defer sp.release()
	for _, t := range terms {
		s.mass += float64(t.count) * t.idf
		s.rareMass += t.idf * t.rarity
	}
	for i, t := range byRarity(terms) {
		if i > 0 && ctx.Err() != nil {
			s.late = true
			break
		}
		sp.term(t)
		sp.addTo(&s, t)
	}
	for i := range s.spread {
		s.maximum = max(s.maximum, s.spread[i])
		if s.mass > 0 {
			s.coverage[i] /= float32(s.mass)
		}
	}
	return s
}

// byRarity puts the rarest terms first, equals in the order of the query.
func byRarity(terms []scoredTerm) []scoredTerm {
	sorted := slices.Clone(terms)
	slices.SortStableFunc(sorted, func(a, b scoredTerm) int { return cmp.Compare(b.idf, a.idf) })
	return sorted
}

// A spreader spreads one term at a time over neighbours. Its arrays are as
// long as the table and zero between terms.
type spreader struct {
	units  units
	weight []float32 // BM25 with decay
	share  []float32 // 1, .5, .25
	own    []float32
	holds  []int32 // units that hold the term
	near   []int32 // units with any weight
}

// spreaders are used again: they clear behind themselves, and making them anew
// for every query costs more than a small query does.
var spreaders = sync.Pool{New: func() any { return new(spreader) }}

func newSpreader(u units) *spreader {
	s := spreaders.Get().(*spreader)
	s.units = u
	s.weight, s.share, s.own = room(s.weight, u.n), room(s.share, u.n), room(s.own, u.n)
	return s
}

// release gives the spreader back, all zeros, without the table.
func (s *spreader) release() {
	s.units = units{}
	spreaders.Put(s)
}

// room gives n zeros, in place of a slice of zeros where it is long enough.
func room(zeros []float32, n int) []float32 {
	if cap(zeros) < n {
		return make([]float32, n+n/4)[:n]
	}
	return zeros[:n]
}

// term spreads one term: of its forms the best counts in each unit.
func (s *spreader) term(t scoredTerm) {
	s.holds, s.near = s.holds[:0], s.near[:0]
	for _, f := range t.forms {
		s.form(f.older, f.idf)
		s.form(f.newer, f.idf)
	}
	for _, m := range s.holds {
		w := s.own[m]
		s.own[m] = 0
		s.reach(m, w, 1)
		if b := s.units.before(m); b != none {
			s.reach(b, spreadNear*w, spreadNear)
			if b = s.units.before(b); b != none {
				s.reach(b, spreadFar*w, spreadFar)
			}
		}
		if a := s.units.after(m); a != none {
			s.reach(a, spreadNear*w, spreadNear)
			if a = s.units.after(a); a != none {
				s.reach(a, spreadFar*w, spreadFar)
			}
		}
	}
}

// form notes the weight of one form in each unit that holds it.
func (s *spreader) form(list []posting, weight float64) {
	bm := BM25{K1: messageK1}
	for i := 0; i < len(list); {
		m := s.units.of(list[i].slice)
		tf := 0
		for ; i < len(list) && s.units.of(list[i].slice) == m; i++ {
			tf += int(list[i].count)
		}
		w := float32(bm.saturate(weight, float64(tf), lengthNorm(s.units.length(m))))
		if s.own[m] == 0 {
			s.holds = append(s.holds, m)
		}
		s.own[m] = max(s.own[m], w)
	}
}

func (s *spreader) reach(m int32, weight, share float32) {
	if int(m) >= len(s.share) {
		return // beyond the units that are looked at
	}
	if s.share[m] == 0 {
		s.near = append(s.near, m)
	}
	s.weight[m] = max(s.weight[m], weight)
	s.share[m] = max(s.share[m], share)
}

// addTo adds the term to the sums and clears it.
func (s *spreader) addTo(sum *wordScore, t scoredTerm) {
	count, weight, rare := float32(t.count), float32(float64(t.count)*t.idf), float32(t.idf*t.rarity)
	for _, m := range s.near {
		sum.spread[m] += count * s.weight[m]
		sum.coverage[m] += weight * s.share[m]
		if s.share[m] >= spreadNear {
			sum.near[m] += rare
		}
		s.weight[m], s.share[m] = 0, 0
	}
}

// smooth gives each message its cosine and a share of its neighbours', and the
// largest of the sums. Negative cosines count as none.
func smooth(t *table, cos []float32) (smoothed []float32, maximum float32) {
	smoothed = make([]float32, len(cos))
	at := func(i int32) float32 {
		if i == none {
			return 0
		}
		return max(0, cos[i])
	}
	for i := range cos {
		sum := max(0, cos[i])
		if p := t.prev[i]; p != none {
			sum += cosNear*at(p) + cosFar*at(t.prev[p])
		}
		if n := t.next[i]; n != none {
			sum += cosNear*at(n) + cosFar*at(t.next[n])
		}
		smoothed[i] = sum
		maximum = max(maximum, sum)
	}
	return smoothed, maximum
}

// normalise divides by the maximum; all zeros stay.
func normalise(values []float32, maximum float32) {
	if maximum <= 0 || math.IsInf(float64(maximum), 0) {
		return
	}
	for i := range values {
		values[i] /= maximum
	}
}

// sessionBest gives each session's best message by words and meaning.
func sessionBest(t *table, spread, meaning []float32) []float32 {
	best := make([]float32, len(t.sessions))
	for i := range t.messages {
		s := sessionWords * spread[i]
		if meaning != nil {
			s += sessionMeaning * meaning[i]
		}
		session := t.messages[i].session
		best[session] = max(best[session], s)
	}
	return best
}
