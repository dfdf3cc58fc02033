package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	recalldv1 "recalld/proto/recalld/v1"
)

// contextOptions are the flags of context.
type contextOptions struct {
	session             string
	budget, characters  uint32
	kept, record, reset bool
	exclude             []string
	expansion           string
	timeout             time.Duration
}

func (a *app) contextCommand() *cobra.Command {
	var o contextOptions
	cmd := &cobra.Command{
		Use:   "context MESSAGE...",
		Short: "Show the block that an agent would get before a message",
		Long: `Context prints the block that a harness gets for a new message of a session,
byte for byte: rules and preferences, what of the journal bears on the message,
and the passages that are relevant. When nothing is given, it says why.

It only looks: what it shows counts as given only with --record. With --kept,
what the session was given before is left out, as for a harness that keeps the
block in its history. --reset forgets what the session was given; with a message
it does so first.

A session that is not known yet needs the memory named as usual.`,
		Example: `  recalld context "which database do the events go to" --session s1
  recalld context --session s1 --kept --budget 9600 --characters 9000 "and now?"
  recalld context --session s1 --json "which port" | jq '.gate'
  recalld context --session s1 --reset`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 && !o.reset {
				return usageErrorf("recalld context needs a message, or --reset (see recalld context --help)")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.session == "" {
				return usageErrorf("--session: is empty; it names the chat that the message would be said in")
			}
			if o.timeout < minTimeout {
				return usageErrorf("--timeout: %v is too short; an answer may take at least %v", o.timeout, minTimeout)
			}
			if _, ok := expansions[o.expansion]; !ok {
				return usageErrorf("--expansion: %q is not known; the values are off, when-weak and always", o.expansion)
			}
			if len(args) == 0 && (o.kept || o.record) {
				return usageErrorf("--kept and --record say how a message is answered, and there is none")
			}
			return a.contextOf(cmd.Context(), strings.Join(args, " "), o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.session, "session", "", "the chat, by its id; needed")
	flags.Uint32Var(&o.budget, "budget", 0, "bytes of the block with its frame, 512 to 256000; 0 for the default (44000)")
	flags.Uint32Var(&o.characters, "characters", 0, "characters of the block, as UTF-16 counts them, 512 to 256000; 0 for no limit")
	flags.BoolVar(&o.kept, "kept", false, "leave out what the session was given before")
	flags.BoolVar(&o.record, "record", false, "note what is shown as given to the session")
	flags.BoolVar(&o.reset, "reset", false, "forget what the session was given")
	flags.StringArrayVar(&o.exclude, "exclude", nil, "a message that the live context holds, by its id; may be repeated")
	flags.StringVar(&o.expansion, "expansion", "when-weak", "whether a model may reword the message: off, when-weak, always")
	flags.DurationVar(&o.timeout, "timeout", recallPatience, "answer within this time with what there is by then, at least "+minTimeout.String())
	completes(cmd, "expansion", oneOf("off", "when-weak", "always"))
	for _, flag := range []string{"session", "exclude"} {
		completes(cmd, flag, cobra.NoFileCompletions)
	}
	return cmd
}

func (a *app) contextOf(ctx context.Context, message string, o contextOptions) error {
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	contexts := recalldv1.NewContextServiceClient(c.conn)
	agent, project, err := a.namedMemory(ctx, c)
	if err != nil {
		return err
	}
	if o.reset {
		answer, err := contexts.Reset(ctx, &recalldv1.ResetRequest{SessionId: o.session, Agent: agent, Project: project})
		if err != nil {
			return a.failed("context --reset", err)
		}
		switch {
		case message != "": // what follows is what was asked for
		case a.json:
			return a.printJSON(answer)
		default:
			a.page().printf("%s\n", resetDone(answer.GetGiven()))
			return nil
		}
	}
	request := &recalldv1.PreTurnRequest{
		SessionId: o.session, Agent: agent, Project: project, Message: message,
		BudgetBytes: o.budget, BudgetCharacters: o.characters, KeptInHistory: o.kept, DryRun: !o.record,
		ExcludeMessages: o.exclude, Expansion: expansions[o.expansion], Now: rightNow(),
	}
	limited, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	answer, err := contexts.PreTurn(limited, request)
	if agent == "" && status.Code(err) == codes.NotFound {
		// A new session: it gets what the memory of this folder has.
		ref, refErr := a.memoryRef(ctx, c)
		if refErr != nil {
			return refErr
		}
		request.Agent, request.Project = ref.GetAgent(), ref.GetProject()
		answer, err = contexts.PreTurn(limited, request)
	}
	if err != nil {
		return a.failed("context", err)
	}
	if a.json {
		return a.printJSON(answer)
	}
	if answer.GetBlock() == "" {
		fmt.Fprintf(a.err, "%s\n", nothingGiven(answer, o.kept))
	}
	return a.print([]byte(answer.GetBlock()))
}

// namedMemory gives the key of the memory that the flags name. Without any it is
// that of the session, and both are empty.
func (a *app) namedMemory(ctx context.Context, c *client) (agent, project string, err error) {
	if a.memory == "" {
		if a.agent == "" && !a.projectGiven {
			return "", "", nil
		}
		ref, err := a.memoryRef(ctx, c)
		return ref.GetAgent(), ref.GetProject(), err
	}
	list, err := c.memories.List(ctx, &recalldv1.ListRequest{})
	if err != nil {
		return "", "", a.failed("look for the memory", err)
	}
	for _, m := range list.GetMemories() {
		for _, name := range append(m.GetAliases(), m.GetId(), m.GetDisplayName()) {
			if name == a.memory {
				return m.GetAgent(), m.GetProject(), nil
			}
		}
	}
	return "", "", fmt.Errorf("no memory %s in %s; recalld memories lists them", oneLine(a.memory), a.root)
}

func resetDone(given uint32) string {
	if given == 0 {
		return "The session was given nothing."
	}
	return "Forgotten: " + count(given, "entry or passage", "entries and passages") + " may be given again."
}

// nothingGiven says why there is no block.
func nothingGiven(r *recalldv1.PreTurnResponse, kept bool) string {
	if r.GetSnapshot().GetSequence() == 0 {
		return "Nothing is given: this memory is empty."
	}
	g := r.GetGate()
	var why string
	switch {
	case r.GetNothingToSearch():
		why = "the message holds no words"
	case g == nil:
		why = "the passages were not there in time"
	case g.GetPassed() && kept:
		why = fmt.Sprintf("what bears on the message was given before, or is weak (measure %.2f, threshold %.2f)", g.GetMeasure(), g.GetThreshold())
	case g.GetPassed():
		why = fmt.Sprintf("no passage stands out by itself (measure %.2f, threshold %.2f)", g.GetMeasure(), g.GetThreshold())
	case g.GetMeasure() < g.GetThreshold() && g.GetReason() != "chatter":
		why = fmt.Sprintf("%s (measure %.2f, threshold %.2f)", oneLine(g.GetReason()), g.GetMeasure(), g.GetThreshold())
	default:
		why = oneLine(g.GetReason())
	}
	rules := "no rule or preference is live"
	if kept {
		rules = "no rule or preference is new to the session"
	}
	for _, s := range r.GetSources() {
		if s.GetSource() == "journal" && s.GetOutcome() != recalldv1.Outcome_OUTCOME_USED {
			rules = "the journal could not be read: " + oneLine(s.GetReason())
		}
	}
	s := "Nothing is given: " + why + ", and " + rules + "."
	if n := r.GetOmitted(); n > 0 {
		s += " " + count(n, "passage or entry was", "passages and entries were") + " left out for want of room (--budget, --characters)."
	}
	return s
}
