package main

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A fullDisk takes some bytes and then no more.
type fullDisk struct{ room int }

func (f *fullDisk) Write(p []byte) (int, error) {
	n := min(f.room, len(p))
	f.room -= n
	if n < len(p) {
		return n, errors.New("no space left")
	}
	return n, nil
}

// TestUnwritableOutput has every command fail with one sentence when what it
// prints goes nowhere, at the first byte or later.
func TestUnwritableOutput(t *testing.T) {
	p := withShop(t)
	commands := [][]string{
		{}, {"--version"}, {"--help"}, {"help", "recall"}, {"version"}, {"version", "--json"},
		{"completion", "bash"}, {"completion", "fish"}, {"completion", "zsh"}, {"completion", "powershell"},
		of("recall", "cache"), of("recall", "--json", "cache"), of("recall", "--block", "cache"), of("recall", "--explain", "cache"),
		of("search", "cache"), of("history"), of("history", "--json"), of("show", "m1"), of("show", "--raw", "m1"),
		{"memories"}, {"status"}, {"verify"}, {"verify", "--json"}, of("import", filepath.Join(p.folder, "shop.jsonl")), {"stop"},
	}
	for _, args := range commands {
		for _, room := range []int{0, 10} {
			var errs strings.Builder
			all := append(slices.Clone(args), "--no-spawn", "--root", p.root)
			status := run(all, strings.NewReader(""), &fullDisk{room}, &errs)
			if got := errs.String(); status != exitFailed || !strings.HasPrefix(got, "recalld: ") ||
				!strings.Contains(got, "print: no space left") || strings.Count(got, "\n") != 1 {
				t.Errorf("recalld %q with room for %d bytes: status %d, %q; want %d and one sentence", args, room, status, got, exitFailed)
			}
		}
	}
}
