package ledger_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"recalld/ledger"
)

func message(id, text string) ledger.Message {
	return ledger.Message{ID: id, Kind: ledger.KindUser, Text: []byte(text)}
}

func turn(session, id string, status ledger.Status, messages ...ledger.Message) ledger.Turn {
	return ledger.Turn{Session: session, ID: id, Status: status, Messages: messages}
}

// brief renders results as "turn-seq/status: message-seq outcome, ...".
func brief(results []ledger.AppendResult) string {
	var b strings.Builder
	for _, r := range results {
		fmt.Fprintf(&b, "%d/%d:", r.Seq, r.Status)
		for _, m := range r.Messages {
			fmt.Fprintf(&b, " %d%s", m.Seq, []string{"?", "stored", "dup", "forgotten"}[m.Outcome])
		}
		b.WriteString("; ")
	}
	return strings.TrimSuffix(b.String(), "; ")
}

func TestAppendRules(t *testing.T) {
	const open, finished, stopped, interrupted = ledger.StatusOpen, ledger.StatusFinished, ledger.StatusStopped, ledger.StatusInterrupted
	type step struct {
		turns []ledger.Turn
		want  string // brief results, or "exists"
	}
	one := func(want string, turns ...ledger.Turn) step { return step{turns, want} }
	m1, m2, m3 := message("m1", "one"), message("m2", "two"), message("m3", "three")
	tests := []struct {
		name  string
		steps []step
		want  string // history: "session/turn/status[text text]" in order
	}{
		{"a turn grows", []step{
			one("1/1: 1stored", turn("s", "t", 0, m1)),
			one("1/1: 1dup 2stored", turn("s", "t", 0, m1, m2)),
			one("1/2: 3stored", turn("s", "t", finished, m3)),
		}, "s/t/2[one two three]"},
		{"a finished turn still grows, and stays finished", []step{
			one("1/2: 1stored", turn("s", "t", finished, m1)),
			one("1/2: 2stored", turn("s", "t", open, m2)),
		}, "s/t/2[one two]"},
		{"status alone", []step{
			one("1/1: 1stored", turn("s", "t", open, m1)),
			one("1/3:", turn("s", "t", stopped)),
			one("1/3:", turn("s", "t", finished)),
		}, "s/t/3[one]"},
		{"sent again", []step{
			one("1/2: 1stored 2stored", turn("s", "t", finished, m1, m2)),
			one("1/2: 1dup 2dup", turn("s", "t", finished, m1, m2)),
		}, "s/t/2[one two]"},
		{"other bytes under a known id store nothing of the call", []step{
			one("1/1: 1stored", turn("s", "t", open, m1)),
			one("exists", turn("s", "u", open, m2), turn("s", "v", open, message("m1", "other"))),
			one("2/1: 2stored", turn("s", "u", open, m2)),
		}, "s/t/4[one] s/u/1[two]"},
		{"other bytes under an id of the same call", []step{
			one("exists", turn("s", "t", open, m1, message("m1", "other"))),
		}, ""},
		{"other kind and speaker with the same bytes", []step{
			one("1/1: 1stored", turn("s", "t", open, m1)),
			one("1/1: 1dup", turn("s", "t", open, ledger.Message{ID: "m1", Kind: ledger.KindReply, Speaker: "x", Text: []byte("one")})),
		}, "s/t/1[one]"},
		{"twice in one call", []step{
			one("1/1: 1stored 1dup; 1/2: 1dup 2stored", turn("s", "t", open, m1, m1), turn("s", "t", finished, m1, m2)),
		}, "s/t/2[one two]"},
		{"copied history is skipped, what is new is not", []step{
			one("1/2: 1stored; 2/2: 2stored", turn("s", "t", finished, m1), turn("s", "u", finished, m2)),
			one("0/0: 1dup; 0/0: 2dup; 3/2: 3stored", turn("fork", "t", finished, m1), turn("fork", "u", finished, m2), turn("fork", "v", finished, m3)),
		}, "s/t/2[one] s/u/2[two] fork/v/2[three]"},
		{"a copied turn with something new", []step{
			one("1/2: 1stored", turn("s", "t", finished, m1)),
			one("2/2: 1dup 2stored", turn("fork", "t", finished, m1, m2)),
		}, "s/t/2[one] fork/t/2[two]"},
		{"a copied turn ends no open one", []step{
			one("1/2: 1stored; 2/1: 2stored", turn("s", "t", finished, m1), turn("s", "u", open, m2)),
			one("0/0: 1dup", turn("s", "copy", finished, m1)),
		}, "s/t/2[one] s/u/1[two]"},
		{"an empty unknown turn is not made", []step{one("0/0:", turn("s", "t", finished))}, ""},
		{"a later turn ends an open earlier one", []step{
			one("1/1: 1stored", turn("s", "t", open, m1)),
			one("2/1: 2stored", turn("s", "u", open, m2)),
			one("1/4:", turn("s", "t", finished)),
			one("3/2: 3stored", turn("s", "v", finished, m3)),
		}, "s/t/4[one] s/u/4[two] s/v/2[three]"},
		{"a turn of another session ends nothing", []step{
			one("1/1: 1stored", turn("s", "t", open, m1)),
			one("2/1: 2stored", turn("r", "t", open, m2)),
		}, "s/t/1[one] r/t/1[two]"},
		{"equal words with different ids are all kept", []step{
			one("1/2: 1stored; 2/2: 2stored; 3/2: 3stored",
				turn("s", "t", finished, message("a", "yes")), turn("s", "u", finished, message("b", "continue")), turn("s", "v", finished, message("c", "yes"))),
		}, "s/t/2[yes] s/u/2[continue] s/v/2[yes]"},
		{"derived ids", []step{
			one("1/1: 1stored 2stored", turn("s", "t", open, message("", "yes"), message("", "yes"))),
			one("1/1: 1dup 2dup 3stored", turn("s", "t", open, message("", "yes"), message("", "yes"), message("", "yes"))),
			one("2/1: 4stored", turn("s", "u", open, message("", "yes"))),
		}, "s/t/4[yes yes yes] s/u/1[yes]"},
		{"interrupted at once", []step{one("1/4: 1stored", turn("s", "t", interrupted, m1))}, "s/t/4[one]"},
		{"nothing", []step{one("")}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := newMemory(t)
			for i, s := range tt.steps {
				before, _ := m.Head(t.Context())
				results, err := m.Append(t.Context(), s.turns)
				if s.want == "exists" {
					if after, _ := m.Head(t.Context()); !errors.Is(err, ledger.ErrExists) || after != before {
						t.Fatalf("step %d: error %v, head %d; want ErrExists and %d", i, err, after, before)
					}
					continue
				}
				if err != nil {
					t.Fatalf("step %d: %v", i, err)
				}
				if got := brief(results); got != s.want {
					t.Fatalf("step %d: got %q, want %q", i, got, s.want)
				}
			}
			if got := historyText(t, m); got != tt.want {
				t.Errorf("history %q, want %q", got, tt.want)
			}
		})
	}
}

func historyText(t testing.TB, m *ledger.Memory) string {
	t.Helper()
	turns, next, err := m.History(t.Context(), ledger.HistoryQuery{})
	if err != nil || next != 0 {
		t.Fatalf("History: next %d, error %v", next, err)
	}
	var list []string
	for _, turn := range turns {
		var words []string
		for _, m := range turn.Messages {
			words = append(words, string(m.Text))
		}
		list = append(list, fmt.Sprintf("%s/%s/%d[%s]", turn.Session, turn.ID, turn.Status, strings.Join(words, " ")))
	}
	return strings.Join(list, " ")
}

func TestAppendRoundTrip(t *testing.T) {
	allBytes := make([]byte, 512)
	for i := range allBytes {
		allBytes[i] = byte(i)
	}
	seed := [32]byte{7}
	large := make([]byte, ledger.MaxAppendBytes)
	rand.NewChaCha8(seed).Read(large)
	for _, tt := range []struct {
		name string
		text []byte
	}{
		{"nil", nil},
		{"empty", []byte{}},
		{"every byte", allBytes},
		{"NUL", []byte("a\x00b")},
		{"invalid UTF-8", []byte("a\xff\xfe\xc3(\xed\xa0\x80 b")},
		{"escapes and bidi", []byte("\x1b[31m\u202e\u2066")},
		{"15,999 bytes", bytes.Repeat([]byte("x"), 15_999)},
		{"16,000 bytes", bytes.Repeat([]byte("x"), 16_000)},
		{"16 MiB", large},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newMemory(t)
			said := time.Date(2026, 2, 3, 4, 5, 6, 789_012_345, time.FixedZone("", 3600))
			in := ledger.Turn{Session: "s ü", SessionTitle: "title", ID: "t\n1", Status: ledger.StatusFinished, Messages: []ledger.Message{
				{ID: "m'\"%_", Kind: ledger.KindTrace, Speaker: "спикер", Time: said, Zone: "Asia/Kathmandu", Text: tt.text},
			}}
			mustAppend(t, m, in)
			got, err := m.Message(t.Context(), "m'\"%_")
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Text, tt.text) {
				t.Errorf("%d bytes came back as other %d bytes", len(tt.text), len(got.Text))
			}
			got.Text = nil
			want := ledger.Record{
				Message: ledger.Message{ID: "m'\"%_", Kind: ledger.KindTrace, Speaker: "спикер", Time: said.UTC().Truncate(time.Microsecond),
					Zone: "Asia/Kathmandu", Seq: 1},
				Session: "s ü", SessionTitle: "title", TurnID: "t\n1", TurnSeq: 1,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAppendRefuses(t *testing.T) {
	long := strings.Repeat("x", ledger.MaxNameBytes+1)
	edge := strings.Repeat("x", ledger.MaxNameBytes)
	valid := func() ledger.Turn { return exchange("s", 1) }
	change := func(f func(*ledger.Turn)) []ledger.Turn {
		t := valid()
		f(&t)
		return []ledger.Turn{valid(), t}
	}
	tests := []struct {
		name  string
		turns []ledger.Turn
		field string
		large bool
		text  string // part of the error: limit and value
	}{
		{"no session", change(func(t *ledger.Turn) { t.Session = "" }), "turns[1].session_id", false, "empty"},
		{"long session", change(func(t *ledger.Turn) { t.Session = long }), "turns[1].session_id", false, "limit 512 bytes, got 513 bytes"},
		{"NUL in session", change(func(t *ledger.Turn) { t.Session = "a\x00b" }), "turns[1].session_id", false, "NUL"},
		{"invalid session", change(func(t *ledger.Turn) { t.Session = "a\xff" }), "turns[1].session_id", false, "UTF-8"},
		{"no turn id", change(func(t *ledger.Turn) { t.ID = "" }), "turns[1].turn_id", false, "empty"},
		{"long title", change(func(t *ledger.Turn) { t.SessionTitle = long }), "turns[1].session_title", false, "got 513"},
		{"status", change(func(t *ledger.Turn) { t.Status = 5 }), "turns[1].status", false, "limit 4, got 5"},
		{"no kind", change(func(t *ledger.Turn) { t.Messages[1].Kind = 0 }), "turns[1].messages[1].kind", false, "got 0"},
		{"kind", change(func(t *ledger.Turn) { t.Messages[1].Kind = 7 }), "turns[1].messages[1].kind", false, "limit 6, got 7"},
		{"long id", change(func(t *ledger.Turn) { t.Messages[0].ID = long }), "turns[1].messages[0].id", false, "got 513"},
		{"long speaker", change(func(t *ledger.Turn) { t.Messages[0].Speaker = long }), "turns[1].messages[0].speaker", false, "got 513"},
		{"long zone", change(func(t *ledger.Turn) { t.Messages[0].Zone = long }), "turns[1].messages[0].time.zone", false, "got 513"},
		{"year 0", change(func(t *ledger.Turn) { t.Messages[0].Time = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC) }), "turns[1].messages[0].time.at", false, "got 0"},
		{"year 10000", change(func(t *ledger.Turn) { t.Messages[0].Time = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }), "turns[1].messages[0].time.at", false, "got 10000"},
		{"501 turns", make([]ledger.Turn, 501), "turns", true, "limit 500, got 501"},
		{"50,001 messages", change(func(t *ledger.Turn) { t.Messages = make([]ledger.Message, 49_999) }), "turns.messages", true, "limit 50000, got 50001"},
		{"16 MiB + 1", change(func(t *ledger.Turn) {
			t.Messages[0].Text = make([]byte, ledger.MaxAppendBytes+1-len(t.Messages[1].Text)-len(valid().Messages[0].Text)-len(valid().Messages[1].Text))
		}), "turns.messages.text", true, "limit 16777216 bytes, got 16777217 bytes"},
	}
	m := newMemory(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := m.Append(t.Context(), tt.turns)
			var field *ledger.FieldError
			if !errors.As(err, &field) || field.Field != tt.field || errors.Is(err, ledger.ErrTooLarge) != tt.large || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("error %v (too large: %v), want one for %s saying %q (too large: %v)", err, errors.Is(err, ledger.ErrTooLarge), tt.field, tt.text, tt.large)
			}
			if head, _ := m.Head(t.Context()); head != 0 {
				t.Errorf("head is %d after a refused Append", head)
			}
		})
	}
	t.Run("just within", func(t *testing.T) {
		turn := valid()
		turn.Session, turn.ID, turn.SessionTitle = edge, edge, edge
		turn.Messages[0].ID, turn.Messages[0].Speaker, turn.Messages[0].Zone = edge, edge, edge
		turn.Messages[0].Time = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
		turn.Messages[1].Time = time.Time{}
		mustAppend(t, m, turn)
		got, err := m.Message(t.Context(), edge)
		if err != nil || !got.Time.Equal(turn.Messages[0].Time) || got.Session != edge {
			t.Errorf("Message = %v, %v", got.Time, err)
		}
	})
}

// TestAppendConcurrent has 32 writers and 8 readers. Every read must be a
// prefix, and the numbers dense in the end.
func TestAppendConcurrent(t *testing.T) {
	const writers, readers = 32, 8
	each := 1000
	if testing.Short() {
		each = 100
	}
	m := newMemory(t)
	ctx := t.Context()
	var writing, readingAll sync.WaitGroup
	acknowledged := make(chan struct{})
	for w := range writers {
		writing.Go(func() {
			last := uint64(0)
			for n := range each {
				results, err := m.Append(ctx, []ledger.Turn{turn(fmt.Sprint("s", w), fmt.Sprint(n), ledger.StatusFinished, message(fmt.Sprint(w, "/", n), "text"))})
				if err != nil {
					t.Error(err)
					return
				}
				seq := results[0].Messages[0].Seq
				if head, _ := m.Head(ctx); seq <= last || head < seq {
					t.Errorf("message %d acknowledged after %d, head %d", seq, last, head)
				}
				last = seq
				if seq%32 == 0 {
					select {
					case acknowledged <- struct{}{}:
					default:
					}
				}
			}
		})
	}
	done := make(chan struct{})
	for range readers {
		readingAll.Go(func() {
			for after := uint64(0); ; {
				select { // a read for each of some acknowledgements, not a busy loop
				case <-acknowledged:
				case <-done:
				}
				records, err := m.Read(ctx, after, 500, 0)
				if err != nil {
					t.Error(err)
					return
				}
				for _, r := range records {
					if after++; r.Seq != after || r.Damage != nil || string(r.Text) != "text" {
						t.Errorf("read message %d (%v) after %d", r.Seq, r.Damage, after-1)
						return
					}
				}
				select {
				case <-done:
					if after == uint64(writers*each) {
						return
					}
				default:
				}
			}
		})
	}
	writing.Wait()
	close(done)
	readingAll.Wait()
	counts, err := m.Counts(ctx)
	want := ledger.Counts{Sessions: writers, Turns: uint64(writers * each), Messages: uint64(writers * each), TextBytes: uint64(4 * writers * each)}
	if err != nil || counts != want {
		t.Errorf("Counts = %+v, %v, want %+v", counts, err, want)
	}
}

// TestAppendSameAtOnce sends one turn from many callers at the same moment,
// with one among them that says something else under the same id.
func TestAppendSameAtOnce(t *testing.T) {
	m := newMemory(t)
	mustAppend(t, m, turn("s", "before", ledger.StatusFinished, message("known", "known")))
	var all sync.WaitGroup
	var mu sync.Mutex
	outcomes := map[ledger.Outcome]int{}
	barrier := make(chan struct{})
	for i := range 100 {
		all.Go(func() {
			<-barrier
			results, err := m.Append(t.Context(), []ledger.Turn{exchange("s", 1)})
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			outcomes[results[0].Messages[0].Outcome]++
		})
		all.Go(func() {
			<-barrier
			_, err := m.Append(t.Context(), []ledger.Turn{turn("s", fmt.Sprint("bad", i), 0, message(fmt.Sprint("new", i), "x"), message("known", "unknown"))})
			if !errors.Is(err, ledger.ErrExists) {
				t.Errorf("error %v, want ErrExists", err)
			}
		})
	}
	close(barrier)
	all.Wait()
	if outcomes[ledger.Stored] != 1 || outcomes[ledger.Duplicate] != 99 {
		t.Errorf("outcomes %v, want 1 stored and 99 duplicates", outcomes)
	}
	if head, _ := m.Head(t.Context()); head != 3 {
		t.Errorf("head is %d, want 3", head)
	}
}

// TestAppendReplay sends a long history again after the memory was opened anew.
func TestAppendReplay(t *testing.T) {
	root := t.TempDir()
	var turns []ledger.Turn
	for n := range 500 {
		turns = append(turns, exchange("s", n))
	}
	for round := range 3 {
		s, err := ledger.OpenStore(root, ledger.Options{})
		if err != nil {
			t.Fatal(err)
		}
		id, err := s.Ensure(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		m, err := s.Open(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		mustAppend(t, m, turns...)
		if counts, err := m.Counts(t.Context()); err != nil || counts.Turns != 500 || counts.Messages != 1000 {
			t.Errorf("round %d: Counts = %+v, %v", round, counts, err)
		}
		verify(t, m)
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAppendCancelled(t *testing.T) {
	m := newMemory(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stored uint64
	for n := range 200 { // a cancelled call may still get the writer first
		_, err := m.Append(ctx, []ledger.Turn{turn("s", fmt.Sprint(n), 0, message(fmt.Sprint(n), "x"))})
		if err == nil {
			stored++
		} else if !errors.Is(err, context.Canceled) {
			t.Fatalf("error %v, want context.Canceled", err)
		}
	}
	if head, _ := m.Head(t.Context()); head != stored {
		t.Errorf("head is %d, acknowledged %d", head, stored)
	}
}

func TestAppendAfterClose(t *testing.T) {
	m := newMemory(t)
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Append(context.Background(), []ledger.Turn{exchange("s", 1)}); !errors.Is(err, ledger.ErrClosed) {
		t.Errorf("error %v, want ErrClosed", err)
	}
	if _, err := m.Counts(context.Background()); !errors.Is(err, ledger.ErrClosed) {
		t.Errorf("Counts: error %v, want ErrClosed", err)
	}
}

// TestClockJumps checks that no clock, however wrong, changes an order.
func TestClockJumps(t *testing.T) {
	base := time.Date(2026, 3, 29, 1, 59, 59, 0, time.UTC)
	jumps := []time.Time{
		base, base.Add(-time.Hour), base.AddDate(-10, 0, 0), base.AddDate(100, 0, 0), base, base,
		time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), time.Unix(0, math.MaxInt64), time.Unix(0, math.MinInt64), {},
	}
	i := 0
	now := func() time.Time { return jumps[i%len(jumps)] }
	s := openStore(t, t.TempDir(), ledger.Options{Now: now})
	m := openMemory(t, s, key)
	for n := range 3 * len(jumps) {
		i = n
		results := mustAppend(t, m, turn("s", fmt.Sprint(n), ledger.StatusFinished, message(fmt.Sprint(n), "x")))
		if got := results[0].Seq; got != uint64(n+1) {
			t.Errorf("turn %d has number %d", n, got)
		}
	}
	turns, _, err := m.History(t.Context(), ledger.HistoryQuery{Limit: 200})
	if err != nil {
		t.Fatal(err)
	}
	for n, turn := range turns {
		if turn.ID != fmt.Sprint(n) {
			t.Errorf("turn %d of the history is %s", n, turn.ID)
		}
		if want := jumps[n%len(jumps)]; !turn.Appended.Equal(want.Truncate(time.Microsecond)) && !want.IsZero() {
			t.Errorf("turn %d appended %v, want %v", n, turn.Appended, want)
		}
	}
}
