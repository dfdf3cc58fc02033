package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// setHelp has help fit a terminal of 80 columns, and help about an unknown
// command be wrong usage.
func (a *app) setHelp(root *cobra.Command) {
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(),
		".FlagUsages ", fmt.Sprintf(".FlagUsagesWrapped %d ", defaultWidth)))
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		text := cmd.Long
		if text == "" {
			text = cmd.Short
		}
		// The error, if any, is kept by the writer.
		fmt.Fprintf(a.out, "%s\n\n%s", strings.TrimSpace(text), cmd.UsageString())
	})
	root.SetHelpCommand(&cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "Tell what a command does and takes",
		Example: `  recalld help recall`,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			var names []string
			for _, c := range cmd.Root().Commands() {
				if len(args) == 0 && c.IsAvailableCommand() {
					names = append(names, cobra.CompletionWithDesc(c.Name(), c.Short))
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return usageErrorf("help: unknown command %q%s", strings.Join(args, " "), suggestion(cmd.Root(), args[0]))
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	})
}

// flagError says in the words of the flag what it takes, where the parser says
// what went wrong inside of it.
func flagError(err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err
	}
	flag := invalid.GetFlag()
	takes := "another value"
	switch flag.Value.Type() {
	case "uint32", "uint64":
		takes = "a whole number"
	case "duration":
		takes = "a duration like 10s or 1h30m"
	case "stringSlice":
		takes = "names with commas between"
	case "bool":
		takes = "true or false"
	}
	return fmt.Errorf("--%s takes %s, not %q: %s", flag.Name, takes, invalid.GetValue(), flag.Usage)
}
