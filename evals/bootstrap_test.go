package main

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBootstrap(t *testing.T) {
	mixed := slices.Concat(slices.Repeat([]float64{1}, 60), slices.Repeat([]float64{0}, 40))
	tests := []struct {
		name        string
		differences []float64
		low, high   [2]float64
		mean        float64
	}{
		{name: "nothing"},
		{name: "all alike leaves no doubt", differences: []float64{.25, .25, .25}, mean: .25, low: [2]float64{.25, .25}, high: [2]float64{.25, .25}},
		// 1.96 standard errors of a share of .6 in 100 are .096.
		{name: "60 of 100", differences: mixed, mean: .6, low: [2]float64{.48, .53}, high: [2]float64{.67, .72}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := bootstrap(tt.differences)
			within := func(x float64, bounds [2]float64) bool { return x >= bounds[0]-1e-9 && x <= bounds[1]+1e-9 }
			if diff := cmp.Diff(tt.mean, got.Mean, near); diff != "" || !within(got.Low, tt.low) || !within(got.High, tt.high) {
				t.Errorf("bootstrap = %+v, want mean %v, low in %v, high in %v", got, tt.mean, tt.low, tt.high)
			}
			if again := bootstrap(tt.differences); again != got {
				t.Errorf("bootstrap again = %+v, want %+v", again, got)
			}
		})
	}
}

func TestDifferencesPairsByQuestion(t *testing.T) {
	base := []Values{{"m": 1}, {"m": 0}, {}, {"m": .5}}
	other := []Values{{"m": 0}, {"m": 0}, {"m": 1}, {}}
	if diff := cmp.Diff([]float64{-1, 0}, differences(base, other, "m"), near); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
}
