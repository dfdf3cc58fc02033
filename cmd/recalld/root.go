package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	recalldv1 "recalld/proto/recalld/v1"
)

// An app is what the commands share: the streams and the global flags.
type app struct {
	in       io.Reader
	out, err io.Writer

	root    string // absolute
	noSpawn bool
	json    bool

	agent, project, memory string
	projectGiven           bool
	rootGiven              bool // by the flag, not by the environment
}

// Groups of commands in the help.
const (
	groupAsk    = "ask"
	groupStore  = "store"
	groupServer = "server"
)

func (a *app) rootCommand() *cobra.Command {
	version := false
	root := &cobra.Command{
		Use:   "recalld",
		Short: "A memory for agents: keeps what was said, finds what bears on a message",
		Long: `recalld keeps the conversations of people with their agents in a store on this
machine and finds what was said earlier. A server owns the store; it is started
in the background by the first command that needs it.

A memory is named by --agent and --project, or by --memory. Without them it is
that of the repository around the current folder.`,
		Example: `  recalld demo
  recalld import --agent claude-code --project shop sessions.jsonl.gz
  recalld recall "why did we drop the cache"`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return usageErrorf("unknown command %q%s", args[0], suggestion(cmd, args[0]))
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if version {
				return a.printVersion()
			}
			return cmd.Help()
		},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return a.prepare(cmd) },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageErrorf("%w (see %s --help)", flagError(err), cmd.CommandPath())
	})
	a.setHelp(root)
	root.Flags().BoolVar(&version, "version", false, "print the build of this program")
	flags := root.PersistentFlags()
	flags.StringVar(&a.root, "root", "", "folder of the store (RECALLD_ROOT; default $XDG_DATA_HOME/recalld)")
	flags.BoolVar(&a.noSpawn, "no-spawn", false, "do not start a server (RECALLD_NO_SPAWN=1)")
	flags.BoolVar(&a.json, "json", false, "print the response as JSON, one object a line")
	flags.StringVar(&a.agent, "agent", "", "agent of the memory, as in claude-code (default: the only one of the project)")
	flags.StringVar(&a.project, "project", "", "project of the memory (default: the repository around the current folder)")
	flags.StringVar(&a.memory, "memory", "", "the memory by its id or an alias")
	completes(root, "agent", a.namesOf(func(m *recalldv1.MemorySummary) (string, bool) {
		return m.GetAgent(), a.project == "" || m.GetProject() == a.project
	}))
	completes(root, "project", a.namesOf(func(m *recalldv1.MemorySummary) (string, bool) {
		return m.GetProject(), a.agent == "" || m.GetAgent() == a.agent
	}))

	root.AddGroup(
		&cobra.Group{ID: groupAsk, Title: "Ask:"},
		&cobra.Group{ID: groupStore, Title: "Store:"},
		&cobra.Group{ID: groupServer, Title: "Server:"},
	)
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add(groupAsk, a.recallCommand(), a.contextCommand(), a.searchCommand(), a.historyCommand(), a.showCommand(), a.journalCommand(), a.demoCommand())
	add(groupStore, a.importCommand(), a.consolidateCommand(), a.memoriesCommand(), a.verifyCommand())
	add(groupServer, a.serveCommand(), a.statusCommand(), a.doctorCommand(), a.stopCommand())
	add("", a.completionCommand(), a.versionCommand())
	return root
}

// prepare reads the environment where no flag was given.
func (a *app) prepare(cmd *cobra.Command) error {
	flags := cmd.Flags()
	a.projectGiven = flags.Changed("project")
	a.rootGiven = flags.Changed("root")
	if a.rootGiven && a.root == "" {
		return usageErrorf("--root: names no folder")
	}
	if !flags.Changed("no-spawn") {
		a.noSpawn = isTrue(os.Getenv("RECALLD_NO_SPAWN"))
	}
	root, err := storeRoot(a.root, os.Getenv)
	if err != nil {
		return err
	}
	a.root = root
	return nil
}

// isTrue reads a switch of the environment: set and not one of the usual words
// for no.
func isTrue(value string) bool {
	switch strings.ToLower(value) {
	case "", "0", "false", "no", "off":
		return false
	}
	return true
}

func suggestion(cmd *cobra.Command, word string) string {
	cmd.SuggestionsMinimumDistance = 2
	similar := cmd.SuggestionsFor(word)
	if len(similar) == 0 {
		return "; recalld --help lists the commands"
	}
	return fmt.Sprintf("; did you mean %s?", strings.Join(similar, " or "))
}

// noArguments refuses arguments.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageErrorf("%s takes no argument, got %q (see %s --help)", cmd.CommandPath(), args[0], cmd.CommandPath())
	}
	return nil
}

// exactlyOne and atLeastOne ask for arguments and say what they are.
func exactlyOne(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			return nil
		}
		return usageErrorf("%s needs %s, got %d arguments (see %s --help)", cmd.CommandPath(), what, len(args), cmd.CommandPath())
	}
}

func atLeastOne(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return nil
		}
		return usageErrorf("%s needs %s (see %s --help)", cmd.CommandPath(), what, cmd.CommandPath())
	}
}
