package consolidate_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"recalld/consolidate"
)

// drawSession draws a session with long and empty messages, messages that are
// not spoken, forgotten ones, turns without any, and a tail closed here and there.
func drawSession(t *rapid.T) consolidate.Session {
	s := consolidate.Session{ID: "s"}
	seq, turn := uint64(0), uint64(0)
	for range rapid.IntRange(0, 9).Draw(t, "turns") {
		turn += uint64(rapid.IntRange(1, 3).Draw(t, "gap")) // other sessions take numbers too
		tt := consolidate.Turn{ID: fmt.Sprint("t", turn), Seq: turn, Status: consolidate.Finished}
		if rapid.IntRange(0, 5).Draw(t, "open") == 0 {
			tt.Status = consolidate.Open
		}
		for range rapid.IntRange(0, 3).Draw(t, "messages") {
			seq++
			kind := rapid.SampledFrom([]consolidate.MessageKind{consolidate.User, consolidate.Reply, consolidate.Trace, consolidate.Mark}).Draw(t, "kind")
			word := rapid.SampledFrom([]string{"a", "wörd ", "line\n", "日本", "\xff"}).Draw(t, "word")
			size := rapid.SampledFrom([]int{0, 1, 50, 60, 5000, 15999, 16001, 33000}).Draw(t, "size")
			m := message(fmt.Sprint("m", seq), seq, kind, "x", strings.Repeat(word, size/utf8.RuneCountInString(word)))
			m.Forgotten = rapid.IntRange(0, 9).Draw(t, "forgotten") == 0
			tt.Messages = append(tt.Messages, m)
		}
		s.Turns = append(s.Turns, tt)
		if rapid.IntRange(0, 6).Draw(t, "close") == 0 {
			s.Closed = append(s.Closed, turn)
		}
	}
	return s
}

// TestWindowsTile checks that every spoken byte of every turn that is covered
// is in exactly one window, in order, and that no window is over its limits.
func TestWindowsTile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSession(t)
		windows, tail := s.Windows(consolidate.Position{})
		var at consolidate.Position
		covered := map[string]int{}
		for _, w := range windows {
			if w.From != at {
				t.Fatalf("window begins at %v, the one before ended at %v", w.From, at)
			}
			if w.To.Compare(w.From) <= 0 {
				t.Fatalf("window from %v to %v", w.From, w.To)
			}
			at = w.To
			runes, turns := 0, map[uint64]bool{}
			for _, p := range w.Pieces {
				if covered[p.Message.ID] != p.Start {
					t.Fatalf("%s goes on at %d, but %d bytes of it were read", p.Message.ID, p.Start, covered[p.Message.ID])
				}
				covered[p.Message.ID] = p.End
				runes += utf8.RuneCount(p.Text())
				turns[p.Turn] = true
			}
			if runes > 16000 || len(turns) > 4 {
				t.Fatalf("window of %d code points in %d turns", runes, len(turns))
			}
			if again := s.Window(w.From, w.To); !reflect.DeepEqual(again, w) {
				t.Fatalf("read again the window differs")
			}
		}
		waiting := 0
		for _, turn := range s.Turns {
			end := consolidate.Position{Turn: turn.Seq}
			for _, m := range turn.Messages {
				spoken := (m.Kind == consolidate.User || m.Kind == consolidate.Reply) && !m.Forgotten
				if want := len(m.Text); spoken && end.Compare(at) <= 0 && covered[m.ID] != want {
					t.Fatalf("%d of %d bytes of %s are in windows", covered[m.ID], want, m.ID)
				}
			}
			if end.Compare(at) > 0 {
				waiting++
			}
		}
		if n := len(s.Turns); n > 0 && s.Turns[n-1].Status == consolidate.Open {
			waiting--
		}
		if tail.Turns != waiting {
			t.Fatalf("tail of %d turns, want %d", tail.Turns, waiting)
		}
	})
}

// TestWindowsStay checks that later turns move no window, that reading on from
// any window's end gives the rest, and that the order of arguments is nothing.
func TestWindowsStay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSession(t)
		whole, _ := s.Windows(consolidate.Position{})

		less := s
		less.Turns = s.Turns[:rapid.IntRange(0, len(s.Turns)).Draw(t, "known")]
		first, _ := less.Windows(consolidate.Position{})
		if len(first) > len(whole) || len(first) > 0 && !reflect.DeepEqual(first, whole[:len(first)]) {
			t.Fatalf("windows moved as the session grew")
		}
		for i, w := range whole {
			rest, _ := s.Windows(w.To)
			if len(rest) != len(whole)-i-1 || len(rest) > 0 && !reflect.DeepEqual(rest, whole[i+1:]) {
				t.Fatalf("reading on after window %d gives other windows", i)
			}
		}
		mixed := s
		mixed.Turns = slices.Clone(s.Turns)
		slices.Reverse(mixed.Turns)
		for i := range mixed.Turns {
			mixed.Turns[i].Messages = slices.Clone(mixed.Turns[i].Messages)
			slices.Reverse(mixed.Turns[i].Messages)
		}
		if again, _ := mixed.Windows(consolidate.Position{}); !reflect.DeepEqual(again, whole) {
			t.Fatalf("the order of turns matters")
		}
	})
}

func TestTailClosesByRecord(t *testing.T) {
	s := chat("> one", "< yes", "> two", "< yes")
	if windows, tail := s.Windows(consolidate.Position{}); len(windows) != 0 || tail.Turns != 2 || tail.LastTurn != 2 || !tail.Appended.Equal(day.Add(2*time.Minute)) {
		t.Fatalf("windows %d, tail %+v; want two turns waiting", len(windows), tail)
	}
	windows, tail := closed(s).Windows(consolidate.Position{})
	if len(windows) != 1 || windows[0].LastTurn != 2 || tail.Turns != 0 {
		t.Errorf("windows %d, tail %+v; want one window of two turns", len(windows), tail)
	}
}

func TestOpenTurnIsInterruptedByALaterOne(t *testing.T) {
	s := chat("> one", "> two", "> three", "> four", "> five")
	s.Turns[3].Status = consolidate.Open
	if windows, _ := s.Windows(consolidate.Position{}); len(windows) != 1 {
		t.Errorf("%d windows, want 1: a later turn ends an open one", len(windows))
	}
	s.Turns = s.Turns[:4]
	if windows, tail := s.Windows(consolidate.Position{}); len(windows) != 0 || tail.Turns != 3 {
		t.Errorf("%d windows, %d turns waiting; want the last turn to be out of both", len(windows), tail.Turns)
	}
}

func TestLateMessageMakesANewVersion(t *testing.T) {
	s := chat("> one", "> two", "> three", "> four", "> five")
	windows, _ := s.Windows(consolidate.Position{})
	w := windows[0]
	late := message("late", 99, consolidate.Reply, "agent", "sorry, I was slow")
	s.Turns[1].Messages = append(s.Turns[1].Messages, late)
	again := s.Window(w.From, w.To)
	if len(again.Pieces) != len(w.Pieces)+1 || again.SourceHash() == w.SourceHash() {
		t.Errorf("%d pieces, hash changed: %v; want one more and another hash", len(again.Pieces), again.SourceHash() != w.SourceHash())
	}
	if rest, _ := s.Windows(w.To); len(rest) != 0 {
		t.Errorf("%d windows after it, want none: the late message belongs to its turn", len(rest))
	}
	late.Kind = consolidate.Trace
	s.Turns[1].Messages[len(s.Turns[1].Messages)-1] = late
	if s.Window(w.From, w.To).SourceHash() != w.SourceHash() {
		t.Error("a late trace changed the source hash")
	}
}

func TestContextIsTheLastReply(t *testing.T) {
	s := chat("> one", "< first", "> two", "< second", "> three", "< third", "> four", "< shall I?", "> yes", "< done")
	windows, _ := closed(s).Windows(consolidate.Position{})
	if len(windows) != 2 || len(windows[1].Context) != 1 || string(windows[1].Context[0].Text()) != "shall I?" {
		t.Fatalf("context is %v", windows[1].Context)
	}
	if len(windows[0].Context) != 0 {
		t.Errorf("the first window has context %v", windows[0].Context)
	}
	before := windows[1].SourceHash()
	s.Turns[3].Messages[1].Forgotten = true
	if s.Window(windows[1].From, windows[1].To).SourceHash() == before {
		t.Error("forgetting the context leaves the source hash")
	}
}
