package consolidate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"recalld/consolidate"
)

var wide = consolidate.Size{Bytes: 1 << 20, Units: 1 << 20}

// TestTurnBlock goes through what a turn needs of a journal.
func TestTurnBlock(t *testing.T) {
	rules := []string{"rule: Always run the linter before you commit.", "preference: I prefer short functions."}
	mysql := "reversal: Actually, let's use MySQL instead of Postgres for the events."
	logs := "decision: Let's keep the log files for a week."
	layout := "decision: On March 2 we decided to keep the old invoice layout."
	flaky := "open_work: please open an issue for the flaky upload test"
	for _, tt := range []struct {
		name, message string
		recalled      []string // words of the quoted messages
		given         string   // text of an entry
		want          []string
	}{
		{name: "rules alone when nothing is asked", want: rules},
		{name: "what shares words", message: "where do the log files go?", want: append([]string{logs}, rules...)},
		{name: "one word is enough of a short message", message: "invoice layout", want: append([]string{layout}, rules...)},
		{name: "a common word is not", message: "let's keep going with something else entirely, shall we", want: rules},
		{name: "nothing in common", message: "how is the weather in Lisbon?", want: rules},
		{name: "what quotes a recalled message", message: "how is the weather in Lisbon?", recalled: []string{"flaky upload"}, want: append([]string{flaky}, rules...)},
		{name: "reversals as well", message: "is MySQL up for the events?", want: append([]string{mysql}, rules...)},
		{name: "nothing that was given", message: "where do the log files go?", given: "Let's keep the log files for a week.", want: rules},
		{name: "no rule that was given", given: "I prefer short functions.", want: rules[:1]},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j := journal(t)
			o := consolidate.TurnOptions{Room: wide, Recalled: map[string]bool{}, Words: new(consolidate.Words)}
			for _, r := range j.Records {
				for _, words := range tt.recalled {
					if strings.Contains(r.Text, words) {
						o.Recalled[r.Quotes[0].Message] = true
					}
				}
			}
			o.Given = func(r *consolidate.Record) bool { return r.Text == tt.given }
			for range 2 { // the second time by the words that are remembered
				b := j.Block(consolidate.BlockOptions{Message: tt.message, Turn: &o})
				var got []string
				for _, r := range b.Entries {
					got = append(got, r.Kind.String()+": "+r.Text)
				}
				want := slices.Sorted(slices.Values(tt.want))
				slices.Sort(got)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("entries (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// TestTurnBlockOfMany: of many entries that bear on a message the best come, and
// those that are pinned always.
func TestTurnBlockOfMany(t *testing.T) {
	var lines []string
	for i := range 60 {
		lines = append(lines, fmt.Sprintf("> Let's use port %d for the service number%d of the shop.", 8000+i, i))
	}
	j := consolidate.Fold(batches(t, chat(lines...)), nil)
	j.Records[0].Pinned = true
	recalled := map[string]bool{}
	for _, r := range j.Records[20:50] {
		recalled[r.Quotes[0].Message] = true
	}
	b := j.Block(consolidate.BlockOptions{Message: "which port has service number33 of the shop?", Turn: &consolidate.TurnOptions{Room: wide, Recalled: recalled}})
	if len(b.Entries) != 11 || b.Entries[0].ID != j.Records[0].ID || b.Left != 0 {
		t.Errorf("%d entries, %d left", len(b.Entries), b.Left)
	}
	if !slices.ContainsFunc(b.Entries, func(r consolidate.Record) bool { return strings.Contains(r.Text, "number33 ") }) {
		t.Errorf("the one that was asked for is missing:\n%s", b)
	}
}

// TestTurnRoom: both measures hold.
func TestTurnRoom(t *testing.T) {
	j := journal(t)
	for i := range j.Records {
		j.Records[i].Text += " 🚀🚀🚀 日本語"
	}
	for n := 40; n < 900; n += 7 {
		for _, room := range []consolidate.Size{{Bytes: n, Units: 1 << 20}, {Bytes: 1 << 20, Units: n}} {
			b := j.Block(consolidate.BlockOptions{Message: "where do the log files go?", Turn: &consolidate.TurnOptions{Room: room}})
			text := b.String()
			if units := len(utf16.Encode([]rune(text))); len(text) > room.Bytes || units > room.Units {
				t.Errorf("a block of %d bytes and %d units in a room of %+v", len(text), units, room)
			}
			if size := consolidate.SizeOf(text); size.Bytes != len(text) || size.Units != len(utf16.Encode([]rune(text))) {
				t.Errorf("SizeOf = %+v", size)
			}
		}
	}
}

func TestReachLine(t *testing.T) {
	j := journal(t)
	for _, tt := range []struct {
		reach *consolidate.Reach
		want  string
	}{
		{nil, "What was decided:"},
		{&consolidate.Reach{}, "What was decided; nothing of this chat yet."},
		{&consolidate.Reach{Waiting: 1}, "What was decided; 1 turn of this chat not yet."},
		{&consolidate.Reach{Read: 4, Waiting: 3}, "What was decided; 4 turns of this chat read; 3 turns of this chat not yet."},
		{&consolidate.Reach{Read: 4, ReadTo: day, Zone: "+02:00", Waiting: 3}, "What was decided; read up to 2026-03-05 14:00 +02:00; 3 turns of this chat not yet."},
		{&consolidate.Reach{Read: 4, ReadTo: day}, "What was decided; read up to 2026-03-05 12:00 +00:00."},
	} {
		if got := j.Block(consolidate.BlockOptions{Reach: tt.reach}).Lines[0]; got != tt.want+"\n" {
			t.Errorf("%+v reads %q, want %q", tt.reach, got, tt.want)
		}
	}
}
