package ledger_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"recalld/ledger"
)

func TestRead(t *testing.T) {
	m := newMemory(t)
	ctx := t.Context()
	if records, err := m.Read(ctx, 0, 10, 0); err != nil || len(records) > 0 {
		t.Errorf("an empty memory gave %v, %v", records, err)
	}
	for n := range 10 {
		mustAppend(t, m, turn("s", fmt.Sprint(n), 0, message(fmt.Sprint(n), strings.Repeat(fmt.Sprint(n), 10))))
	}
	numbers := func(records []ledger.Record, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		var list []string
		for _, r := range records {
			if want := strings.Repeat(fmt.Sprint(r.Seq-1), 10); string(r.Text) != want || r.TurnSeq != r.Seq || r.Session != "s" {
				t.Errorf("message %d is %+v", r.Seq, r)
			}
			list = append(list, fmt.Sprint(r.Seq))
		}
		return strings.Join(list, " ")
	}
	for _, tt := range []struct{ name, got, want string }{
		{"all", numbers(m.Read(ctx, 0, 0, 0)), "1 2 3 4 5 6 7 8 9 10"},
		{"after", numbers(m.Read(ctx, 7, 0, 0)), "8 9 10"},
		{"limit", numbers(m.Read(ctx, 2, 3, 0)), "3 4 5"},
		{"bytes", numbers(m.Read(ctx, 2, 8, 25)), "3 4"},
		{"fewer bytes than one has", numbers(m.Read(ctx, 2, 8, 1)), "3"},
		{"after the end", numbers(m.Read(ctx, 10, 0, 0)), ""},
		{"far after the end", numbers(m.Read(ctx, 1<<63, 0, 0)), ""},
		{"before", numbers(m.ReadBefore(ctx, 1<<63, 3)), "8 9 10"},
		{"before some", numbers(m.ReadBefore(ctx, 5, 3)), "3 4 5"},
		{"before, more than there is", numbers(m.ReadBefore(ctx, 2, 100)), "1 2"},
		{"before the first", numbers(m.ReadBefore(ctx, 0, 3)), ""},
		{"by number", numbers(m.MessagesBySeq(ctx, []uint64{7, 2, 7, 10})), "7 2 7 10"},
		{"by no number", numbers(m.MessagesBySeq(ctx, nil)), ""},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, tt.got, tt.want)
		}
	}
	for _, seqs := range [][]uint64{{0}, {1, 11}} {
		if _, err := m.MessagesBySeq(ctx, seqs); !errors.Is(err, ledger.ErrNotFound) {
			t.Errorf("MessagesBySeq(%v): error %v, want ErrNotFound", seqs, err)
		}
	}
	if _, err := m.Message(ctx, "nobody"); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("Message: error %v, want ErrNotFound", err)
	}
}

// TestReadBeforeFits reads backwards over more text than one read may hold.
func TestReadBeforeFits(t *testing.T) {
	m := newMemory(t)
	large := strings.Repeat("x", 12<<20)
	for n := range 7 {
		mustAppend(t, m, turn("s", fmt.Sprint(n), 0, message(fmt.Sprint(n), large)))
	}
	records, err := m.ReadBefore(t.Context(), 7, 100)
	if err != nil || len(records) != 5 || records[0].Seq != 3 || records[4].Seq != 7 {
		t.Errorf("got %d messages, error %v, want the last 5", len(records), err)
	}
}

func TestHistory(t *testing.T) {
	m := newMemory(t)
	for n := 1; n <= 9; n++ {
		e := exchange(fmt.Sprint("s", n%2), n)
		if n == 5 {
			e.Messages[0].Text = []byte(strings.Repeat("x", 10_000))
		}
		if n%3 == 0 {
			e.Messages = append(e.Messages, ledger.Message{ID: fmt.Sprint("note", n), Kind: ledger.KindNote, Text: []byte("note")})
		}
		mustAppend(t, m, e)
	}
	tests := []struct {
		name string
		q    ledger.HistoryQuery
		want string
		next uint64
	}{
		{"all", ledger.HistoryQuery{}, "1:2 2:2 3:3 4:2 5:2 6:3 7:2 8:2 9:3", 0},
		{"newest", ledger.HistoryQuery{Limit: 2}, "8:2 9:3", 8},
		{"older", ledger.HistoryQuery{Limit: 2, Before: 8}, "6:3 7:2", 6},
		{"oldest", ledger.HistoryQuery{Limit: 2, Before: 3}, "1:2 2:2", 0},
		{"before the first", ledger.HistoryQuery{Before: 1}, "", 0},
		{"session", ledger.HistoryQuery{Session: "s1", Limit: 3}, "5:2 7:2 9:3", 5},
		{"session, oldest", ledger.HistoryQuery{Session: "s1", Before: 5}, "1:2 3:3", 0},
		{"kinds", ledger.HistoryQuery{Kinds: []ledger.Kind{ledger.KindNote}, Limit: 2}, "6:1 9:1", 6},
		{"kinds of a session", ledger.HistoryQuery{Session: "s0", Kinds: []ledger.Kind{ledger.KindNote, ledger.KindUser}}, "2:1 4:1 6:2 8:1", 0},
		{"bytes", ledger.HistoryQuery{MaxBytes: 1000, Before: 8}, "6:3 7:2", 6},
		{"one turn larger than a page", ledger.HistoryQuery{MaxBytes: 1000, Before: 6}, "5:2", 5},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			turns, next, err := m.History(t.Context(), tt.q)
			if err != nil {
				t.Fatal(err)
			}
			var list []string
			for _, turn := range turns {
				list = append(list, fmt.Sprintf("%d:%d", turn.Seq, len(turn.Messages)))
			}
			if got := strings.Join(list, " "); got != tt.want || next != tt.next {
				t.Errorf("got %q, next %d, want %q, next %d", got, next, tt.want, tt.next)
			}
		})
	}
	turns, _, err := m.History(t.Context(), ledger.HistoryQuery{Before: 2})
	if err != nil {
		t.Fatal(err)
	}
	want := exchange("s1", 1)
	want.Seq, want.Appended = 1, turns[0].Appended
	for i := range want.Messages {
		want.Messages[i].Seq, want.Messages[i].Ordinal = uint64(i+1), i
	}
	if diff := cmp.Diff([]ledger.Turn{want}, turns); diff != "" {
		t.Errorf("a turn came back changed (-want +got):\n%s", diff)
	}
	if _, _, err := m.History(t.Context(), ledger.HistoryQuery{Session: "nobody"}); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("unknown session: error %v, want ErrNotFound", err)
	}
	for _, q := range []ledger.HistoryQuery{{Limit: 201}, {Limit: -1}, {Kinds: []ledger.Kind{0}}, {Session: "\xff"}} {
		_, _, err := m.History(t.Context(), q)
		var field *ledger.FieldError
		if !errors.As(err, &field) {
			t.Errorf("%+v: error %v, want a FieldError", q, err)
		}
	}
}

func TestCountsAndSessions(t *testing.T) {
	m := newMemory(t)
	a, b, unknown := exchange("a", 1), exchange("b", 5), turn("c", "1", 0, message("x", "12345"))
	a.SessionTitle = "first title"
	mustAppend(t, m, a, b, unknown)
	again := exchange("a", 3)
	again.SessionTitle = "second title"
	mustAppend(t, m, again)
	at := func(minute, second int) time.Time {
		return start.Add(time.Duration(minute)*time.Minute + time.Duration(second)*time.Second)
	}
	sessions, err := m.Sessions(t.Context())
	want := []ledger.SessionInfo{
		{ID: "a", Title: "second title", Turns: 2, First: at(1, 0), Last: at(3, 10)},
		{ID: "b", Turns: 1, First: at(5, 0), Last: at(5, 10)},
		{ID: "c", Turns: 1},
	}
	if diff := cmp.Diff(want, sessions); err != nil || diff != "" {
		t.Errorf("Sessions: %v (-want +got):\n%s", err, diff)
	}
	counts, err := m.Counts(t.Context())
	size := 5
	for _, turn := range []ledger.Turn{a, b, again} {
		size += len(turn.Messages[0].Text) + len(turn.Messages[1].Text)
	}
	wantCounts := ledger.Counts{Sessions: 3, Turns: 4, Messages: 7, TextBytes: uint64(size), First: at(1, 0), Last: at(5, 10)}
	if err != nil || counts != wantCounts {
		t.Errorf("Counts = %+v, %v, want %+v", counts, err, wantCounts)
	}
}
