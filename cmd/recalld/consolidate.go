package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	recalldv1 "recalld/proto/recalld/v1"
)

func (a *app) consolidateCommand() *cobra.Command {
	o := new(recalldv1.ConsolidateRequest)
	cmd := &cobra.Command{
		Use:   "consolidate",
		Short: "Read what was said since into the journal, now",
		Long: `Consolidate has the server read the finished windows of four turns that the
journal does not have yet, as it does by itself every few minutes. Interrupted,
it goes on next time where it was.

The last turns of a session wait until there are four or the session has been
silent for half an hour; --close-tail reads them at once.`,
		Example: `  recalld consolidate
  recalld consolidate --extractor builtin
  recalld consolidate --close-tail --agent claude-code --project shop`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			return a.withJournal(ctx, func(j journalCall) error { return a.consolidate(ctx, j, o) })
		},
	}
	cmd.Flags().BoolVar(&o.CloseTail, "close-tail", false, "read unfinished windows too")
	cmd.Flags().StringVar(&o.Extractor, "extractor", "", "who reads: builtin, or the model of the server (default model if it has one)")
	completes(cmd, "extractor", oneOf("builtin", "model"))
	return cmd
}

func (a *app) consolidate(ctx context.Context, j journalCall, o *recalldv1.ConsolidateRequest) error {
	o.Memory = j.ref
	stream, err := j.Consolidate(ctx, o)
	if err != nil {
		return a.failed("consolidate", err)
	}
	bar := estimate{progress: a.progress("consolidating", 0)}
	defer bar.end()
	last := new(recalldv1.ConsolidateResponse)
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			bar.end()
			err = a.failed("consolidate", err)
			if n := last.GetWindowsDone(); n > 0 {
				err = fmt.Errorf("%w; what came of %s so far is kept", err, count(n, "window", "windows"))
			}
			return err
		}
		last = r
		if a.json {
			if err := a.printJSON(r); err != nil {
				return err
			}
		}
		bar.tell(int64(r.GetWindowsDone()), int64(r.GetWindowsTotal()))
	}
	bar.end()
	if a.json {
		return nil
	}
	return a.print([]byte(consolidated(last) + "\n"))
}

// consolidated says what a run did.
func consolidated(r *recalldv1.ConsolidateResponse) string {
	if r.GetWindowsTotal() == 0 {
		return "Nothing to read: the journal has all finished windows."
	}
	s := fmt.Sprintf("%s read: %s.", count(r.GetWindowsDone(), "window", "windows"), count(r.GetEntries(), "entry", "entries"))
	if n := r.GetRejected(); n > 0 {
		s += fmt.Sprintf(" %s not bound to what was said and left out.", count(n, "more was", "more were"))
	}
	return s
}

// An estimate is a progress that says how long the rest may take.
type estimate struct {
	*progress
}

// tell tells how much is done. The total is known only from the first answer.
func (e estimate) tell(done, total int64) {
	if e.bar == nil {
		e.total = total
	}
	e.set(done)
	// The bar shows this with its next change.
	if left := timeLeft(time.Since(e.began), done, total); left != "" && e.bar != nil {
		e.bar.Describe(e.what + ", " + left)
	}
}

// timeLeft says how long the rest takes if it goes on like what is done; nothing
// where that cannot be told.
func timeLeft(elapsed time.Duration, done, total int64) string {
	if done <= 0 || done >= total {
		return ""
	}
	left := time.Duration(float64(elapsed) / float64(done) * float64(total-done))
	switch {
	case left < 90*time.Second:
		return fmt.Sprintf("about %d s left", max(1, int64(left.Round(time.Second)/time.Second)))
	case left < 90*time.Minute:
		return fmt.Sprintf("about %d min left", int64(left.Round(time.Minute)/time.Minute))
	}
	return fmt.Sprintf("about %d h left", int64(left.Round(time.Hour)/time.Hour))
}
