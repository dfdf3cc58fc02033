package consolidate_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"recalld/consolidate"
)

func TestCheck(t *testing.T) {
	s := chat("> one", "< 1", "> two", "< 2", "> three", "< 3", "> four", "< Shall I drop the cache?",
		"> Yes, do it. Größe bleibt.", "< Done.", "> "+strings.Repeat("long ", 500))
	bob := message("bob", 99, consolidate.User, "Bob", "I agree.")
	s.Turns[4].Messages = append(s.Turns[4].Messages, bob)
	windows, _ := closed(s).Windows(consolidate.Position{})
	w := windows[1]
	says := consolidate.Quote{Message: "m8", Start: 0, End: 11, Role: consolidate.Says}
	offer := consolidate.Quote{Message: "m7", Start: 0, End: 23, Role: consolidate.Proposal}
	quotes := func(q ...consolidate.Quote) consolidate.Draft {
		return consolidate.Draft{Kind: consolidate.Decision, Confidence: .8, Quotes: q}
	}
	with := func(change func(*consolidate.Quote)) consolidate.Draft {
		q := says
		change(&q)
		return quotes(q)
	}
	tests := []struct {
		name  string
		draft consolidate.Draft
		want  consolidate.Reason // none: kept
	}{
		{"whole", quotes(says), ""},
		{"with what it accepts", quotes(says, offer), ""},
		{"no kind", consolidate.Draft{Confidence: 1, Quotes: []consolidate.Quote{says}}, consolidate.UnknownKind},
		{"kind out of range", consolidate.Draft{Kind: 9, Confidence: 1, Quotes: []consolidate.Quote{says}}, consolidate.UnknownKind},
		{"too sure", consolidate.Draft{Kind: 1, Confidence: 1.1, Quotes: []consolidate.Quote{says}}, consolidate.BadConfidence},
		{"no number", consolidate.Draft{Kind: 1, Confidence: math.NaN(), Quotes: []consolidate.Quote{says}}, consolidate.BadConfidence},
		{"no quotes", quotes(), consolidate.NoWords},
		{"only a proposal", quotes(offer), consolidate.NoWords},
		{"eleven quotes", quotes(says, says, says, says, says, says, says, says, says, says, says), consolidate.TooManyQuotes},
		{"no role", quotes(says, consolidate.Quote{Message: "m8", End: 3}), consolidate.UnknownRole},
		{"invented message", with(func(q *consolidate.Quote) { q.Message = "m99" }), consolidate.UnknownMessage},
		{"message of another window", with(func(q *consolidate.Quote) { q.Message = "m0" }), consolidate.UnknownMessage},
		{"past the end", with(func(q *consolidate.Quote) { q.End = 1000 }), consolidate.OutOfRange},
		{"before the beginning", with(func(q *consolidate.Quote) { q.Start = -1 }), consolidate.OutOfRange},
		{"backwards", with(func(q *consolidate.Quote) { q.Start, q.End = 5, 2 }), consolidate.OutOfRange},
		{"inside a character", with(func(q *consolidate.Quote) { q.Start, q.End = 15, 20 }), consolidate.SplitsCharacter},
		{"empty", with(func(q *consolidate.Quote) { q.End = 0 }), consolidate.BlankQuote},
		{"a space", with(func(q *consolidate.Quote) { q.Start, q.End = 4, 5 }), consolidate.BlankQuote},
		{"too long", quotes(consolidate.Quote{Message: "m10", End: 2400, Role: consolidate.Says}), consolidate.TooLong},
		{"the context's words", quotes(consolidate.Quote{Message: "m7", End: 23, Role: consolidate.Says}), consolidate.OnlyContext},
		{"two speakers", quotes(says, consolidate.Quote{Message: "bob", End: 8, Role: consolidate.Says}), consolidate.TwoSpeakers},
		{"proposal by the person", quotes(says, consolidate.Quote{Message: "bob", End: 8, Role: consolidate.Proposal}), consolidate.NotProposed},
		{"proposal after the acceptance", quotes(says, consolidate.Quote{Message: "m9", End: 5, Role: consolidate.Proposal}), consolidate.NotProposed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			entries, dropped := consolidate.Check(w, []consolidate.Draft{tt.draft})
			want := map[consolidate.Reason]int{}
			if tt.want != "" {
				want[tt.want] = 1
			}
			if !cmp.Equal(dropped, want) || (len(entries) == 1) != (tt.want == "") {
				t.Fatalf("%d entries, dropped %v; want %v", len(entries), dropped, want)
			}
			if len(entries) == 1 && !w.Holds(entries[0]) {
				t.Error("the entry does not hold")
			}
		})
	}
	entries, dropped := consolidate.Check(w, []consolidate.Draft{quotes(says), quotes(says)})
	if len(entries) != 1 || dropped[consolidate.Repeated] != 1 {
		t.Errorf("%d entries, dropped %v; want the same draft once", len(entries), dropped)
	}
}

func TestHoldsNoticesAForgery(t *testing.T) {
	windows, _ := closed(chat("> Always use tabs.", "< ok")).Windows(consolidate.Position{})
	w := windows[0]
	drafts := []consolidate.Draft{{Kind: consolidate.Rule, Confidence: .9, Quotes: []consolidate.Quote{{Message: "m0", End: 16, Role: consolidate.Says}}}}
	tests := []struct {
		name  string
		forge func(*consolidate.Entry)
	}{
		{"speaker", func(e *consolidate.Entry) { e.Speaker = "Bob" }},
		{"who it is", func(e *consolidate.Entry) { e.By = consolidate.Reply }},
		{"turn", func(e *consolidate.Entry) { e.Turn = 7 }},
		{"quote", func(e *consolidate.Entry) { e.Quotes[0].End = 10 }},
		{"kind", func(e *consolidate.Entry) { e.Kind = consolidate.Decision }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			entries, _ := consolidate.Check(w, drafts)
			if e := entries[0]; !w.Holds(e) {
				t.Fatalf("%+v does not hold", e)
			}
			tt.forge(&entries[0])
			if w.Holds(entries[0]) {
				t.Errorf("%+v holds", entries[0])
			}
		})
	}
}

// TestDecidedOn reads what was said on Thursday, 5 March 2026, near midnight.
func TestDecidedOn(t *testing.T) {
	tests := []struct{ words, want string }{
		{"We decided on March 2, 2026 to use SQLite.", "2026-03-02"},
		{"On 2026-02-28 we decided to use SQLite.", "2026-02-28"},
		{"We decided yesterday to use SQLite.", "2026-03-05"},
		{"Today we agreed to use SQLite.", "2026-03-06"},
		{"Last Monday we agreed to use SQLite.", "2026-03-02"},
		{"We agreed on 3rd January to use SQLite.", "2026-01-03"},
		{"We decided on December 12 to use SQLite.", "2025-12-12"},
		{"Wir haben am 2. März 2026 beschlossen, SQLite zu nehmen.", "2026-03-02"},
		{"Wir haben gestern entschieden, SQLite zu nehmen.", "2026-03-05"},
		{"Am 2.3.2026 haben wir beschlossen, SQLite zu nehmen.", "2026-03-02"},
		{"Letzten Montag haben wir uns entschieden, SQLite zu nehmen.", "2026-03-02"},

		{"We decided to ship by March 2.", ""},
		{"We decided to ship on May 1, 2026.", ""}, // it is when to ship
		{"We decided that support ends 31 December 2026.", ""},
		{"Always use the date 2026-01-01 in tests.", ""},
		{"We decided to use SQLite.", ""},
		{"Wir haben beschlossen, bis 2. März fertig zu sein.", ""},
		{"We decided on 31 February 2026 to use SQLite.", ""},
	}
	for _, tt := range tests {
		t.Run(tt.words, func(t *testing.T) {
			s := chat("> " + tt.words)
			s.Turns[0].Messages[0].Time = day.Add(11 * time.Hour) // 23:00 UTC is the 6th in +02:00
			windows, _ := closed(s).Windows(consolidate.Position{})
			entries, _ := consolidate.Check(windows[0], []consolidate.Draft{{Kind: consolidate.Decision, Confidence: .8,
				Quotes: []consolidate.Quote{{Message: "m0", End: len(tt.words), Role: consolidate.Says}}}})
			if len(entries) != 1 || entries[0].DecidedOn != tt.want {
				t.Errorf("decided on %+v, want %q", entries, tt.want)
			}
		})
	}
}
