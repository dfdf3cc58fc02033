package retrieve

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// partExpansion is what proposed words add to a score.
	partExpansion = "expansion"
	// expansionWeight is the most that proposed words add to a score, where the
	// person's own words add up to 1.5. Careful public tests of expansion by a
	// model found it neutral at best: with equal weights it took a good ranking
	// from 93 % to 54 %, bounded to .25 to .5 it did no harm.
	expansionWeight = .25
	// strongCoverage is the share of a query's idf in one message and its
	// neighbours from which the query's own words are evidence enough: among
	// questions to the right memory 68 % reach it, to a wrong one 10 %.
	strongCoverage = .5

	// leastRarity is how rare a proposed word must be in general: the four hundred
	// most frequent English ones are below.
	leastRarity = .25

	maxVariants      = 6
	maxVariantBytes  = 512
	maxProposed      = 12
	maxProposedBytes = maxTermBytes // bytes of one proposed word
)

// weak reports whether the evidence of a query's own words is so weak that
// other wordings may help.
func weak(coverage float64) bool { return coverage < strongCoverage }

// mayExpand says why a model is not asked for other wordings of a query of
// which the best message holds coverage; nil if it may be. The gate has its own
// say.
func mayExpand(q Query, parsed parsedQuery, coverage float64) error {
	empty := saysNothing(parsed.text)
	switch {
	case len(parsed.terms) == 0:
		return notAsked("nothing to search")
	case empty != "":
		return notAsked(empty)
	case q.Expansion == ExpandAlways && (parsed.words != 1 || coverage == 0):
		return nil
	case parsed.words == 1 && coverage > 0, !weak(coverage):
		// A word that is there is searched for exactly: nothing may come before
		// the message that holds it.
		return notAsked("strong evidence")
	}
	return nil
}

// readProposals makes query terms of what a model proposed: of the first
// variants the words that the query does not have itself, as a person would
// have typed them and as terms. It takes nothing on trust: what is not UTF-8,
// too long or repeated is left out, and so are everyday words, which a model
// proposes that has nothing to propose.
func readProposals(variants []string, query parsedQuery) (terms []queryTerm, words []string) {
	known := map[string]bool{}
	for _, t := range query.terms {
		for _, form := range t.forms {
			known[form] = true
		}
	}
	for _, variant := range variants[:min(len(variants), maxVariants)] {
		if len(variant) > maxVariantBytes || !utf8.ValidString(variant) {
			continue
		}
		forWords(withoutTags(variant), func(run []word) {
			for _, w := range run {
				f := w.forms()
				if f.stop || rarity(f.base) < leastRarity || len(w.text) > maxProposedBytes || len(terms) == maxProposed {
					continue
				}
				forms := append([]string{f.base}, f.wider...)
				if slices.ContainsFunc(forms, func(form string) bool { return known[form] }) {
					continue
				}
				for _, form := range forms {
					known[form] = true
				}
				terms = append(terms, queryTerm{forms: forms, accented: f.accented, parts: f.parts, count: 1})
				words = append(words, strings.ToLower(w.text))
			}
		})
	}
	return terms, words
}

// An expansion is the evidence of proposed words: a part of the score apart,
// and never one of the gate. A nil expansion adds nothing.
type expansion struct {
	view   view
	parsed parsedQuery // of the proposed words alone
	score  wordScore
	// scale is the largest spread of the query's own words or of the proposed
	// ones: these add weight at most, and less when they match less.
	scale  float32
	weight float64
	words  []string
}

func (e *expansion) value(m int32) float64 {
	if e == nil || e.scale <= 0 {
		return 0
	}
	return float64(e.score.spread[m] / e.scale)
}

// adds is what the proposed words add to the score of a message: from 0 to
// weight. So a message found without them is never displaced by one whose own
// score is lower by more than that.
func (e *expansion) adds(m int32) float64 {
	if e == nil {
		return 0
	}
	return e.value(m) * e.weight
}

func (e *expansion) parts(m int32) []Part {
	if e == nil || e.value(m) == 0 {
		return nil
	}
	return []Part{{partExpansion, e.value(m), e.weight}}
}

// only lists the messages that nothing but proposed words finds.
func (e *expansion) only(ctx context.Context, sc *scorer, cos []float32, f filter) []candidate {
	if e == nil {
		return nil
	}
	var m *measure // made when first needed: most answers are full without
	slice := func(ord int32) int32 {
		if m == nil {
			m = e.view.measure(ctx, e.parsed, e.score)
		}
		return m.slice(ord)
	}
	from := &ranking{table: sc.table, parts: func(int32) []Part { return nil }, slice: slice, expansion: e}
	var list []candidate
	for i := range sc.table.messages {
		if m := int32(i); e.value(m) > 0 && !sc.bears(m, cos) && f.admits(sc.table, m) {
			list = append(list, candidate{from: from, ord: m, score: e.adds(m)})
		}
	}
	return list
}

// atMost gives a candidate found by proposed words a score of most at most, which
// is positive.
func (c candidate) atMost(most float64) candidate {
	e := *c.from.expansion
	e.weight = min(e.weight, most)
	from := *c.from
	from.expansion = &e
	return candidate{from: &from, ord: c.ord, score: e.adds(c.ord)}
}

// An expanding query waits for other wordings, or knows why there are none.
type expanding struct {
	begin   time.Time
	asked   asked[[]string]
	waiting bool
	err     error
}

// expandable says, once words are ranked, whether a model is to be asked.
func (a *answering) expandable() *expanding {
	if a.index.options.Expander == nil || a.q.off(Expansion) || a.q.Expansion == ExpandOff {
		return nil
	}
	var coverage float32
	for _, c := range a.words.coverage {
		coverage = max(coverage, c)
	}
	return &expanding{err: mayExpand(a.q, a.parsed, float64(coverage))}
}

// start asks the model, if there is nothing against it. It may be called more
// than once.
func (e *expanding) start(asking context.Context, a *answering) {
	if e == nil || e.err != nil || e.waiting {
		return
	}
	e.begin = time.Now()
	if a.shares.models.Sub(e.begin) < leastExpansionTime {
		e.err = errShort
		return
	}
	question := a.parsed.text
	e.asked, e.err = ask(a.index.expanderSlots, func() ([]string, error) {
		return a.index.options.Expander.Expand(asking, question)
	})
	e.waiting = e.err == nil
}

// finish waits for the model and ranks with what it proposed. It gives nil
// where there is nothing to add, and says why.
func (e *expanding) finish(ctx, soft, asking context.Context, a *answering) (*expansion, SourceOutcome) {
	o := SourceOutcome{Source: Expansion, Outcome: Off, Reason: "no model"}
	if e == nil {
		if a.q.off(Expansion) || a.q.Expansion == ExpandOff {
			o.Reason = switchedOff
		}
		return nil, o
	}
	var found *expansion
	err := e.err
	if e.waiting {
		var variants []string
		if variants, err = await(ctx, asking, a, e.asked); err == nil {
			found, err = a.expand(soft, variants)
		}
		o.Took = time.Since(e.begin)
	}
	o.Outcome, o.Reason = outcomeOf(err)
	if err == nil && found == nil {
		o.Reason = "nothing that this memory knows was proposed"
	}
	return found, o
}

// expand scores proposed words over the messages as they were when the query
// was asked.
func (a *answering) expand(ctx context.Context, variants []string) (*expansion, error) {
	terms, words := readProposals(variants, a.parsed)
	if len(terms) == 0 {
		return nil, nil
	}
	parsed := parsedQuery{terms: terms}
	if err := a.index.load(ctx, parsed.lookups(), false); err != nil {
		return nil, err
	}
	v := a.index.main.view(parsed.lookups())
	a.index.mu.RUnlock() // load leaves it held
	v.table = a.main.table
	u := v.table.messageUnits()
	e := &expansion{view: v, parsed: parsed, score: v.score(ctx, parsed, u), weight: expansionWeight}
	if slices.Contains(a.q.without(), partExpansion) {
		e.weight = 0
	}
	e.scale = max(a.words.maximum, e.score.maximum)
	for i, t := range e.score.terms {
		if t.seen {
			e.words = append(e.words, words[i])
		}
	}
	if len(e.words) == 0 {
		return nil, nil
	}
	return e, nil
}
