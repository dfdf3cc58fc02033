package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
)

// A loader reads a set from the folder of all data.
type loader struct {
	name, short string
	load        func(data string) (*Set, error)
}

// loaders are the sets, in the order of the report.
var loaders = []loader{
	{"locomo-turn", "LoCoMo: questions to messages of ten conversations, a memory each", loadLocomoTurn},
	{"locomo-session", "LoCoMo: questions to sessions, a session at its best message", loadLocomoSession},
	{"locomo-merged", "LoCoMo: questions to messages, all ten conversations in one memory", loadLocomoMerged},
	{"beam", "BEAM-100k: questions to messages and exchanges of long chats with an assistant", loadBeam},
	{"sessions", "commit subjects to the coding sessions they came from", loadSessions},
	{"scifact", "SciFact: claims to abstracts, by plain BM25 and by recalld", loadScifact},
	{"xquad", "XQuAD and JSQuAD: questions to paragraphs in five languages", loadXquad},
	{"silence", "what gets an answer that should, and should not", loadSilence},
}

// options are the flags of all commands.
type options struct {
	data, split, json string
	ablate            bool
	socket, root      string
	// serve are further arguments of the server that is started.
	serve []string
}

func newRootCommand() *cobra.Command {
	var o options
	root := &cobra.Command{
		Use:   "evals",
		Short: "Measure how good and how fast recalld is",
		Long: `Measure how good and how fast recalld is.

Each set is a command. It starts a recalld of its own with an empty store,
appends the conversations, asks the questions and prints what was found.`,
		Example: `  go run ./evals locomo-turn --data DIR --split report
  go run ./evals beam --data DIR --json -
  go run ./evals report --data DIR`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	flags := root.PersistentFlags()
	flags.StringVar(&o.data, "data", "", "folder that holds the data sets")
	flags.StringVar(&o.json, "json", "", "write the figures as one JSON object to a file, - for stdout")
	flags.StringVar(&o.root, "root", "", "use the running server of this store instead of a new one")
	flags.StringVar(&o.socket, "socket", "", "use the running server at this socket; its token lies beside it or in --root")
	flags.StringArrayVar(&o.serve, "serve-flag", nil, "a further argument of the server that is started, such as --embed=off")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	for _, l := range loaders {
		root.AddCommand(newSetCommand(l, &o))
	}
	root.AddCommand(newLongmemCommand(&o), newJournalCommand(&o), newModelsCommand(&o), newSpeedCommand(&o), newReportCommand(&o))
	return root
}

// noArguments refuses arguments as wrong usage.
func noArguments(command *cobra.Command, args []string) error {
	if err := cobra.NoArgs(command, args); err != nil {
		return &usageError{err}
	}
	return nil
}

// setFlags adds the flags that all sets have.
func setFlags(command *cobra.Command, o *options) {
	command.Flags().StringVar(&o.split, "split", string(All), "part of the questions: tune, report or all")
	command.Flags().BoolVar(&o.ablate, "ablate", false, "also leave out one part of the score and one source at a time")
}

func newSetCommand(l loader, o *options) *cobra.Command {
	command := &cobra.Command{
		Use:   l.name,
		Short: l.short,
		Args:  noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := o.check(true); err != nil {
				return err
			}
			set, err := l.load(o.data)
			if errors.Is(err, errAbsent) {
				return o.skip(command, l.name, err)
			}
			if err != nil {
				return err
			}
			set.only(Split(o.split))
			return o.withRunner(command.Context(), func(r *Runner) error {
				run, err := r.run(command.Context(), set)
				if err != nil {
					return err
				}
				return o.finish(command, r, run)
			})
		},
	}
	setFlags(command, o)
	return command
}

func newLongmemCommand(o *options) *cobra.Command {
	var file string
	command := &cobra.Command{
		Use:     "longmemeval",
		Short:   "LongMemEval: questions to sessions, from a file of yours",
		Example: "  go run ./evals longmemeval --file longmemeval_s.json",
		Args:    noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if file == "" {
				return &usageError{errors.New("--file names longmemeval_s or longmemeval_m")}
			}
			if err := o.check(false); err != nil {
				return err
			}
			return o.withRunner(command.Context(), func(r *Runner) error {
				run, err := r.runLongmem(command.Context(), file)
				if errors.Is(err, errAbsent) {
					return o.skip(command, "longmemeval", err)
				}
				if err != nil {
					return err
				}
				return o.finish(command, nil, run)
			})
		},
	}
	command.Flags().StringVar(&file, "file", "", "the file longmemeval_s or longmemeval_m")
	setFlags(command, o)
	return command
}

// runLongmem runs the questions of a file, each in a memory of its own that is
// forgotten afterwards.
func (r *Runner) runLongmem(ctx context.Context, file string) (*Run, error) {
	all := newRun(longmemShell(nil, nil))
	err := eachLongmem(file, func(set *Set) error {
		run, err := r.run(ctx, set)
		if err != nil {
			return err
		}
		all.join(run)
		return r.client.forget(ctx, set.Memories[0].Project)
	})
	return all, err
}

// check refuses flags that do not fit.
func (o *options) check(needData bool) error {
	if needData && o.data == "" {
		return &usageError{errors.New("--data names the folder that holds the data sets")}
	}
	if o.split != "" && !slices.Contains([]Split{Tune, Report, All}, Split(o.split)) {
		return &usageError{fmt.Errorf("--split is %q; it is tune, report or all", o.split)}
	}
	return nil
}

// skip says that a set has no data here, which is no failure.
func (o *options) skip(command *cobra.Command, name string, reason error) error {
	fmt.Fprintf(command.ErrOrStderr(), "evals: %s skipped: %v\n", name, reason)
	if o.json == "" {
		return nil
	}
	return writeJSON(o.json, Result{Set: name, Split: Split(o.split), Skipped: reason.Error()}, command.OutOrStdout())
}

// finish prints the figures of a run, with ablation if that was asked for.
func (o *options) finish(command *cobra.Command, r *Runner, run *Run) error {
	result := run.result(Split(o.split))
	if o.ablate {
		if r == nil {
			return &usageError{fmt.Errorf("--ablate cannot be had with %s, whose memories are gone", run.Set.Name)}
		}
		var err error
		if result.Ablation, err = r.ablate(command.Context(), run); err != nil {
			return err
		}
	}
	if o.json != "" {
		if err := writeJSON(o.json, result, command.OutOrStdout()); err != nil {
			return err
		}
	}
	// Only the object goes to stdout when it is asked for there.
	out := command.OutOrStdout()
	if o.json == "-" {
		out = io.Discard
	}
	return result.print(out)
}

// withRunner gives a runner on the running server that the flags name, or on
// one of its own, which it removes afterwards.
func (o *options) withRunner(ctx context.Context, use func(r *Runner) error) (err error) {
	runner := &Runner{progress: progressFor(os.Stderr)}
	if o.root != "" || o.socket != "" {
		if runner.client, err = dial(o.running()); err != nil {
			return err
		}
		return errors.Join(use(runner), runner.client.Close())
	}
	server, err := buildServer(ctx)
	if err != nil {
		return err
	}
	server.arguments = o.serve
	defer func() { err = errors.Join(err, server.remove()) }()
	if runner.client, err = server.start(ctx); err != nil {
		return err
	}
	return errors.Join(server.explain(use(runner)), runner.client.Close())
}

// running gives socket and token file of the server that the flags name.
func (o *options) running() (socket, token string) {
	socket, root := o.socket, o.root
	if root == "" {
		root = filepath.Dir(socket)
	}
	if socket == "" {
		socket = filepath.Join(root, "recalld.sock")
	}
	return socket, filepath.Join(root, "token")
}
