package consolidate

import (
	"bytes"
	"slices"
	"strings"
)

// An acceptance is a choice that stands in two messages: the agent proposed,
// the person agreed. Its entry quotes both.

const (
	// acceptWords is how long a message or a sentence may be and still be
	// nothing but an acceptance.
	acceptWords = 25
	// offerRunes is how much of a reply's end is looked at for a proposal.
	offerRunes = 900
	// offerBack is how many sentences before the question may name what it is
	// about, pointedBack how many belong to what the person points at, and
	// thinBack how many may say what a question means that says nothing itself.
	offerBack   = 3
	pointedBack = 1
	thinBack    = 2
	// acceptSure and pickSure are how often an acceptance was labelled a
	// decision: of something that names a choice, and of a named option.
	// eitherSure is of a yes to a question that offers two things.
	acceptSure = 0.70
	pickSure   = 0.80
	eitherSure = 0.50
	// itemWords is how many words after a colon say what comes there.
	itemWords = 3
)

// acceptances adds to drafts what the person accepts in the message p, of
// which text is the prose and found are the sentences. A choice that was found
// already and begins the message as an acceptance gets the proposal as a quote.
func (l *language) acceptances(p Piece, text []byte, found []sentence, before Piece, drafts []Draft) []Draft {
	first := found[0]
	opening := normalise(string(text[first.start:first.end]))
	picks := l.is("picks", opening)
	at := p.quote(first, Says)
	i := slices.IndexFunc(drafts, func(d Draft) bool { return d.Quotes[0] == at })
	chosen := i >= 0 && drafts[i].Kind.choice()
	if !l.is("accept", opening) && !(picks && chosen) || strings.HasSuffix(opening, "? ") || len(found) > 1 && bareLabel.MatchString(opening) {
		return drafts
	}
	o, ok := l.offer(before, picks, l.is("deictic", opening))
	if picks {
		items, missing := picked(before, string(text[first.start:first.end]))
		if missing {
			return drafts // nobody knows what was picked
		}
		if len(items) > 0 {
			o, ok = offer{quotes: items, names: true, says: true}, true
		}
	}
	if !ok {
		return drafts
	}
	if i >= 0 {
		if chosen && o.says && (!o.bare || o.before || l.thin(string(text[first.start:first.end]))) {
			drafts[i].Quotes = append(drafts[i].Quotes, o.quotes...)
		}
		return drafts
	}
	words := 0
	for _, s := range found {
		words += len(strings.Fields(string(text[s.start:s.end])))
	}
	if words > acceptWords || !picks && !o.names || l.is("veto", opening) && !picks {
		return drafts
	}
	sure := acceptSure
	switch {
	case picks:
		sure = pickSure
	case o.either:
		sure = eitherSure
	}
	return append(drafts, Draft{Kind: Decision, Confidence: sure, Quotes: append([]Quote{at}, o.quotes...)})
}

// An offer is what a reply proposes at its end.
type offer struct {
	quotes []Quote
	names  bool // what it proposes is a choice
	says   bool // it says what it proposes
	bare   bool // its question says nothing by itself
	before bool // a sentence before the question names a choice
	either bool // it offers two things
}

// offer returns what a reply proposes, and whether it does. The options that a
// person picks from stand before the question. What the person points at need
// be no question.
func (l *language) offer(reply Piece, picked, pointed bool) (offer, bool) {
	text := reported(reply.Text())
	from := lastRunes(text, offerRunes)
	var tail []sentence
	for _, s := range short(sentences(text)) {
		if s.start >= from {
			tail = append(tail, s)
		}
	}
	t := proposalTail{language: l, text: text, raw: reply.Text(), tail: tail}
	for i := len(tail) - 1; i >= 0; i-- {
		if l.is("offers", normalise(t.string(tail[i]))) {
			return t.offerAt(reply, i, picked), true
		}
	}
	if n := len(tail); pointed && n > 0 {
		at := t.back(tail[n-1], n-1, pointedBack)
		return offer{quotes: []Quote{reply.quote(at, Proposal)}, names: true, says: true}, true
	}
	return offer{}, false
}

// A proposalTail is the end of a reply, in sentences; raw is its text with the
// code and tables that text has not.
type proposalTail struct {
	*language
	text, raw []byte
	tail      []sentence
}

// offerAt returns what the sentence i proposes. "Want me to make that change?"
// says nothing by itself: what it is about stands before it, or after a colon.
func (t *proposalTail) offerAt(reply Piece, i int, picked bool) offer {
	s := normalise(t.string(t.tail[i]))
	o := offer{names: t.is("option", s), bare: t.thin(t.string(t.tail[i]))}
	at, apart := t.tail[i], -1 // apart is a sentence that code stands behind
	refers := t.lists["refers"] == nil || t.is("refers", s)
	task := t.is("task", s)
	for j := i - 1; j >= 0 && i-j <= offerBack && !o.names; j-- {
		earlier := normalise(t.string(t.tail[j]))
		if t.is("advice", earlier) || refers && !task && t.is("option", earlier) {
			o.names, o.before = true, true
			if at = t.back(at, i, i-j); at.start > t.tail[j].start {
				apart = j
			}
		}
	}
	if strings.HasSuffix(s, ": ") && i+1 < len(t.tail) {
		next := t.tail[i+1]
		if t.joined(at, next) && len(strings.Fields(t.string(next))) >= itemWords && next.end-at.start <= maxQuoteBytes {
			at.end = next.end
		}
	}
	switch {
	case apart >= 0:
	case t.thin(t.string(at)):
		first := t.first(at, i)
		if at = t.back(at, first, thinBack); at.start == t.tail[first].start && first > 0 && t.text[t.tail[first-1].end-1] != ':' {
			apart = first - 1
		}
	case picked || !o.names:
		at = t.back(at, t.first(at, i), 1)
	}
	o.says = !t.thin(t.string(at))
	if apart >= 0 {
		o.quotes = append(o.quotes, reply.quote(t.tail[apart], Proposal))
	}
	if apart < 0 || o.says {
		o.quotes = append(o.quotes, reply.quote(at, Proposal))
	}
	o.says = o.says || apart >= 0 && !t.thin(t.string(t.tail[apart]))
	o.names = o.names && o.says
	o.either = t.is("either", s)
	return o
}

func (t *proposalTail) string(s sentence) string { return string(t.text[s.start:s.end]) }

// first is the number of the sentence with which a range that ends in or after
// sentence i begins.
func (t *proposalTail) first(at sentence, i int) int {
	for i > 0 && t.tail[i].start > at.start {
		i--
	}
	return i
}

// back returns a range that begins with sentence i, and n sentences more before
// it: as many as stand next to each other and are not too long together.
func (t *proposalTail) back(at sentence, i, n int) sentence {
	for ; n > 0 && i > 0; n, i = n-1, i-1 {
		before := t.tail[i-1]
		if !t.joined(before, t.tail[i]) || at.end-before.start > maxQuoteBytes {
			break
		}
		at.start = min(at.start, before.start)
	}
	return at
}

// joined reports whether nothing was blanked between two sentences.
func (t *proposalTail) joined(a, b sentence) bool {
	if b.start < a.end {
		return true
	}
	return bytes.Equal(bytes.TrimSpace(t.raw[a.end:b.start]), bytes.TrimSpace(t.text[a.end:b.start]))
}
