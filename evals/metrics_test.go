package main

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var near = cmpopts.EquateApprox(0, 1e-9)

func TestRankingValues(t *testing.T) {
	tests := []struct {
		name   string
		ranked []string
		gold   []string
		want   Values
	}{
		{name: "no gold has no metrics", ranked: []string{"a"}, want: Values{}},
		{name: "nothing found", ranked: []string{"x"}, gold: []string{"a"}, want: Values{"mrr": 0, "recall@1": 0, "any@50": 0, "all@50": 0, "ndcg@10": 0}},
		{
			name: "one of two, second and sixth", ranked: []string{"x", "a", "y", "z", "w", "b"}, gold: []string{"a", "b"},
			want: Values{
				"recall@1": 0, "recall@5": .5, "recall@10": 1, "any@1": 0, "any@5": 1, "all@5": 0, "all@10": 1,
				"mrr": .5, "mrr@10": .5,
				"ndcg@10": (1/math.Log2(3) + 1/math.Log2(7)) / (1 + 1/math.Log2(3)),
			},
		},
		{
			name: "an eleventh place has no mrr@10", ranked: []string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "a"}, gold: []string{"a"},
			want: Values{"mrr": 1. / 11, "mrr@10": 0, "ndcg@10": 0, "recall@10": 0, "recall@20": 1},
		},
		{
			name: "more gold than places", ranked: []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"},
			gold: []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"},
			want: Values{"ndcg@10": 1, "recall@10": 10. / 12, "all@10": 0, "all@20": 1},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := rankingValues(tt.ranked, setOf(tt.gold))
			if len(tt.want) == 0 && len(got) != 0 {
				t.Fatalf("rankingValues = %v, want none", got)
			}
			for name, want := range tt.want {
				if x, ok := got[name]; !ok || math.Abs(x-want) > 1e-9 {
					t.Errorf("%s = %v (there: %t), want %v", name, x, ok, want)
				}
			}
		})
	}
}

func TestMeans(t *testing.T) {
	got := means([]Values{{"a": 1, "b": 1}, {"a": 0}, {}})
	if diff := cmp.Diff(Values{"a": .5, "b": 1}, got, near); diff != "" {
		t.Errorf("means (-want +got):\n%s", diff)
	}
}

func TestQuantile(t *testing.T) {
	tests := []struct {
		name   string
		sorted []int
		q      float64
		want   int
	}{
		{"of nothing", nil, .5, 0},
		{"of one", []int{7}, .99, 7},
		{"median of four is the second", []int{1, 2, 3, 4}, .5, 2},
		{"95 % of twenty is the nineteenth", []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}, .95, 19},
		{"the least", []int{1, 2}, 0, 1},
		{"the greatest", []int{1, 2}, 1, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := quantile(tt.sorted, tt.q); got != tt.want {
				t.Errorf("quantile(%v, %v) = %d, want %d", tt.sorted, tt.q, got, tt.want)
			}
		})
	}
}

func TestPercentilesSortsACopy(t *testing.T) {
	times := []time.Duration{3 * time.Millisecond, time.Millisecond, 2 * time.Millisecond}
	got := percentiles(times)
	if diff := cmp.Diff(Percentiles{P50: 2, P95: 3, P99: 3}, got); diff != "" {
		t.Errorf("percentiles (-want +got):\n%s", diff)
	}
	if times[0] != 3*time.Millisecond {
		t.Errorf("percentiles reordered its argument: %v", times)
	}
}
