package main

import (
	"math/rand/v2"
	"slices"
)

const (
	// resamples is the number of times the questions are drawn anew.
	resamples = 2000
	// bootstrapSeed makes intervals repeatable.
	bootstrapSeed = 20240229
)

// An Interval is a mean with the bounds of its 95 % interval.
type Interval struct {
	Mean, Low, High float64
}

// bootstrap estimates the mean of paired differences, one per question: the
// questions are drawn anew with replacement, and the interval holds the middle
// 95 % of the means (percentile bootstrap; Efron and Tibshirani 1993, ch. 13).
// No differences give the zero Interval.
func bootstrap(differences []float64) Interval {
	n := len(differences)
	if n == 0 {
		return Interval{}
	}
	random := rand.New(rand.NewPCG(bootstrapSeed, uint64(n)))
	drawn := make([]float64, resamples)
	for i := range drawn {
		sum := 0.
		for range n {
			sum += differences[random.IntN(n)]
		}
		drawn[i] = sum / float64(n)
	}
	slices.Sort(drawn)
	return Interval{
		Mean: mean(differences),
		Low:  quantile(drawn, .025),
		High: quantile(drawn, .975),
	}
}

func mean(numbers []float64) float64 {
	if len(numbers) == 0 {
		return 0
	}
	sum := 0.
	for _, x := range numbers {
		sum += x
	}
	return sum / float64(len(numbers))
}

// differences pairs a metric of two runs over the same questions.
func differences(base, variant []Values, metric string) []float64 {
	var ds []float64
	for i := range base {
		a, inBase := base[i][metric]
		b, inVariant := variant[i][metric]
		if inBase && inVariant {
			ds = append(ds, b-a)
		}
	}
	return ds
}
