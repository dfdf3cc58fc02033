package retrieve

import (
	"time"
	"unicode/utf8"
)

// Excerpt chooses what is shown of a message: the given slice, widened on both
// sides up to passageBytes, or narrowed to the part that holds most of the
// query's words. It begins and ends at a sentence or a word where it can, and
// never inside a character. The result lies within the text and is no longer
// than passageBytes.
func Excerpt(text string, slice Range, passageBytes int, query string) Range {
	slice.Start = min(max(slice.Start, 0), len(text))
	slice.End = min(max(slice.End, slice.Start), len(text))
	switch size := slice.End - slice.Start; {
	case len(text) <= passageBytes:
		return Range{0, len(text)}
	case size < passageBytes:
		return widen(text, slice, passageBytes)
	case size == passageBytes:
		return slice
	}
	return narrow(text, slice, passageBytes, query)
}

// widen grows a slice by what room there is, half of it on each side.
func widen(text string, s Range, passageBytes int) Range {
	room := passageBytes - (s.End - s.Start)
	before := min(room/2, s.Start)
	after := min(room-before, len(text)-s.End)
	before = min(room-after, s.Start)
	start := s.Start - before
	if start > 0 {
		start = min(wordStart(text, start, 0), s.Start)
	}
	end := s.End + after
	if end < len(text) {
		end = max(breakBefore(text, end, s.End), s.End)
		if end-start > passageBytes {
			end = s.End
		}
	}
	return Range{start, end}
}

// narrow finds the window of passageBytes that holds most of the query's
// distinct words, the first of equals.
func narrow(text string, s Range, passageBytes int, query string) Range {
	wanted := map[string]bool{}
	for _, t := range parseQuery(query, time.Time{}).terms {
		for _, form := range t.forms {
			wanted[form] = true
		}
	}
	var hits []Token
	for _, t := range Analyze(text[s.Start:s.End]) {
		if wanted[t.Term] {
			hits = append(hits, t)
		}
	}
	at, end := 0, 0
	for i, first := range hits {
		distinct := map[string]bool{}
		for _, t := range hits[i:] {
			if t.End-first.Start > passageBytes*3/4 {
				break
			}
			distinct[t.Term] = true
		}
		if len(distinct) > end {
			at, end = first.Start, len(distinct)
		}
	}
	// A little before the first word gives it a beginning.
	start := s.Start + at - passageBytes/8
	if start <= s.Start {
		start = s.Start
	} else {
		start = min(wordStart(text, start, s.Start), s.Start+at)
	}
	limit := min(start+passageBytes, s.End)
	to := limit
	if limit < len(text) {
		to = breakBefore(text, limit, charStart(text, min(start+passageBytes/2, limit), start))
	}
	if to <= start { // a character longer than the window cannot be shown
		to = start
		for to < limit {
			_, size := utf8.DecodeRuneInString(text[to:])
			if to+size > limit {
				break
			}
			to += size
		}
	}
	return Range{start, to}
}
