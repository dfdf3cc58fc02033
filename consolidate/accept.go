package consolidate

import (
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
	// about, and pointedBack how many belong to what the person points at.
	offerBack   = 3
	pointedBack = 1
	// acceptSure and pickSure are how often an acceptance was labelled a
	// decision: of something that names a choice, and of a named option.
	acceptSure = 0.70
	pickSure   = 0.80
)

// acceptances adds to drafts what the person accepts in the message p, of
// which text is the prose and found are the sentences. A choice that was found
// already and begins the message as an acceptance gets the proposal as a quote.
func (l *language) acceptances(p Piece, text []byte, found []sentence, before Piece, drafts []Draft) []Draft {
	first := found[0]
	opening := normalise(string(text[first.start:first.end]))
	if !l.is("accept", opening) || strings.HasSuffix(opening, "? ") {
		return drafts
	}
	picks := l.is("picks", opening)
	offer, names, ok := l.offer(before, picks, l.is("deictic", opening))
	if !ok {
		return drafts
	}
	at := p.quote(first, Says)
	i := slices.IndexFunc(drafts, func(d Draft) bool { return d.Quotes[0] == at && d.Kind.choice() })
	if i >= 0 {
		drafts[i].Quotes = append(drafts[i].Quotes, offer)
		return drafts
	}
	if slices.ContainsFunc(drafts, func(d Draft) bool { return d.Quotes[0] == at }) {
		return drafts
	}
	words := 0
	for _, s := range found {
		words += len(strings.Fields(string(text[s.start:s.end])))
	}
	if words > acceptWords || !picks && !names || l.is("veto", opening) && !picks {
		return drafts
	}
	sure := acceptSure
	if picks {
		sure = pickSure
	}
	return append(drafts, Draft{Kind: Decision, Confidence: sure, Quotes: []Quote{at, offer}})
}

// offer returns the sentence of a reply that proposes, whether what it proposes
// is a choice, and whether there is one. The options that a person picks from
// stand before the question. What the person points at need be no question.
func (l *language) offer(reply Piece, picked, pointed bool) (Quote, bool, bool) {
	text := reported(reply.Text())
	from := lastRunes(text, offerRunes)
	var tail []sentence
	for _, s := range short(sentences(text)) {
		if s.start >= from {
			tail = append(tail, s)
		}
	}
	for i := len(tail) - 1; i >= 0; i-- {
		s := normalise(string(text[tail[i].start:tail[i].end]))
		if !l.is("offers", s) {
			continue
		}
		named := l.is("option", s)
		quote := tail[i]
		// "Want me to make that change?" says nothing by itself: what it is about
		// stands before it.
		refers := l.lists["refers"] == nil || l.is("refers", s)
		task := l.is("task", s)
		for j := i - 1; j >= 0 && i-j <= offerBack && !named; j-- {
			earlier := normalise(string(text[tail[j].start:tail[j].end]))
			if l.is("advice", earlier) || refers && !task && l.is("option", earlier) {
				named = true
				quote.start = tail[j].start
			}
		}
		if i > 0 && (picked || !named) {
			quote.start = min(quote.start, tail[i-1].start)
		}
		return reply.quote(shorter(quote, tail[i]), Proposal), named, true
	}
	if n := len(tail); pointed && n > 0 {
		quote := tail[n-1]
		quote.start = tail[max(0, n-1-pointedBack)].start
		return reply.quote(shorter(quote, tail[n-1]), Proposal), true, true
	}
	return Quote{}, false, false
}

// shorter is quote if that is not too long, else its last sentence.
func shorter(quote, last sentence) sentence {
	if quote.end-quote.start > maxQuoteBytes {
		return last
	}
	return quote
}
