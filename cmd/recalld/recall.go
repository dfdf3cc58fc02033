package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	recalldv1 "recalld/proto/recalld/v1"
)

// What a person reads at once; the wire's own defaults are made for prompts.
const (
	personPassages     = 10
	personPassageBytes = 700
	// recallPatience lets a memory be opened first.
	recallPatience = 10 * time.Second
	// minTimeout is the least in which there can be something of an answer.
	minTimeout = 50 * time.Millisecond
)

// recallOptions are the flags of recall.
type recallOptions struct {
	limit, passageBytes, budget uint32
	kinds, sessions             []string
	after, before               string
	expansion, order            string
	gated, explain, block       bool
	timeout                     time.Duration
}

func (a *app) recallCommand() *cobra.Command {
	var o recallOptions
	cmd := &cobra.Command{
		Use:   "recall QUERY...",
		Short: "Find the passages that bear on a question, best first",
		Long: `Recall ranks what was said by how much it bears on a question, by its words and
by its meaning, and prints the best passages with who said them and when.

For a person it answers with whatever comes closest; an agent is given nothing
when nothing is relevant, which --gated shows.

--explain shows the parts of each score, by the names of the wire:
  spr    the question's words in the message and its neighbours (BM25)
  dcov   how much of the question they cover
  cspr   likeness in meaning, with that of the neighbours
  smax   the best message of its session      chat  the session as a whole
  spk    said by whom the question is about   pqs   answers a question
  date   said when the question asks          when  holds a time, if asked for
  ask    is itself a question                 fp    speaks in the first person
  later  takes the place of an earlier statement`,
		Example: `  recalld recall "why did we drop the cache"
  recalld recall --after 2026-03-01 --kind user --limit 3 which port
  recalld recall --json "which database" | jq -r '.passages[].messageId'
  recalld recall --explain "which git identity do commits use"`,
		Args: atLeastOne("a question"),
		RunE: func(cmd *cobra.Command, args []string) error {
			query := strings.Join(args, " ")
			request, err := o.request(query, a.json || o.block)
			if err != nil {
				return err
			}
			return a.recall(cmd.Context(), request, o)
		},
	}
	flags := cmd.Flags()
	flags.Uint32Var(&o.limit, "limit", 0, fmt.Sprintf("passages, 1 to 50; 0 for the default (%d; with --json or --block 20)", personPassages))
	flags.Uint32Var(&o.passageBytes, "passage-bytes", 0, fmt.Sprintf("bytes shown of each, 200 to 8000; 0 for the default (%d; with --json or --block 2000)", personPassageBytes))
	flags.Uint32Var(&o.budget, "budget", 0, "bytes of all passages in their frame, 512 to 256000; 0 for the default (44000)")
	flags.StringSliceVar(&o.kinds, "kind", nil, "only messages of these kinds: user, reply, trace, work, note, mark (default user, reply, note)")
	flags.StringArrayVar(&o.sessions, "session", nil, "only messages of this session, by its id; may be repeated")
	flags.StringVar(&o.after, "after", "", "only what was said at or after this date")
	flags.StringVar(&o.before, "before", "", "only what was said before this date")
	flags.StringVar(&o.expansion, "expansion", "when-weak", "whether a model may reword the question: off, when-weak, always")
	flags.StringVar(&o.order, "order", "rank", "order of the passages: rank, or time for oldest first")
	flags.BoolVar(&o.gated, "gated", false, "answer nothing when nothing is relevant, as an agent is answered")
	flags.BoolVar(&o.explain, "explain", false, "show what each score is made of")
	flags.BoolVar(&o.block, "block", false, "print the block as it goes into a prompt")
	flags.DurationVar(&o.timeout, "timeout", recallPatience, "answer within this time with what there is by then, at least "+minTimeout.String())
	completes(cmd, "kind", listOf(kindNames...))
	completes(cmd, "expansion", oneOf("off", "when-weak", "always"))
	completes(cmd, "order", oneOf("rank", "time"))
	return cmd
}

// request is the request that the flags describe, without its memory. whole
// asks for the defaults of the wire.
func (o recallOptions) request(query string, whole bool) (*recalldv1.RecallRequest, error) {
	r := &recalldv1.RecallRequest{
		Query:        query,
		Limit:        o.limit,
		PassageBytes: o.passageBytes,
		BudgetBytes:  o.budget,
		Sessions:     o.sessions,
		Relevance:    recalldv1.Relevance_RELEVANCE_ALWAYS,
		Now:          rightNow(),
	}
	if o.timeout < minTimeout {
		return nil, usageErrorf("--timeout: %v is too short; an answer may take at least %v", o.timeout, minTimeout)
	}
	if !whole && o.limit == 0 {
		r.Limit = personPassages
	}
	if !whole && o.passageBytes == 0 {
		r.PassageBytes = personPassageBytes
	}
	if o.gated {
		r.Relevance = recalldv1.Relevance_RELEVANCE_GATED
	}
	var ok bool
	if r.Expansion, ok = expansions[o.expansion]; !ok {
		return nil, usageErrorf("--expansion: %q is not known; the values are off, when-weak and always", o.expansion)
	}
	if r.Order, ok = orders[o.order]; !ok {
		return nil, usageErrorf("--order: %q is not known; the values are rank and time", o.order)
	}
	var err error
	if r.Kinds, err = parseKinds(o.kinds); err != nil {
		return nil, err
	}
	if r.After, err = parseDate("after", o.after); err != nil {
		return nil, err
	}
	if r.Before, err = parseDate("before", o.before); err != nil {
		return nil, err
	}
	return r, nil
}

// expansions and orders are the values of flags; with the underscore of the
// wire, too.
var (
	expansions = map[string]recalldv1.Expansion{
		"off":       recalldv1.Expansion_EXPANSION_OFF,
		"when-weak": recalldv1.Expansion_EXPANSION_WHEN_WEAK,
		"when_weak": recalldv1.Expansion_EXPANSION_WHEN_WEAK,
		"always":    recalldv1.Expansion_EXPANSION_ALWAYS,
	}
	orders = map[string]recalldv1.Order{
		"rank": recalldv1.Order_ORDER_RANK,
		"time": recalldv1.Order_ORDER_TIME,
	}
)

func (a *app) recall(ctx context.Context, request *recalldv1.RecallRequest, o recallOptions) error {
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	if request.Memory, err = a.memoryRef(ctx, c); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	answer, err := c.recall.Recall(limited, request)
	if err != nil {
		return a.failed("recall", err)
	}
	switch {
	case a.json:
		return a.printJSON(answer)
	case o.block:
		return a.print([]byte(answer.GetBlock()))
	}
	a.page().printRecall(request.GetQuery(), answer, o.explain)
	return nil
}
