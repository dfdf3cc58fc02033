package main

import (
	"io"
	"strings"
	"testing"
	"unicode/utf8"

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
		{"recall --limit -1 y", `--limit takes a whole number, not "-1": passages, 1 to 50`},
		{"history --before=-1", `--before takes a whole number, not "-1"`},
		{"recall --timeout 10ms y", "--timeout: 10ms is too short; an answer may take at least 50ms"},
		{"recall --timeout soon y", "--timeout takes a duration"},
		{"help nosuch", `unknown command "nosuch"`},
		{"help recal", "did you mean recall?"},
		{"help recall nosuch", `unknown command "recall nosuch"`},
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
		{"serve --embed magic", "builtin, off, ollama:MODEL and openai:MODEL"},
		{"serve --embed ollama:", "has no name"},
		{"serve --expand builtin", "off, ollama:MODEL and openai:MODEL"},
		{"serve --extract off", "builtin, ollama:MODEL and openai:MODEL"},
		{"serve --metrics 127.0.0.1:9090", "unix:"},
		{"serve --maintain whenever", "cron"},
		{"doctor --embed magic", "builtin, off, ollama:MODEL and openai:MODEL"},
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
		var out, errs strings.Builder
		args := append(strings.Fields(c.CommandPath())[1:], "--help")
		if status := run(args, strings.NewReader(""), &out, &errs); status != exitDone || errs.Len() > 0 {
			t.Errorf("recalld %q: status %d, %s", args, status, errs.String())
		}
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > defaultWidth {
				t.Errorf("%s: a line of the help has %d columns: %s", c.CommandPath(), n, line)
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

// TestCompletedValues asks for completions as the scripts of the shells do.
func TestCompletedValues(t *testing.T) {
	p := withShop(t)
	tests := []struct {
		args []string
		want string
	}{
		{[]string{"recall", "--order", ""}, "rank time"},
		{[]string{"recall", "--expansion", ""}, "off when-weak always"},
		{[]string{"search", "--kind", "t"}, "user reply trace work note mark"},
		{[]string{"history", "--kind", "user,t"}, "user,user user,reply user,trace user,work user,note user,mark"},
		{[]string{"import", "--format", ""}, "turns entire specstory"},
		{[]string{"serve", "--embed", ""}, "builtin ollama: openai: off"},
		{[]string{"serve", "--expand", ""}, "off ollama: openai:"},
		{[]string{"recall", "--agent", ""}, "codex"},
		{[]string{"status", "--project", ""}, "shop"},
		{[]string{"status", "--agent", "nobody", "--project", ""}, ""},
	}
	complete := func(args []string) string {
		r := p.run(append([]string{"__complete"}, args...)...).want(t, exitDone)
		offers, _, _ := strings.Cut("\n"+r.out, "\n:")
		return strings.Join(strings.Fields(offers), " ")
	}
	for _, tt := range tests {
		// The shells leave out what does not begin as the word does; cobra does
		// so itself for fixed values.
		if got := complete(tt.args); got != tt.want {
			t.Errorf("%q: offers %q, want %q", tt.args, got, tt.want)
		}
	}
	p.run("stop").want(t, exitDone)
	if got := complete([]string{"recall", "--agent", ""}); got != "" {
		t.Errorf("without a server %q is offered", got)
	}
	p.run("status", "--no-spawn").want(t, exitFailed).says(t, "no server runs")
}

func TestVersion(t *testing.T) {
	p := newPlace(t)
	o := p.run("version", "--json").want(t, exitDone).object(t)
	build, ok := o["build"].(string)
	if !ok || build == "unknown" {
		t.Fatalf("version gives %v", o)
	}
	p.run("version").want(t, exitDone).says(t, "recalld "+build)
	if long, short := p.run("version").out, p.run("--version").want(t, exitDone).out; long != short {
		t.Errorf("--version prints %q, version %q", short, long)
	}
	if got := p.run("status", "--json").want(t, exitDone).object(t)["build"]; got != build {
		t.Errorf("the server is of build %v, its client of %v", got, build)
	}
}
