package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "recalld/proto/recalld/v1"
)

// knownParts are the terms of the ranking formula. Ablation also leaves out
// every other part that it finds in answers.
var knownParts = []string{"spr", "dcov", "cspr", "smax", "spk", "pqs", "date", "ask", "fp", "when"}

// knownSources are the sources that need no model server.
var knownSources = []pb.Source{pb.Source_SOURCE_WORDS, pb.Source_SOURCE_MEANING, pb.Source_SOURCE_CONTEXT}

// An Ablation is what leaving one thing out does to a metric: Difference is
// without it minus with it, Low to High its 95 % interval.
type Ablation struct {
	Without    string  `json:"without"`
	Metric     string  `json:"metric"`
	Value      float64 `json:"value"`
	Difference float64 `json:"difference"`
	Low        float64 `json:"low"`
	High       float64 `json:"high"`
	// Refused says why the server would not leave it out.
	Refused string `json:"refused,omitempty"`
}

// A variant is a way of asking with one thing left out.
type variant struct {
	without string
	pass    Pass
}

// variants lists what can be left out of a run.
func variants(parts []string) []variant {
	all := slices.Clone(knownParts)
	for _, part := range parts {
		if !slices.Contains(all, part) {
			all = append(all, part)
		}
	}
	var list []variant
	for _, part := range all {
		list = append(list, variant{part, Pass{WithoutParts: []string{part}}})
	}
	for i, source := range knownSources {
		list = append(list, variant{sourceName(source), Pass{
			Sources: slices.Delete(slices.Clone(knownSources), i, i+1),
		}})
	}
	return list
}

func sourceName(source pb.Source) string {
	return "source " + map[pb.Source]string{
		pb.Source_SOURCE_WORDS:   "words",
		pb.Source_SOURCE_MEANING: "meaning",
		pb.Source_SOURCE_CONTEXT: "context",
	}[source]
}

// ablate asks the questions again with one part or source left out at a time,
// and compares with run, question by question. Only questions that count at
// the top level are compared.
func (r *Runner) ablate(ctx context.Context, run *Run) ([]Ablation, error) {
	var list []Ablation
	for _, v := range variants(run.Parts) {
		pass := v.pass
		pass.Suffix = run.Set.passes()[0].Suffix
		answers, err := r.ask(ctx, run.Set, pass, runtime.NumCPU())
		if status.Code(err) == codes.InvalidArgument || status.Code(err) == codes.Unimplemented {
			list = append(list, Ablation{Without: v.without, Refused: status.Convert(err).Message()})
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("leave out %s: %w", v.without, err)
		}
		other := newRun(run.Set)
		other.add(pass, answers, false)
		for _, metric := range run.Set.Keys {
			list = append(list, compare(v.without, metric, run, other))
		}
	}
	return list, nil
}

func compare(without, metric string, base, other *Run) Ablation {
	a, b := base.top(), other.top()
	interval := bootstrap(differences(a, b, metric))
	return Ablation{
		Without:    without,
		Metric:     metric,
		Value:      round(means(b)[metric]),
		Difference: round(interval.Mean),
		Low:        round(interval.Low),
		High:       round(interval.High),
	}
}
