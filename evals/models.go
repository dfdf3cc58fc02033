package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	pb "recalld/proto/recalld/v1"
)

// modelsFile holds the latest comparison of models, which the report repeats.
const modelsFile = "models.json"

// modelSets are the sets that models are compared on.
var modelSets = []string{"locomo-turn", "beam"}

// A ModelReport compares ways to use models, question by question.
type ModelReport struct {
	Embed  string     `json:"embed"`
	Expand string     `json:"expand"`
	Rows   []ModelRow `json:"rows"`
}

// A ModelRow is one metric of one way: Difference is to the built-in model
// without expansion, over the same questions, Low to High its 95 % interval.
type ModelRow struct {
	Set        string  `json:"set"`
	Way        string  `json:"way"`
	N          int     `json:"n"`
	Metric     string  `json:"metric"`
	Value      float64 `json:"value"`
	Difference float64 `json:"difference"`
	Low        float64 `json:"low"`
	High       float64 `json:"high"`
	// Outcomes counts what became of the source that the way is about.
	Outcomes map[string]int `json:"outcomes,omitempty"`
}

// modelOptions are the flags of models.
type modelOptions struct {
	*options
	embed, expand, out, split string
	sample                    int
}

func newModelsCommand(o *options) *cobra.Command {
	m := modelOptions{options: o}
	command := &cobra.Command{
		Use:   "models",
		Short: "Compare meaning from a model server with the built-in model and none, and expansion with none",
		Long: `Models asks the report halves of LoCoMo and BEAM with words alone, with the
built-in model and with an embedding model of a server, and a sample of them with
expansion by a chat model, when evidence is weak and always. A small model takes
seconds for one expansion; the sample keeps that to minutes. With --split tune it
asks the halves that choices are made on.`,
		Example: "  OLLAMA_HOST=127.0.0.1:11434 go run ./evals models --data DATA --embed ollama:all-minilm --expand ollama:smollm2:135m",
		Args:    noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := o.check(true); err != nil {
				return err
			}
			if m.sample < 1 {
				return &usageError{errors.New("--sample is at least 1")}
			}
			if m.split != string(Report) && m.split != string(Tune) {
				return &usageError{fmt.Errorf("--split is %q; it is tune or report", m.split)}
			}
			report, err := m.compare(command.Context())
			if err != nil {
				return err
			}
			if m.out != "" {
				if err := writeJSON(m.out, report, command.OutOrStdout()); err != nil {
					return err
				}
			}
			out := command.OutOrStdout()
			if o.json != "" {
				if err := writeJSON(o.json, report, out); err != nil {
					return err
				}
			}
			if o.json == "-" {
				return nil
			}
			return report.table().print(out)
		},
	}
	flags := command.Flags()
	flags.StringVar(&m.embed, "embed", "", "embedding model, as serve --embed takes it; empty leaves it out")
	flags.StringVar(&m.expand, "expand", "", "chat model, as serve --expand takes it; empty leaves it out")
	flags.StringVar(&m.split, "split", string(Report), "part of the questions: tune or report")
	flags.IntVar(&m.sample, "sample", 150, "questions of each set that are asked with expansion")
	flags.StringVar(&m.out, "out", "", "also write the figures to this file, for the report")
	return command
}

// An arm is a way to ask, on the server it needs.
type arm struct {
	way       string
	expansion pb.Expansion
	// source is what the arm is about; its outcomes are counted.
	source  string
	sampled bool
}

// armServers lists the servers and what is asked of each. The first arm of all
// is what the others are compared with.
func (m modelOptions) armServers() []armServer {
	list := []armServer{{nil, []arm{{way: "built-in", source: "meaning"}}}, {[]string{"--embed", "off"}, []arm{{way: "words alone"}}}}
	if m.embed != "" {
		list = append(list, armServer{[]string{"--embed", m.embed}, []arm{{way: m.embed, source: "meaning"}}})
	}
	if m.expand != "" {
		list = append(list, armServer{[]string{"--expand", m.expand}, []arm{
			{way: "expansion when weak", expansion: pb.Expansion_EXPANSION_WHEN_WEAK, source: "expansion", sampled: true},
			{way: "expansion always", expansion: pb.Expansion_EXPANSION_ALWAYS, source: "expansion", sampled: true},
		}})
	}
	return list
}

type armServer struct {
	arguments []string
	arms      []arm
}

func (m modelOptions) compare(ctx context.Context) (*ModelReport, error) {
	report := &ModelReport{Embed: m.embed, Expand: m.expand}
	base := map[string]*Run{}
	for _, server := range m.armServers() {
		o := *m.options
		o.serve = slices.Concat(o.serve, server.arguments)
		err := o.withRunner(ctx, func(r *Runner) error {
			for _, name := range modelSets {
				rows, err := m.compareOn(ctx, r, name, server.arms, base)
				if err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				report.Rows = append(report.Rows, rows...)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(report.Rows, func(a, b ModelRow) int {
		return slices.Index(modelSets, a.Set) - slices.Index(modelSets, b.Set)
	})
	return report, nil
}

// compareOn asks the questions of one set in all arms of a server.
func (m modelOptions) compareOn(ctx context.Context, r *Runner, name string, arms []arm, base map[string]*Run) ([]ModelRow, error) {
	i := slices.IndexFunc(loaders, func(l loader) bool { return l.name == name })
	set, err := loaders[i].load(m.data)
	if err != nil {
		return nil, err
	}
	set.only(Split(m.split))
	set.Passes = nil
	if err := r.fill(ctx, set); err != nil {
		return nil, err
	}
	var rows []ModelRow
	for _, a := range arms {
		of, pass, parallel := *set, Pass{Expansion: a.expansion}, runtime.NumCPU()
		if a.sampled {
			of.Questions = evenly(set.Questions, m.sample)
			parallel = 1 // a model answers one at a time
		}
		answers, err := r.ask(ctx, &of, pass, parallel)
		if err != nil {
			return nil, err
		}
		run := newRun(&Set{Name: of.Name, Questions: of.Questions})
		run.add(pass, answers, true)
		if base[name] == nil {
			base[name] = run
		}
		rows = append(rows, modelRows(a, run, base[name], set.Keys)...)
	}
	return rows, nil
}

// evenly takes n of the questions, evenly spread.
func evenly(questions []Question, n int) []Question {
	n = min(n, len(questions))
	list := make([]Question, n)
	for k := range n {
		list[k] = questions[k*len(questions)/n]
	}
	return list
}

// modelRows compares an arm with the base over the arm's questions.
func modelRows(a arm, run, base *Run, metrics []string) []ModelRow {
	place := map[string]int{}
	for i := range base.Set.Questions {
		place[base.Set.Questions[i].ID] = i
	}
	var was, is []Values
	for i := range run.Set.Questions {
		if at, ok := place[run.Set.Questions[i].ID]; ok && !run.Set.Questions[i].Apart {
			was, is = append(was, base.Values[at]), append(is, run.Values[i])
		}
	}
	var rows []ModelRow
	for _, metric := range metrics {
		interval := bootstrap(differences(was, is, metric))
		row := ModelRow{
			Set: run.Set.Name, Way: a.way, N: len(is), Metric: metric, Value: round(means(is)[metric]),
			Difference: round(interval.Mean), Low: round(interval.Low), High: round(interval.High),
		}
		if a.source != "" {
			row.Outcomes = run.outcomes()[a.source]
		}
		rows = append(rows, row)
	}
	return rows
}

// table has a line for every row.
func (m *ModelReport) table() *table {
	t := &table{heading: []string{"set", "way", "n", "metric", "value", "difference", "95 %", "outcomes"}}
	for _, row := range m.Rows {
		var outcomes []string
		for _, name := range slices.Sorted(maps.Keys(row.Outcomes)) {
			outcomes = append(outcomes, fmt.Sprintf("%s %d", name, row.Outcomes[name]))
		}
		t.rows = append(t.rows, []string{
			row.Set, row.Way, itoa(row.N), row.Metric, fmt.Sprintf("%.3f", row.Value), fmt.Sprintf("%+.3f", row.Difference),
			fmt.Sprintf("%+.3f to %+.3f", row.Low, row.High), strings.Join(outcomes, ", "),
		})
	}
	return t
}

// writeModels writes the comparison of models into the report.
func (r *report) writeModels(out *strings.Builder) {
	if r.models == nil {
		return
	}
	fmt.Fprintf(out, "## Models\n\nMeaning from %s and expansion by %s, compared with the built-in model without\n"+
		"expansion question by question; expansion on a sample. `go run ./evals models` measures it. Expansion is off by\n"+
		"default: %s\n\n%s\n",
		r.models.Embed, r.models.Expand, r.models.harm(), r.models.table().markdown())
}

// harmful is how much of a metric expansion may cost and still be on by default.
const harmful = .005

// harm says what expansion costs at worst.
func (m *ModelReport) harm() string {
	var worst ModelRow
	for _, row := range m.Rows {
		if strings.HasPrefix(row.Way, "expansion") && row.Difference < worst.Difference {
			worst = row
		}
	}
	if worst.Difference >= -harmful {
		return "it is of no use here, and costs no metric more than .005."
	}
	return fmt.Sprintf("%s it takes %.4f of %s of %s, more than the .005 that would be harmless.",
		strings.TrimPrefix(worst.Way, "expansion "), -worst.Difference, worst.Metric, worst.Set)
}
