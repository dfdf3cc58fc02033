package consolidate

import (
	"cmp"
	"time"
)

// Turns have numbers in the order in which they were appended. Within a session
// that is the order in which they were said; a whole session may be older than
// what was appended before it, since transcripts are imported later. So between
// sessions the times of the messages decide, where they are known.

// SaidBefore reports whether e was said before o.
func (e *Entry) SaidBefore(o *Entry) bool {
	if e.Session != o.Session && !e.SaidAt.IsZero() && !o.SaidAt.IsZero() && !e.SaidAt.Equal(o.SaidAt) {
		return e.SaidAt.Before(o.SaidAt)
	}
	return e.Turn < o.Turn
}

// A dated record is one with the times that give it its place among others:
// those at which it was said first and last. Without a time of its own it has
// that of whatever came in before it.
type dated struct {
	*Record
	at          int // in the journal
	first, last time.Time
}

// dated gives the records of j their places.
func (j Journal) dated() []dated {
	list := make([]dated, len(j.Records))
	var before time.Time
	for i := range j.Records {
		d := dated{Record: &j.Records[i], at: i, first: j.Records[i].SaidAt}
		if d.first.IsZero() {
			d.first = before
		}
		if d.last = d.Last.SaidAt; d.last.IsZero() {
			d.last = d.first
		}
		before = d.first
		list[i] = d
	}
	return list
}

// byFirst sorts records by when they were said first.
func byFirst(a, b dated) int {
	return cmp.Or(a.first.Compare(b.first), cmp.Compare(a.Turn, b.Turn), cmp.Compare(a.at, b.at))
}

// byLast sorts records by when they were said last, the newest first and pinned
// ones before all others.
func byLast(a, b dated) int {
	return cmp.Or(compareBool(b.Pinned, a.Pinned), b.last.Compare(a.last), cmp.Compare(b.Last.Turn, a.Last.Turn), cmp.Compare(b.at, a.at))
}
