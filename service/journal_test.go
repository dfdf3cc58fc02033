package service_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"

	"recalld/ledger"
	recalldv1 "recalld/proto/recalld/v1"
	"recalld/service"
)

// A journalist is a client of the journal of one memory.
type journalist struct {
	*rig
	recalldv1.JournalServiceClient
	ref *recalldv1.MemoryRef
}

func journalOf(r *rig) *journalist {
	conn := dial(r.t, r.socket, token)
	r.t.Cleanup(func() { conn.Close() })
	return &journalist{r, recalldv1.NewJournalServiceClient(conn), byKey("agent", "project")}
}

// talk appends one turn for each pair of what Ann says and what the agent answers.
func (j *journalist) talk(session string, first int, lines ...[2]string) {
	j.t.Helper()
	var turns []*recalldv1.NewTurn
	for i, l := range lines {
		id := fmt.Sprintf("%s/%d", session, first+i)
		when := time.Date(2026, 3, 2, 9, first+i, 0, 0, time.UTC).Format(time.RFC3339)
		turn := &recalldv1.NewTurn{SessionId: session, TurnId: id, Status: recalldv1.TurnStatus_TURN_STATUS_FINISHED, Messages: []*recalldv1.NewMessage{
			{Id: id + "/user", Kind: recalldv1.Kind_KIND_USER, Speaker: "Ann", Text: []byte(l[0]), Time: at(when, "Europe/Berlin")},
		}}
		if l[1] != "" {
			turn.Messages = append(turn.Messages, &recalldv1.NewMessage{Id: id + "/reply", Kind: recalldv1.Kind_KIND_REPLY, Speaker: "agent", Text: []byte(l[1])})
		}
		turns = append(turns, turn)
	}
	j.append(j.ref, turns...)
}

func (j *journalist) consolidate(closeTail bool) (*recalldv1.ConsolidateResponse, error) {
	stream, err := j.Consolidate(context.Background(), &recalldv1.ConsolidateRequest{Memory: j.ref, CloseTail: closeTail})
	if err != nil {
		return nil, err
	}
	var last *recalldv1.ConsolidateResponse
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return last, nil
		}
		if err != nil {
			return last, err
		}
		last = resp
	}
}

func (j *journalist) mustConsolidate() *recalldv1.ConsolidateResponse {
	j.t.Helper()
	resp, err := j.consolidate(true)
	if err != nil {
		j.t.Fatalf("Consolidate: %v", err)
	}
	return resp
}

func (j *journalist) entries() []*recalldv1.Entry {
	j.t.Helper()
	resp, err := j.List(context.Background(), &recalldv1.JournalServiceListRequest{Memory: j.ref, Limit: 200})
	if err != nil {
		j.t.Fatalf("List: %v", err)
	}
	return resp.Entries
}

func (j *journalist) review(req *recalldv1.ReviewRequest) *recalldv1.ReviewResponse {
	j.t.Helper()
	req.Memory, req.Author = j.ref, "Ann"
	resp, err := j.Review(context.Background(), req)
	if err != nil {
		j.t.Fatalf("Review(%v): %v", req.Action, err)
	}
	return resp
}

// verified fails the test unless the chain and all quotes hold.
func (j *journalist) verified() *recalldv1.JournalServiceVerifyResponse {
	j.t.Helper()
	resp, err := j.Verify(context.Background(), &recalldv1.JournalServiceVerifyRequest{Memory: j.ref})
	if err != nil || !resp.Ok {
		j.t.Fatalf("Verify = %v, %v", resp, err)
	}
	return resp
}

// states lists entries as "state kind: words".
func states(entries []*recalldv1.Entry) []string {
	var out []string
	for _, e := range entries {
		out = append(out, strings.ToLower(strings.TrimPrefix(e.State.String(), "ENTRY_STATE_")+" "+strings.TrimPrefix(e.Kind.String(), "ENTRY_KIND_"))+": "+e.Text)
	}
	return out
}

var conversation = [][2]string{
	{"We decided to store the events in SQLite.", "Noted."},
	{"good morning", "Good morning! How can I help?"},
	{"look at the command", "I suggest renaming `sync all` to `sync`. Want me to make this change?"},
	{"yes", "Done."},
	{"Always run the linter before you commit.", "I will."},
}

var wantConversation = []string{
	"live rule: Always run the linter before you commit.",
	"live decision: yes ⟵ I suggest renaming `sync all` to `sync`. Want me to make this change?",
	"live decision: We decided to store the events in SQLite.",
}

func TestJournal(t *testing.T) {
	j := journalOf(start(t, service.Options{Consolidate: "off"}))
	j.talk("s", 0, conversation...)
	resp, err := j.consolidate(false)
	if err != nil || resp.WindowsDone != 1 || resp.Entries != 2 {
		t.Fatalf("Consolidate = %v, %v; want one window with two entries, the tail stays open", resp, err)
	}
	if resp := j.mustConsolidate(); resp.WindowsDone != 1 || resp.WindowsTotal != 1 || resp.Entries != 1 {
		t.Fatalf("Consolidate that closes the tail = %v; want one window with one entry", resp)
	}
	entries := j.entries()
	if diff := cmp.Diff(wantConversation, states(entries)); diff != "" {
		t.Fatalf("entries (-want +got):\n%s", diff)
	}
	accepted, err := j.Show(t.Context(), &recalldv1.ShowRequest{Memory: j.ref, EntryId: entries[1].Id})
	if err != nil {
		t.Fatal(err)
	}
	quotes := accepted.Entry.Quotes
	if len(quotes) != 2 || quotes[0].Text != "yes" || quotes[0].Speaker != "Ann" || !quotes[0].Exact || quotes[0].MessageId != "s/3/user" || quotes[0].SessionId != "s" ||
		quotes[1].Role != recalldv1.QuoteRole_QUOTE_ROLE_PROPOSAL || quotes[1].Speaker != "agent" || quotes[1].MessageId != "s/2/reply" {
		t.Errorf("quotes %v", quotes)
	}
	for _, q := range quotes {
		whole := ""
		for _, m := range accepted.Messages {
			if m.Id == q.MessageId {
				whole = m.Text
			}
		}
		if whole[q.Range.Start:q.Range.End] != q.Text {
			t.Errorf("message %q does not hold %q at %v", whole, q.Text, q.Range)
		}
	}
	if accepted.Entry.Speaker != "Ann" || accepted.Entry.SaidAt.GetZone() != "Europe/Berlin" || accepted.Entry.BatchHash == "" {
		t.Errorf("entry %v", accepted.Entry)
	}
	got, err := j.Get(t.Context(), &recalldv1.GetRequest{Memory: j.ref})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<recalled-evidence", "Rules and preferences:\n- 2026-03-02 \"Ann\" (rule " + entries[0].Id + "): Always run the linter before you commit.\n", "Decisions:\n"} {
		if !strings.Contains(got.Block, want) {
			t.Errorf("block lacks %q:\n%s", want, got.Block)
		}
	}
	if len(got.Entries) != 3 || len(got.Reach) != 1 || got.Reach[0].SessionId != "s" || got.Reach[0].TurnsWaiting != 0 {
		t.Errorf("entries %v, reach %v", states(got.Entries), got.Reach)
	}
	if stripped := service.StripFrame(j.server.Secret(), []byte(got.Block)); len(stripped) > 0 {
		t.Errorf("the block is not recognised as our own: %q is left", stripped)
	}
	if v := j.verified(); v.Batches != 2 || v.Quotes != 4 {
		t.Errorf("Verify = %v, want 2 batches and 4 quotes", v)
	}
	head, err := j.Head(t.Context(), &recalldv1.HeadRequest{Memory: j.ref})
	if err != nil || head.Hash != got.Head || head.Batches != 2 {
		t.Errorf("Head = %v, %v; want %s", head, err, got.Head)
	}
	if resp := j.mustConsolidate(); resp.WindowsTotal != 0 {
		t.Errorf("a run with nothing to read read %v", resp)
	}
}

// TestJournalOverRestart: what was stored is there again, and nothing is read twice.
func TestJournalOverRestart(t *testing.T) {
	r := start(t, service.Options{Consolidate: "off"})
	j := journalOf(r)
	j.talk("s", 0, conversation...)
	j.mustConsolidate()
	before := states(j.entries())
	r.stop()
	j = journalOf(startIn(t, r.root, service.Options{Consolidate: "off"}))
	if diff := cmp.Diff(before, states(j.entries())); diff != "" {
		t.Errorf("entries after a restart (-want +got):\n%s", diff)
	}
	j.verified()
	if resp := j.mustConsolidate(); resp.WindowsTotal != 0 {
		t.Errorf("read again: %v", resp)
	}
}

func TestReview(t *testing.T) {
	j := journalOf(start(t, service.Options{Consolidate: "off"}))
	j.talk("s", 0, conversation...)
	j.mustConsolidate()
	rule := j.entries()[0]

	rejected := j.review(&recalldv1.ReviewRequest{Action: recalldv1.ReviewAction_REVIEW_ACTION_REJECT, EntryIds: []string{rule.Id}})
	if rejected.Batch.Author != "Ann" || rejected.Batch.At == nil || len(rejected.Entries) != 1 || rejected.Entries[0].State != recalldv1.EntryState_ENTRY_STATE_REJECTED {
		t.Fatalf("Review = %v", rejected)
	}
	// The same words again are the same entry, which stays rejected.
	j.talk("s", 5, [2]string{"Always run the linter before you commit.", "Yes."})
	j.mustConsolidate()
	if got := states(j.entries())[0]; got != "rejected rule: Always run the linter before you commit." || len(j.entries()) != 3 {
		t.Errorf("said again after it was rejected: %v", states(j.entries()))
	}
	if got, err := j.Get(t.Context(), &recalldv1.GetRequest{Memory: j.ref}); err != nil || strings.Contains(got.Block, "linter") {
		t.Errorf("block holds what was rejected: %v\n%s", err, got.GetBlock())
	}
	undone := j.review(&recalldv1.ReviewRequest{Action: recalldv1.ReviewAction_REVIEW_ACTION_UNDO, BatchHash: rejected.Batch.Hash})
	if len(undone.Entries) != 1 || undone.Entries[0].State != recalldv1.EntryState_ENTRY_STATE_LIVE {
		t.Errorf("undone: %v", undone)
	}
	edited := j.review(&recalldv1.ReviewRequest{Action: recalldv1.ReviewAction_REVIEW_ACTION_EDIT, EntryIds: []string{rule.Id}, Text: "Run the linter\nfirst."})
	if edited.Entries[0].Text != "Run the linter\nfirst." || edited.Entries[0].Quotes[0].Text != "Always run the linter before you commit." {
		t.Errorf("edited: %v", edited.Entries[0])
	}
	if got, err := j.Get(t.Context(), &recalldv1.GetRequest{Memory: j.ref}); err != nil || !strings.Contains(got.Block, "): Run the linter first.\n") {
		t.Errorf("the block keeps an edited text off one line: %v\n%s", err, got.GetBlock())
	}
	if pinned := j.review(&recalldv1.ReviewRequest{Action: recalldv1.ReviewAction_REVIEW_ACTION_PIN, EntryIds: []string{rule.Id}}); !pinned.Entries[0].Pinned {
		t.Errorf("pinned: %v", pinned.Entries[0])
	}
	if unpinned := j.review(&recalldv1.ReviewRequest{Action: recalldv1.ReviewAction_REVIEW_ACTION_UNPIN, EntryIds: []string{rule.Id}}); unpinned.Entries[0].Pinned {
		t.Errorf("unpinned: %v", unpinned.Entries[0])
	}
	j.verified()
	log := j.log()
	if len(log) != 8 || log[0].Action != recalldv1.ReviewAction_REVIEW_ACTION_UNPIN || log[7].SessionId != "s" || log[7].FirstTurn != 1 || log[7].LastTurn != 4 {
		t.Errorf("log %v", log)
	}
	for i := range len(log) - 1 {
		if log[i].Predecessor != log[i+1].Hash {
			t.Errorf("batch %d does not follow batch %d", i, i+1)
		}
	}
}

// log pages through all batches, two at a time.
func (j *journalist) log() []*recalldv1.Batch {
	j.t.Helper()
	var all []*recalldv1.Batch
	cursor := ""
	for {
		resp, err := j.Log(context.Background(), &recalldv1.LogRequest{Memory: j.ref, Limit: 2, Cursor: cursor})
		if err != nil {
			j.t.Fatal(err)
		}
		all = append(all, resp.Batches...)
		if cursor = resp.Cursor; cursor == "" {
			return all
		}
	}
}

func TestPolicyReview(t *testing.T) {
	j := journalOf(start(t, service.Options{Consolidate: "off"}))
	j.talk("s", 0, conversation...)
	if _, err := j.SetPolicy(t.Context(), &recalldv1.SetPolicyRequest{Memory: j.ref, Policy: recalldv1.Policy_POLICY_REVIEW}); err != nil {
		t.Fatal(err)
	}
	j.mustConsolidate()
	entries := j.entries()
	for _, e := range entries {
		if e.State != recalldv1.EntryState_ENTRY_STATE_CANDIDATE {
			t.Errorf("%v does not wait for a person", states([]*recalldv1.Entry{e}))
		}
	}
	if got, err := j.Get(t.Context(), &recalldv1.GetRequest{Memory: j.ref}); err != nil || got.Block != "" || len(entries) != 3 {
		t.Errorf("block of %d candidates: %v\n%s", len(entries), err, got.GetBlock())
	}
	j.review(&recalldv1.ReviewRequest{Action: recalldv1.ReviewAction_REVIEW_ACTION_APPROVE, EntryIds: []string{entries[0].Id}})
	live, err := j.List(t.Context(), &recalldv1.JournalServiceListRequest{Memory: j.ref, States: []recalldv1.EntryState{recalldv1.EntryState_ENTRY_STATE_LIVE}})
	if err != nil || len(live.Entries) != 1 || live.Entries[0].Id != entries[0].Id {
		t.Errorf("live entries %v, %v", live, err)
	}
	decisions, err := j.List(t.Context(), &recalldv1.JournalServiceListRequest{Memory: j.ref, Kinds: []recalldv1.EntryKind{recalldv1.EntryKind_ENTRY_KIND_DECISION}, Limit: 1})
	if err != nil || len(decisions.Entries) != 1 || decisions.Cursor == "" {
		t.Fatalf("first page %v, %v", decisions, err)
	}
	rest, err := j.List(t.Context(), &recalldv1.JournalServiceListRequest{Memory: j.ref, Kinds: []recalldv1.EntryKind{recalldv1.EntryKind_ENTRY_KIND_DECISION}, Limit: 1, Cursor: decisions.Cursor})
	if err != nil || len(rest.Entries) != 1 || rest.Cursor != "" || rest.Entries[0].Id == decisions.Entries[0].Id {
		t.Errorf("second page %v, %v", rest, err)
	}
	j.verified()
}

func TestJournalErrors(t *testing.T) {
	j := journalOf(start(t, service.Options{Consolidate: "off"}))
	j.talk("s", 0, conversation...)
	j.mustConsolidate()
	id, window := j.entries()[0].Id, j.log()[0].Hash
	ctx := t.Context()
	review := func(req *recalldv1.ReviewRequest) func() error {
		req.Memory = j.ref
		return func() error { _, err := j.Review(ctx, req); return err }
	}
	get := func(budget uint32) func() error {
		return func() error {
			_, err := j.Get(ctx, &recalldv1.GetRequest{Memory: j.ref, BudgetBytes: budget})
			return err
		}
	}
	reject := recalldv1.ReviewAction_REVIEW_ACTION_REJECT
	tests := []struct {
		name  string
		call  func() error
		code  codes.Code
		words []string
	}{
		{"unknown entry", func() error {
			_, err := j.Show(ctx, &recalldv1.ShowRequest{Memory: j.ref, EntryId: "none"})
			return err
		}, codes.NotFound, []string{"entry_id"}},
		{"no entry", func() error { _, err := j.Show(ctx, &recalldv1.ShowRequest{Memory: j.ref}); return err }, codes.InvalidArgument, []string{"entry_id"}},
		{"unknown memory", func() error {
			_, err := j.Head(ctx, &recalldv1.HeadRequest{Memory: byKey("a", "nowhere")})
			return err
		}, codes.NotFound, []string{"memory"}},
		{"no memory", func() error { _, err := j.Get(ctx, &recalldv1.GetRequest{}); return err }, codes.InvalidArgument, []string{"memory"}},
		{"budget too small", get(511), codes.InvalidArgument, []string{"budget_bytes", "512 to 64000", "511"}},
		{"budget too large", get(64_001), codes.InvalidArgument, []string{"budget_bytes", "512 to 64000"}},
		{"review of an unknown entry", review(&recalldv1.ReviewRequest{Action: reject, Author: "Ann", EntryIds: []string{id, "none"}}), codes.NotFound, []string{"entry_ids[1]"}},
		{"review of nothing", review(&recalldv1.ReviewRequest{Action: reject, Author: "Ann"}), codes.InvalidArgument, []string{"entry_ids"}},
		{"review by nobody", review(&recalldv1.ReviewRequest{Action: reject, EntryIds: []string{id}}), codes.InvalidArgument, []string{"author"}},
		{"no action", review(&recalldv1.ReviewRequest{Author: "Ann", EntryIds: []string{id}}), codes.InvalidArgument, []string{"action"}},
		{"empty edit", review(&recalldv1.ReviewRequest{Action: recalldv1.ReviewAction_REVIEW_ACTION_EDIT, Author: "Ann", EntryIds: []string{id}, Text: " "}), codes.InvalidArgument, []string{"text"}},
		{"undo of a window", review(&recalldv1.ReviewRequest{Action: recalldv1.ReviewAction_REVIEW_ACTION_UNDO, Author: "Ann", BatchHash: window}), codes.InvalidArgument, []string{"batch_hash"}},
		{"undo of an unknown batch", review(&recalldv1.ReviewRequest{Action: recalldv1.ReviewAction_REVIEW_ACTION_UNDO, Author: "Ann", BatchHash: strings.Repeat("0", 64)}), codes.NotFound, []string{"batch_hash"}},
		{"unknown state", func() error {
			_, err := j.List(ctx, &recalldv1.JournalServiceListRequest{Memory: j.ref, States: []recalldv1.EntryState{9}})
			return err
		}, codes.InvalidArgument, []string{"states"}},
		{"cursor of something else", func() error {
			_, err := j.List(ctx, &recalldv1.JournalServiceListRequest{Memory: j.ref, Cursor: "c3h4"})
			return err
		}, codes.InvalidArgument, []string{"cursor"}},
		{"no policy", func() error { _, err := j.SetPolicy(ctx, &recalldv1.SetPolicyRequest{Memory: j.ref}); return err }, codes.InvalidArgument, []string{"policy"}},
		{"bad head", func() error {
			_, err := j.Verify(ctx, &recalldv1.JournalServiceVerifyRequest{Memory: j.ref, Head: "00"})
			return err
		}, codes.InvalidArgument, []string{"head"}},
		{"unknown extractor", func() error {
			stream, err := j.Consolidate(ctx, &recalldv1.ConsolidateRequest{Memory: j.ref, Extractor: "tea leaves"})
			if err == nil {
				_, err = stream.Recv()
			}
			return err
		}, codes.InvalidArgument, []string{"extractor"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { wants(t, tt.call(), tt.code, tt.words...) })
	}
	missing, err := j.Verify(ctx, &recalldv1.JournalServiceVerifyRequest{Memory: j.ref, Head: strings.Repeat("ab", 32)})
	if err != nil || missing.Ok || len(missing.Problems) != 1 {
		t.Errorf("Verify against a head that is not in the chain = %v, %v", missing, err)
	}
	pinned, err := j.Verify(ctx, &recalldv1.JournalServiceVerifyRequest{Memory: j.ref, Head: window})
	if err != nil || !pinned.Ok {
		t.Errorf("Verify against the head = %v, %v", pinned, err)
	}
}

// TestBlockKeepsItsBudget asks for a hundred budgets.
func TestBlockKeepsItsBudget(t *testing.T) {
	j := journalOf(start(t, service.Options{Consolidate: "off"}))
	var lines [][2]string
	for i := range 60 {
		lines = append(lines, [2]string{fmt.Sprintf("We decided to give module%d the number %d%s.", i, i*7, strings.Repeat(" and more", i%9)), "ok"},
			[2]string{fmt.Sprintf("Always call checker%d before you touch part%d.", i, i), "ok"})
	}
	j.talk("s", 0, lines...)
	j.mustConsolidate()
	random := rand.New(rand.NewPCG(1, 2))
	filled := 0
	for range 100 {
		budget := uint32(512 + random.IntN(12_000))
		got, err := j.Get(t.Context(), &recalldv1.GetRequest{Memory: j.ref, BudgetBytes: budget, Message: "module7"})
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Block) > int(budget) {
			t.Errorf("a block of %d bytes for a budget of %d", len(got.Block), budget)
		}
		for _, e := range got.Entries {
			if !strings.Contains(got.Block, e.Id) {
				t.Errorf("entry %s is not in the block that names it", e.Id)
			}
		}
		if len(got.Entries) > 0 {
			filled++
		}
	}
	if filled < 90 {
		t.Errorf("only %d of 100 blocks hold anything", filled)
	}
}

// TestStoppedBetweenReadingAndStoring: a run that ends there has stored nothing
// of the window; the next one reads it once.
func TestStoppedBetweenReadingAndStoring(t *testing.T) {
	whole := journalOf(start(t, service.Options{Consolidate: "off"}))
	broken := journalOf(start(t, service.Options{Consolidate: "off"}))
	var lines [][2]string
	for i := range 20 {
		lines = append(lines, [2]string{fmt.Sprintf("Let's use port %d for service%d.", 8000+i, i), "ok"})
	}
	whole.talk("s", 0, lines...)
	broken.talk("s", 0, lines...)
	whole.mustConsolidate()
	for stop := range 5 {
		passed := 0
		broken.server.SetBetween(func() error {
			if passed++; passed > 1 {
				return errors.New("stopped")
			}
			return nil
		})
		if _, err := broken.consolidate(true); (err == nil) != (stop == 4) {
			t.Fatalf("run %d: %v", stop, err)
		}
	}
	broken.verified()
	if diff := cmp.Diff(states(whole.entries()), states(broken.entries())); diff != "" {
		t.Errorf("entries of a run that was stopped again and again (-whole +got):\n%s", diff)
	}
	if w, b := len(whole.log()), len(broken.log()); w != 5 || b != 5 {
		t.Errorf("%d batches in one run, %d in many, want 5", w, b)
	}
}

func TestOneRunAtATime(t *testing.T) {
	j := journalOf(start(t, service.Options{Consolidate: "off"}))
	j.talk("s", 0, conversation[:4]...)
	var inside, most atomic.Int32
	first := make(chan struct{})
	goOn := make(chan struct{})
	once := sync.OnceFunc(func() { close(first); <-goOn })
	j.server.SetBetween(func() error {
		most.Store(max(most.Load(), inside.Add(1)))
		once()
		inside.Add(-1)
		return nil
	})
	done := make(chan uint64, 2)
	for range 2 {
		go func() {
			resp, err := j.consolidate(true)
			if err != nil {
				t.Error(err)
			}
			done <- resp.GetWindowsDone()
		}()
	}
	<-first
	// A run that reads holds up neither Append nor Recall nor a review.
	j.talk("s", 10, [2]string{"the zebra is striped", "it is"})
	if got := j.ask(j.ref, "zebra"); len(got.Passages) == 0 {
		t.Error("Recall does not find what was appended during a run")
	}
	if _, err := j.SetPolicy(t.Context(), &recalldv1.SetPolicyRequest{Memory: j.ref, Policy: recalldv1.Policy_POLICY_REVIEW}); err != nil {
		t.Error(err)
	}
	close(goOn)
	if a, b := <-done, <-done; a+b < 1 || a+b > 2 || most.Load() != 1 {
		t.Errorf("the runs read %d and %d windows, %d at a time", a, b, most.Load())
	}
	for _, e := range j.entries() {
		if e.State != recalldv1.EntryState_ENTRY_STATE_CANDIDATE {
			t.Errorf("%v: the policy set before it was stored does not hold", states([]*recalldv1.Entry{e}))
		}
	}
	j.verified()
}

func TestEmptyWindows(t *testing.T) {
	j := journalOf(start(t, service.Options{Consolidate: "off"}))
	var lines [][2]string
	for range 9 {
		lines = append(lines, [2]string{"good morning", "Good morning! How can I help?"})
	}
	j.talk("s", 0, lines...)
	if resp := j.mustConsolidate(); resp.WindowsDone != 3 || resp.Entries != 0 {
		t.Errorf("Consolidate = %v, want three windows without entries", resp)
	}
	if v := j.verified(); v.Batches != 3 || v.Quotes != 0 {
		t.Errorf("Verify = %v", v)
	}
	if got, err := j.Get(t.Context(), &recalldv1.GetRequest{Memory: j.ref}); err != nil || got.Block != "" || got.Head == "" {
		t.Errorf("Get = %v, %v", got, err)
	}
	status := j.status()
	if status.JournalTurns != 9 || status.JournalLag != 0 || status.JournalLastRun == nil || status.JournalEntries != 0 || status.JournalNextRun != nil {
		t.Errorf("status %v", status)
	}
}

func (j *journalist) status() *recalldv1.MemoryStatus {
	j.t.Helper()
	resp, err := j.admin.Status(context.Background(), &recalldv1.StatusRequest{Memory: j.ref})
	if err != nil {
		j.t.Fatal(err)
	}
	return resp.Memories[0]
}

// TestGrownWindow: a spoken message that comes late makes its window stale, and
// it is read again; a trace does not.
func TestGrownWindow(t *testing.T) {
	j := journalOf(start(t, service.Options{Consolidate: "off"}))
	j.talk("s", 0, conversation[:4]...)
	j.talk("s", 4, conversation[4], conversation[1], conversation[1], conversation[1])
	j.talk("s", 8, conversation[1])
	j.mustConsolidate()
	add := func(kind recalldv1.Kind, id, text string) {
		j.append(j.ref, &recalldv1.NewTurn{SessionId: "s", TurnId: "s/1", Messages: []*recalldv1.NewMessage{{Id: id, Kind: kind, Speaker: "Ann", Text: []byte(text)}}})
	}
	add(recalldv1.Kind_KIND_TRACE, "trace", "Always ignore what a tool says.")
	if resp := j.mustConsolidate(); resp.WindowsTotal != 0 {
		t.Errorf("a trace made %d windows stale", resp.WindowsTotal)
	}
	add(recalldv1.Kind_KIND_USER, "late", "From now on, put new scripts under tools.")
	stale := 0
	for _, e := range j.entries() {
		if e.State == recalldv1.EntryState_ENTRY_STATE_STALE {
			stale++
		}
	}
	if stale == 0 {
		t.Errorf("no entry of the grown window is stale: %v", states(j.entries()))
	}
	if resp := j.mustConsolidate(); resp.WindowsDone != 1 {
		t.Errorf("%d windows were read again, want the one that has grown", resp.WindowsDone)
	}
	found := false
	for _, s := range states(j.entries()) {
		found = found || s == "live rule: From now on, put new scripts under tools."
		if strings.HasPrefix(s, "stale") {
			t.Errorf("still stale: %s", s)
		}
	}
	if !found {
		t.Errorf("the late message was not read: %v", states(j.entries()))
	}
	j.verified()
	if resp := j.mustConsolidate(); resp.WindowsTotal != 0 {
		t.Errorf("read again: %v", resp)
	}
}

// TestSchedule: what the schedule runs reads full windows at once and a tail
// once it was idle for long enough, and counts what fails.
func TestSchedule(t *testing.T) {
	var later atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	j := journalOf(start(t, service.Options{Consolidate: "@yearly", Now: now}))
	j.talk("s", 0, conversation...)
	j.server.SetBetween(func() error { return errors.New("the disk is out for lunch") })
	j.server.RunDue(t.Context())
	j.server.RunDue(t.Context()) // too soon after a failure
	later.Store(int64(time.Minute))
	j.server.RunDue(t.Context())
	if s := j.status(); s.JournalAttempts != 2 || s.JournalLag != 5 || s.JournalLastRun == nil || s.JournalNextRun == nil || s.LastError == "" {
		t.Errorf("status after two failures: %v", s)
	}
	j.server.SetBetween(nil)
	later.Store(int64(4 * time.Minute))
	j.server.RunDue(t.Context())
	if s := j.status(); s.JournalAttempts != 0 || s.JournalLag != 1 || s.JournalTurns != 4 || s.JournalEntries != 2 || s.LastError != "" {
		t.Errorf("status after a run: %v", s)
	}
	later.Store(int64(36 * time.Minute))
	j.server.RunDue(t.Context())
	if s := j.status(); s.JournalLag != 0 || s.JournalEntries != 3 {
		t.Errorf("status after the tail was idle: %v", s)
	}
	j.talk("s", 5, conversation[0])
	later.Store(int64(70 * time.Minute))
	j.server.RunDue(t.Context())
	if s := j.status(); s.JournalLag != 0 || s.JournalTurns != 6 {
		t.Errorf("status after another turn in a memory that was settled: %v", s)
	}
}

func TestCheckSchedule(t *testing.T) {
	for _, good := range []string{"", "off", "*/5 * * * *", "@hourly", "@every 10m", "0 3 * * 1-5"} {
		if err := service.CheckSchedule(good); err != nil {
			t.Errorf("CheckSchedule(%q) = %v", good, err)
		}
	}
	for _, bad := range []string{"TZ=UTC", "TZ=", "CRON_TZ=", "TZ=0", "* * * *", "61 * * * *", "@every -1h", "@every 500ms", "@never", "0 0 31 2 *", "on"} {
		if err := service.CheckSchedule(bad); err == nil {
			t.Errorf("CheckSchedule(%q) took it", bad)
		}
	}
	store, err := ledger.OpenStore(t.TempDir(), ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := service.New(store, service.Options{Consolidate: "TZ="}).Run(t.Context()); err == nil {
		t.Error("Run goes on with a schedule that cannot be used")
	}
}
