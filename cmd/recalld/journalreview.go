package main

import (
	"context"
	"fmt"
	"os/user"
	"strings"

	"github.com/spf13/cobra"

	recalldv1 "recalld/proto/recalld/v1"
)

// reviewWords say what each review is: its command is the name of its action.
var reviewWords = map[recalldv1.ReviewAction]struct{ short, long, done string }{
	recalldv1.ReviewAction_REVIEW_ACTION_APPROVE: {
		"Let entries hold", "Approve makes entries live, whatever they were before.", "Approved",
	},
	recalldv1.ReviewAction_REVIEW_ACTION_REJECT: {
		"Turn entries down", "Reject takes entries out of the block. They stay readable, and are not proposed\nagain from the same words.", "Rejected",
	},
	recalldv1.ReviewAction_REVIEW_ACTION_PIN: {
		"Have entries come first", "Pin marks entries as those that matter; they stand in the block before others of\ntheir kind.", "Pinned",
	},
	recalldv1.ReviewAction_REVIEW_ACTION_UNPIN: {
		"Take back a pin", "Unpin takes the mark of journal pin off entries.", "Unpinned",
	},
	recalldv1.ReviewAction_REVIEW_ACTION_EDIT: {
		"Word an entry anew", "Edit gives an entry another text. Its quotes stay what they are.", "Edited",
	},
	recalldv1.ReviewAction_REVIEW_ACTION_SUPERSEDE: {
		"Confirm that an entry changes older ones", `Supersede says that an entry replaces what was decided before: the older entries
stay readable and leave the block. recalld only proposes such changes ("it may
change", in journal show) unless the words name what they put away.`, "Superseded",
	},
	recalldv1.ReviewAction_REVIEW_ACTION_UNDO: {
		"Take back a review", "Undo takes back the review of a batch, named by its hash or the beginning of it;\nrecalld journal log lists them. An undo is a batch too, and can be undone.", "Undone",
	},
}

// reviewCommand is what the commands that change entries have in common.
func (a *app) reviewCommand(action recalldv1.ReviewAction, arguments, example string, author *string) *cobra.Command {
	cmd := &cobra.Command{
		Use:     actionName(action) + " " + arguments,
		Short:   reviewWords[action].short,
		Long:    reviewWords[action].long,
		Example: example,
	}
	cmd.Flags().StringVar(author, "author", "", "who does it (default the name of the user of this machine)")
	return cmd
}

func (a *app) journalReviewCommand(action recalldv1.ReviewAction) *cobra.Command {
	var author string
	name := actionName(action)
	cmd := a.reviewCommand(action, "ENTRY_ID...", fmt.Sprintf(`  recalld journal %s 3f2a9c
  recalld journal %s --author Ines 3f2a9c b81d04`, name, name), &author)
	cmd.Args = atLeastOne("an entry id")
	cmd.ValidArgsFunction = a.completeEntries(0)
	cmd.RunE = func(cmd *cobra.Command, ids []string) error {
		return a.review(cmd.Context(), &recalldv1.ReviewRequest{Action: action, EntryIds: ids, Author: author})
	}
	return cmd
}

func (a *app) journalEditCommand() *cobra.Command {
	var author, text string
	cmd := a.reviewCommand(recalldv1.ReviewAction_REVIEW_ACTION_EDIT, "ENTRY_ID",
		`  recalld journal edit 3f2a9c --text "Never deploy on a Friday."`, &author)
	cmd.Args = exactlyOne("one entry id")
	cmd.ValidArgsFunction = a.completeEntries(1)
	cmd.Flags().StringVar(&text, "text", "", "the new text, up to 2000 bytes")
	cmd.RunE = func(cmd *cobra.Command, ids []string) error {
		if strings.TrimSpace(text) == "" {
			return usageErrorf("--text: is empty; it is what the entry is to say")
		}
		return a.review(cmd.Context(), &recalldv1.ReviewRequest{
			Action: recalldv1.ReviewAction_REVIEW_ACTION_EDIT, EntryIds: ids, Text: text, Author: author,
		})
	}
	return cmd
}

func (a *app) journalSupersedeCommand() *cobra.Command {
	var author string
	cmd := a.reviewCommand(recalldv1.ReviewAction_REVIEW_ACTION_SUPERSEDE, "ENTRY_ID OLDER_ID...",
		`  recalld journal show b81d04
  recalld journal supersede b81d04 3f2a9c`, &author)
	cmd.Args = func(_ *cobra.Command, ids []string) error {
		if len(ids) < 2 {
			return usageErrorf("journal supersede: takes an entry id and the ids of older entries")
		}
		return nil
	}
	cmd.ValidArgsFunction = a.completeEntries(0)
	cmd.RunE = func(cmd *cobra.Command, ids []string) error {
		return a.review(cmd.Context(), &recalldv1.ReviewRequest{
			Action: recalldv1.ReviewAction_REVIEW_ACTION_SUPERSEDE, EntryIds: ids[:1], SupersededIds: ids[1:], Author: author,
		})
	}
	return cmd
}

func (a *app) journalUndoCommand() *cobra.Command {
	var author string
	cmd := a.reviewCommand(recalldv1.ReviewAction_REVIEW_ACTION_UNDO, "BATCH_HASH",
		`  recalld journal log
  recalld journal undo 5c0e77a1b2f4`, &author)
	cmd.Args = exactlyOne("one batch hash")
	cmd.ValidArgsFunction = a.completeReviews
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.review(cmd.Context(), &recalldv1.ReviewRequest{
			Action: recalldv1.ReviewAction_REVIEW_ACTION_UNDO, BatchHash: args[0], Author: author,
		})
	}
	return cmd
}

// review has a change be made. Ids and hash may be abbreviated.
func (a *app) review(ctx context.Context, request *recalldv1.ReviewRequest) (err error) {
	if request.Author == "" {
		if request.Author, err = userName(); err != nil {
			return err
		}
	}
	return a.withJournal(ctx, func(j journalCall) (err error) {
		request.Memory = j.ref
		if request.EntryIds, err = j.entryIDs(ctx, request.EntryIds); err != nil {
			return err
		}
		if request.SupersededIds, err = j.entryIDs(ctx, request.SupersededIds); err != nil {
			return err
		}
		if request.BatchHash, err = j.batchHash(ctx, request.BatchHash); err != nil {
			return err
		}
		answer, err := j.Review(ctx, request)
		if err != nil {
			return a.entryFailed("journal "+actionName(request.GetAction()), err)
		}
		if a.json {
			return a.printJSON(answer)
		}
		p := a.page()
		p.printf("%s by %s. To take it back: recalld journal undo %s\n\n", reviewWords[request.GetAction()].done,
			oneLine(answer.GetBatch().GetAuthor()), shortHash(answer.GetBatch().GetHash()))
		p.printEntries(answer.GetEntries())
		return nil
	})
}

// userName is the name of whoever runs this program, without the domain that
// Windows puts before it.
func userName() (string, error) {
	u, err := user.Current()
	if err != nil {
		return "", usageErrorf("--author: is needed, as this machine does not tell the name of its user (%v)", err)
	}
	return u.Username[strings.LastIndexByte(u.Username, '\\')+1:], nil
}

func (a *app) journalPolicyCommand() *cobra.Command {
	var author string
	cmd := &cobra.Command{
		Use:   "policy [auto|review]",
		Short: "Tell or set whether new entries hold by themselves",
		Long: `With the policy auto a new entry is live at once if its confidence is high
enough, and waits as a candidate if not; with review every new entry waits. What
is in the journal already stays as it is. Without an argument it tells which of
them holds.`,
		Example: `  recalld journal policy
  recalld journal policy review
  recalld journal policy auto --agent codex --project shop`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageErrorf("%s takes auto or review, got %d arguments (see %s --help)", cmd.CommandPath(), len(args), cmd.CommandPath())
			}
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return []string{"auto", "review"}, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.journalPolicy(cmd.Context(), args, author) },
	}
	cmd.Flags().StringVar(&author, "author", "", "who does it (default the name of the user of this machine)")
	return cmd
}

// journalPolicy sets the policy that is named, or tells which one holds.
func (a *app) journalPolicy(ctx context.Context, args []string, author string) error {
	var policy recalldv1.Policy
	if len(args) > 0 {
		policy = recalldv1.Policy(recalldv1.Policy_value["POLICY_"+strings.ToUpper(args[0])])
		if policy == recalldv1.Policy_POLICY_UNSPECIFIED {
			return usageErrorf("journal policy: %q is not known; the policies are auto and review", args[0])
		}
		if author == "" {
			var err error
			if author, err = userName(); err != nil {
				return err
			}
		}
	}
	return a.withJournal(ctx, func(j journalCall) error {
		answer := new(recalldv1.SetPolicyResponse)
		var err error
		if policy != recalldv1.Policy_POLICY_UNSPECIFIED {
			answer, err = j.SetPolicy(ctx, &recalldv1.SetPolicyRequest{Memory: j.ref, Policy: policy, Author: author})
		} else {
			var journal *recalldv1.GetResponse
			journal, err = j.Get(ctx, &recalldv1.GetRequest{Memory: j.ref})
			answer.Policy = journal.GetPolicy()
		}
		if err != nil {
			return a.failed("journal policy", err)
		}
		if a.json {
			return a.printJSON(answer)
		}
		said := "New entries wait for a review."
		if answer.GetPolicy() == recalldv1.Policy_POLICY_AUTO {
			said = "New entries hold by themselves when their confidence is high enough."
		}
		return a.print([]byte(said + "\n"))
	})
}

func (a *app) journalLogCommand() *cobra.Command {
	var limit uint32
	var cursor string
	cmd := &cobra.Command{
		Use:   "log",
		Short: "List the batches of the journal, newest first",
		Long: `Log prints what was added to the journal: the windows of conversation that were
read, and the reviews. Times are those of this machine.`,
		Example: `  recalld journal log --limit 10
  recalld journal log --json | jq -r '.batches[].hash'`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			return a.withJournal(ctx, func(j journalCall) error {
				answer, err := j.Log(ctx, &recalldv1.LogRequest{Memory: j.ref, Limit: limit, Cursor: cursor})
				if err != nil {
					return a.failed("journal log", err)
				}
				if a.json {
					return a.printJSON(answer)
				}
				a.page().printLog(answer)
				return nil
			})
		},
	}
	cmd.Flags().Uint32Var(&limit, "limit", 0, "batches, 1 to 200; 0 for the default (50)")
	cmd.Flags().StringVar(&cursor, "cursor", "", "go on where an earlier answer ended")
	return cmd
}
