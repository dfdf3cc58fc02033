package retrieve

import (
	"slices"
	"strings"
	"time"
)

const (
	// MaxQueryBytes is the longest query that is accepted.
	MaxQueryBytes = 64 << 10
	// readQueryBytes is the part of a long query that is read: its tail, since
	// the question stands at the end of what was pasted.
	readQueryBytes = 4 << 10
	// maxLongTerms is how many terms of a long query are scored, rarest first.
	maxLongTerms = 12
)

// A queryTerm is one distinct term of a query. The forms of one word count as
// one term: a message's weight is that of its best form.
type queryTerm struct {
	forms []string
	// accented is the form with its accents, if the word has any.
	accented string
	// parts are searched for when the memory knows none of the forms.
	parts []string
	// count is how often the query holds it.
	count int
	// at is the place of its last word in the query.
	at int
}

// A parsedQuery is what ranking needs of a query's text.
type parsedQuery struct {
	text  string // what is read of it
	long  bool
	terms []queryTerm
	// words counts the query's words by white space, stop words left out: a
	// query of one word is searched for exactly.
	words int
	// empty: there is nothing to search for.
	empty bool
	// period is the span of days the query names, if named is set.
	period period
	named  bool
}

// parseQuery reads a query at a time, which may be unknown. Stop words count
// only when there is nothing else. The words of a period ("last week") are no
// terms: what was said then need not hold them.
func parseQuery(text string, now time.Time) parsedQuery {
	q := parsedQuery{text: text}
	if len(text) > readQueryBytes {
		q.long = true
		q.text = text[wordStart(text, len(text)-readQueryBytes, 0):]
	}
	q.text = withoutTags(q.text)
	q.collect(false)
	words := queryWords(q.text)
	if q.period, q.named = readPeriod(words, now); q.named {
		q.drop(words[q.period.from:q.period.to])
	} else if len(q.terms) == 0 {
		q.collect(true)
	}
	q.empty = len(q.terms) == 0 && !q.named
	return q
}

// drop removes the terms of words.
func (q *parsedQuery) drop(words []string) {
	for _, word := range words {
		base := stem(fold(word))
		q.terms = slices.DeleteFunc(q.terms, func(t queryTerm) bool { return t.forms[0] == base })
	}
	q.words = len(q.terms)
}

func (q *parsedQuery) collect(stopWords bool) {
	index := map[string]int{}
	forWords(q.text, func(run []word) {
		counted := false
		for _, w := range run {
			f := w.forms()
			if f.stop && !stopWords {
				continue
			}
			if !counted {
				q.words++
				counted = true
			}
			i, ok := index[f.base]
			if !ok {
				i = len(q.terms)
				index[f.base] = i
				q.terms = append(q.terms, queryTerm{forms: append([]string{f.base}, f.wider...), accented: f.accented, parts: f.parts})
			}
			q.terms[i].count++
			q.terms[i].at = w.start
		}
	})
}

// lookups lists every term string a query may need.
func (q *parsedQuery) lookups() []string {
	var list []string
	for _, t := range q.terms {
		list = append(append(list, t.forms...), t.parts...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// queryWords are the lower-case words of a query as they are written, for
// names, cues and dates.
func queryWords(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !isCueRune(r) })
}
