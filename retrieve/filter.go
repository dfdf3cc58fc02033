package retrieve

import "time"

// A filter says which messages a query may be answered with. It is applied
// after the statistics were taken and before the best are picked.
type filter struct {
	kinds         [Mark + 1]bool
	after, before int64 // Unix microseconds; 0 none
	sessions      map[string]bool
	without       map[string]bool
	exclude       map[uint64]bool
}

func newFilter(q Query) filter {
	f := filter{
		after: micros(q.After), before: micros(q.Before),
		sessions: set(q.Sessions), without: set(q.ExcludeSessions), exclude: set(q.Exclude),
	}
	for k := range f.kinds {
		f.kinds[k] = len(q.Kinds) == 0 && Kind(k).IsDefault()
	}
	for _, k := range q.Kinds {
		if int(k) < len(f.kinds) {
			f.kinds[k] = true
		}
	}
	return f
}

// admits reports whether a message passes. A message without a time passes no
// bound of time.
func (f *filter) admits(t *table, ord int32) bool {
	m := &t.messages[ord]
	switch {
	case int(m.kind) >= len(f.kinds) || !f.kinds[m.kind]:
		return false
	case f.after != 0 && (m.micros == 0 || m.micros < f.after):
		return false
	case f.before != 0 && (m.micros == 0 || m.micros >= f.before):
		return false
	case f.exclude[m.seq]:
		return false
	}
	if f.sessions == nil && f.without == nil {
		return true
	}
	session := t.sessions[m.session]
	return (f.sessions == nil || f.sessions[session]) && !f.without[session]
}

func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// set makes a set of a list, nil of an empty one.
func set[T comparable](list []T) map[T]bool {
	if len(list) == 0 {
		return nil
	}
	m := make(map[T]bool, len(list))
	for _, v := range list {
		m[v] = true
	}
	return m
}
