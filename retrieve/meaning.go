package retrieve

import (
	"cmp"
	"context"
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
	// vectors holds the direction of each slice's sum; lengths belong to them,
	// norms to whole messages, whose sums are those of their slices.
	vectors vectorStore
	lengths []shifted
	norms   []shifted
	first   []int32   // by message: its first slice
	steps   []float32 // by slice: what its vector was rounded to, 0 for none
	// behind: messages were added without their vectors, for a refresh to make.
	behind bool
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

// total is the sum of a message, that of its slices.
func (m *meaning) total(sums [][]float32) []float32 {
	total := make([]float32, m.table.Dimensions())
	for _, v := range sums {
		for i, x := range v {
			total[i] += x
		}
	}
	return total
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

// shifted holds the length of a sum of token rows, 0 for none, and the length
// of its direction less the mean.
type shifted struct{ Length, Rest float32 }

func (m *meaning) shift(v []float32) shifted {
	if v == nil || m.since == 0 {
		return shifted{}
	}
	length := magnitude(v)
	if !(length > 0) || math.IsInf(float64(length), 0) {
		return shifted{}
	}
	rest := make([]float32, len(v))
	for i, mu := range m.mean {
		rest[i] = v[i]/length - mu
	}
	s := shifted{length, magnitude(rest)}
	if s.Rest == 0 {
		return shifted{}
	}
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

func magnitude(v []float32) float32 {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	return float32(math.Sqrt(sum))
}

// cosines are the likenesses of a query to every slice and message; where
// there is no vector it is 0.
type cosines struct {
	slices, messages []float32
}

// cosines scans all vectors. They are kept as directions of sums, from which
// the cosines of slices and of whole messages, less the mean, both follow: with
// unit query q, mean μ and sum S, (S·q/|S| − μ·q) / |S/|S| − μ|, and the sum of
// a message is that of its slices.
func (m *meaning) cosines(ctx context.Context, query []float32) (c cosines, err error) {
	defer guarded("scan vectors", &err)()
	dots := make([]float32, m.vectors.len())
	if err := m.vectors.dots(ctx, query, dots); err != nil {
		return cosines{}, err
	}
	var shift float32
	for i, mu := range m.mean {
		shift += mu * query[i]
	}
	c = cosines{dots, make([]float32, len(m.norms))}
	slice := 0
	for i := range m.norms {
		var sum float32
		for range m.counts(i) {
			d, l := dots[slice], m.lengths[slice]
			sum += l.Length * d
			c.slices[slice] = l.cosine(d, shift)
			slice++
		}
		if s := m.norms[i]; s.Length > 0 {
			c.messages[i] = s.cosine(sum/s.Length, shift)
		}
	}
	return c, nil
}

// counts gives the number of slices of a message.
func (m *meaning) counts(message int) int {
	if message+1 < len(m.first) {
		return int(m.first[message+1] - m.first[message])
	}
	return len(m.lengths) - int(m.first[message])
}

func (s shifted) cosine(dot, shift float32) float32 {
	if s.Length == 0 {
		return 0
	}
	return (dot - shift) / s.Rest
}

// query gives the vector of a query; nil when the table has no opinion on it.
func (m *meaning) query(text string) []float32 {
	if !m.table.Represents(text) {
		return nil
	}
	v := m.sum(tokenRows(m.table, text))
	s := m.shift(v)
	if s.Length == 0 {
		return nil
	}
	for i, mu := range m.mean {
		v[i] = (v[i]/s.Length - mu) / s.Rest
	}
	return v
}

// refreshed makes a meaning with the statistics at the last refresh point and
// with all vectors anew. It reads only elements that no longer change.
func (m *meaning) refreshed(t tableTokens, held uint64) *meaning {
	next := &meaning{table: m.table, since: refreshPoint(held), vectors: newVectorStore(m.table.Dimensions())}
	n := t.upTo(next.since)
	next.takeWeights(t, n)
	sums := parallel(t.tokens, next.sum)
	next.takeMean(t, sums, n)
	for _, msg := range t.messages {
		next.addMessage(sums[msg.firstSlice : msg.firstSlice+msg.slices])
	}
	return next
}

// tableTokens are the token lists of a table, and where each message's are.
type tableTokens struct {
	tokens   [][]uint16
	messages []message
}

// upTo counts the messages up to a sequence number.
func (t tableTokens) upTo(seq uint64) int {
	n, _ := slices.BinarySearchFunc(t.messages, seq+1, func(m message, seq uint64) int { return cmp.Compare(m.seq, seq) })
	return n
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

// takeMean sets the mean direction of the first n messages that have one.
func (m *meaning) takeMean(t tableTokens, sums [][]float32, n int) {
	mean := make([]float64, m.table.Dimensions())
	documents := 0
	for _, msg := range t.messages[:n] {
		total := m.total(sums[msg.firstSlice : msg.firstSlice+msg.slices])
		length := magnitude(total)
		if !(length > 0) || math.IsInf(float64(length), 0) {
			continue
		}
		documents++
		for i, x := range total {
			mean[i] += float64(x / length)
		}
	}
	m.mean = make([]float32, len(mean))
	for i := range mean {
		m.mean[i] = float32(mean[i] / float64(max(documents, 1)))
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
