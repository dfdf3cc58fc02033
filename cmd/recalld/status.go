package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	recalldv1 "recalld/proto/recalld/v1"
)

func (a *app) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Tell what the server is and how far each memory has come",
		Example: `  recalld status
  recalld status --json | jq '.memories[] | {project, turns, reach}'`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.status(cmd.Context()) },
	}
}

func (a *app) status(ctx context.Context) error {
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	request := &recalldv1.StatusRequest{}
	if a.memory != "" || a.agent != "" || a.projectGiven {
		if request.Memory, err = a.memoryRef(ctx, c); err != nil {
			return err
		}
	}
	answer, err := c.admin.Status(ctx, request)
	if err != nil {
		return a.failed("status", err)
	}
	if a.json {
		return a.printJSON(answer)
	}
	a.page().printStatus(answer)
	return nil
}

// printStatus prints the state of server and memories for people.
func (p page) printStatus(r *recalldv1.StatusResponse) {
	rows := [][]string{
		{"store", oneLine(r.GetRoot())},
		{"server", fmt.Sprintf("process %d, since %s", r.GetProcessId(), clock(r.GetStarted().AsTime().Local()))},
		{"build", oneLine(r.GetBuild())},
		{"socket", oneLine(r.GetSocket())},
		{"meaning", oneLine(r.GetEmbeddingModel())},
		{"expansion", oneLine(r.GetExpansionModel())},
		{"journal", oneLine(r.GetExtractionModel())},
	}
	p.table(rows)
	p.printModels(r)
	if len(r.GetMemories()) == 0 {
		return
	}
	p.printf("\n")
	rows = [][]string{{"AGENT", "PROJECT", "SESSIONS", "TURNS", "MESSAGES", "DISK", "BY WORDS", "BY MEANING"}}
	for _, m := range r.GetMemories() {
		rows = append(rows, []string{
			oneLine(m.GetAgent()), oneLine(m.GetProject()), number(m.GetSessions()), number(m.GetTurns()), number(m.GetMessages()),
			size(m.GetDiskBytes()), covered(m, m.GetReach().GetIndexed()), covered(m, m.GetReach().GetEmbedded()),
		})
	}
	p.table(rows)
	for _, m := range r.GetMemories() {
		if next := m.GetEmbeddingNextModel(); next != "" {
			p.paragraph(0, fmt.Sprintf("%s, %s: %s of %s messages have vectors of %s", m.GetAgent(), m.GetProject(),
				number(m.GetEmbeddingDone()), number(m.GetEmbeddingTotal()), oneLine(next)), nil)
		}
		if m.GetJournalLate() {
			p.paragraph(0, fmt.Sprintf("%s, %s: the journal is more than two runs late", m.GetAgent(), m.GetProject()), nil)
		}
		for _, trouble := range troublesOf(m) {
			p.paragraph(0, fmt.Sprintf("%s, %s: %s", m.GetAgent(), m.GetProject(), oneLine(trouble)), nil)
		}
	}
}

// troublesOf lists what is wrong with a memory.
func troublesOf(m *recalldv1.MemoryStatus) []string {
	return slices.DeleteFunc([]string{m.GetDamage(), m.GetLastError(), m.GetMaintenanceError()}, func(s string) bool { return s == "" })
}

// printModels prints how the model servers fare and what they cost today.
func (p page) printModels(r *recalldv1.StatusResponse) {
	for _, m := range r.GetModels() {
		what := fmt.Sprintf("%s by %s", m.GetPurpose(), oneLine(m.GetModel()))
		if m.GetRemote() {
			p.paragraph(0, what+": memory text leaves this machine", nil)
		}
		if m.GetFailures() == 0 && m.GetLastError() != "" {
			p.paragraph(0, fmt.Sprintf("%s: %s", what, oneLine(m.GetLastError())), nil)
		}
		if m.GetFailures() > 0 {
			trouble := fmt.Sprintf("%s failed %s in a row, last: %s", what, count(int(m.GetFailures()), "time", "times"), oneLine(m.GetLastError()))
			if m.GetRetryAt() != nil {
				trouble += "; asked again at " + m.GetRetryAt().AsTime().Local().Format(time.TimeOnly)
			}
			p.paragraph(0, trouble, nil)
		}
	}
	if len(r.GetSpendToday()) == 0 {
		return
	}
	p.printf("\n")
	rows := [][]string{{"SPENT TODAY ON", "MODEL", "CALLS", "TOKENS", "TIME"}}
	for _, s := range r.GetSpendToday() {
		took := time.Duration(s.GetMilliseconds()) * time.Millisecond
		rows = append(rows, []string{s.GetPurpose(), oneLine(s.GetModel()), number(s.GetCalls()), number(s.GetTokens()), took.Round(100 * time.Millisecond).String()})
	}
	p.table(rows)
	if limit := r.GetDailyTokens(); limit > 0 {
		p.printf("of at most %s tokens a day\n", number(limit))
	}
	if limit := r.GetDailyTokensMemory(); limit > 0 {
		p.printf("of at most %s tokens a day on one memory\n", number(limit))
	}
	const until = "models are not asked again before midnight UTC"
	if isSpent(r.GetSpendToday(), r.GetDailyTokens()) {
		p.paragraph(0, "the daily budget of all memories is spent: "+until, nil)
	}
	for _, m := range r.GetMemories() {
		if isSpent(m.GetSpendToday(), r.GetDailyTokensMemory()) {
			p.paragraph(0, fmt.Sprintf("%s, %s: the daily budget is spent: %s for it", m.GetAgent(), m.GetProject(), until), nil)
		}
	}
}

// isSpent reports whether a budget of tokens is; 0 is no budget.
func isSpent(list []*recalldv1.Spend, limit uint64) bool {
	sum := uint64(0)
	for _, s := range list {
		sum += s.GetTokens()
	}
	return limit > 0 && sum >= limit
}

// covered tells how much of a memory can be found. The views of a memory that
// nobody asked yet are not open, and how far they reach is not known.
func covered(m *recalldv1.MemoryStatus, reach uint64) string {
	all := m.GetReach().GetSequence()
	switch {
	case m.GetRebuilding():
		return fmt.Sprintf("%s (being made anew)", number(reach))
	case !m.GetOpen() && reach == 0 && all > 0:
		return "not open"
	case reach >= all:
		return "all"
	}
	return number(reach)
}
