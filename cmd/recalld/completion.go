package main

import (
	"github.com/spf13/cobra"
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
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.out, true)
			case "fish":
				return root.GenFishCompletion(a.out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(a.out)
			case "zsh":
				return root.GenZshCompletion(a.out)
			}
			return usageErrorf("completion: the shell %q is not known; the shells are bash, fish, powershell and zsh", args[0])
		},
	}
}
