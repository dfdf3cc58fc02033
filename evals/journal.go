package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// A journalTask reads chats, has their journals written and scores the entries.
type journalTask struct {
	ids string // one letter each
	run func(j *journalRun, ctx context.Context, data string) ([]JournalRow, error)
}

// journalTasks are the tasks, in the order of the report.
var journalTasks = []journalTask{
	{"W", (*journalRun).windowRows},
	{"RSDU", (*journalRun).labelRows},
	{"L", (*journalRun).linkRows},
	{"M", (*journalRun).snippetRows},
	{"A", (*journalRun).meetingRows},
	{"E", (*journalRun).mailRows},
}

// extractors are the values of --extractor.
var extractors = []string{"builtin", "model"}

// A JournalReport is what the tasks gave with one extractor.
type JournalReport struct {
	Made      Provenance   `json:"made"`
	Extractor string       `json:"extractor"`
	Model     string       `json:"model,omitempty"`
	Rows      []JournalRow `json:"rows"`
	Checks    Checks       `json:"checks"`
	Skipped   []string     `json:"skipped,omitempty"`
}

// A WindowReport is what one file of labelled windows gave. Metrics are those of
// the person's words.
type WindowReport struct {
	File      string                `json:"file"`
	Extractor string                `json:"extractor"`
	N         int                   `json:"n"`
	Metrics   Values                `json:"metrics"`
	Intervals map[string][2]float64 `json:"intervals"`
	Rows      []JournalRow          `json:"rows"`
	Checks    Checks                `json:"checks"`
}

// A journalRun is what the tasks share.
type journalRun struct {
	runner *Runner
	scribe *Scribe
	tasks  []string // none is all
}

func newJournalRun(runner *Runner, extractor string, tasks []string) *journalRun {
	return &journalRun{runner: runner, scribe: newScribe(runner.client, extractor), tasks: tasks}
}

// journalOptions are the flags of journal.
type journalOptions struct {
	*options
	extractor, windows, model string
	tasks                     []string
}

func newJournalCommand(o *options) *cobra.Command {
	j := journalOptions{options: o}
	command := &cobra.Command{
		Use:   "journal",
		Short: "What the journal finds of what was decided, and what it invents",
		Long: `What the journal finds of what was decided, and what it invents.

Every text is put into a fresh memory, consolidated to the end through the
service, and the live entries are held against what people marked. The tasks:
W windows of coding sessions; R rules, S rules and preferences, D decisions and
U changes in BEAM's messages; L which earlier message a change is about; M
snippets in ten languages; A meetings and E mails, which have no goal. With
--windows a file of labelled windows of yours is scored instead.`,
		Example: `  go run ./evals journal --data DIR --tasks W,R,S
  go run ./evals journal --windows FILE.jsonl --json -
  go run ./evals journal --data DIR --extractor model --model ollama:NAME`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := j.check(); err != nil {
				return err
			}
			return j.withRunner(command.Context(), func(r *Runner) error {
				if j.windows != "" {
					return j.runFile(command, r)
				}
				return j.runTasks(command, r)
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&j.extractor, "extractor", "builtin", "who reads the windows: "+strings.Join(extractors, " or "))
	flags.StringVar(&j.model, "model", "", "model of the started server's extractor, as ollama:NAME or openai:NAME")
	flags.StringVar(&j.windows, "windows", "", "score this file of labelled windows")
	flags.StringSliceVar(&j.tasks, "tasks", nil, "letters of the tasks to run (default: all)")
	return command
}

// check refuses flags that do not fit, and prepares those of the server.
func (j *journalOptions) check() error {
	if err := j.options.check(j.windows == ""); err != nil {
		return err
	}
	if !slices.Contains(extractors, j.extractor) {
		return &usageError{fmt.Errorf("--extractor is %q; it is %s", j.extractor, strings.Join(extractors, " or "))}
	}
	known := ""
	for _, task := range journalTasks {
		known += task.ids
	}
	for _, id := range j.tasks {
		if len(id) != 1 || !strings.Contains(known, id) {
			return &usageError{fmt.Errorf("--tasks: there is no task %q; they are %s", id, strings.Join(strings.Split(known, ""), ", "))}
		}
	}
	if j.model == "" {
		return nil
	}
	if j.root != "" || j.socket != "" {
		return &usageError{errors.New("--model is of a server that is started here, not of a running one")}
	}
	j.serve = append(j.serve, "--extract", j.model)
	return nil
}

func (j *journalOptions) runTasks(command *cobra.Command, r *Runner) error {
	report, err := runJournal(command.Context(), newJournalRun(r, j.extractor, j.tasks), j.data)
	if err != nil {
		return err
	}
	report.Model = j.model
	report.Made = provenance(command.Context())
	for _, line := range report.Skipped {
		fmt.Fprintf(command.ErrOrStderr(), "evals: journal %s\n", line)
	}
	return j.give(command, report, report.print)
}

func (j *journalOptions) runFile(command *cobra.Command, r *Runner) error {
	report, err := scoreFile(command.Context(), newJournalRun(r, j.extractor, nil), j.windows)
	if err != nil {
		return err
	}
	return j.give(command, report, report.print)
}

// give writes figures as JSON where that was asked for, and for people; only
// the object goes to stdout when it is asked for there.
func (j *journalOptions) give(command *cobra.Command, v any, print func(io.Writer) error) error {
	out := command.OutOrStdout()
	if j.json != "" {
		if err := writeJSON(j.json, v, out); err != nil {
			return err
		}
	}
	if j.json == "-" {
		return nil
	}
	return print(out)
}

// runJournal runs the tasks whose data is there.
func runJournal(ctx context.Context, j *journalRun, data string) (*JournalReport, error) {
	report := &JournalReport{Extractor: j.scribe.extractor}
	for _, task := range journalTasks {
		if !j.wants(strings.Split(task.ids, "")...) {
			continue
		}
		rows, err := task.run(j, ctx, data)
		if errors.Is(err, errAbsent) {
			report.Skipped = append(report.Skipped, fmt.Sprintf("task %s skipped: %v", strings.Join(strings.Split(task.ids, ""), ", "), err))
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("journal %s: %w", task.ids, err)
		}
		report.Rows = append(report.Rows, rows...)
	}
	report.Checks = j.scribe.checks
	return report, nil
}

// wants reports whether any of the tasks was asked for.
func (j *journalRun) wants(ids ...string) bool {
	return len(j.tasks) == 0 || slices.ContainsFunc(ids, func(id string) bool { return slices.Contains(j.tasks, id) })
}

func (j *journalRun) bar(label string, total int) *bar { return j.runner.bar("journal "+label, total) }

// read has chats read, with a bar.
func (j *journalRun) read(ctx context.Context, label string, chats []Chat) ([][]Found, error) {
	bar := j.bar(label, len(chats))
	defer bar.close()
	return j.scribe.readAll(ctx, chats, bar.add)
}

// readGold has the windows of a file read.
func (j *journalRun) readGold(ctx context.Context, name, path string) (*scored, error) {
	windows, err := readWindows(path)
	if err != nil {
		return nil, err
	}
	chats := make([]Chat, len(windows))
	for i := range windows {
		chats[i] = windows[i].chat(name + "/" + itoa(i))
	}
	found, err := j.read(ctx, "W "+name, chats)
	return &scored{name: name, windows: windows, found: found}, err
}

// windowRows scores the labelled windows among the data: each file, then both
// by split.
func (j *journalRun) windowRows(ctx context.Context, data string) ([]JournalRow, error) {
	both := &scored{name: "windows, both"}
	var rows []JournalRow
	for _, name := range goldFiles {
		s, err := j.readGold(ctx, name, goldPath(data, name))
		if err != nil {
			return nil, err
		}
		rows = append(rows, s.rows(All)...)
		both.windows, both.found = append(both.windows, s.windows...), append(both.found, s.found...)
	}
	return slices.Concat(both.rows(Report), both.rows(Tune), rows), nil
}

// scoreFile scores one file of labelled windows.
func scoreFile(ctx context.Context, j *journalRun, path string) (*WindowReport, error) {
	name := filepath.Base(path)
	s, err := j.readGold(ctx, name, path)
	if err != nil {
		return nil, err
	}
	report := &WindowReport{
		File: name, Extractor: j.scribe.extractor, N: len(s.windows), Rows: s.rows(All), Checks: j.scribe.checks,
		Metrics: Values{"precision": 0, "recall": 0, "none_hit": 0}, Intervals: map[string][2]float64{},
	}
	for metric := range report.Metrics {
		if x, ok := report.Rows[0].Metrics[metric]; ok {
			report.Metrics[metric], report.Intervals[metric] = x, report.Rows[0].Intervals[metric]
		}
	}
	return report, nil
}

func itoa(n int) string { return strconv.Itoa(n) }
