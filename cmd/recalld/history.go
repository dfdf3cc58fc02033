package main

import (
	"context"

	"github.com/spf13/cobra"

	recalldv1 "recalld/proto/recalld/v1"
)

// historyOptions are the flags of history.
type historyOptions struct {
	session string
	before  uint64
	limit   uint32
	kinds   []string
}

func (a *app) historyCommand() *cobra.Command {
	var o historyOptions
	cmd := &cobra.Command{
		Use:   "history",
		Short: "Read turns as they came in, a page at a time",
		Long: `History prints the newest turns of a memory or of one session, oldest of them
first, and the flag that gives the page before.`,
		Example: `  recalld history --limit 5
  recalld history --session s10 --kind user,reply
  recalld history --json --before 1200`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.history(cmd.Context(), o) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.session, "session", "", "only turns of this session, by its id (default all, in the order they came in)")
	flags.Uint64Var(&o.before, "before", 0, "only turns before this turn number (default the newest)")
	flags.Uint32Var(&o.limit, "limit", 0, "turns, 1 to 200; 0 for the default (50)")
	flags.StringSliceVar(&o.kinds, "kind", nil, "only messages of these kinds: user, reply, trace, work, note, mark (default all)")
	completes(cmd, "kind", listOf(kindNames...))
	return cmd
}

func (a *app) history(ctx context.Context, o historyOptions) error {
	kinds, err := parseKinds(o.kinds)
	if err != nil {
		return err
	}
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	ref, err := a.memoryRef(ctx, c)
	if err != nil {
		return err
	}
	answer, err := c.memories.History(ctx, &recalldv1.HistoryRequest{
		Memory: ref, SessionId: o.session, Before: o.before, Limit: o.limit, Kinds: kinds,
	})
	if err != nil {
		return a.failed("history", err)
	}
	if a.json {
		return a.printJSON(answer)
	}
	a.page().printHistory(answer)
	return nil
}

// printHistory prints a page of turns for people.
func (p page) printHistory(r *recalldv1.HistoryResponse) {
	session := ""
	for _, turn := range r.GetTurns() {
		if turn.GetSessionId() != session {
			session = turn.GetSessionId()
			title := oneLine(turn.GetSessionTitle())
			if title == "" {
				title = "Session " + oneLine(session)
			}
			p.printf("%s\n%s\n\n", p.bold(fitted(title, p.width)), p.dim("session "+oneLine(session)))
		}
		p.heading("Turn "+number(turn.GetSequence()), statusName(turn.GetStatus()))
		for _, m := range turn.GetMessages() {
			p.printf("  %s · %s %s\n", bySpeaker(m.GetSpeaker(), m.GetKind()), when(m.GetTime()), p.dim("id "+oneLine(m.GetId())))
			p.paragraph(passageIndent, printable(m.GetText()), nil)
		}
		p.printf("\n")
	}
	if len(r.GetTurns()) == 0 {
		p.paragraph(0, "There are no turns here.", nil)
	}
	if next := r.GetNext(); next > 0 {
		p.printf("Older turns: --before %d\n", next)
	}
}
