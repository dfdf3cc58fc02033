package retrieve

import (
	"context"
	"slices"
)

// A view is a table and the posting lists of some terms as they were at one
// moment. It is read without a lock, however long an answer takes: what is
// appended meanwhile is not part of it.
type view struct {
	table *table
	lists map[string]postingLists
}

// postingLists are one term's postings in two parts, older slices first.
type postingLists struct{ older, newer []posting }

// view takes the present table and the lists of terms, which the caller has
// seen to it are cached. The caller holds the index's mu.
func (l *lexicon) view(terms []string) view {
	v := view{l.table.frozen(), make(map[string]postingLists, len(terms))}
	for _, term := range terms {
		if older, newer := l.lists(term); len(older)+len(newer) > 0 {
			v.lists[term] = postingLists{older, newer}
		}
	}
	return v
}

// frozen gives the table as it is, in a form that no longer changes. It is made
// once between two changes. Most of a table only ever grows at its end, so the
// slices of now are enough; what is changed in place is copied. It holds
// neither tokens nor what only add needs.
func (t *table) frozen() *table {
	if f := t.still.Load(); f != nil {
		return f
	}
	f := &table{
		linked: t.linked, messages: t.messages, slices: t.slices,
		prev: slices.Clone(t.prev), next: slices.Clone(t.next),
		sessions: t.sessions, sessionWords: slices.Clone(t.sessionWords), words: t.words,
		speakers: t.speakers, personally: slices.Clone(t.personally),
	}
	t.still.Store(f)
	return f
}

// score looks a query up and scores units.
func (v view) score(ctx context.Context, parsed parsedQuery, u units) wordScore {
	return scoreWords(ctx, v.resolve(parsed, u), u)
}

// measure scores the slices of a table; where every message has one, that is
// done already.
func (v view) measure(ctx context.Context, parsed parsedQuery, messages wordScore) *measure {
	u := v.table.sliceUnits()
	if v.table.simple() {
		messages.spread = slices.Clone(messages.spread) // the other is normalised later
		return &measure{units: u, words: messages}
	}
	return &measure{units: u, words: v.score(ctx, parsed, u)}
}
