package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	recalldv1 "recalld/proto/recalld/v1"
)

func (a *app) memoriesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "memories",
		Short: "List the memories of the store",
		Example: `  recalld memories
  recalld memories --agent claude-code --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.list(cmd.Context()) },
	}
}

func (a *app) list(ctx context.Context) error {
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	answer, err := c.memories.List(ctx, &recalldv1.ListRequest{Agent: a.agent})
	if err != nil {
		return a.failed("list memories", err)
	}
	if a.json {
		return a.printJSON(answer)
	}
	p := a.page()
	if len(answer.GetMemories()) == 0 {
		p.paragraph(0, fmt.Sprintf("There are no memories in %s.", a.root), nil)
		return nil
	}
	rows := [][]string{{"AGENT", "PROJECT", "SESSIONS", "TURNS", "MESSAGES", "SIZE", "FIRST", "LAST"}}
	for _, m := range answer.GetMemories() {
		project := oneLine(m.GetProject())
		if name := oneLine(m.GetDisplayName()); name != "" {
			project += " (" + name + ")"
		}
		rows = append(rows, []string{
			oneLine(m.GetAgent()), project, number(m.GetSessions()), number(m.GetTurns()),
			number(m.GetMessages()), size(m.GetDiskBytes()), day(m.GetFirst()), day(m.GetLast()),
		})
	}
	p.table(rows)
	for _, m := range answer.GetMemories() {
		if m.GetDamage() != "" {
			p.paragraph(0, fmt.Sprintf("The memory of %s and %s cannot be opened: %s", m.GetAgent(), m.GetProject(), oneLine(m.GetDamage())), nil)
		}
		if m.GetPaused() {
			p.paragraph(0, fmt.Sprintf("The memory of %s and %s is paused: nothing is recorded.", m.GetAgent(), m.GetProject()), nil)
		}
	}
	return nil
}

// day prints the date of an instant on this machine's calendar.
func day(t *timestamppb.Timestamp) string {
	if t == nil {
		return "-"
	}
	return t.AsTime().Local().Format("2 Jan 2006")
}
