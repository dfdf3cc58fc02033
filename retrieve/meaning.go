package retrieve

import (
	"runtime"
	"sync"
)

// meaning holds the vectors that a token table gives the messages of one
// table, weighted by the memory's own statistics (SIF-like idf of token rows,
// then the mean vector removed): on chat turns that is worth more than the step
// from a static table to a transformer.
//
// The statistics change as a memory grows. They are taken at the sequence
// numbers ⌈2^(k/4)⌉ and at no other time, so that the same ledger gives the
// same vectors however it was filled.
//
// A meaning is guarded by its index's mu; a refresh makes a new one aside.
type meaning struct {
	space
	table   TokenTable
	weights []float32 // per token row
	unseen  float32   // weight of rows beyond weights
	steps   []float32 // by slice: what its vector was rounded to, 0 for none
	// behind: messages were added without their vectors, for a refresh to make.
	behind bool
}

func newMeaning(table TokenTable) *meaning {
	return &meaning{space: newSpace(table.Dimensions()), table: table}
}

// due reports whether a refresh point has passed, or vectors are missing.
func (m *meaning) due(held uint64) bool { return m.behind || refreshPoint(held) > m.since }

// reach is how far meaning is weighted as due.
func (m *meaning) reach(held uint64) uint64 {
	if m.due(held) {
		return m.since
	}
	return held
}

// add embeds the slices of the table's newest messages with the present
// weights.
func (m *meaning) add(t *table) {
	for i := len(m.norms); i < len(t.messages); i++ {
		msg := t.messages[i]
		m.addMessage(parts(t.tokens[msg.firstSlice:msg.firstSlice+msg.slices], m.sum))
	}
}

// skip adds the table's newest messages without vectors: in a long import they
// would be made anew with other weights before anyone asks.
func (m *meaning) skip(t *table) {
	for i := len(m.norms); i < len(t.messages); i++ {
		m.addMessage(make([][]float32, t.messages[i].slices))
		m.behind = true
	}
}

func parts[T, R any](list []T, f func(T) R) []R {
	out := make([]R, len(list))
	for i, v := range list {
		out[i] = f(v)
	}
	return out
}

// addMessage appends the sums of one message's slices.
func (m *meaning) addMessage(sums [][]float32) {
	m.first = append(m.first, int32(len(m.lengths)))
	for _, v := range sums {
		m.lengths = append(m.lengths, m.appendSlice(v))
	}
	m.norms = append(m.norms, m.shift(m.total(sums)))
}

// appendSlice stores the direction of a sum and gives its length and the
// length of what is left of its direction without the mean.
func (m *meaning) appendSlice(v []float32) shifted {
	s := m.shift(v)
	if s.Length == 0 {
		m.vectors.append(nil)
		m.steps = append(m.steps, 0)
		return s
	}
	direction := make([]float32, len(v))
	for i, x := range v {
		direction[i] = x / s.Length
	}
	m.steps = append(m.steps, quantise(direction))
	m.vectors.append(direction)
	return s
}

// sum gives the weighted sum of token rows; nil for none.
func (m *meaning) sum(rows []uint16) []float32 {
	if len(rows) == 0 {
		return nil
	}
	v := make([]float32, m.table.Dimensions())
	for _, r := range rows {
		w := m.unseen
		if int(r) < len(m.weights) {
			w = m.weights[r]
		}
		m.table.AddRow(v, int32(r), w)
	}
	return v
}

// query gives the vector of a query; nil when the table has no opinion on it.
func (m *meaning) query(text string) []float32 {
	if !m.table.Represents(text) {
		return nil
	}
	return m.less(m.sum(tokenRows(m.table, text)))
}

// refreshed makes a meaning with the statistics at the last refresh point and
// with all vectors anew. It reads only elements that no longer change.
func (m *meaning) refreshed(t tableTokens, held uint64) *meaning {
	next := newMeaning(m.table)
	next.since = refreshPoint(held)
	n := upTo(t.messages, next.since)
	next.takeWeights(t, n)
	sums := parallel(t.tokens, next.sum)
	of := func(msg message) [][]float32 { return sums[msg.firstSlice : msg.firstSlice+msg.slices] }
	next.takeMean(n, func(i int) []float32 { return next.total(of(t.messages[i])) })
	for _, msg := range t.messages {
		next.addMessage(of(msg))
	}
	return next
}

// tableTokens are the token lists of a table, and where each message's are.
type tableTokens struct {
	tokens   [][]uint16
	messages []message
}

// takeWeights sets each row's weight, ln(1 + (N − df + .5)/(df + .5)), over
// the messages among the first n that the table has an opinion on.
func (m *meaning) takeWeights(t tableTokens, n int) {
	documents := 0
	var df []int
	var lastIn []int32 // by row: the last message that held it, plus one
	for i, msg := range t.messages[:n] {
		held := false
		for _, rows := range t.tokens[msg.firstSlice : msg.firstSlice+msg.slices] {
			for _, r := range rows {
				held = true
				for int(r) >= len(df) {
					df, lastIn = append(df, 0), append(lastIn, 0)
				}
				if lastIn[r] != int32(i)+1 {
					lastIn[r] = int32(i) + 1
					df[r]++
				}
			}
		}
		if held {
			documents++
		}
	}
	m.unseen = float32(idf(documents, 0))
	m.weights = make([]float32, len(df))
	for r, count := range df {
		m.weights[r] = float32(idf(documents, count))
	}
}

// parallel applies f to every element on all processors.
func parallel[T, R any](list []T, f func(T) R) []R {
	out := make([]R, len(list))
	workers := min(runtime.GOMAXPROCS(0), 8)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := w * len(list) / workers; i < (w+1)*len(list)/workers; i++ {
				out[i] = f(list[i])
			}
		})
	}
	wg.Wait()
	return out
}

// refreshed makes the index's next meaning without holding its lock.
func (x *Index) refreshed() *meaning {
	x.mu.RLock()
	m, held := x.meaning, uint64(len(x.where))
	t := tableTokens{x.main.table.tokens, x.main.table.messages}
	x.mu.RUnlock()
	return m.refreshed(t, held)
}
