package retrieve

// sessionBM25 holds the usual parameters: sessions differ in length as the
// documents do that the defaults were found on.
var sessionBM25 = BM25{K1: 1.2, B: .75}

// scoreSessions gives each session's BM25 as if it were one document, divided
// by the largest. A word said often in one chat marks it even where no single
// message stands out.
func scoreSessions(terms []scoredTerm, t *table) []float32 {
	n := len(t.sessions)
	scores := make([]float32, n)
	counts := make([]int, n)
	var touched []int32
	average := float64(t.words) / float64(max(n, 1))
	for _, term := range terms {
		touched = touched[:0]
		for _, f := range term.forms {
			for _, list := range [][]posting{f.older, f.newer} {
				for _, p := range list {
					s := t.messages[t.slices[p.slice].message].session
					if counts[s] == 0 {
						touched = append(touched, s)
					}
					counts[s] += int(p.count)
				}
			}
		}
		weight := idf(n, len(touched)) * float64(term.count)
		for _, s := range touched {
			scores[s] += float32(sessionBM25.Weight(weight, counts[s], int(t.sessionWords[s]), average))
			counts[s] = 0
		}
	}
	var maximum float32
	for _, s := range scores {
		maximum = max(maximum, s)
	}
	normalise(scores, maximum)
	return scores
}
