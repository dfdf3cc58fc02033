package service_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/testing/protocmp"

	recalldv1 "recalld/proto/recalld/v1"
	"recalld/service"
)

// TestBytesRoundTrip: what goes in comes back byte for byte, and is shown as
// valid UTF-8 that says whether it is exact.
func TestBytesRoundTrip(t *testing.T) {
	r := start(t, service.Options{})
	ref := byKey("a", "p")
	noise := make([]byte, 3_000_000)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(noise)
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	texts := [][]byte{
		{}, []byte("plain"), {0}, []byte("a\x00b"), []byte("\xff\xfe broken"), []byte("cut \xe2\x82"), []byte("\xed\xa0\x80 surrogate"),
		[]byte("\x1b[31mred\x1b[0m"), []byte("\u202eright to left"), []byte("日本語🚀é"), all, noise,
	}
	for i, text := range texts {
		turn := said("s", fmt.Sprint(i), "")
		turn.Messages[0].Text = text
		r.append(ref, turn)
	}
	for i, text := range texts {
		message, data, err := r.get(ref, fmt.Sprintf("s/%d", i))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(data, text) || message.Bytes != uint64(len(text)) || !message.Exact {
			t.Errorf("text %d came back as %d bytes, want %d", i, len(data), len(text))
		}
	}
	page, err := r.memories.History(context.Background(), &recalldv1.HistoryRequest{Memory: ref})
	if err != nil {
		t.Fatal(err)
	}
	for _, turn := range page.Turns {
		var i int
		fmt.Sscan(turn.TurnId, &i)
		m := turn.Messages[0]
		if m.Exact != utf8.Valid(texts[i]) || m.Exact && m.Text != string(texts[i]) || !utf8.ValidString(m.Text) {
			t.Errorf("text %d is shown as %.40q, exact %v", i, m.Text, m.Exact)
		}
	}
}

// TestAppendLimits goes up to each limit and one step beyond. Beyond, nothing is
// stored, not even an empty memory.
func TestAppendLimits(t *testing.T) {
	turnsOf := func(n int) []*recalldv1.NewTurn {
		turns := make([]*recalldv1.NewTurn, n)
		for i := range turns {
			turns[i] = said("s", fmt.Sprint(i), "x")
		}
		return turns
	}
	textOf := func(sizes ...int) []*recalldv1.NewTurn {
		turns := turnsOf(len(sizes))
		for i, n := range sizes {
			turns[i].Messages[0].Text = bytes.Repeat([]byte("a"), n)
		}
		return turns
	}
	tests := []struct {
		name  string
		turns []*recalldv1.NewTurn
		words []string // of the error; none for success
	}{
		{"500 turns", turnsOf(500), nil},
		{"501 turns", turnsOf(501), []string{"turns", "500", "501"}},
		{"16 MiB", textOf(16 << 20), nil},
		{"16 MiB + 1", textOf(16<<20 + 1), []string{"text", "16777216 bytes", "16777217 bytes"}},
		{"16 MiB + 1 in two", textOf(16<<20, 1), []string{"text", "16777216 bytes", "16777217 bytes"}},
		{"64 KiB + 1", textOf(64<<10 + 1), nil},
		{"far beyond", textOf(30 << 20), []string{"larger than max"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := start(t, service.Options{})
			resp, err := r.memories.Append(context.Background(), &recalldv1.AppendRequest{Memory: byKey("a", "p"), Turns: tt.turns})
			if tt.words == nil {
				if err != nil || int(resp.Stored) != len(tt.turns) {
					t.Fatalf("Append = %v, %v; want all stored", resp.GetStored(), err)
				}
				return
			}
			wants(t, err, codes.ResourceExhausted, tt.words...)
			list, err := r.memories.List(context.Background(), &recalldv1.ListRequest{})
			if err != nil || len(list.Memories) != 0 {
				t.Errorf("the refused Append left the memories %v (%v)", list, err)
			}
		})
	}
}

func TestQueryOf64KiB(t *testing.T) {
	r := start(t, service.Options{})
	ref := byKey("a", "p")
	r.append(ref, said("s", "1", "the needle is here"))
	query := strings.Repeat("straw ", 10_900)
	query += strings.Repeat(" ", 64<<10-len(query)-len("needle")) + "needle"
	if got := r.ask(ref, query); len(got.Passages) != 1 {
		t.Errorf("a query of 64 KiB finds %d passages, want 1", len(got.Passages))
	}
	for _, empty := range []string{"", "  ", "?!…", "\n\t"} {
		if got := r.ask(ref, empty); len(got.Passages) != 0 || !got.NothingToSearch || got.Block != "" {
			t.Errorf("the query %q gives %d passages, nothing_to_search %v", empty, len(got.Passages), got.NothingToSearch)
		}
	}
}

// TestIdempotency: the same again stores nothing and answers the same numbers; a
// turn grows; other bytes are refused and change nothing.
func TestIdempotency(t *testing.T) {
	r := start(t, service.Options{})
	ref := byKey("a", "p")
	turn := said("s", "1", "hello")
	first := r.append(ref, turn)
	again := r.append(ref, turn)
	if again.Stored != 0 || again.Duplicates != 1 || again.Turns[0].Messages[0].Sequence != first.Turns[0].Messages[0].Sequence {
		t.Errorf("the second Append = %v, the first %v", again, first)
	}
	turn.Messages = append(turn.Messages, &recalldv1.NewMessage{Kind: recalldv1.Kind_KIND_REPLY, Text: []byte("hello yourself")})
	grown := r.append(ref, turn)
	if grown.Stored != 1 || grown.Duplicates != 1 || grown.Turns[0].Sequence != first.Turns[0].Sequence {
		t.Errorf("growing: %v", grown)
	}
	derived := r.append(ref, turn) // the reply has no id of its own
	if derived.Stored != 0 || derived.Duplicates != 2 {
		t.Errorf("a message without id was stored twice: %v", derived)
	}
	page, err := r.memories.History(context.Background(), &recalldv1.HistoryRequest{Memory: ref})
	if err != nil || len(page.Turns) != 1 || len(page.Turns[0].Messages) != 2 {
		t.Fatalf("History = %v, %v", page, err)
	}
	want := &recalldv1.Message{
		Id: "s/1", SessionId: "s", TurnId: "1", Sequence: 1, Kind: recalldv1.Kind_KIND_USER, Speaker: "ada", Text: "hello", Exact: true, Bytes: 5,
	}
	if diff := cmp.Diff(want, page.Turns[0].Messages[0], protocmp.Transform()); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
}

func TestMemoryNames(t *testing.T) {
	r := start(t, service.Options{})
	ctx := context.Background()
	bound, err := r.memories.Bind(ctx, &recalldv1.BindRequest{
		SessionId: "s", Agent: "a", Project: "p", DisplayName: "Atlas", Aliases: []string{"0123456789abcdef"},
	})
	if err != nil || !bound.Bound {
		t.Fatalf("Bind = %v, %v", bound, err)
	}
	again, err := r.memories.Bind(ctx, &recalldv1.BindRequest{SessionId: "s", Agent: "a", Project: "p"})
	if err != nil || again.Bound || again.MemoryId != bound.MemoryId {
		t.Errorf("the second Bind = %v, %v", again, err)
	}
	for _, ref := range []*recalldv1.MemoryRef{
		byID("0123456789abcdef"), byID(bound.MemoryId), byKey("a", "p"),
		{Id: bound.MemoryId, Agent: "a", Project: "p"}, {Id: "0123456789abcdef", Agent: "a", Project: "p"},
	} {
		turn := said("s", "1", "hello")
		if got := r.append(ref, turn); got.MemoryId != bound.MemoryId {
			t.Errorf("%v is the memory %s, want %s", ref, got.MemoryId, bound.MemoryId)
		}
	}
	list, err := r.memories.List(ctx, &recalldv1.ListRequest{Agent: "a"})
	if err != nil || len(list.Memories) != 1 {
		t.Fatalf("List = %v, %v", list, err)
	}
	m := list.Memories[0]
	if m.Messages != 1 || m.Sessions != 1 || m.DisplayName != "Atlas" || m.TextBytes != 5 || m.DiskBytes == 0 || m.Aliases[0] != "0123456789abcdef" {
		t.Errorf("List = %v", m)
	}
	if other, err := r.memories.List(ctx, &recalldv1.ListRequest{Agent: "b"}); err != nil || len(other.Memories) != 0 {
		t.Errorf("List of another agent = %v, %v", other, err)
	}
}

// TestHistoryPages reads turns of all sizes page by page: each page is below 2
// MB or one turn, none is missing and none comes twice.
func TestHistoryPages(t *testing.T) {
	r := start(t, service.Options{})
	ref := byKey("a", "p")
	// Bytes that are no text take three times their room when they are shown.
	sizes := []int{10, 900_000, 10, 1_900_000, 2_100_000, 10, 10, 700_000, 700_000, 700_000, 10}
	for i, n := range sizes {
		turn := said("s", fmt.Sprint(i), "")
		turn.Messages[0].Text = bytes.Repeat([]byte("a\xff"), n/2)
		r.append(ref, turn)
	}
	var turns []string
	for before, pages := uint64(0), 0; ; pages++ {
		page, err := r.memories.History(context.Background(), &recalldv1.HistoryRequest{Memory: ref, Before: before, Limit: 4})
		if err != nil {
			t.Fatal(err)
		}
		size := 0
		for i := len(page.Turns) - 1; i >= 0; i-- {
			turns = append(turns, page.Turns[i].TurnId)
			size += len(page.Turns[i].Messages[0].Text)
		}
		if size >= 2_000_000 && len(page.Turns) > 1 || len(page.Turns) > 4 {
			t.Errorf("page %d has %d turns of %d bytes", pages, len(page.Turns), size)
		}
		if before = page.Next; before == 0 || pages > 20 {
			break
		}
	}
	want := []string{"10", "9", "8", "7", "6", "5", "4", "3", "2", "1", "0"}
	if diff := cmp.Diff(want, turns); diff != "" {
		t.Errorf("turns (-want +got):\n%s", diff)
	}
}

// TestOwnFrameIsNotStoredAgain: a harness keeps the block in front of the
// person's message; only the message is remembered.
func TestOwnFrameIsNotStoredAgain(t *testing.T) {
	r := start(t, service.Options{})
	ref := byKey("a", "p")
	r.append(ref, said("s", "1", "the launch code is 12345"))
	block := r.ask(ref, "launch code").Block
	if block == "" {
		t.Fatal("no block")
	}
	forged := strings.Replace(block, "12345", "54321", 1)
	tests := []struct{ name, text, want string }{
		{"in front", block + "and now something else", "and now something else"},
		{"behind", "something\n\n" + block, "something\n\n"},
		{"twice", block + "x" + block + "y", "xy"},
		{"cut short", block[:len(block)-10] + "x", block[:len(block)-10] + "x"},
		{"changed", forged + "x", forged + "x"},
		{"inside another", "<recalled-evidence boundary=\"" + block + "x", "<recalled-evidence boundary=\"x"},
		{"named only", "what is a recalled-evidence boundary?", "what is a recalled-evidence boundary?"},
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			turn := said("s", fmt.Sprintf("frame %d", i), tt.text)
			r.append(ref, turn)
			_, data, err := r.get(ref, turn.Messages[0].Id)
			if err != nil || string(data) != tt.want {
				t.Errorf("stored %q (%v), want %q", data, err, tt.want)
			}
		})
	}
	trace := said("s", "trace", block)
	trace.Messages[0].Kind = recalldv1.Kind_KIND_TRACE
	r.append(ref, trace)
	if _, data, err := r.get(ref, "s/trace"); err != nil || string(data) != block {
		t.Errorf("a trace is stored as %q (%v), want it as it was", data, err)
	}
}
