package main

import (
	"strings"
	"testing"
)

// TestJournalTerminal has a quote be bold on a terminal, without the brackets
// that mark it elsewhere.
func TestJournalTerminal(t *testing.T) {
	p := withCouncil(t)
	p.env = []string{"TERM=xterm", "NO_COLOR="}
	styled := p.onTerminal(200, of("journal", "show", p.entry("decision"))...)
	line := ""
	for l := range strings.Lines(styled) {
		if strings.Contains(l, "for a week.") {
			line = strings.TrimSpace(l)
		}
	}
	before, rest, ok := strings.Cut(line, "\x1b[1m")
	quoted, after, closed := strings.Cut(rest, "\x1b[0m")
	if !ok || !closed || strings.Contains(before, "SQLite") || !strings.Contains(quoted, "SQLite") || !strings.Contains(after, "Lunch") || strings.Contains(styled, "⟦") {
		t.Errorf("the quote is not bold within the words around it: %q", styled)
	}
}
