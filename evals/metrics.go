package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Values are the metrics of one question, by name. A question lacks a metric
// that does not apply to it.
type Values map[string]float64

// cutoffs are the k of recall@k, any@k and all@k.
var cutoffs = []int{1, 5, 10, 20, 50}

// rankCutoff is the k of MRR@10 and nDCG@10.
const rankCutoff = 10

// rankingValues scores a ranking (units, best first, none twice) against the
// units that should be in it: recall@k (found ÷ all), any@k, all@k, mrr (1 ÷
// rank of the first, 0 if there is none), mrr@10, and ndcg@10 with gain 1 and
// discount 1/log2(rank+1). It gives nothing when there is no gold.
func rankingValues(ranked []string, gold map[string]bool) Values {
	v := make(Values)
	if len(gold) == 0 {
		return v
	}
	for _, k := range cutoffs {
		found := found(ranked, gold, k)
		v[fmt.Sprintf("recall@%d", k)] = float64(found) / float64(len(gold))
		v[fmt.Sprintf("any@%d", k)] = truth(found > 0)
		v[fmt.Sprintf("all@%d", k)] = truth(found == len(gold))
	}
	v["mrr"] = reciprocalRank(ranked, gold)
	v["mrr@10"] = reciprocalRank(ranked[:min(rankCutoff, len(ranked))], gold)
	v["ndcg@10"] = ndcg(ranked, gold, rankCutoff)
	return v
}

// found counts the gold units among the first k.
func found(ranked []string, gold map[string]bool, k int) int {
	n := 0
	for _, id := range ranked[:min(k, len(ranked))] {
		if gold[id] {
			n++
		}
	}
	return n
}

func reciprocalRank(ranked []string, gold map[string]bool) float64 {
	i := slices.IndexFunc(ranked, func(id string) bool { return gold[id] })
	if i < 0 {
		return 0
	}
	return 1 / float64(i+1)
}

// ndcg is the discounted gain of the first k, divided by the best possible.
func ndcg(ranked []string, gold map[string]bool, k int) float64 {
	var gain, ideal float64
	for i := range k {
		discount := 1 / math.Log2(float64(i+2))
		if i < len(ranked) && gold[ranked[i]] {
			gain += discount
		}
		if i < len(gold) {
			ideal += discount
		}
	}
	return gain / ideal
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// addSuffixed copies values under their names with a suffix.
func (v Values) addSuffixed(from Values, suffix string) {
	for name, x := range from {
		v[name+suffix] = x
	}
}

// means averages each metric over the values that have it.
func means(values []Values) Values {
	sum, n := make(Values), make(map[string]int)
	for _, v := range values {
		for name, x := range v {
			sum[name] += x
			n[name]++
		}
	}
	for name := range sum {
		sum[name] /= float64(n[name])
	}
	return sum
}

// quantile gives the q-quantile of sorted numbers by the nearest rank: the
// least element that at least q of all do not exceed. Of nothing it is 0.
func quantile[T cmp.Ordered](sorted []T, q float64) T {
	if len(sorted) == 0 {
		var zero T
		return zero
	}
	i := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

// Percentiles of a time, in milliseconds.
type Percentiles struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
}

func percentiles(times []time.Duration) Percentiles {
	sorted := slices.Sorted(slices.Values(times))
	at := func(q float64) float64 { return milliseconds(quantile(sorted, q)) }
	return Percentiles{P50: at(.5), P95: at(.95), P99: at(.99)}
}

// milliseconds gives a time in milliseconds, to a hundredth.
func milliseconds(d time.Duration) float64 {
	return math.Round(float64(d)/float64(time.Millisecond)*100) / 100
}
