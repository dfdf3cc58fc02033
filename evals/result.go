package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	pb "recalld/proto/recalld/v1"
)

// A Result is the figures of a split of a set, as they are printed and
// written. Metrics are means over the questions that have them.
type Result struct {
	Set        string              `json:"set"`
	Split      Split               `json:"split"`
	N          int                 `json:"n"`
	Metrics    Values              `json:"metrics"`
	Categories map[string]Category `json:"categories"`
	Latency    Percentiles         `json:"latency_ms"`
	Bytes      Sizes               `json:"bytes"`
	Parts      []string            `json:"parts"`
	// Sources counts, per source, what became of it.
	Sources  map[string]map[string]int `json:"sources"`
	Ablation []Ablation                `json:"ablation,omitempty"`
	// Skipped says why there are no figures.
	Skipped string `json:"skipped,omitempty"`
	columns []string
}

// A Category is the figures of some questions of a set.
type Category struct {
	N       int    `json:"n"`
	Metrics Values `json:"metrics"`
}

// Sizes are percentiles of the length of a block.
type Sizes struct {
	P50 int `json:"p50"`
	P95 int `json:"p95"`
}

// result gives the figures of a split. Top-level metrics leave out the
// questions that stand apart.
func (run *Run) result(split Split) Result {
	run = run.of(split)
	top := run.top()
	blocks := slices.Sorted(slices.Values(run.Blocks))
	return Result{
		Set:        run.Set.Name,
		Split:      split,
		N:          len(top),
		Metrics:    rounded(means(top)),
		Categories: run.categories(),
		Latency:    percentiles(run.Took),
		Bytes:      Sizes{P50: quantile(blocks, .5), P95: quantile(blocks, .95)},
		Parts:      run.Parts,
		Sources:    run.outcomes(),
		columns:    run.Set.Columns,
	}
}

func (run *Run) categories() map[string]Category {
	values := make(map[string][]Values)
	for i := range run.Set.Questions {
		for _, name := range run.Set.Questions[i].Categories {
			values[name] = append(values[name], run.Values[i])
		}
	}
	categories := make(map[string]Category, len(values))
	for name, list := range values {
		categories[name] = Category{N: len(list), Metrics: rounded(means(list))}
	}
	return categories
}

// outcomes counts what became of each source.
func (run *Run) outcomes() map[string]map[string]int {
	counts := make(map[string]map[string]int)
	for _, sources := range run.Sources {
		for source, outcome := range sources {
			if counts[source] == nil {
				counts[source] = make(map[string]int)
			}
			counts[source][outcome]++
		}
	}
	return counts
}

// rounded gives metrics to four digits.
func rounded(v Values) Values {
	for name, x := range v {
		v[name] = round(x)
	}
	return v
}

func round(x float64) float64 { return math.Round(x*1e4) / 1e4 }

// outcomeName is the name of an outcome as people read it.
func outcomeName(outcome pb.Outcome) string {
	return strings.ToLower(strings.TrimPrefix(outcome.String(), "OUTCOME_"))
}

// writeJSON writes one JSON object to a file, or to stdout for "-".
func writeJSON(path string, v any, stdout io.Writer) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	data = append(data, '\n')
	if path == "-" {
		_, err = stdout.Write(data)
		return err
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		return fmt.Errorf("write figures: %w", err)
	}
	return nil
}
