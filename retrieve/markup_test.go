package retrieve_test

import (
	"testing"

	"recalld/retrieve"
)

// TestGateIsSilent: chatter, commands and the envelopes of harnesses are
// answered with nothing, whatever the memory holds.
func TestGateIsSilent(t *testing.T) {
	x := open(t, retrieve.Options{}, docs("yes do it and continue with the review of the clear command model", "ok thanks", "да давай", "please review")...)
	tests := []struct{ text, reason string }{
		{"ok", "chatter"},
		{"Thanks!", "chatter"},
		{"yes, do it", "chatter"},
		{"👍", "chatter"},
		{"go-ahead", "chatter"},
		{"да, давай", "chatter"},
		{"vas-y, continue", "chatter"},
		{"Ja bitte, mach weiter so", "chatter"},
		{"/clear", "a command to the harness"},
		{"<command-name>/model</command-name>\n  <command-args></command-args>", "a command to the harness"},
		{"[Request interrupted by user for tool use]", "a command to the harness"},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			r, err := x.Recall(t.Context(), retrieve.Query{Text: tt.text})
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Passages) > 0 || r.Gate.Passed || r.Gate.Reason != tt.reason {
				t.Errorf("Recall(%q): %d passages, gate %+v; want none, %q", tt.text, len(r.Passages), r.Gate, tt.reason)
			}
		})
	}
}
