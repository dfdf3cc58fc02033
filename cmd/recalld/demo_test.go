package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestDemo has the first command of the README look good in a pipe and leave
// nothing behind.
func TestDemo(t *testing.T) {
	p := newPlace(t)
	temp := t.TempDir()
	p.env = []string{"TMPDIR=" + temp, "TMP=" + temp}
	r := p.run("demo").want(t, exitDone)
	for _, question := range demoQuestions {
		r.says(t, "❯ "+question)
	}
	if n := strings.Count(r.out, "\n 1. "); n != len(demoQuestions) {
		t.Errorf("%d best passages, want one for each of %d questions:\n%s", n, len(demoQuestions), r.out)
	}
	for line := range strings.Lines(r.out) {
		line = strings.TrimSuffix(line, "\n")
		if utf8.RuneCountInString(line) > defaultWidth || strings.TrimRight(line, " ") != line {
			t.Errorf("a line is too long or ends in spaces: %q", line)
		}
	}
	if strings.Contains(r.out, "\x1b") || r.err != "" {
		t.Errorf("escape sequences, or words on stderr: %q", r.err)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("the demonstration leaves %v (%v)", left, err)
	}
	if _, err := os.Stat(p.root); err == nil {
		t.Error("the demonstration made a store where RECALLD_ROOT says")
	}
}

// TestDemoKeeps has a demonstration with --root stay, be asked by its question
// and be repeated.
func TestDemoKeeps(t *testing.T) {
	p := newPlace(t)
	for range 2 {
		p.run("demo", "--root", p.root, "why no cgo driver").want(t, exitDone).says(t, "❯ why no cgo driver", p.root)
	}
	p.run("recall", "--agent", demoAgent, "--project", demoProject, "SQLite").want(t, exitDone).says(t, "SQLite")
	p.run("demo", "--root", p.root).want(t, exitFailed).says(t, "locked", "recalld stop --root "+p.root)
	o := p.run("demo", "--json", "--root", filepath.Join(t.TempDir(), "s"), "SQLite").want(t, exitDone).object(t)
	if len(o["passages"].([]any)) == 0 {
		t.Error("demo --json has no passages")
	}
}
