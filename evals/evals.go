// Command evals answers: how good and how fast is recalld?
//
// It knows the product from outside: it starts a server of its own (or is told
// of one that runs), appends public conversations, asks their questions and
// scores the answers, over gRPC alone. The one exception is scifact, which
// also checks the arithmetic of retrieve's BM25 against published figures.
//
// A [Set] is what a loader makes of a data set: memories, and questions with
// the answers that count. One [Runner] serves all sets, and a [Run] holds a
// value per question and metric, so that splits, categories and paired
// intervals are all taken from the same answers.
//
// Nothing here is random but by a fixed seed: the same server gives the same
// figures but for times. Data is read where the user keeps it, never copied;
// a set whose data is absent is skipped, and says so.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newRootCommand().ExecuteContext(ctx)
	stop()
	var usage *usageError
	switch {
	case err == nil:
	case errors.As(err, &usage):
		fmt.Fprintf(os.Stderr, "evals: %v; see evals --help\n", err)
		os.Exit(2)
	default:
		fmt.Fprintf(os.Stderr, "evals: %v\n", err)
		os.Exit(1)
	}
}

// A usageError is a mistake on the command line.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }

func (e *usageError) Unwrap() error { return e.err }
