package service_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"

	recalldv1 "recalld/proto/recalld/v1"
	"recalld/service"
)

// dated is a turn said at a time.
func dated(session, turn, text, rfc3339 string) *recalldv1.NewTurn {
	n := said(session, turn, text)
	n.Messages[0].Time = at(rfc3339, "")
	return n
}

func TestRecallFilters(t *testing.T) {
	r := start(t, service.Options{})
	ref := byKey("a", "p")
	trace := dated("s1", "4", "kiwi trace", "2026-01-04T00:00:00Z")
	trace.Messages[0].Kind = recalldv1.Kind_KIND_TRACE
	r.append(ref,
		dated("s1", "1", "kiwi one", "2026-01-03T00:00:00Z"), // said last, appended first
		dated("s1", "2", "kiwi two", "2026-01-01T00:00:00Z"),
		dated("s2", "3", "kiwi three", "2026-01-02T00:00:00Z"),
		trace,
	)
	tests := []struct {
		name string
		req  *recalldv1.RecallRequest
		want []string // oldest first
	}{
		{"all", &recalldv1.RecallRequest{}, []string{"s1/2", "s2/3", "s1/1"}},
		{"traces", &recalldv1.RecallRequest{Kinds: []recalldv1.Kind{recalldv1.Kind_KIND_TRACE}}, []string{"s1/4"}},
		{"after", &recalldv1.RecallRequest{After: at("2026-01-02T00:00:00Z", "").At}, []string{"s2/3", "s1/1"}},
		{"before", &recalldv1.RecallRequest{Before: at("2026-01-02T00:00:00Z", "").At}, []string{"s1/2"}},
		{"a session", &recalldv1.RecallRequest{Sessions: []string{"s2"}}, []string{"s2/3"}},
		{"not a session", &recalldv1.RecallRequest{ExcludeSessions: []string{"s2", "unknown"}}, []string{"s1/2", "s1/1"}},
		{"not a message", &recalldv1.RecallRequest{ExcludeMessages: []string{"s1/1", "unknown"}}, []string{"s1/2", "s2/3"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.req.Memory, tt.req.Query, tt.req.Order = ref, "kiwi", recalldv1.Order_ORDER_TIME
			if diff := cmp.Diff(tt.want, ids(r.recallAs(tt.req).Passages)); diff != "" {
				t.Errorf("passages (-want +got):\n%s", diff)
			}
		})
	}
	if got := r.recallAs(&recalldv1.RecallRequest{Memory: ref, Query: "kiwi", Limit: 2}); len(got.Passages) != 2 {
		t.Errorf("limit 2 gives %d passages", len(got.Passages))
	}
}

func TestRecallSources(t *testing.T) {
	r := start(t, service.Options{})
	ref := byKey("a", "p")
	r.append(ref, said("s", "1", "kiwi"))
	got := r.recallAs(&recalldv1.RecallRequest{Memory: ref, Query: "kiwi", Sources: []recalldv1.Source{recalldv1.Source_SOURCE_WORDS}})
	if outcome(got, "words").GetOutcome() != recalldv1.Outcome_OUTCOME_USED || outcome(got, "context").GetOutcome() != recalldv1.Outcome_OUTCOME_OFF {
		t.Errorf("sources %v", got.Sources)
	}
}

// TestNow: the reference time is echoed, the server's clock when none is given.
func TestNow(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	clock := time.Date(2026, 7, 1, 12, 0, 0, 0, berlin)
	r := start(t, service.Options{Now: func() time.Time { return clock }})
	ref := byKey("a", "p")
	r.append(ref, said("s", "1", "kiwi"))
	tests := []struct {
		name      string
		now, want *recalldv1.SpokenTime
	}{
		{"none", nil, at("2026-07-01T10:00:00Z", "Europe/Berlin")},
		{"all", at("2020-01-01T00:00:00Z", "+05:30"), at("2020-01-01T00:00:00Z", "+05:30")},
		{"a zone", &recalldv1.SpokenTime{Zone: "Asia/Tokyo"}, at("2026-07-01T10:00:00Z", "Asia/Tokyo")},
		{"an instant", at("2020-01-01T00:00:00Z", ""), at("2020-01-01T00:00:00Z", "")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := r.recallAs(&recalldv1.RecallRequest{Memory: ref, Query: "kiwi", Now: tt.now}).Now
			if !got.GetAt().AsTime().Equal(tt.want.GetAt().AsTime()) || got.GetZone() != tt.want.GetZone() {
				t.Errorf("now is %v, want %v", got, tt.want)
			}
		})
	}
}

// TestPassageBytes: every passage is within what was asked for, at every size,
// valid, and a slice of what was stored.
func TestPassageBytes(t *testing.T) {
	r := start(t, service.Options{})
	ref := byKey("a", "p")
	stored := map[string]string{}
	for i, text := range []string{
		strings.Repeat("日本語 kiwi 🚀 é. ", 900), strings.Repeat("kiwi ", 3000), strings.Repeat("x", 5000) + " kiwi " + strings.Repeat("y", 5000),
		strings.Repeat("\xff kiwi \xfe\xfd", 500), "kiwi",
	} {
		turn := said("s", fmt.Sprint(i), text)
		stored[turn.Messages[0].Id] = text
		r.append(ref, turn)
	}
	for _, size := range []uint32{200, 333, 2000, 8000} {
		got := r.recallAs(&recalldv1.RecallRequest{Memory: ref, Query: "kiwi", PassageBytes: size, BudgetBytes: 256_000})
		if len(got.Passages) < len(stored) {
			t.Errorf("passage_bytes %d: passages of %v only", size, ids(got.Passages))
		}
		shown := map[string][][2]uint64{}
		for _, p := range got.Passages {
			slice := stored[p.MessageId][p.Range.Start:p.Range.End]
			if len(p.Text) > int(size) || len(slice) > int(size) || !utf8.ValidString(p.Text) || p.Exact != (p.Text == slice) {
				t.Errorf("passage_bytes %d: %s has %d bytes of %d, exact %v", size, p.MessageId, len(p.Text), len(slice), p.Exact)
			}
			if p.Exact == strings.HasPrefix(stored[p.MessageId], "\xff") {
				t.Errorf("passage_bytes %d: %s is exact %v", size, p.MessageId, p.Exact)
			}
			for _, other := range shown[p.MessageId] {
				if p.Range.Start < other[1] && other[0] < p.Range.End {
					t.Errorf("passage_bytes %d: two passages of %s overlap", size, p.MessageId)
				}
			}
			shown[p.MessageId] = append(shown[p.MessageId], [2]uint64{p.Range.Start, p.Range.End})
		}
	}
}

// TestOverlapsAreMerged: of two passages of one message nothing is shown twice,
// and neither is longer than a passage may be.
func TestOverlapsAreMerged(t *testing.T) {
	type ranges = [][2]int
	text := strings.Repeat("a word or two ", 200) // 2,800 bytes
	tests := []struct {
		name   string
		bytes  int
		slices ranges
		want   ranges
	}{
		{"one", 400, ranges{{0, 400}}, ranges{{0, 400}}},
		{"apart", 400, ranges{{0, 400}, {800, 1200}}, ranges{{0, 400}, {800, 1200}}},
		{"the same", 400, ranges{{0, 400}, {0, 400}}, ranges{{0, 400}}},
		{"the worse one overlaps behind", 400, ranges{{0, 400}, {300, 700}}, ranges{{0, 400}, {400, 700}}},
		{"the worse one overlaps in front", 400, ranges{{300, 700}, {0, 400}}, ranges{{300, 700}, {0, 300}}},
		{"a third between two", 400, ranges{{0, 400}, {600, 1000}, {300, 700}}, ranges{{0, 400}, {600, 1000}, {400, 600}}},
		{"all is shown", 8000, ranges{{0, 400}, {800, 1200}}, ranges{{0, 2800}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, service.Choose(text, tt.bytes, tt.slices...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestNoTextTwice: copies of one text are one passage.
func TestNoTextTwice(t *testing.T) {
	r := start(t, service.Options{})
	ref := byKey("a", "p")
	r.append(ref, said("s", "1", "kiwi words"), said("s", "2", "kiwi words"), said("s", "3", " kiwi words\n"), said("s", "4", "other kiwi words"))
	got := r.ask(ref, "kiwi words")
	if len(got.Passages) != 2 {
		t.Errorf("passages %v, want two texts", ids(got.Passages))
	}
}

// TestBudgetOnTheWire: the block that is sent is within the budget of the request.
func TestBudgetOnTheWire(t *testing.T) {
	r := start(t, service.Options{})
	ref := byKey("a", "p")
	for i := range 30 {
		r.append(ref, said("s", fmt.Sprint(i), fmt.Sprintf("kiwi %d %s", i, strings.Repeat("words of some length. ", i*3))))
	}
	for _, budget := range []uint32{512, 700, 2000, 10_000, 44_000} {
		got := r.recallAs(&recalldv1.RecallRequest{Memory: ref, Query: "kiwi", BudgetBytes: budget, Limit: 50})
		if len(got.Block) > int(budget) || len(got.Block) == 0 {
			t.Errorf("budget %d: a block of %d bytes", budget, len(got.Block))
		}
		if budget < 44_000 && got.Omitted == 0 {
			t.Errorf("budget %d: nothing is said to be left out", budget)
		}
		passages, err := parseBlock(got.Block, r.server.Secret())
		if err != nil || len(passages) != len(got.Passages) {
			t.Errorf("budget %d: %d passages in the block, %d in the answer (%v)", budget, len(passages), len(got.Passages), err)
		}
	}
}

// TestRebuild: after views are lost they are made anew, and on request as well;
// the answers are the same. What was never there is no reason to fail.
func TestRebuild(t *testing.T) {
	root := t.TempDir()
	r := startIn(t, root, service.Options{})
	ref := byKey("a", "p")
	var id string
	for i := range 20 {
		id = r.append(ref, said("s", fmt.Sprint(i), fmt.Sprintf("kiwi number%d", i))).MemoryId
	}
	want := r.ask(ref, "kiwi number7")
	check := func(t *testing.T) {
		t.Helper()
		got := r.ask(ref, "kiwi number7")
		if diff := cmp.Diff(ids(want.Passages), ids(got.Passages)); diff != "" {
			t.Errorf("passages (-before +after):\n%s", diff)
		}
	}
	for range 3 {
		done, last := r.rebuild(ref)
		if !last.Done || last.MessagesDone != 20 || last.MessagesTotal != 20 {
			t.Errorf("Rebuild ended with %v after %d reports", last, done)
		}
		check(t)
	}
	r.stop()
	for _, damage := range []func(string) error{
		os.RemoveAll,
		func(views string) error {
			return os.WriteFile(filepath.Join(views, "words", "index_meta.json"), []byte("{"), 0o600)
		},
	} {
		if err := damage(filepath.Join(root, "memories", id, "views")); err != nil {
			t.Fatal(err)
		}
		r = startIn(t, root, service.Options{})
		check(t)
		r.stop()
	}
	r = startIn(t, root, service.Options{})
	stream, err := r.admin.Rebuild(context.Background(), &recalldv1.RebuildRequest{Memory: byKey("no", "body")})
	if err == nil {
		_, err = stream.Recv()
	}
	wants(t, err, codes.NotFound)
}

func (r *rig) rebuild(ref *recalldv1.MemoryRef) (reports int, last *recalldv1.RebuildResponse) {
	r.t.Helper()
	stream, err := r.admin.Rebuild(context.Background(), &recalldv1.RebuildRequest{Memory: ref})
	if err != nil {
		r.t.Fatal(err)
	}
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return reports, last
		}
		if err != nil {
			r.t.Fatal(err)
		}
		reports, last = reports+1, resp
	}
}

// TestViewsOfAnotherLedger: views that hold more than the ledger, as after it
// was put back from a copy, are not believed.
func TestViewsOfAnotherLedger(t *testing.T) {
	root := t.TempDir()
	r := startIn(t, root, service.Options{})
	one := r.append(byKey("a", "one"), said("s1", "1", "kiwi one")).MemoryId
	two := r.append(byKey("a", "two"), said("s2", "1", "melon"), said("s2", "2", "kiwi two")).MemoryId
	for _, id := range []string{one, two} {
		if _, last := r.rebuild(byID(id)); !last.Done { // waits until all is on disk
			t.Fatal("not rebuilt")
		}
	}
	r.stop()
	views := func(id string) string { return filepath.Join(root, "memories", id, "views") }
	if err := os.RemoveAll(views(one)); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(views(two), views(one)); err != nil {
		t.Fatal(err)
	}
	r = startIn(t, root, service.Options{})
	for id, want := range map[string]string{one: "s1/1", two: "s2/2"} {
		if got := ids(r.ask(byID(id), "kiwi").Passages); len(got) == 0 || got[0] != want {
			t.Errorf("passages %v, want %s first", got, want)
		}
	}
}

// TestLongCatchUp: when the views are far behind, the newest messages are found
// at once, the answer says how far it reaches, and in the end all is found.
func TestLongCatchUp(t *testing.T) {
	root := t.TempDir()
	r := startIn(t, root, service.Options{})
	ref := byKey("a", "p")
	const messages = 6_000
	var id string
	for from := 0; from < messages; from += 500 {
		turns := make([]*recalldv1.NewTurn, 500)
		for i := range turns {
			n := from + i
			turns[i] = said(fmt.Sprint("s", n/100), fmt.Sprint(n), fmt.Sprintf("kiwi number%dn and some more words", n))
		}
		if from+500 == messages {
			turns[499].Messages[0].Text = []byte("the newest holds a pomegranate")
		}
		id = r.append(ref, turns...).MemoryId
	}
	r.stop()
	if err := os.RemoveAll(filepath.Join(root, "memories", id, "views")); err != nil {
		t.Fatal(err)
	}

	r = startIn(t, root, service.Options{})
	got := r.ask(ref, "pomegranate")
	if len(got.Passages) == 0 || got.Passages[0].Sequence != messages {
		t.Fatalf("the newest message is not found during the catch-up, at %v: %v", got.Snapshot, ids(got.Passages))
	}
	if o := outcome(got, "words"); got.Snapshot.Indexed < messages && (o.GetOutcome() != recalldv1.Outcome_OUTCOME_REBUILDING || o.GetReason() == "") {
		t.Errorf("at %v the words are %v", got.Snapshot, o)
	}
	// A turn that comes in meanwhile is stored and acknowledged.
	r.append(ref, said("s", "late", "kiwi numberlate"))
	_, last := r.rebuild(ref)
	if last.MessagesTotal != messages+1 || !last.Done {
		t.Errorf("Rebuild ended with %v", last)
	}
	for _, word := range []string{"number0n", "number3000n", "numberlate"} {
		got := r.ask(ref, word)
		if len(got.Passages) == 0 || !strings.Contains(got.Passages[0].Text, word+" ") && !strings.HasSuffix(got.Passages[0].Text, word) {
			t.Errorf("%s is not found after the catch-up: %v", word, ids(got.Passages))
		}
	}
	status, err := r.admin.Status(context.Background(), &recalldv1.StatusRequest{Memory: ref})
	if err != nil || len(status.Memories) != 1 {
		t.Fatalf("Status = %v, %v", status, err)
	}
	if m := status.Memories[0]; !m.Open || m.Rebuilding || m.Reach.GetIndexed() != messages+1 || m.Messages != messages+1 || m.LastError != "" {
		t.Errorf("Status = %v", m)
	}
}

func TestStatus(t *testing.T) {
	root := t.TempDir()
	r := startIn(t, root, service.Options{})
	r.append(byKey("a", "p"), said("s", "1", "kiwi"))
	r.append(byKey("a", "q"), said("s2", "1", "kiwi"))
	r.stop()
	r = startIn(t, root, service.Options{Build: "build 7"})
	r.ask(byKey("a", "p"), "kiwi")
	got, err := r.admin.Status(context.Background(), &recalldv1.StatusRequest{})
	if err != nil || len(got.Memories) != 2 {
		t.Fatalf("Status = %v, %v", got, err)
	}
	if got.Build != "build 7" || got.Root != root || got.Socket != r.socket || int(got.ProcessId) != os.Getpid() ||
		got.Started == nil || got.EmbeddingModel != "off" || got.ExpansionModel != "off" {
		t.Errorf("Status = %v", got)
	}
	open, closed := got.Memories[0], got.Memories[1]
	if !open.Open || open.Reach.GetIndexed() != 1 || open.Messages != 1 || open.DiskBytes == 0 {
		t.Errorf("the open memory is %v", open)
	}
	if closed.Open || closed.Reach.GetSequence() != 1 || closed.Reach.GetIndexed() != 0 || closed.Messages != 1 {
		t.Errorf("the closed memory is %v", closed)
	}
}
