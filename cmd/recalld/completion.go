package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	recalldv1 "recalld/proto/recalld/v1"
)

// shells are those for which cobra writes completion.
var shells = []string{"bash", "fish", "powershell", "zsh"}

func (a *app) completionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print what makes a shell complete recalld's commands and flags",
		Long: `Completion prints a script for bash, fish, powershell or zsh. Load it in the
running shell, or put it where the shell looks for such scripts at its start.`,
		Example: `  source <(recalld completion bash)
  recalld completion zsh > "${fpath[1]}/_recalld"
  recalld completion fish > ~/.config/fish/completions/recalld.fish`,
		ValidArgs: shells,
		Args:      exactlyOne("the name of a shell"),
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			var script bytes.Buffer
			var err error
			switch args[0] {
			case "bash":
				err = root.GenBashCompletionV2(&script, true)
			case "fish":
				err = root.GenFishCompletion(&script, true)
			case "powershell":
				err = root.GenPowerShellCompletionWithDesc(&script)
			case "zsh":
				err = root.GenZshCompletion(&script)
			default:
				return usageErrorf("completion: the shell %q is not known; the shells are bash, fish, powershell and zsh", args[0])
			}
			if err != nil {
				return fmt.Errorf("completion: %w", err)
			}
			return a.print(script.Bytes())
		},
	}
}

// completionPatience is how long a person waits for a completion.
const completionPatience = 500 * time.Millisecond

// completes has the values of a flag be completed.
func completes(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err) // the flag is defined by the caller, once
	}
}

// oneOf completes a value out of a few.
func oneOf(values ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
}

// listOf completes the last of several values with commas between.
func listOf(values ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		before := begun[:strings.LastIndexByte(begun, ',')+1]
		var offers []string
		for _, v := range values {
			offers = append(offers, before+v)
		}
		return offers, cobra.ShellCompDirectiveNoFileComp
	}
}

// namesOf completes what name gives of the memories, as the running server
// lists them. Completion starts no server: that nothing is offered when none
// runs surprises less than a process that a key press left behind.
func (a *app) namesOf(name func(*recalldv1.MemorySummary) (value string, fits bool)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		const nothing = cobra.ShellCompDirectiveNoFileComp
		ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
		defer cancel()
		if a.prepare(cmd) != nil {
			return nil, nothing
		}
		c, err := a.reach(ctx)
		if err != nil {
			return nil, nothing
		}
		defer c.close()
		list, err := c.memories.List(ctx, &recalldv1.ListRequest{})
		if err != nil {
			return nil, nothing
		}
		var names []string
		for _, m := range list.GetMemories() {
			// A name that a shell could take for more than a word is left out.
			if value, fits := name(m); fits && value != "" && oneLine(value) == value {
				names = append(names, value)
			}
		}
		slices.Sort(names)
		return slices.Compact(names), nothing
	}
}
