package consolidate_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"recalld/consolidate"
)

// TestOldTranscript imports what was said before what is there already: it
// changes nothing that was decided later, and does not bring back what was put
// away since.
func TestOldTranscript(t *testing.T) {
	lastYear := day.AddDate(-1, 0, 0)
	for _, tt := range []struct {
		name      string
		now, then []string
		at        time.Time // of what is imported
		want      []string
	}{
		{"an old reversal", []string{"> Let's use MySQL for the events."}, []string{"> Actually, let's use Postgres instead of MySQL for the events."}, lastYear,
			[]string{"live: Let's use MySQL for the events.", "live: Actually, let's use Postgres instead of MySQL for the events."}},
		{"a new reversal", []string{"> Let's use MySQL for the events."}, []string{"> Actually, let's use Postgres instead of MySQL for the events."}, day.AddDate(0, 1, 0),
			[]string{"superseded: Let's use MySQL for the events.", "live: Actually, let's use Postgres instead of MySQL for the events."}},
		{"one of an unknown time", []string{"> Let's use MySQL for the events."}, []string{"> Actually, let's use Postgres instead of MySQL for the events."}, time.Time{},
			[]string{"superseded: Let's use MySQL for the events.", "live: Actually, let's use Postgres instead of MySQL for the events."}},
		{"what was put away since", []string{"> Let's use Postgres for the events.", "> hm", "> Actually, let's use MySQL instead of Postgres for the events."}, []string{"> let's use Postgres for the events"}, lastYear,
			[]string{"superseded: Let's use Postgres for the events.", "live: Actually, let's use MySQL instead of Postgres for the events."}},
		{"what was chosen again", []string{"> Let's use Postgres for the events.", "> hm", "> Actually, let's use MySQL instead of Postgres for the events."}, []string{"> let's use Postgres for the events"}, day.AddDate(0, 1, 0),
			[]string{"superseded: Let's use Postgres for the events.", "live: Actually, let's use MySQL instead of Postgres for the events.", "live: let's use Postgres for the events"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j := consolidate.Fold(history(t, chat(tt.now...), moved(chat(tt.then...), "old", 10, tt.at)), nil)
			if diff := cmp.Diff(tt.want, states(j)); diff != "" {
				t.Errorf("journal (-want +got):\n%s", diff)
			}
			if r := j.Records[0]; tt.at.Equal(lastYear) && (r.Last.SaidAt.Before(r.SaidAt) || slices.Contains(j.Records[len(j.Records)-1].MaySupersede, r.ID)) {
				t.Errorf("said last at %v, first at %v; or what was said later may be superseded", r.Last.SaidAt, r.SaidAt)
			}
		})
	}
}

// TestBlockIsInTheOrderOfDates: that of what was said, not that of the imports.
func TestBlockIsInTheOrderOfDates(t *testing.T) {
	rule := func(n int) consolidate.Session {
		return chat(fmt.Sprintf("> Always run check number%d before a commit.", n))
	}
	j := consolidate.Fold(history(t,
		moved(rule(3), "march", 0, day),
		moved(rule(0), "undated", 1, time.Time{}), // came in after it, so it is taken for as old
		moved(rule(1), "january", 2, day.AddDate(0, -2, 0)),
		moved(rule(4), "april", 3, day.AddDate(0, 1, 0)),
		moved(rule(2), "february", 4, day.AddDate(0, -1, 0)),
	), nil)
	number := regexp.MustCompile(`number(\d)`)
	order := func(b consolidate.Block) (all string) {
		for _, r := range b.Entries {
			all += number.FindStringSubmatch(r.Text)[1]
		}
		return all
	}
	whole := j.Block(consolidate.BlockOptions{})
	if got := order(whole); got != "12304" {
		t.Errorf("order %s", got)
	}
	// Where the budget is short, those said last are kept.
	lines := len(whole.String()) / 6
	for n, want := range []string{"", "4", "04", "304", "2304"} {
		room := consolidate.Size{Bytes: (n+1)*lines + lines/2, Units: 1 << 20}
		if got := order(j.Block(consolidate.BlockOptions{Turn: &consolidate.TurnOptions{Room: room}})); n > 0 && got != want {
			t.Errorf("room for %d: %q, want %q", n, got, want)
		}
	}
}

// TestRulesOfAShortBudget: those that are pinned come first, then those that
// have most to do with the message, even when nothing else bears on it.
func TestRulesOfAShortBudget(t *testing.T) {
	var lines []string
	for i, thing := range []string{"migrations", "invoices", "sandbox", "fonts", "gallery", "parser", "tokens", "holidays"} {
		lines = append(lines, fmt.Sprintf("> Always ask Mia before you touch the %s, number%d.", thing, i), "< ok")
	}
	j := consolidate.Fold(batches(t, chat(lines...)), nil)
	j.Records[2].Pinned = true
	room := consolidate.Size{Bytes: 400, Units: 1 << 20}
	got := j.Block(consolidate.BlockOptions{Message: "what is left of the invoices?", Turn: &consolidate.TurnOptions{Room: room, Quiet: true}})
	if len(got.Entries) >= len(j.Records) {
		t.Fatalf("all %d rules found room", len(got.Entries))
	}
	for _, word := range []string{"sandbox", "invoices", "holidays"} { // pinned, asked for, new
		if !strings.Contains(got.String(), word) {
			t.Errorf("the rule about %s is missing:\n%s", word, got)
		}
	}
	all := j.Block(consolidate.BlockOptions{Message: "what is left of the invoices?", Turn: &consolidate.TurnOptions{Room: wide, Quiet: true}})
	if len(all.Entries) != len(j.Records) || all.Left != 0 {
		t.Errorf("%d of %d rules, %d left", len(all.Entries), len(j.Records), all.Left)
	}
}
