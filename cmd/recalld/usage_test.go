package main

import (
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestWrongUsage has every kind of wrong command line end with status 2 and
// one sentence, without a server.
func TestWrongUsage(t *testing.T) {
	p := newPlace(t)
	for _, tt := range []struct {
		args string
		says string
	}{
		{"frobnicate", `unknown command "frobnicate"`},
		{"recal", "did you mean recall?"},
		{"--frob", "unknown flag: --frob"},
		{"recall", "needs a question"},
		{"recall --limit x y", "--limit"},
		{"recall --limit 0 y", "--limit"},
		{"recall --frob y", "recalld recall --help"},
		{"recall --expansion maybe y", "--expansion"},
		{"recall --order size y", "--order"},
		{"recall --kind human y", "--kind"},
		{"recall --after soon y", "--after"},
		{"recall --before 2026-13-01 y", "--before"},
		{"search", "needs the words"},
		{"search --kind human y", "--kind"},
		{"history x", "takes no argument"},
		{"show", "needs one message id"},
		{"show a b", "needs one message id"},
		{"show --raw --json a", "choose one"},
		{"import", "needs a file"},
		{"memories x", "takes no argument"},
		{"verify x", "takes no argument"},
		{"status x", "takes no argument"},
		{"stop x", "takes no argument"},
		{"version x", "takes no argument"},
		{"serve x", "takes no argument"},
		{"serve --embed magic", "builtin and off"},
		{"serve --embed ollama:nomic", "ollama are not built in yet"},
		{"serve --expand ollama:qwen", "not built in yet"},
		{"serve --idle -1s", "--idle"},
		{"memories --root=", "--root"},
		{"completion", "needs the name of a shell"},
		{"completion klingon", "klingon"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			r := p.run(strings.Fields(tt.args)...).want(t, exitUsage).says(t, tt.says)
			if r.out != "" || strings.Count(r.err, "\n") != 1 || !strings.HasPrefix(r.err, "recalld: ") {
				t.Errorf("stdout %q, stderr %q; want one sentence on stderr", r.out, r.err)
			}
		})
	}
}

// TestRefusedArguments has values that the server refuses be wrong usage, too,
// naming limit and value.
func TestRefusedArguments(t *testing.T) {
	p := withShop(t)
	for _, tt := range []struct {
		args []string
		says []string
	}{
		{of("recall", "--limit", "51", "x"), []string{"limit", "50", "51"}},
		{of("recall", "--passage-bytes", "100", "x"), []string{"passage_bytes", "200", "100"}},
		{of("recall", "--budget", "256001", "x"), []string{"budget_bytes", "256000", "256001"}},
		{of("recall", strings.Repeat("x", 64<<10+1)), []string{"query", "65536", "65537"}},
		{of("search", "/(/"), []string{"query", "missing closing )"}},
		{of("search", "--limit", "51", "x"), []string{"limit", "50", "51"}},
		{of("history", "--limit", "201"), []string{"limit", "200", "201"}},
	} {
		p.run(tt.args...).want(t, exitUsage).says(t, tt.says...)
	}
	p.run("recall", "--memory", strings.Repeat("0", 64), "x").want(t, exitFailed).says(t, "memory", "recalld memories")
}

// TestHelp has every command say what it does, with an example.
func TestHelp(t *testing.T) {
	root := (&app{out: io.Discard, err: io.Discard}).rootCommand()
	for _, c := range append([]*cobra.Command{root}, root.Commands()...) {
		if c.Short == "" || !strings.Contains(c.Example, c.CommandPath()) {
			t.Errorf("%s has no summary or no example", c.CommandPath())
		}
		for line := range strings.Lines(c.Long) {
			if n := len(strings.TrimSuffix(line, "\n")); n > 80 {
				t.Errorf("%s: a line of the help has %d columns", c.CommandPath(), n)
			}
		}
	}
	p := newPlace(t)
	for _, args := range [][]string{nil, {"--help"}, {"help", "recall"}, {"recall", "--help"}, {"import", "--help"}} {
		r := p.run(args...)
		if r.status != exitDone || !strings.Contains(r.out, "Examples:") || r.err != "" {
			t.Errorf("recalld %q: status %d, no example in %q %q", args, r.status, r.out, r.err)
		}
	}
}

func TestCompletion(t *testing.T) {
	p := newPlace(t)
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		p.run("completion", shell).want(t, exitDone).says(t, "recalld")
	}
}

func TestVersion(t *testing.T) {
	p := newPlace(t)
	o := p.run("version", "--json").want(t, exitDone).object(t)
	build, ok := o["build"].(string)
	if !ok || build == "unknown" {
		t.Fatalf("version gives %v", o)
	}
	p.run("version").want(t, exitDone).says(t, "recalld "+build)
	if got := p.run("status", "--json").want(t, exitDone).object(t)["build"]; got != build {
		t.Errorf("the server is of build %v, its client of %v", got, build)
	}
}
