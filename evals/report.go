package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

const (
	resultsFile = "RESULTS.md"
	speedFile   = "speed.json"
	plotFolder  = "plots"
)

// ablated are the sets whose report part is asked again with one thing left
// out at a time.
var ablated = setOf([]string{"locomo-turn", "beam", "sessions"})

// A headline is a figure of the first table. Published is what others have
// published for the same work, where there is something.
type headline struct {
	set, category, metric string
	split                 Split
	published             string
}

var headlines = []headline{
	{"locomo-turn", "", "recall@10", Report, ".694"},
	{"locomo-turn", "multi-hop", "recall@10", Report, ".436"},
	{"locomo-turn", adversarial, "recall@10", All, ""},
	{"locomo-merged", "", "recall@10", All, ""},
	{"locomo-session", everything, "any@1", All, ""},
	{"locomo-session", everything, "any@5", All, ".939"},
	{"locomo-session", everything, "all@5", All, ""},
	{"beam", "", "recall@10", Report, ""},
	{"beam", "", "recall@10_exchange", Report, ""},
	{"sessions", "", "any@5", All, ""},
	{"sessions", "", "mrr", All, ""},
	{"sessions", "non-verbatim", "mrr", All, ""},
	{"scifact", "", "ndcg@10", All, ".679"},
	{"scifact", "", "ndcg@10_fused", All, ""},
	{"xquad", "en", "mrr@10", All, ""},
	{"xquad", "zh", "mrr@10", All, ""},
	{"xquad", "ru", "mrr@10", All, ""},
	{"xquad", "th", "mrr@10", All, ""},
	{"xquad", "jsquad-ja", "mrr@10", All, ""},
	{"silence", "", "fired_unrelated", Report, ""},
	{"silence", "", "kept_related", Report, ""},
	{"silence", "coding", "fired_unrelated", Report, ""},
	{"silence", "coding-subjects", "kept_related", Report, ""},
	{"silence", "coding-subjects", "fired_unrelated", Report, ""},
	{"silence", "coding-prompts-specstory", "fired_unrelated", Report, ""},
	{"silence", "coding-prompts-entire", "fired_unrelated", Report, ""},
	{"silence", "chatter", "fired_unrelated", All, ""},
}

const headlineNotes = `
Intervals hold the middle 95 % of 2,000 bootstrap samples over questions.
Published, on LoCoMo: the best known without notes that a model made (by
message: text-embedding-3-small; multi-hop: bge-m3; by session: bge-large, BM25
and a cross-encoder). On SciFact: BM25 as BEIR reports it, which ndcg@10 is to
match.

`

// A reported is a set with everything the report says about it.
type reported struct {
	run      *Run
	ablation []Ablation
}

// A report gathers what all sets gave.
type report struct {
	made    Provenance
	sets    []reported
	skipped []string
	speed   *SpeedReport
	// journal is made with the rest, journalModel read from the last time it was.
	journal, journalModel *JournalReport
	models                *ModelReport
}

func newReportCommand(o *options) *cobra.Command {
	var out, longmem string
	command := &cobra.Command{
		Use:   "report",
		Short: "Run every set that is there and rewrite " + resultsFile + " and its plots",
		Args:  noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := o.check(true); err != nil {
				return err
			}
			// Found out now, not after minutes of measuring.
			if err := makeFolder(filepath.Join(out, plotFolder)); err != nil {
				return err
			}
			r := &report{made: provenance(command.Context())}
			err := o.withRunner(command.Context(), func(runner *Runner) error {
				return r.gather(command.Context(), runner, o.data, longmem)
			})
			if err != nil {
				return err
			}
			return r.write(out)
		},
	}
	command.Flags().StringVar(&out, "out", "evals", "folder of "+resultsFile)
	command.Flags().StringVar(&longmem, "longmemeval", "", "also run this LongMemEval file")
	return command
}

// gather runs every set whose data is there.
func (r *report) gather(ctx context.Context, runner *Runner, data, longmem string) error {
	for _, l := range loaders {
		set, err := l.load(data)
		if errors.Is(err, errAbsent) {
			r.skipped = append(r.skipped, l.name+": its data is not there")
			continue
		}
		if err != nil {
			return err
		}
		if err := r.gatherSet(ctx, runner, set); err != nil {
			return err
		}
	}
	var err error
	if r.journal, err = runJournal(ctx, newJournalRun(runner, "builtin", nil), data); err != nil {
		return err
	}
	for _, line := range r.journal.Skipped {
		r.skipped = append(r.skipped, "journal "+line)
	}
	if longmem == "" {
		r.skipped = append(r.skipped, "longmemeval: no file was named")
		return nil
	}
	run, err := runner.runLongmem(ctx, longmem)
	if err != nil {
		return err
	}
	r.sets = append(r.sets, reported{run: run})
	return nil
}

func (r *report) gatherSet(ctx context.Context, runner *Runner, set *Set) error {
	run, err := runner.run(ctx, set)
	if err != nil {
		return fmt.Errorf("%s: %w", set.Name, err)
	}
	one := reported{run: run}
	if ablated[set.Name] {
		if one.ablation, err = runner.ablate(ctx, run.of(Report)); err != nil {
			return fmt.Errorf("%s: %w", set.Name, err)
		}
	}
	r.sets = append(r.sets, one)
	return nil
}

// write rewrites the results and their plots.
func (r *report) write(folder string) error {
	var err error
	if r.speed, err = readFigures[SpeedReport](filepath.Join(folder, speedFile)); err != nil {
		return err
	}
	if r.speed == nil {
		r.skipped = append(r.skipped, "speed: not measured yet")
	}
	if r.models, err = readFigures[ModelReport](filepath.Join(folder, modelsFile)); err != nil {
		return err
	}
	if r.models == nil {
		r.skipped = append(r.skipped, "models: not measured yet")
	}
	if r.journalModel, err = readFigures[JournalReport](filepath.Join(folder, modelFile)); err != nil {
		return err
	}
	if r.journalModel == nil {
		r.skipped = append(r.skipped, "journal with a model: not measured yet")
	}
	if err := makeFolder(filepath.Join(folder, plotFolder)); err != nil {
		return err
	}
	for _, plot := range r.plots() {
		var svg bytes.Buffer
		if err := plot.draw(&svg); err != nil {
			return fmt.Errorf("draw %s: %w", plot.name, err)
		}
		if err := os.WriteFile(filepath.Join(folder, plotFolder, plot.name), svg.Bytes(), 0o644); err != nil {
			return fmt.Errorf("write report: %w", err)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, resultsFile), []byte(r.markdown()), 0o644); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// makeFolder makes the folder that figures are written to; "" is none.
func makeFolder(folder string) error {
	if folder == "" {
		return nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("make the folder of the figures: %w", err)
	}
	return nil
}

// readFigures reads what another command measured last, nil when there is none.
func readFigures[T any](path string) (*T, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var figures T
	if err := json.Unmarshal(data, &figures); err != nil {
		return nil, fmt.Errorf("read %s: %w", filepath.Base(path), err)
	}
	return &figures, nil
}

// markdown renders the report.
func (r *report) markdown() string {
	var out strings.Builder
	fmt.Fprintf(&out, `# Results

Made by `+"`go run ./evals report --data DIR`"+`; do not edit. One set of default
parameters serves every row. Choices were made on the tune parts only; sets
without a split are checks. Questions are put to a server of their own over
gRPC, with its built-in model and no other. Metrics are means over questions.

%s, commit %s, %s.

`, r.made.Date, r.made.Commit, r.made.Machine)
	out.WriteString("## In short\n\n")
	out.WriteString(r.headlineTable().markdown())
	out.WriteString(headlineNotes)
	fmt.Fprintf(&out, "![Recall against k](%s/%s)\n\n", plotFolder, recallPlot)
	fmt.Fprintf(&out, "![Latency against the size of a memory](%s/%s)\n\n", plotFolder, latencyPlot)
	for _, one := range r.sets {
		one.write(&out)
	}
	r.writeJournal(&out)
	r.writeModels(&out)
	r.writeSpeed(&out)
	r.writeSkipped(&out)
	return strings.TrimRight(out.String(), "\n") + "\n"
}

func (r *report) headlineTable() *table {
	t := &table{heading: []string{"set", "category", "split", "metric", "value", "95 % interval", "published"}}
	for _, h := range headlines {
		values := r.valuesOf(h)
		if len(values) == 0 {
			continue
		}
		interval := bootstrap(values)
		t.rows = append(t.rows, []string{
			h.set, orDash(h.category), string(h.split), h.metric, fmt.Sprintf("%.3f", interval.Mean),
			fmt.Sprintf("[%.3f, %.3f]", interval.Low, interval.High), orDash(h.published),
		})
	}
	return t
}

// valuesOf gives a headline's metric of each question it is about.
func (r *report) valuesOf(h headline) []float64 {
	var list []float64
	for _, one := range r.sets {
		if one.run.Set.Name != h.set {
			continue
		}
		for i := range one.run.Set.Questions {
			if x, ok := one.run.Values[i][h.metric]; ok && h.about(&one.run.Set.Questions[i]) {
				list = append(list, x)
			}
		}
	}
	return list
}

func (h *headline) about(q *Question) bool {
	if !q.in(h.split) {
		return false
	}
	if h.category == "" {
		return !q.Apart
	}
	for _, category := range q.Categories {
		if category == h.category {
			return true
		}
	}
	return false
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// write adds the tables of a set, one for each split.
func (one *reported) write(out *strings.Builder) {
	fmt.Fprintf(out, "## %s\n\n", one.run.Set.Name)
	for _, split := range one.run.splits() {
		result := one.run.result(split)
		fmt.Fprintf(out, "Split %s:\n\n%s\n%s.\n\n", split, result.categoryTable().markdown(), result.summary())
	}
	if len(one.ablation) > 0 {
		fmt.Fprintf(out, "One thing left out at a time, split report, paired bootstrap over questions:\n\n%s\n",
			ablationTable(one.ablation).markdown())
	}
}

// splits gives the splits that a run has questions of.
func (run *Run) splits() []Split {
	for i := range run.Set.Questions {
		if run.Set.Questions[i].Split != "" {
			return []Split{Report, All, Tune}
		}
	}
	return []Split{All}
}

func (r *report) writeSpeed(out *strings.Builder) {
	if r.speed == nil {
		return
	}
	fmt.Fprintf(out, "## Speed\n\nSynthetic memories: turns of two messages of %d words, queries of %d words; made by `go run ./evals speed`.\n%s, commit %s, %s.\n\n%s\n",
		messageWords, queryWords, r.speed.Made.Date, r.speed.Made.Commit, r.speed.Made.Machine, r.speed.table().markdown())
}

func (r *report) writeSkipped(out *strings.Builder) {
	if len(r.skipped) == 0 {
		return
	}
	out.WriteString("## Skipped\n\n")
	for _, line := range r.skipped {
		fmt.Fprintf(out, "- %s\n", line)
	}
}
