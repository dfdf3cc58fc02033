package main

import (
	"bytes"
	"context"
	_ "embed" // the sample
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"recalld/harness"
	"recalld/ledger"
	recalldv1 "recalld/proto/recalld/v1"
)

// sampleTurns is the history that ships with the program; sample/README.md
// tells what it is.
//
//go:embed sample/turns.jsonl
var sampleTurns []byte

// The memory of the demonstration.
const (
	demoAgent   = "demo"
	demoProject = "pegel"
)

const (
	demoPassages     = 3
	demoPassageBytes = 320
)

// demoQuestions are asked when the user has none: a decision that was reversed,
// a rule found by its meaning, and a detail by its words.
var demoQuestions = []string{
	"which database do we use now?",
	"why did we not take the cgo SQLite driver",
	"how are dates displayed to the wardens",
}

func (a *app) demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo [QUESTION...]",
		Short: "Show recalld at work on a history that ships with it",
		Long: `Demo stores three months of an invented project, the river-gauge watcher pegel,
and asks it your question or three of its own. It runs in this process and in a
temporary folder, which it removes; with --root it keeps the store there.`,
		Example: `  recalld demo
  recalld demo "what did we say about the webhook"
  recalld demo --root /tmp/pegel
  recalld recall --root /tmp/pegel --agent demo --project pegel retries`,
		RunE: func(cmd *cobra.Command, args []string) error {
			questions := demoQuestions
			if len(args) > 0 {
				questions = []string{strings.Join(args, " ")}
			}
			return a.demo(cmd.Context(), questions)
		},
	}
}

func (a *app) demo(ctx context.Context, questions []string) (err error) {
	root := a.root
	if !a.rootGiven {
		if root, err = os.MkdirTemp("", "recalld-demo-"); err != nil {
			return fmt.Errorf("demo: %w", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(root)) }()
	}
	began := time.Now()
	c, end, err := inside(ctx, root, ledger.Options{})
	if errors.Is(err, ledger.ErrLocked) {
		return fmt.Errorf("demo: %w; recalld stop --root %s ends it", err, root)
	}
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	defer func() { err = errors.Join(err, end()) }()
	ref := &recalldv1.MemoryRef{Agent: demoAgent, Project: demoProject}
	sample, err := a.storeSample(ctx, c, ref)
	if err != nil {
		return err
	}
	p := a.page()
	if !a.json {
		p.paragraph(0, fmt.Sprintf("A history of %s and %s: %s of an invented project, found again in %.1f s.",
			count(sample.Sessions, "session", "sessions"), count(sample.Turns, "turn", "turns"),
			count(sample.Messages, "message", "messages"), time.Since(began).Seconds()), nil)
	}
	for _, question := range questions {
		if err := a.demoAsk(ctx, c, ref, p, question); err != nil {
			return err
		}
	}
	if !a.json {
		p.printf("\n%s\n", p.dim(demoFarewell(root, a.rootGiven)))
	}
	return nil
}

// storeSample stores the sample and waits until all of it is found.
func (a *app) storeSample(ctx context.Context, c *client, ref *recalldv1.MemoryRef) (imported, error) {
	im := &importer{client: c, memory: ref}
	result := imported{File: "sample"}
	im.begin(&result, func(string) {})
	for turn, err := range harness.Read(bytes.NewReader(sampleTurns), harness.Options{Format: harness.Turns}) {
		if err != nil {
			return result, fmt.Errorf("demo: the sample: %w", err)
		}
		if err := im.add(ctx, turn); err != nil {
			return result, a.failed("demo: store the sample", err)
		}
	}
	if err := im.flush(ctx); err != nil {
		return result, a.failed("demo: store the sample", err)
	}
	if result.Skipped > 0 {
		return result, fmt.Errorf("demo: the sample was refused: %s", result.Problems[0])
	}
	if err := waitCovered(ctx, c, ref, im.sequence, func(uint64) {}); err != nil {
		return result, fmt.Errorf("demo: %w", err)
	}
	return result, nil
}

func (a *app) demoAsk(ctx context.Context, c *client, ref *recalldv1.MemoryRef, p page, question string) error {
	limited, cancel := context.WithTimeout(ctx, recallPatience)
	defer cancel()
	answer, err := c.recall.Recall(limited, &recalldv1.RecallRequest{
		Memory:       ref,
		Query:        question,
		Limit:        demoPassages,
		PassageBytes: demoPassageBytes,
		Relevance:    recalldv1.Relevance_RELEVANCE_ALWAYS,
		Now:          rightNow(),
	})
	if err != nil {
		return a.failed("demo: recall", err)
	}
	if a.json {
		return a.printJSON(answer)
	}
	p.printf("\n%s\n\n", p.bold("❯ "+oneLine(question)))
	p.printRecall(question, answer, false)
	return nil
}

// demoFarewell says what to do next.
func demoFarewell(root string, kept bool) string {
	if kept {
		return fmt.Sprintf("The store stays in %s.\nAsk it: recalld recall --root %s --agent %s --project %s QUESTION", root, root, demoAgent, demoProject)
	}
	return "Ask your own: recalld demo \"what did we say about retries\"\nStore your own: recalld import --help"
}
