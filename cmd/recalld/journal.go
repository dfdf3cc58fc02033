package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	recalldv1 "recalld/proto/recalld/v1"
)

func (a *app) journalCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "journal COMMAND",
		Short: "Read and review what was decided, each entry bound to its words",
		Long: `The journal holds decisions, rules, preferences, reversals and open work. Every
entry quotes the words it rests on, and every change is a batch in a chain:
nothing is changed silently, and a review can be undone.

An entry is named by its id or by the beginning of it, at least four digits.`,
		Example: `  recalld journal list --kind rule,preference
  recalld journal show 3f2a9c
  recalld journal reject 3f2a9c
  recalld journal block --message "shall I deploy today"`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return usageErrorf("unknown command %q of %s%s", args[0], cmd.CommandPath(), suggestion(cmd, args[0]))
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		a.journalListCommand(), a.journalShowCommand(), a.journalBlockCommand(),
		a.journalReviewCommand(recalldv1.ReviewAction_REVIEW_ACTION_APPROVE),
		a.journalReviewCommand(recalldv1.ReviewAction_REVIEW_ACTION_REJECT),
		a.journalReviewCommand(recalldv1.ReviewAction_REVIEW_ACTION_PIN),
		a.journalReviewCommand(recalldv1.ReviewAction_REVIEW_ACTION_UNPIN),
		a.journalEditCommand(), a.journalSupersedeCommand(), a.journalUndoCommand(),
		a.journalLogCommand(), a.journalHeadCommand(), a.journalPolicyCommand(),
	)
	return cmd
}

// A journalCall is a connection to the journal of one memory.
type journalCall struct {
	recalldv1.JournalServiceClient
	app *app
	ref *recalldv1.MemoryRef
}

// withJournal calls f with the journal of the memory that the flags name.
func (a *app) withJournal(ctx context.Context, f func(journalCall) error) error {
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	ref, err := a.memoryRef(ctx, c)
	if err != nil {
		return err
	}
	return f(journalCall{recalldv1.NewJournalServiceClient(c.conn), a, ref})
}

// journalListOptions are the flags of journal list.
type journalListOptions struct {
	kinds, states []string
	limit         uint32
	cursor        string
}

func (a *app) journalListCommand() *cobra.Command {
	var o journalListOptions
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List entries, the journal's newest first",
		Long: `List prints the entries of the journal, the last one added first. A live entry
holds; a candidate waits for a review; one that is superseded was changed by a
later one; a rejected one was turned down; a stale one rests on words that have
grown or were forgotten.`,
		Example: `  recalld journal list
  recalld journal list --state candidate
  recalld journal list --json --kind rule --state live | jq -r '.entries[].text'`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.journalList(cmd.Context(), o) },
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&o.kinds, "kind", nil, "only entries of these kinds: decision, rule, preference, reversal, open_work (default all)")
	flags.StringSliceVar(&o.states, "state", nil, "only entries in these states: live, candidate, superseded, rejected, stale (default all)")
	flags.Uint32Var(&o.limit, "limit", 0, "entries, 1 to 200; 0 for the default (50)")
	flags.StringVar(&o.cursor, "cursor", "", "go on where an earlier answer ended")
	completes(cmd, "kind", listOf(entryKinds...))
	completes(cmd, "state", listOf(entryStates...))
	return cmd
}

func (a *app) journalList(ctx context.Context, o journalListOptions) error {
	kinds, err := parseEnums[recalldv1.EntryKind]("kind", o.kinds, "ENTRY_KIND_", recalldv1.EntryKind_value, entryKinds)
	if err != nil {
		return err
	}
	states, err := parseEnums[recalldv1.EntryState]("state", o.states, "ENTRY_STATE_", recalldv1.EntryState_value, entryStates)
	if err != nil {
		return err
	}
	return a.withJournal(ctx, func(j journalCall) error {
		answer, err := j.List(ctx, &recalldv1.JournalServiceListRequest{
			Memory: j.ref, Kinds: kinds, States: states, Limit: o.limit, Cursor: o.cursor,
		})
		if err != nil {
			return a.failed("journal list", err)
		}
		if a.json {
			return a.printJSON(answer)
		}
		p := a.page()
		p.printEntries(answer.GetEntries())
		switch {
		case answer.GetCursor() != "":
			p.printf("\nOlder entries: --cursor %s\n", oneLine(answer.GetCursor()))
		case len(answer.GetEntries()) == 0 && o.cursor == "":
			p.paragraph(0, "There are no such entries. The server reads what was said by itself every few minutes; recalld consolidate has it do so now.", nil)
		}
		return nil
	})
}

func (a *app) journalShowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show ENTRY_ID",
		Short: "Open an entry down to the words it rests on",
		Long: `Show prints an entry with its quotes, each within the exact words around it: in
bold on a terminal, otherwise between ⟦ and ⟧. Entries that superseded it, or
that it superseded, follow.`,
		Example: `  recalld journal show 3f2a9c
  recalld journal show --json 3f2a9c | jq '.entry.quotes'`,
		Args:              exactlyOne("one entry id"),
		ValidArgsFunction: a.completeEntries(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.withJournal(ctx, func(j journalCall) error {
				ids, err := j.entryIDs(ctx, args)
				if err != nil {
					return err
				}
				answer, err := j.Show(ctx, &recalldv1.ShowRequest{Memory: j.ref, EntryId: ids[0]})
				if err != nil {
					return a.entryFailed("journal show", err)
				}
				if a.json {
					return a.printJSON(answer)
				}
				a.page().printEntryWhole(answer)
				return nil
			})
		},
	}
	return cmd
}

func (a *app) journalBlockCommand() *cobra.Command {
	var message string
	var budget uint32
	cmd := &cobra.Command{
		Use:   "block",
		Short: "Print the journal as an agent gets it",
		Long: `Block prints the live entries as they go into a prompt, within a budget. When it
is short, what bears on the message decides among decisions. Nothing is printed
when no entry is live.`,
		Example: `  recalld journal block
  recalld journal block --budget 2000 --message "which database"`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			return a.withJournal(ctx, func(j journalCall) error {
				answer, err := j.Get(ctx, &recalldv1.GetRequest{Memory: j.ref, Message: message, BudgetBytes: budget})
				if err != nil {
					return a.failed("journal block", err)
				}
				if a.json {
					return a.printJSON(answer)
				}
				return a.print([]byte(answer.GetBlock()))
			})
		},
	}
	cmd.Flags().StringVar(&message, "message", "", "what the agent is about to be told; decisions that bear on it come first")
	cmd.Flags().Uint32Var(&budget, "budget", 0, "bytes of the block, 512 to 64000; 0 for the default (16000)")
	return cmd
}

func (a *app) journalHeadCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "head",
		Short: "Print the hash of the last batch, to be kept elsewhere",
		Long: `Head prints the hash of the newest batch. It stands for the whole journal up to
there: kept somewhere else, recalld verify --head tells later whether the chain
still holds it. Nothing is printed while the journal has no batch.`,
		Example: `  recalld journal head > head.txt
  recalld verify --head "$(cat head.txt)"`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			return a.withJournal(ctx, func(j journalCall) error {
				answer, err := j.Head(ctx, &recalldv1.HeadRequest{Memory: j.ref})
				switch {
				case err != nil:
					return a.failed("journal head", err)
				case a.json:
					return a.printJSON(answer)
				case answer.GetHash() == "":
					return nil
				}
				return a.print(fmt.Appendln(nil, oneLine(answer.GetHash())))
			})
		},
	}
}
