package retrieve

import (
	"math"
	"runtime"
	"slices"
	"sync"
)

// meaning holds the vectors of the messages of one table, weighted by the
// memory's own statistics (SIF-like idf of token rows, then the mean vector
// removed): on chat turns that is worth more than the step from a static table
// to a transformer.
//
// The statistics change as a memory grows. They are taken at the sequence
// numbers ⌈2^(k/4)⌉ and at no other time, so that the same ledger gives the
// same vectors however it was filled.
//
// A meaning is guarded by its index's mu; a refresh makes a new one aside.
type meaning struct {
	table TokenTable
	// since is the sequence number the statistics were taken at; 0: none yet.
	since   uint64
	weights []float32 // per token row
	unseen  float32   // weight of rows beyond weights
	mean    []float32
	vectors vectorStore
}

// newMeaning gives nil for an embedder that is no token table.
func newMeaning(e Embedder) *meaning {
	table, ok := e.(TokenTable)
	if !ok {
		return nil
	}
	return &meaning{table: table, vectors: newVectorStore(table.Dimensions())}
}

// refreshPoint is the last sequence number up to seq at which statistics are
// taken: the largest ⌈2^(k/4)⌉ ≤ seq, or 0.
func refreshPoint(seq uint64) uint64 {
	if seq == 0 {
		return 0
	}
	point := uint64(1)
	for k := math.Floor(4 * math.Log2(float64(seq))); ; k++ {
		next := uint64(math.Ceil(math.Exp2(k / 4)))
		if next > seq {
			return point
		}
		point = next
	}
}

// due reports whether a refresh point has passed.
func (m *meaning) due(held uint64) bool { return refreshPoint(held) > m.since }

// reach is how far meaning is weighted as due.
func (m *meaning) reach(held uint64) uint64 {
	if m.due(held) {
		return m.since
	}
	return held
}

// add embeds the table's newest message with the present weights.
func (m *meaning) add(t *table) {
	m.vectors.append(m.embed(t.tokens[len(t.tokens)-1]))
}

// catchUp embeds messages that were added while m was made aside.
func (m *meaning) catchUp(t *table) {
	for i := m.vectors.len(); i < len(t.tokens); i++ {
		m.vectors.append(m.embed(t.tokens[i]))
	}
}

// embed gives the unit vector of a list of token rows, nil for no opinion.
func (m *meaning) embed(rows []uint16) []float32 {
	if m.since == 0 {
		return nil
	}
	v := m.sum(rows)
	if v == nil {
		return nil
	}
	for i, mu := range m.mean {
		v[i] -= mu
	}
	return unit(v)
}

// sum gives the weighted sum of rows, as a unit vector.
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
	return unit(v)
}

// query gives the vector of a query; nil when the table has no opinion on it.
func (m *meaning) query(text string) []float32 {
	if !m.table.Represents(text) {
		return nil
	}
	tokens := m.table.Tokens(text)
	rows := make([]uint16, len(tokens))
	for i, t := range tokens {
		rows[i] = uint16(t)
	}
	return m.embed(rows)
}

// unit scales v to length one in place; nil for a vector that has none.
func unit(v []float32) []float32 {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if sum == 0 || math.IsNaN(sum) || math.IsInf(sum, 0) {
		return nil
	}
	scale := float32(1 / math.Sqrt(sum))
	for i := range v {
		v[i] *= scale
	}
	return v
}

// refresh takes the statistics that are due for the table as it is.
func (m *meaning) refresh(t *table, held uint64) {
	next := m.refreshed(t.tokens, t.messages, held)
	*m = *next
}

// refreshed makes a meaning with the statistics at the last refresh point and
// with all vectors anew. It reads only elements that no longer change.
func (m *meaning) refreshed(tokens [][]uint16, messages []message, held uint64) *meaning {
	next := &meaning{table: m.table, since: refreshPoint(held)}
	n, _ := slices.BinarySearchFunc(messages, next.since+1, func(msg message, seq uint64) int {
		if msg.seq < seq {
			return -1
		}
		return 1
	})
	next.takeWeights(tokens[:n])
	sums := parallel(tokens, next.sum)
	next.takeMean(sums[:n])
	next.vectors = newVectorStore(m.table.Dimensions())
	for _, v := range sums {
		if v != nil {
			for i, mu := range next.mean {
				v[i] -= mu
			}
			v = unit(v)
		}
		next.vectors.append(v)
	}
	return next
}

// takeWeights sets each row's weight, ln(1 + (N − df + .5)/(df + .5)), over
// the messages the table has an opinion on.
func (m *meaning) takeWeights(tokens [][]uint16) {
	n := 0
	var df []int
	seen := map[uint16]bool{}
	for _, rows := range tokens {
		if len(rows) == 0 {
			continue
		}
		n++
		clear(seen)
		for _, r := range rows {
			if seen[r] {
				continue
			}
			seen[r] = true
			for int(r) >= len(df) {
				df = append(df, make([]int, int(r)+1-len(df))...)
			}
			df[r]++
		}
	}
	m.unseen = float32(idf(n, 0))
	m.weights = make([]float32, len(df))
	for r, count := range df {
		m.weights[r] = float32(idf(n, count))
	}
}

// takeMean sets the mean of the vectors there are.
func (m *meaning) takeMean(vectors [][]float32) {
	sum := make([]float64, m.table.Dimensions())
	n := 0
	for _, v := range vectors {
		if v == nil {
			continue
		}
		n++
		for i, x := range v {
			sum[i] += float64(x)
		}
	}
	m.mean = make([]float32, len(sum))
	for i := range sum {
		m.mean[i] = float32(sum[i] / float64(max(n, 1)))
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
	m, t, held := x.meaning, x.main.table, uint64(len(x.where))
	tokens, messages := t.tokens, t.messages
	x.mu.RUnlock()
	return m.refreshed(tokens, messages, held)
}
