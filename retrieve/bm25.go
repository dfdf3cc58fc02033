package retrieve

import "math"

// BM25 holds the parameters of the word score (Robertson, Zaragoza: The
// Probabilistic Relevance Framework, 2009). They are per query.
type BM25 struct {
	// K1 says how soon repeats of a term stop counting.
	K1 float64
	// B is how much length counts, from 0 to 1.
	B float64
}

// idf is the weight of a term that stands in df of n documents. It is positive
// for every df up to n.
func idf(n, df int) float64 {
	return math.Log1p((float64(n-df) + .5) / (float64(df) + .5))
}

// Weight is the score of one term that stands tf times in a document of the
// given length: idf·(k1+1)·tf / (tf + k1·(1 − b + b·length/average)).
func (p BM25) Weight(idf float64, tf, length int, average float64) float64 {
	return p.saturate(idf, float64(tf), 1-p.B+p.B*float64(length)/average)
}

func (p BM25) saturate(idf, tf, norm float64) float64 {
	return idf * (p.K1 + 1) * tf / (tf + p.K1*norm)
}

// messageK1 is k1 for messages (ranking-formula: .4 to 1.2 is flat).
const messageK1 = .9

// freeLength is how many content words a message may have before its length
// counts against it. One rule, max(1, length/40), serves chat turns of 30
// words and answers of 2,000: normalising below it lets the shortest remark
// win, not normalising above it lets the longest answer win.
const freeLength = 40

// lengthNorm is the length rule for messages.
func lengthNorm(length int32) float64 {
	return max(1, float64(length)/freeLength)
}
