package retrieve

// units are what is scored: the first n messages of a table, or its first n
// slices. Messages are ranked; slices are judged for relevance, since a long
// message holds so many words that something in it always matches.
type units struct {
	table  *table
	slices bool
	n      int
}

// of gives the unit a slice belongs to.
func (u units) of(slice int32) int32 {
	if u.slices {
		return slice
	}
	return u.table.slices[slice].message
}

// length counts the content words of a unit.
func (u units) length(unit int32) int32 {
	if u.slices {
		return u.table.slices[unit].length
	}
	return u.table.messages[unit].length
}

// sliceEnd is the first slice beyond the units.
func (u units) sliceEnd() int32 {
	if u.slices {
		return int32(u.n)
	}
	if u.n < len(u.table.messages) {
		return u.table.messages[u.n].firstSlice
	}
	return int32(len(u.table.slices))
}

// before and after give the neighbours of a unit: of a slice those in its
// message, and at its edges those in the neighbouring messages.
func (u units) before(unit int32) int32 {
	if !u.slices {
		return u.table.prev[unit]
	}
	return u.sliceBefore(unit)
}

func (u units) sliceBefore(unit int32) int32 {
	m := u.table.slices[unit].message
	if unit > u.table.messages[m].firstSlice {
		return unit - 1
	}
	p := u.table.prev[m]
	if p == none {
		return none
	}
	return u.table.messages[p].firstSlice + u.table.messages[p].slices - 1
}

func (u units) after(unit int32) int32 {
	if !u.slices {
		return u.table.next[unit]
	}
	return u.sliceAfter(unit)
}

func (u units) sliceAfter(unit int32) int32 {
	m := u.table.slices[unit].message
	if unit+1 < u.table.messages[m].firstSlice+u.table.messages[m].slices {
		return unit + 1
	}
	n := u.table.next[m]
	if n == none {
		return none
	}
	return u.table.messages[n].firstSlice
}

// messageUnits and sliceUnits are all units of a table.
func (t *table) messageUnits() units { return units{t, false, len(t.messages)} }
func (t *table) sliceUnits() units   { return units{t, true, len(t.slices)} }

// slicesUpTo gives the slices of the messages up to a sequence number.
func (t *table) slicesUpTo(seq uint64) units {
	n := upTo(t.messages, seq)
	if n == len(t.messages) {
		return t.sliceUnits()
	}
	return units{t, true, int(t.messages[n].firstSlice)}
}

// simple reports whether every message has one slice: both kinds of units are
// then the same.
func (t *table) simple() bool { return len(t.messages) == len(t.slices) }
