package service_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"

	recalldv1 "recalld/proto/recalld/v1"
	"recalld/service"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// An asker is a client of the context service of one memory.
type asker struct {
	*journalist
	recalldv1.ContextServiceClient
}

func askerOf(r *rig) *asker {
	conn := dial(r.t, r.socket, token)
	r.t.Cleanup(func() { conn.Close() })
	return &asker{journalOf(r), recalldv1.NewContextServiceClient(conn)}
}

// council is a talk that holds something of every kind.
var council = [][2]string{
	{"We decided to store the events in SQLite.", "Noted. The events go into one SQLite file per tenant."},
	{"I prefer short functions.", "I will keep them short."},
	{"Always run the linter before you commit.", "I will."},
	{"How is the weather over there?", "I cannot see it from here."},
	{"please open an issue for the flaky upload test", "Still open:\n\n- the retry loop of the uploader has no limit"},
	{"Let's use Postgres for the invoices.", "All right, Postgres for the invoices."},
	{"what does the parser do with tabs?", "It takes a tab for eight blanks.\nA tab after a blank counts less."},
	{"Actually, let's use MySQL instead of Postgres for the invoices.", "MySQL it is."},
}

// counselled is an asker whose memory has read the talk of the council.
func counselled(t *testing.T) *asker {
	a := askerOf(start(t, service.Options{Consolidate: "off"}))
	lines := slices.Clone(council)
	// What everybody asks finds nothing here, so that a question stands out.
	for i := range 12 {
		lines = append(lines, [2]string{fmt.Sprintf("what colour is box %d in the picture?", i), "It is green."})
	}
	a.talk("old", 0, lines...)
	a.mustConsolidate()
	a.settle()
	return a
}

// settle waits until the gate of the memory is measured, which is done in the
// background. What was appended at once is measured once.
func (a *asker) settle() {
	a.t.Helper()
	for range 1000 {
		req := asks("", "which elephant?")
		req.SessionId, req.DryRun = "nobody", true
		resp, err := a.PreTurn(context.Background(), req)
		if err != nil {
			a.t.Fatal(err)
		}
		for _, p := range resp.Gate.GetParts() {
			if p.Name == "coverage level" && p.Value != 0 {
				return
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	a.t.Fatal("the gate is not measured within 10 s")
}

// asks is a request of a session of the asker's memory.
func asks(session, message string) *recalldv1.PreTurnRequest {
	return &recalldv1.PreTurnRequest{
		SessionId: session, Agent: "agent", Project: "project", Message: message, KeptInHistory: true,
		Now: at("2026-03-09T09:00:00Z", "Europe/Berlin"),
	}
}

// gives asks or fails the test, and reads the block.
func (a *asker) gives(req *recalldv1.PreTurnRequest) (*recalldv1.PreTurnResponse, evidence) {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	resp, err := a.PreTurn(ctx, req)
	if err != nil {
		a.t.Fatalf("PreTurn(%q): %v", req.Message, err)
	}
	return resp, a.read(resp)
}

// read parses the block of an answer and holds it against the answer's fields.
func (a *asker) read(resp *recalldv1.PreTurnResponse) evidence {
	a.t.Helper()
	e, err := parseEvidence(resp.Block, a.server.Secret())
	if err != nil {
		a.t.Fatalf("%v\n%s", err, resp.Block)
	}
	var ids []string
	for _, w := range e.Entries {
		ids = append(ids, w.ID)
	}
	if !slices.Equal(ids, resp.EntryIds) || len(e.Passages) != len(resp.Passages) {
		a.t.Fatalf("the block holds entries %v and %d passages, the answer %v and %d", ids, len(e.Passages), resp.EntryIds, len(resp.Passages))
	}
	for i, p := range resp.Passages {
		got := e.Passages[i]
		got.Time = ""
		if diff := cmp.Diff(asGiven(p), got); diff != "" {
			a.t.Fatalf("passage %d (-answer +block):\n%s", i, diff)
		}
	}
	return e
}

// texts lists what a block says, entries first.
func (e evidence) texts() []string {
	var list []string
	for _, w := range e.Entries {
		list = append(list, w.Kind+": "+w.Text)
	}
	for _, p := range e.Passages {
		list = append(list, p.Text)
	}
	return list
}

// says reports whether a block says just these, in some order.
func (e evidence) says(texts ...string) string {
	got := e.texts()
	slices.Sort(got)
	slices.Sort(texts)
	return cmp.Diff(texts, got)
}

func (a *asker) reset(session string) uint32 {
	a.t.Helper()
	resp, err := a.Reset(context.Background(), &recalldv1.ResetRequest{SessionId: session})
	if err != nil {
		a.t.Fatalf("Reset(%s): %v", session, err)
	}
	return resp.Given
}

const (
	rule       = "rule: Always run the linter before you commit."
	preference = "preference: I prefer short functions."
	stored     = "decision: We decided to store the events in SQLite."
	chatter    = "thanks"
	tabs       = "what does the parser do with tabs?"
	events     = "where are the events stored?"
)

// TestPreTurnGolden shows whole blocks as harnesses get them.
func TestPreTurnGolden(t *testing.T) {
	a := counselled(t)
	a.talk("chat", 0, [2]string{"Good morning.", "Good morning!"})
	for _, tt := range []struct {
		name, message string
		change        func(*recalldv1.PreTurnRequest)
	}{
		{"chatter", chatter, nil},
		{"decision", events, nil},
		{"passages", tabs, nil},
		{"reversal", "is MySQL up for the invoices?", nil},
		{"open-work", "is the flaky upload test fixed?", nil},
		{"small-budget", events, func(r *recalldv1.PreTurnRequest) { r.BudgetBytes = 800 }},
		{"nothing", "chatter again", func(r *recalldv1.PreTurnRequest) { r.Message = "ok" }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req := asks("chat", tt.message)
			if tt.name == "nothing" {
				a.gives(req)
			}
			if tt.change != nil {
				tt.change(req)
			}
			resp, _ := a.gives(req)
			a.reset("chat")
			got := regexp.MustCompile(`boundary="[0-9a-f]{16}"`).ReplaceAllString(resp.Block, `boundary="0000000000000000"`)
			path := filepath.Join("testdata", "context-"+tt.name+".golden")
			if *update {
				if err := os.MkdirAll("testdata", 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("block (-want +got):\n%s", diff)
			}
		})
	}
}

// TestGivenOnce goes through what may be given again, call by call.
func TestGivenOnce(t *testing.T) {
	a := counselled(t)
	dropped := func(r *recalldv1.PreTurnRequest) { r.KeptInHistory = false }
	dry := func(r *recalldv1.PreTurnRequest) { r.DryRun = true }
	tab := []string{tabs, council[6][1], council[5][1]}
	ruleID := ""
	for _, e := range a.entries() {
		if e.Kind == recalldv1.EntryKind_ENTRY_KIND_RULE {
			ruleID = e.Id
		}
	}
	review := func(action recalldv1.ReviewAction, text string) func() {
		return func() {
			a.review(&recalldv1.ReviewRequest{Action: action, EntryIds: []string{ruleID}, Text: text})
		}
	}
	edited := "rule: Run the linter first."
	for _, step := range []struct {
		name             string
		before           func()
		session, message string
		change           func(*recalldv1.PreTurnRequest)
		want             []string
	}{
		{"looking gives and notes nothing", nil, "one", chatter, dry, []string{rule, preference}},
		{"rules come first, with chatter too", nil, "one", chatter, nil, []string{rule, preference}},
		{"and once", nil, "one", chatter, nil, nil},
		{"looking sees the same", nil, "one", chatter, dry, nil},
		{"another session has its own", nil, "two", chatter, nil, []string{rule, preference}},
		{"a harness that drops blocks gets them each time", nil, "one", chatter, dropped, []string{rule, preference}},
		{"passages are given", nil, "one", tabs, nil, tab},
		{"and once", nil, "one", tabs, nil, nil},
		{"to another session as well", nil, "two", tabs, nil, tab},
		{"and each time where they are dropped", nil, "two", tabs, dropped, append([]string{rule, preference}, tab...)},
		{"a decision", nil, "one", events, nil, []string{stored, council[0][1]}},
		{"is given once, with the words it quotes", nil, "one", events, nil, nil},
		{"after a reset all is given again", func() { a.reset("one") }, "one", tabs, nil, append([]string{rule, preference}, tab...)},
		{"but to that session alone", nil, "two", tabs, nil, nil},
		{"an edited entry is news", review(recalldv1.ReviewAction_REVIEW_ACTION_EDIT, "Run the linter first."), "one", chatter, nil, []string{edited}},
		{"a rejected one is gone", review(recalldv1.ReviewAction_REVIEW_ACTION_REJECT, ""), "one", chatter, nil, nil},
		{"and news when it holds again", review(recalldv1.ReviewAction_REVIEW_ACTION_APPROVE, ""), "one", chatter, nil, []string{edited}},
		{"once", nil, "one", chatter, nil, nil},
		{"a pin is no news", review(recalldv1.ReviewAction_REVIEW_ACTION_PIN, ""), "one", chatter, nil, nil},
		{"a rule said again is no news", func() {
			a.talk("old", 200, council[1])
			a.mustConsolidate()
		}, "one", chatter, nil, nil},
		{"what is in the live context is left out by id", nil, "three", events, func(r *recalldv1.PreTurnRequest) {
			r.ExcludeMessages = []string{"old/0/user", "old/0/reply", "old/1/user", "old/200/user", "unknown"}
		}, []string{edited}},
	} {
		t.Run(step.name, func(t *testing.T) {
			if step.before != nil {
				step.before()
			}
			req := asks(step.session, step.message)
			if step.change != nil {
				step.change(req)
			}
			resp, e := a.gives(req)
			if diff := e.says(slices.Clone(step.want)...); diff != "" {
				t.Errorf("(-want +got):\n%s\n%v", diff, resp.Sources)
			}
			if (len(step.want) == 0) != (resp.Block == "") {
				t.Errorf("a block of %d bytes", len(resp.Block))
			}
		})
	}
}

// TestGivenOverRestart: what was given is known after a restart.
func TestGivenOverRestart(t *testing.T) {
	a := counselled(t)
	a.gives(asks("chat", tabs))
	a.stop()
	b := askerOf(startIn(t, a.root, service.Options{Consolidate: "off"}))
	b.settle()
	if _, e := b.gives(asks("chat", tabs)); e.says() != "" {
		t.Errorf("given again: %v", e.texts())
	}
	// The session is still bound.
	req := asks("chat", events)
	req.Agent, req.Project = "", ""
	if resp, e := b.gives(req); e.says(stored, council[0][1]) != "" {
		t.Errorf("given %v: %v", e.texts(), resp)
	}
	if n := b.reset("chat"); n == 0 {
		t.Error("nothing was noted")
	}
	if n := b.reset("chat"); n != 0 {
		t.Errorf("%d were noted after a reset", n)
	}
}

// TestGivenAtOnce: calls of one session at once give nothing twice.
func TestGivenAtOnce(t *testing.T) {
	a := counselled(t)
	var mu sync.Mutex
	var all []string
	var wait sync.WaitGroup
	for range 12 {
		wait.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			resp, err := a.PreTurn(ctx, asks("chat", tabs))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
				return
			}
			all = append(all, a.read(resp).texts()...)
		})
	}
	wait.Wait()
	want := []string{rule, preference, tabs, council[6][1], council[5][1]}
	slices.Sort(all)
	slices.Sort(want)
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("given to one session (-want +got):\n%s", diff)
	}
}

// TestLongMessageInParts: of a long message each part is given once.
func TestLongMessageInParts(t *testing.T) {
	a := askerOf(start(t, service.Options{Consolidate: "off"}))
	parts := []string{"aardvark", "buffalo", "cormorant"}
	var text strings.Builder
	for _, animal := range parts {
		for i := range 40 {
			fmt.Fprintf(&text, "The %s number %d was seen near the %s lake by somebody else. ", animal, i, animal)
		}
	}
	turns := []*recalldv1.NewTurn{said("long", "1", text.String())}
	for i := range 12 {
		turns = append(turns, said("long", fmt.Sprint("x", i), fmt.Sprintf("what colour is box %d in the picture?", i)))
	}
	a.append(a.ref, turns...)
	a.settle()
	given := map[string]bool{}
	for _, animal := range append(parts, parts...) {
		resp, e := a.gives(asks("chat", "the "+animal+" number near the "+animal+" lake"))
		for _, p := range resp.Passages {
			if p.MessageId != "long/1" {
				continue
			}
			place := fmt.Sprint(p.Range.Start)
			if given[place] {
				t.Errorf("%v is given twice", p.Range)
			}
			given[place] = true
			if !strings.Contains(p.Text, animal) {
				t.Errorf("asked for the %s, given %q", animal, p.Text)
			}
			if text.String()[p.Range.Start:p.Range.End] != p.Text {
				t.Errorf("%v is not what stands there", p.Range)
			}
		}
		if len(e.Passages) > 3 {
			t.Errorf("%d passages", len(e.Passages))
		}
	}
	if len(given) < len(parts) {
		t.Errorf("only %d parts were given", len(given))
	}
}

// TestPreTurnBinds goes through who is bound to what, and what is left behind.
func TestPreTurnBinds(t *testing.T) {
	a := counselled(t)
	ctx := context.Background()
	other := byKey("agent", "other")
	a.append(other, said("theirs", "1", "words elsewhere"))
	call := func(change func(*recalldv1.PreTurnRequest)) (*recalldv1.PreTurnResponse, error) {
		req := asks("chat", tabs)
		change(req)
		return a.PreTurn(ctx, req)
	}
	nameless := func(session string) func(*recalldv1.PreTurnRequest) {
		return func(r *recalldv1.PreTurnRequest) { r.SessionId, r.Agent, r.Project = session, "", "" }
	}
	_, err := call(nameless("chat"))
	wants(t, err, codes.NotFound, "session_id")
	// Looking binds nothing.
	if _, err := call(func(r *recalldv1.PreTurnRequest) { r.DryRun = true }); err != nil {
		t.Fatal(err)
	}
	_, err = call(nameless("chat"))
	wants(t, err, codes.NotFound, "session_id")
	_, err = a.Reset(ctx, &recalldv1.ResetRequest{SessionId: "chat"})
	wants(t, err, codes.NotFound, "session_id")
	// Asking does, for as long as nobody else claims the session.
	if _, err := call(func(*recalldv1.PreTurnRequest) {}); err != nil {
		t.Fatal(err)
	}
	if resp, err := call(nameless("chat")); err != nil || resp.MemoryId == "" {
		t.Errorf("a bound session without its memory: %v, %v", resp, err)
	}
	a.append(other, said("chat", "1", "the chat is about something else"))
	_, err = call(func(*recalldv1.PreTurnRequest) {})
	wants(t, err, codes.AlreadyExists)
	if resp, err := call(nameless("chat")); err != nil || a.read(resp).says() != "" {
		t.Errorf("PreTurn of a session of another memory = %v, %v", resp, err)
	}
	// A memory that is not there yet: nothing is given, nothing made.
	for _, session := range []string{"fresh", "fresh"} {
		resp, err := call(func(r *recalldv1.PreTurnRequest) { r.SessionId, r.Project = session, "new" })
		if err != nil || resp.Block != "" || resp.MemoryId != "" || resp.Now == nil {
			t.Errorf("PreTurn of a memory that is not there = %v, %v", resp, err)
		}
	}
	a.folders(2)
	_, err = call(func(r *recalldv1.PreTurnRequest) { r.SessionId, r.Project = "theirs", "new" })
	wants(t, err, codes.AlreadyExists)
	_, err = a.Reset(ctx, &recalldv1.ResetRequest{SessionId: "theirs", Agent: "agent", Project: "project"})
	wants(t, err, codes.NotFound, "session_id")
	_, err = a.Reset(ctx, &recalldv1.ResetRequest{SessionId: "theirs", Agent: "agent", Project: "new"})
	wants(t, err, codes.NotFound, "memory")
	a.append(byKey("agent", "new"), said("fresh", "1", "at last"))
	a.folders(3)
}

func TestPreTurnRefuses(t *testing.T) {
	a := counselled(t)
	for name, tt := range map[string]struct {
		change func(*recalldv1.PreTurnRequest)
		words  []string
	}{
		"no session":        {func(r *recalldv1.PreTurnRequest) { r.SessionId = "" }, []string{"session_id"}},
		"the notes":         {func(r *recalldv1.PreTurnRequest) { r.SessionId = "notes" }, []string{"session_id"}},
		"a long session":    {func(r *recalldv1.PreTurnRequest) { r.SessionId = strings.Repeat("s", 513) }, []string{"session_id", "512"}},
		"no agent":          {func(r *recalldv1.PreTurnRequest) { r.Agent = "" }, []string{"agent"}},
		"a long message":    {func(r *recalldv1.PreTurnRequest) { r.Message = strings.Repeat("a", 64<<10+1) }, []string{"message", "65536", "65537"}},
		"a small budget":    {func(r *recalldv1.PreTurnRequest) { r.BudgetBytes = 511 }, []string{"budget_bytes", "512 to 256000", "511"}},
		"a large budget":    {func(r *recalldv1.PreTurnRequest) { r.BudgetBytes = 256_001 }, []string{"budget_bytes"}},
		"few characters":    {func(r *recalldv1.PreTurnRequest) { r.BudgetCharacters = 511 }, []string{"budget_characters", "512 to 256000", "511"}},
		"an unknown zone":   {func(r *recalldv1.PreTurnRequest) { r.Now = at("2026-03-09T09:00:00Z", "Mars") }, []string{"now.zone"}},
		"a nameless id":     {func(r *recalldv1.PreTurnRequest) { r.ExcludeMessages = []string{""} }, []string{"exclude_messages[0]"}},
		"unknown expansion": {func(r *recalldv1.PreTurnRequest) { r.Expansion = 9 }, []string{"expansion"}},
	} {
		t.Run(name, func(t *testing.T) {
			req := asks("chat", tabs)
			tt.change(req)
			_, err := a.PreTurn(context.Background(), req)
			wants(t, err, codes.InvalidArgument, tt.words...)
		})
	}
}

// TestContextIsolated: nothing of one memory is given to a session of another.
func TestContextIsolated(t *testing.T) {
	a := counselled(t)
	a.append(byKey("agent", "other"), said("theirs", "1", "we talked about the parser and its tabs, and where the events are stored"))
	for _, message := range []string{chatter, tabs, events} {
		req := asks("their chat", message)
		req.Project = "other"
		resp, e := a.gives(req)
		for _, p := range e.Passages {
			if p.ID != "theirs/1" {
				t.Errorf("%q of another memory is given", p.ID)
			}
		}
		if len(e.Entries) > 0 || strings.Contains(resp.Block, "SQLite") {
			t.Errorf("the journal of another memory is given:\n%s", resp.Block)
		}
	}
}

// TestPreTurnIsDeterministic: the same question gives the same bytes.
func TestPreTurnIsDeterministic(t *testing.T) {
	a := counselled(t)
	req := asks("chat", "which decisions are there about events, invoices, MySQL, SQLite, the flaky upload test and the uploader?")
	req.DryRun = true
	first, _ := a.gives(req)
	if len(first.EntryIds) < 4 || len(first.Passages) == 0 {
		t.Fatalf("only %d entries and %d passages", len(first.EntryIds), len(first.Passages))
	}
	for range 5 {
		if again, _ := a.gives(req); again.Block != first.Block {
			t.Fatalf("(-first +again):\n%s", cmp.Diff(first.Block, again.Block))
		}
	}
}
