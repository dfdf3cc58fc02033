package retrieve

import (
	"cmp"
	"context"
	"math"
	"slices"
)

// A space holds the vectors of the slices of one table, in the order of its
// messages, and compares queries with them after their mean is removed. What
// gives the vectors is its owner's concern, and so is who may look at it when.
type space struct {
	// since is the sequence number the statistics were taken at; 0: none yet.
	since uint64
	mean  []float32
	// vectors holds the direction of each slice's sum; lengths belong to them,
	// norms to whole messages, whose sums are those of their slices.
	vectors vectorStore
	lengths []shifted
	norms   []shifted
	first   []int32 // by message: its first slice
}

func newSpace(dims int) space {
	return space{mean: make([]float32, dims), vectors: newVectorStore(dims)}
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

// upTo counts the messages up to a sequence number.
func upTo(messages []message, seq uint64) int {
	n, _ := slices.BinarySearchFunc(messages, seq+1, func(m message, seq uint64) int { return cmp.Compare(m.seq, seq) })
	return n
}

// total is the sum of a message, that of its slices.
func (s *space) total(sums [][]float32) []float32 {
	total := make([]float32, len(s.mean))
	for _, v := range sums {
		for i, x := range v {
			total[i] += x
		}
	}
	return total
}

// shifted holds the length of a sum of vectors, 0 for none, and the length of
// its direction less the mean.
type shifted struct{ Length, Rest float32 }

func (s *space) shift(v []float32) shifted {
	if v == nil || s.since == 0 {
		return shifted{}
	}
	length := magnitude(v)
	if !(length > 0) || math.IsInf(float64(length), 0) {
		return shifted{}
	}
	var squares float64
	for i, mu := range s.mean {
		rest := v[i]/length - mu
		squares += float64(rest) * float64(rest)
	}
	d := shifted{length, float32(math.Sqrt(squares))}
	if d.Rest == 0 {
		return shifted{}
	}
	return d
}

func magnitude(v []float32) float32 {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	return float32(math.Sqrt(sum))
}

// less turns a query's vector, in place, to what is left of its direction
// without the mean; nil when that is nothing.
func (s *space) less(v []float32) []float32 {
	d := s.shift(v)
	if d.Length == 0 {
		return nil
	}
	for i, mu := range s.mean {
		v[i] = (v[i]/d.Length - mu) / d.Rest
	}
	return v
}

// takeMean sets the mean direction of the first n messages, whose sums total
// gives, as far as they have one.
func (s *space) takeMean(n int, total func(message int) []float32) {
	mean := make([]float64, len(s.mean))
	documents := 0
	for m := range n {
		v := total(m)
		length := magnitude(v)
		if !(length > 0) || math.IsInf(float64(length), 0) {
			continue
		}
		documents++
		for i, x := range v {
			mean[i] += float64(x / length)
		}
	}
	s.mean = make([]float32, len(mean))
	for i := range mean {
		s.mean[i] = float32(mean[i] / float64(max(documents, 1)))
	}
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
func (s *space) cosines(ctx context.Context, query []float32) (c cosines, err error) {
	defer guarded("scan vectors", &err)()
	dots := make([]float32, s.vectors.len())
	if err := s.vectors.dots(ctx, query, dots); err != nil {
		return cosines{}, err
	}
	var shift float32
	for i, mu := range s.mean {
		shift += mu * query[i]
	}
	c = cosines{dots, make([]float32, len(s.norms))}
	slice := 0
	for i := range s.norms {
		var sum float32
		for range s.counts(i) {
			d, l := dots[slice], s.lengths[slice]
			sum += l.Length * d
			c.slices[slice] = l.cosine(d, shift)
			slice++
		}
		if n := s.norms[i]; n.Length > 0 {
			c.messages[i] = n.cosine(sum/n.Length, shift)
		}
	}
	return c, nil
}

// counts gives the number of slices of a message.
func (s *space) counts(message int) int {
	if message+1 < len(s.first) {
		return int(s.first[message+1] - s.first[message])
	}
	return len(s.lengths) - int(s.first[message])
}

func (s shifted) cosine(dot, shift float32) float32 {
	if s.Length == 0 {
		return 0
	}
	return (dot - shift) / s.Rest
}
