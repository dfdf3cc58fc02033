package retrieve

import (
	"cmp"
	"slices"
)

// maxCachedPostings bounds the postings of one class held in memory beside the
// index on disk, but for those of the query at hand: 8 bytes each.
const maxCachedPostings = 4 << 20

// A lexicon gives the postings of one table's terms. Those of messages up to
// a boundary are read from disk once and then kept; those of later messages
// are held in memory only. Both have the same analysis, so a message is found
// in the same way before and after it reaches the disk.
type lexicon struct {
	table *table
	field string
	// recent holds the postings of slices from recentFrom on.
	recent     map[string][]posting
	recentFrom int32
	// cached holds whole posting lists of slices before recentFrom; an empty
	// list means that the term is not there. Two generations: what is not asked
	// for while one fills is dropped.
	young, old map[string][]posting
	youngSize  int
	limit      int // of postings cached
}

func newLexicon(field string, linked bool) *lexicon {
	return &lexicon{
		table: newTable(linked), field: field,
		recent: map[string][]posting{}, young: map[string][]posting{}, old: map[string][]posting{}, limit: maxCachedPostings,
	}
}

// add appends the words of the table's newest message.
func (l *lexicon) add(words [][]Token) {
	slice := int32(len(l.table.slices) - len(words))
	for i, tokens := range words {
		ord := slice + int32(i)
		for _, t := range tokens {
			list := l.recent[t.Term]
			if n := len(list); n > 0 && list[n-1].slice == ord {
				list[n-1].count++
				continue
			}
			l.recent[t.Term] = append(list, posting{ord, 1})
		}
	}
}

// cachedList looks a term up without changing anything.
func (l *lexicon) cachedList(term string) ([]posting, bool) {
	if l.recentFrom == 0 {
		return nil, true // nothing is only on disk
	}
	if list, ok := l.young[term]; ok {
		return list, true
	}
	list, ok := l.old[term]
	return list, ok
}

// full reports whether the next query has to let go of lists.
func (l *lexicon) full() bool { return l.youngSize > l.limit/2 }

// trim lets go of the lists that were not asked for lately. It is called
// between queries only: one query needs all of its lists at once, however many.
func (l *lexicon) trim() {
	if l.full() {
		l.old, l.young, l.youngSize = l.young, map[string][]posting{}, 0
	}
}

// keep remembers a list read from disk.
func (l *lexicon) keep(term string, list []posting) {
	l.young[term] = list
	l.youngSize += len(list) + 4 // an empty list has its cost as well
}

// convert turns postings from disk into ordinals, in their order.
func (l *lexicon) convert(disk []slicePosting, where []int32) []posting {
	list := make([]posting, 0, len(disk))
	for _, p := range disk {
		if p.key.seq == 0 || p.key.seq > uint64(len(where)) {
			continue
		}
		ord := where[p.key.seq-1]
		if l.field == restField {
			ord = ^ord
		}
		if ord < 0 {
			continue
		}
		if s := l.table.messages[ord].firstSlice + int32(p.key.slice); s < l.recentFrom {
			list = append(list, posting{s, p.count})
		}
	}
	slices.SortFunc(list, func(a, b posting) int { return cmp.Compare(a.slice, b.slice) })
	return list
}

// advance moves the boundary: slices before it are on disk from now on. Lists
// that are cached grow by what moves, the rest of it is dropped.
func (l *lexicon) advance(to int32) {
	for term, list := range l.recent {
		n, _ := slices.BinarySearchFunc(list, to, func(p posting, to int32) int { return cmp.Compare(p.slice, to) })
		if n == 0 {
			continue
		}
		for _, generation := range []map[string][]posting{l.young, l.old} {
			if cached, ok := generation[term]; ok {
				generation[term] = append(cached, list[:n]...)
				l.youngSize += n
			}
		}
		if n == len(list) {
			delete(l.recent, term)
		} else {
			l.recent[term] = slices.Clone(list[n:])
		}
	}
	l.recentFrom = to
}

// lists gives a term's postings in two parts, older slices first. The caller
// has seen to it that the term is cached.
func (l *lexicon) lists(term string) (older, newer []posting) {
	older, _ = l.cachedList(term)
	return older, l.recent[term]
}
