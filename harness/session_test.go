package harness_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"recalld/harness"
	recalldv1 "recalld/proto/recalld/v1"
)

const (
	user     = recalldv1.Kind_KIND_USER
	reply    = recalldv1.Kind_KIND_REPLY
	work     = recalldv1.Kind_KIND_WORK
	trace    = recalldv1.Kind_KIND_TRACE
	finished = recalldv1.TurnStatus_TURN_STATUS_FINISHED
)

func TestReadEntire(t *testing.T) {
	const input = `{"session_id":"s1","checkpoint":"c","agent":"Claude Code","created_at":"2026-02-11T16:00:00+01:00","turns":[` +
		`{"role":"assistant","time":"2026-02-11T15:31:00.5Z","uuid":"u0","text":"Resumed."},` +
		`{"role":"user","time":"2026-02-11T15:32:00Z","uuid":"u1","text":"Why?\nTell me."},` +
		`{"role":"assistant","time":"2026-02-11T15:33:00Z","uuid":"u2","text":"Because."},` +
		`{"role":"tool","time":"nonsense","uuid":"u3","text":"ok"},` +
		`{"role":"user","time":"2026-02-11T15:35:00Z","uuid":"u4","text":"And"},` +
		`{"role":"user","time":"2026-02-11T15:36:00Z","text":"also"}]}` + "\n" +
		`{"session_id":"s2","checkpoint":"c","agent":null,"created_at":"2026-02-11T16:00:00+01:00","turns":[` +
		`{"role":"assistant","text":"Hello"}]}`
	want := []*recalldv1.NewTurn{
		{SessionId: "s1", SessionTitle: "Why?", TurnId: "u0", Status: finished, Messages: []*recalldv1.NewMessage{
			{Id: "u0", Kind: reply, Speaker: "Claude Code", Time: at(t, "2026-02-11T15:31:00.5Z", ""), Text: []byte("Resumed.")},
		}},
		{SessionId: "s1", SessionTitle: "Why?", TurnId: "u1", Status: finished, Messages: []*recalldv1.NewMessage{
			{Id: "u1", Kind: user, Speaker: "user", Time: at(t, "2026-02-11T15:32:00Z", ""), Text: []byte("Why?\nTell me.")},
			{Id: "u2", Kind: reply, Speaker: "Claude Code", Time: at(t, "2026-02-11T15:33:00Z", ""), Text: []byte("Because.")},
			{Id: "u3", Kind: trace, Speaker: "Claude Code", Time: at(t, "2026-02-11T15:33:00Z", ""), Text: []byte("ok")},
		}},
		{SessionId: "s1", SessionTitle: "Why?", TurnId: "u4", Status: finished, Messages: []*recalldv1.NewMessage{
			{Id: "u4", Kind: user, Speaker: "user", Time: at(t, "2026-02-11T15:35:00Z", ""), Text: []byte("And")},
		}},
		{SessionId: "s1", SessionTitle: "Why?", TurnId: "5-8eaf3c77e005e3e410a94f56", Status: finished, Messages: []*recalldv1.NewMessage{
			{Id: "5-8eaf3c77e005e3e410a94f56", Kind: user, Speaker: "user", Time: at(t, "2026-02-11T15:36:00Z", ""), Text: []byte("also")},
		}},
		{SessionId: "s2", TurnId: "0-0", Status: finished, Messages: []*recalldv1.NewMessage{
			{Id: "0-0", Kind: reply, Speaker: "assistant", Time: at(t, "2026-02-11T15:00:00Z", "+01:00"), Text: []byte("Hello")},
		}},
	}
	got, errs := read(strings.NewReader(input), harness.Options{})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	// The derived id of the last message is checked by its shape and its
	// stability (TestDerivedIDs); here it is known by its ordinal.
	last := got[len(got)-1]
	if !strings.HasPrefix(last.GetTurnId(), "0-") || last.GetMessages()[0].GetId() != last.GetTurnId() {
		t.Errorf("derived ids %q and %q, want the same, beginning with 0-", last.GetTurnId(), last.GetMessages()[0].GetId())
	}
	last.TurnId, last.Messages[0].Id = "0-0", "0-0"
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("turns (-want +got):\n%s", diff)
	}
}

func TestReadSpecStory(t *testing.T) {
	const input = `{"session_id":"s","agent":"Codex CLI","path":"a/history/2026-01-16_16-48-38Z-x.md","turns":[` +
		`{"role":"user","meta":"","text":"First"},` +
		`{"role":"assistant","meta":"(gpt-5.2-codex 2026-01-16 16:49:00Z)","text":"One"},` +
		`{"role":"assistant","meta":"- sidechain (claude-haiku-4-5 2026-01-16 16:50:00Z)","text":"Found"},` +
		`{"role":"assistant","meta":"(gpt-5.2-codex 2026-01-16T16:51:00.25Z)","text":"Two"},` +
		`{"role":"assistant","meta":"(gpt-5.2-codex)","text":"Three"}]}`
	messages := []*recalldv1.NewMessage{
		{Kind: user, Speaker: "user", Time: at(t, "2026-01-16T16:48:38Z", ""), Text: []byte("First")},
		{Kind: reply, Speaker: "Codex CLI", Time: at(t, "2026-01-16T16:49:00Z", ""), Text: []byte("One")},
		{Kind: work, Speaker: "Codex CLI subagent", Time: at(t, "2026-01-16T16:50:00Z", ""), Text: []byte("Found")},
		{Kind: reply, Speaker: "Codex CLI", Time: at(t, "2026-01-16T16:51:00.25Z", ""), Text: []byte("Two")},
		{Kind: reply, Speaker: "Codex CLI", Time: at(t, "2026-01-16T16:51:00.25Z", ""), Text: []byte("Three")},
	}
	got, errs := read(strings.NewReader(input), harness.Options{})
	if len(errs) > 0 || len(got) != 1 {
		t.Fatalf("%d turns, errors %q; want one turn", len(got), errs)
	}
	for i, m := range got[0].GetMessages() {
		if !strings.HasPrefix(m.GetId(), fmt.Sprintf("%d-", i)) {
			t.Errorf("message %d has id %q, want it to begin with its ordinal", i, m.GetId())
		}
		m.Id = ""
	}
	if diff := cmp.Diff(messages, got[0].GetMessages(), protocmp.Transform()); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

func TestSessionFaults(t *testing.T) {
	session := func(turns string) string {
		return `{"session_id":"s","path":"p","turns":[` + turns + `]}`
	}
	tests := []struct{ name, line, want string }{
		{"no session", `{"path":"p","turns":[]}`, "line 1: session_id: missing or empty"},
		{"agent", `{"session_id":"s","agent":3,"path":"p","turns":[]}`, "line 1: agent: unexpected number"},
		{"role", session(`{"role":"human","text":"x"}`), "line 1: turns[0].role: must be user, assistant, tool or system"},
		{"no role", session(`{"text":"x"}`), "line 1: turns[0].role: missing or empty"},
		{"null", session(`{"role":"user","text":"x"},null`), "line 1: turns[1].role: missing or empty"},
		{"no text", session(`{"role":"user"}`), "line 1: turns[0].text: missing or empty"},
		{"text of another type", session(`{"role":"user","text":["x"]}`), "line 1: turns[0].text: unexpected array"},
		{"meta of another type", session(`{"role":"user","text":"x","meta":{}}`), "line 1: turns[0].meta: unexpected object"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			turns, errs := read(strings.NewReader(tt.line), harness.Options{Format: harness.SpecStory})
			if diff := cmp.Diff([]string{tt.want}, errs); diff != "" || len(turns) > 0 {
				t.Errorf("%d turns, errors (-want +got):\n%s", len(turns), diff)
			}
		})
	}
}

// TestDerivedIDs has ids depend on session, ordinal and bytes, and on nothing
// else: not on time, title or the lines around.
func TestDerivedIDs(t *testing.T) {
	id := func(session, meta, text string) string {
		line := fmt.Sprintf(`{"session_id":%q,"path":"p","turns":[{"role":"user","meta":%q,"text":"x"},{"role":"user","meta":"","text":%q}]}`,
			session, meta, text)
		turns, errs := read(strings.NewReader(line), harness.Options{})
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		return turns[1].GetMessages()[0].GetId()
	}
	base := id("s", "(2026-01-16 16:48:38Z)", "yes")
	if got := id("s", "", "yes"); got != base {
		t.Errorf("id = %q without a time and %q with one, want the same", got, base)
	}
	if got := id("s2", "", "yes"); got == base {
		t.Errorf("id = %q in two sessions", got)
	}
	if got := id("s", "", "yes."); got == base {
		t.Errorf("id = %q for two texts", got)
	}
}

func TestSessionTitle(t *testing.T) {
	long := strings.Repeat("word ", 30)
	tests := []struct{ name, text, want string }{
		{"short", "fix the build", "fix the build"},
		{"first line", "fix the build\nplease", "fix the build"},
		{"spaces", "  fix\tthe   build ", "fix the build"},
		{"leading empty lines", "\n\n fix", "fix"},
		{"colon", "Do this:\n\n# Plan\nmore", "Do this: # Plan"},
		{"markup", "<command-message>review</command-message>\n<command-name>/review</command-name>", "review"},
		{"comparison is no markup", "is a < b and b > c", "is a < b and b > c"},
		{"cut at a word", long, strings.TrimSpace(strings.Repeat("word ", 16)) + "…"},
		{"exactly 80", strings.Repeat("a", 39) + " " + strings.Repeat("b", 40), strings.Repeat("a", 39) + " " + strings.Repeat("b", 40)},
		{"one long word", strings.Repeat("ü", 90), strings.Repeat("ü", 79) + "…"},
		{"interruption", "[Request interrupted by user for tool use]", "second"},
		{"nothing", " ", "second"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			line := fmt.Sprintf(`{"session_id":"s","path":"p","turns":[{"role":"assistant","text":"Hello"},{"role":"user","text":%q},{"role":"user","text":"second"}]}`, tt.text)
			turns, errs := read(strings.NewReader(line), harness.Options{})
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			for _, turn := range turns {
				if got := turn.GetSessionTitle(); got != tt.want || utf8.RuneCountInString(got) > 80 {
					t.Errorf("title = %q, want %q", got, tt.want)
				}
			}
		})
	}
}
