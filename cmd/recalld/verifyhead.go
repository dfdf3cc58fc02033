package main

import (
	"context"
	"errors"
	"fmt"

	recalldv1 "recalld/proto/recalld/v1"
)

// verifyWithHead checks the store, and holds the journal of a memory against a
// head that was kept elsewhere.
func (a *app) verifyWithHead(ctx context.Context, deep bool, head string) error {
	if head == "" {
		return usageErrorf("--head: is empty; recalld journal head prints one")
	}
	journal := a.verifyHead(ctx, head)
	if e := (*exitError)(nil); errors.As(journal, &e) {
		return journal // nothing could be checked
	}
	// A store that is damaged is told even if its journal is not whole.
	store := a.verify(ctx, deep)
	if journal != nil && store != nil {
		return fmt.Errorf("%w; %w", journal, store)
	}
	return errors.Join(journal, store)
}

// verifyHead checks the journal. A server that is too old to know heads would
// not look at one in its own check and says so here.
func (a *app) verifyHead(ctx context.Context, head string) (err error) {
	c, end, err := a.anyServer(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	ref, err := a.memoryRef(ctx, c)
	if err != nil {
		return err
	}
	answer, err := recalldv1.NewJournalServiceClient(c.conn).Verify(ctx, &recalldv1.JournalServiceVerifyRequest{Memory: ref, Head: head})
	if err != nil {
		return a.failed("verify the journal", err)
	}
	if a.json {
		if err := a.printJSON(answer); err != nil {
			return err
		}
	} else {
		for _, problem := range answer.GetProblems() {
			fmt.Fprintln(a.out, "journal: "+oneLine(problem))
		}
	}
	if !answer.GetOk() {
		return fmt.Errorf("verify: %s in the journal", count(len(answer.GetProblems()), "problem", "problems"))
	}
	if !a.json {
		fmt.Fprintf(a.out, "The journal is whole and holds the head: %s and %s checked.\n",
			count(answer.GetBatches(), "batch", "batches"), count(answer.GetQuotes(), "quote", "quotes"))
	}
	return nil
}
