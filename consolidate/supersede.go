package consolidate

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// correctionTurns is how soon a correction that does not name what it corrects
// must follow it.
const correctionTurns = 4

const (
	// maxName is how many words name what is put away; more are a clause.
	maxName = 3
	// maxChoice is how many words a choice has that is about one thing.
	maxChoice = 14
	// maxHolders is how many entries may hold a word that still names one.
	maxHolders = 4
	// minSubject is how many further words make two sentences speak of one thing.
	minSubject = 2
)

// The constants of BM25, with the values of Robertson and Zaragoza (2009).
const (
	saturation   = 1.2
	lengthWeight = 0.75
)

// A Standing holds the entries of a memory that can be superseded. [Journal.Standing]
// makes one; [Standing.Link] adds to it, so that a long run need not fold the
// journal for every window. After a review it is made anew.
type Standing struct {
	all    []*stander // in the order in which they were said
	byWord map[string][]*stander
	alive  int
	length int // words of all
}

// A stander is an entry with what is looked up in it.
type stander struct {
	Entry
	fact  string
	words map[string]bool // stems
	count int             // words, repeated ones too
	gone  bool
}

// Standing returns the entries of j that are live or wait for a person.
func (j Journal) Standing() *Standing {
	s := &Standing{byWord: map[string][]*stander{}}
	for _, e := range j.standing {
		s.add(e)
	}
	return s
}

// Link sets what each of entries, which were read from one window, supersedes
// and may supersede among what stands, and lets them stand.
//
// Superseding takes a rule: the same person puts away what the older one chose,
// by its name ("MySQL instead of Postgres"), or corrects their last choice at
// once ("no, use MySQL"). Sharing a name is not enough. Everything else that
// looks alike is a proposal.
func (s *Standing) Link(entries []Entry) {
	for i := range entries {
		e := &entries[i]
		e.Supersedes, e.MaySupersede = nil, nil
		if e.Kind != OpenWork {
			replaced := s.replacedBy(e)
			for _, old := range replaced {
				e.Supersedes = append(e.Supersedes, old.ID)
			}
			e.MaySupersede = s.propose(e)
			if !e.Candidate {
				s.retire(replaced)
			}
		}
		s.add(*e)
	}
}

// add lets an entry stand, in its place.
func (s *Standing) add(e Entry) {
	words := content(e.Text, true)
	n := &stander{Entry: e, fact: fact(e.Text), words: wordSet(words), count: len(words)}
	at := len(s.all)
	for at > 0 && s.all[at-1].Turn > e.Turn {
		at--
	}
	s.all = slices.Insert(s.all, at, n)
	for w := range n.words {
		s.byWord[w] = append(s.byWord[w], n)
	}
	s.alive++
	s.length += n.count
}

// retire takes away entries and whatever says the same.
func (s *Standing) retire(replaced []*stander) {
	for _, old := range replaced {
		for _, n := range s.all {
			if n.gone || n.fact != old.fact || n.Speaker != old.Speaker || n.By != old.By || n.Kind.choice() != old.Kind.choice() {
				continue
			}
			n.gone = true
			s.alive--
			s.length -= n.count
			for w := range n.words {
				s.byWord[w] = slices.DeleteFunc(s.byWord[w], func(m *stander) bool { return m == n })
			}
		}
	}
	s.all = slices.DeleteFunc(s.all, func(n *stander) bool { return n.gone })
}

// replacedBy returns what e supersedes, oldest first.
func (s *Standing) replacedBy(e *Entry) []*stander {
	var found []*stander
	for _, name := range replaced(e.Text) {
		named := wordSet(name)
		for _, old := range s.byWord[stem(name[0])] {
			if samePerson(e, &old.Entry) && !slices.Contains(found, old) && s.putsAway(e, old, named) {
				found = append(found, old)
			}
		}
	}
	if len(found) == 0 {
		if old := s.lastChoice(e); old != nil && corrects(e, old) {
			found = append(found, old)
		}
	}
	slices.SortStableFunc(found, func(a, b *stander) int {
		return cmp.Or(cmp.Compare(a.Turn, b.Turn), cmp.Compare(a.ID, b.ID))
	})
	return found
}

// samePerson reports whether the one who says e said old, before it.
func samePerson(e, old *Entry) bool {
	return e.By == User && old.By == User && e.Speaker == old.Speaker && old.Kind != OpenWork && old.ID != e.ID &&
		(old.SaidBefore(e) || old.Turn == e.Turn && old.Quotes[0].Message == e.Quotes[0].Message && old.Quotes[0].Start < e.Quotes[0].Start)
}

// putsAway reports whether old chose what e names to put it away, and both
// speak of the same thing. A name that many entries hold names none of them,
// and one that stands in a long text need not be what that text is about.
func (s *Standing) putsAway(e *Entry, old *stander, named map[string]bool) bool {
	if !sharesAll(old.words, named) || len(named) > maxName || old.count > maxChoice {
		return false
	}
	rare := false
	for w := range named {
		rare = rare || len(s.byWord[w]) <= maxHolders && utf8.RuneCountInString(w) > 2 && strings.ContainsFunc(w, unicode.IsLetter)
	}
	if !rare {
		return false
	}
	for _, other := range replaced(old.Text) {
		if sharesAll(wordSet(other), named) {
			return false // it had put that away itself
		}
	}
	if old.count <= len(named)+1 {
		return true // it is about nothing else
	}
	shared := 0
	for w := range wordSet(content(e.Text, true)) {
		if old.words[w] && !named[w] {
			shared++
		}
	}
	return shared >= minSubject || shared == 1 && old.count <= len(named)+2
}

// sharesAll reports whether every word of b is in a.
func sharesAll(a, b map[string]bool) bool {
	for w := range b {
		if !a[w] {
			return false
		}
	}
	return true
}

// replaced returns the names of what a text puts away.
func replaced(text string) [][]string {
	l := languageOf(text)
	re := l.lists["replaces"]
	if re == nil {
		return nil
	}
	said, _, _ := strings.Cut(text, acceptText)
	var out [][]string
	for _, m := range re.FindAllStringSubmatch(normalise(said), -1) {
		for _, name := range m[1:] {
			// A name ends at the next mark.
			if end := strings.IndexAny(name, ",;:?!.()"); end >= 0 && (end == 0 || name[end-1] == ' ') {
				name = name[:end]
			}
			if words := content(name, true); len(words) > 0 {
				out = append(out, words)
			}
		}
	}
	return out
}

// lastChoice returns the last choice or standing word of the person who says e.
func (s *Standing) lastChoice(e *Entry) *stander {
	for _, old := range slices.Backward(s.all) {
		if old.Session == e.Session && samePerson(e, &old.Entry) {
			return old
		}
	}
	return nil
}

// corrects reports whether e takes back old, which the person just chose, by
// doing the same with something else.
func corrects(e *Entry, old *stander) bool {
	l := languageOf(e.Text)
	if e.Turn > old.Turn+correctionTurns || old.fact == fact(e.Text) || l.lists["corrects"] == nil || l.lists["frame"] == nil {
		return false
	}
	now := verbOf(l.lists["corrects"].FindStringSubmatch(normalise(e.Text)))
	before := verbOf(l.lists["frame"].FindStringSubmatch(normalise(old.Text)))
	return now != "" && now == before
}

// verbOf returns the first group of a match that caught anything.
func verbOf(match []string) string {
	for _, group := range match[min(1, len(match)):] {
		if group != "" {
			return group
		}
	}
	return ""
}

// propose returns what e might replace, best first: the entries by the same kind
// of speaker that are most like it by BM25.
func (s *Standing) propose(e *Entry) []string {
	type sum struct {
		score  float64
		shared int
	}
	sums := map[*stander]sum{}
	mean := float64(s.length) / float64(max(1, s.alive))
	for _, w := range slices.Sorted(maps.Keys(wordSet(content(e.Text, true)))) {
		df := float64(len(s.byWord[w]))
		idf := math.Log(1 + (float64(s.alive)-df+0.5)/(df+0.5))
		for _, old := range s.byWord[w] {
			norm := saturation * (1 - lengthWeight + lengthWeight*float64(old.count)/mean)
			sums[old] = sum{sums[old].score + idf*(saturation+1)/(1+norm), sums[old].shared + 1}
		}
	}
	mine := fact(e.Text)
	var found []*stander
	for old, sum := range sums {
		enough := sum.shared >= 2 || e.Kind == Reversal
		if enough && old.Kind != OpenWork && old.By == e.By && !e.SaidBefore(&old.Entry) && old.fact != mine && !slices.Contains(e.Supersedes, old.ID) {
			found = append(found, old)
		}
	}
	score := func(n *stander) float64 { return sums[n].score }
	slices.SortFunc(found, func(a, b *stander) int {
		return cmp.Or(cmp.Compare(score(b), score(a)), cmp.Compare(b.Turn, a.Turn), cmp.Compare(a.ID, b.ID))
	})
	var ids []string
	for _, old := range found[:min(len(found), maxProposals)] {
		ids = append(ids, old.ID)
	}
	return ids
}
