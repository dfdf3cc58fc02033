package consolidate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"recalld/consolidate"
)

// states lists a journal as "state: words".
func states(j consolidate.Journal) []string {
	var out []string
	for _, r := range j.Records {
		out = append(out, r.State.String()+": "+r.Text)
	}
	return out
}

// review appends a review to a chain.
func review(chain []consolidate.Batch, r consolidate.Review) []consolidate.Batch {
	r.Author = "Ann"
	return append(slices.Clone(chain), consolidate.ReviewBatch(r, chain[len(chain)-1].Hash))
}

func TestSupersede(t *testing.T) {
	tests := []struct {
		name  string
		lines []string
		want  []string
	}{
		{"by name", []string{"> Let's use Postgres for the events.", "> hm", "> Actually, let's use MySQL instead of Postgres for the events."},
			[]string{"superseded: Let's use Postgres for the events.", "live: Actually, let's use MySQL instead of Postgres for the events."}},
		{"correction at once", []string{"> use Postgres", "> no, use MySQL"},
			[]string{"superseded: use Postgres", "live: no, use MySQL"}},
		{"no longer", []string{"> We decided to use the nightly build.", "> We no longer want the nightly build."},
			[]string{"superseded: We decided to use the nightly build.", "live: We no longer want the nightly build."}},
		{"German", []string{"> Wir haben uns für Postgres entschieden.", "> Wir nehmen doch lieber MySQL statt Postgres."},
			[]string{"superseded: Wir haben uns für Postgres entschieden.", "live: Wir nehmen doch lieber MySQL statt Postgres."}},
		{"a shared name is no contradiction", []string{"> We decided that Mia leads testing.", "> We decided that Mia owns the wiki."},
			[]string{"live: We decided that Mia leads testing.", "live: We decided that Mia owns the wiki."}},
		{"a name alone is not the subject", []string{"> We decided to host the wiki for the Postgres course on Friday.", "> Let's use MySQL instead of Postgres."},
			[]string{"live: We decided to host the wiki for the Postgres course on Friday.", "live: Let's use MySQL instead of Postgres."}},
		{"the same thing put away twice", []string{"> Let's use MySQL instead of Postgres.", "> Let's use SQLite instead of Postgres."},
			[]string{"live: Let's use MySQL instead of Postgres.", "live: Let's use SQLite instead of Postgres."}},
		{"chain", []string{"> use Postgres", "> no, use MySQL", "> no, use SQLite"},
			[]string{"superseded: use Postgres", "superseded: no, use MySQL", "live: no, use SQLite"}},
		{"said again after it was superseded", []string{"> use Postgres", "> no, use MySQL", "> no, use Postgres"},
			[]string{"superseded: use Postgres", "superseded: no, use MySQL", "live: no, use Postgres"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, states(consolidate.Fold(batches(t, chat(tt.lines...)), nil))); diff != "" {
				t.Errorf("journal (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnotherPersonSupersedesNothing(t *testing.T) {
	s := chat("> Let's use Postgres for events.", "> Let's use MySQL for events instead of Postgres.")
	s.Turns[1].Messages[0].Speaker = "Bob"
	j := consolidate.Fold(batches(t, s), nil)
	if len(j.Records) != 2 || j.Records[0].State != consolidate.Live {
		t.Fatalf("journal %v", states(j))
	}
	if got := j.Records[1].MaySupersede; !slices.Equal(got, []string{j.Records[0].ID}) {
		t.Errorf("Bob's choice may supersede %v, want Ann's proposed", got)
	}
}

func TestOneFactSaidTenTimesIsOneEntry(t *testing.T) {
	var lines []string
	for i := range 10 {
		lines = append(lines, "> "+[]string{"Always run the linter.", "always run the linter", "Please always run the linter!", "OK, always run the linter"}[i%4], "< ok")
	}
	j := consolidate.Fold(batches(t, chat(lines...)), nil)
	if len(j.Records) != 1 || len(j.Records[0].Quotes) != 10 || len(j.Records[0].IDs) != 10 {
		t.Errorf("journal %v; want one entry with ten quotes", states(j))
	}
	if text := j.Block(consolidate.BlockOptions{}).String(); !strings.Contains(text, "said 10 times") {
		t.Errorf("block %q does not say how often", text)
	}
}

func TestForgottenDecisionBringsNothingBack(t *testing.T) {
	s := chat("> Let's use Postgres for events.", "> two", "> three", "> four", "> Let's use MySQL instead of Postgres for events.")
	chain := batches(t, s)
	if len(chain) != 2 {
		t.Fatalf("%d batches", len(chain))
	}
	s.Turns[4].Messages[0].Forgotten = true
	now := closed(s)
	stale := func(b consolidate.Batch) bool { return now.Window(b.From, b.To).SourceHash() != b.Source }
	if stale(chain[0]) || !stale(chain[1]) {
		t.Fatalf("stale: %v, %v; want the second batch alone", stale(chain[0]), stale(chain[1]))
	}
	// The store takes the words away at once, and reads the window again later.
	chain[1].Entries[0].Text, chain[1].Entries[0].Forgotten = "", true
	again := consolidate.WindowBatch(now.Window(chain[1].From, chain[1].To), "test", nil, chain[1].Hash)
	for name, chain := range map[string][]consolidate.Batch{"before": chain, "after": append(chain[:2:2], again)} {
		if err := consolidate.VerifyChain(chain, [32]byte{}); err != nil {
			t.Errorf("%s it is read again: %v", name, err)
		}
		want := []string{"superseded: Let's use Postgres for events."}
		if diff := cmp.Diff(want, states(consolidate.Fold(chain, stale))); diff != "" {
			t.Errorf("%s it is read again (-want +got):\n%s", name, diff)
		}
	}
}

func TestLaterReadingReleasesWhatItNoLongerSupersedes(t *testing.T) {
	s := chat("> use Postgres", "> no, use MySQL")
	chain := batches(t, s)
	w := closed(s).Window(chain[0].From, chain[0].To)
	again := consolidate.WindowBatch(w, "better", chain[0].Entries[:1], chain[0].Hash)
	want := []string{"live: use Postgres"}
	if diff := cmp.Diff(want, states(consolidate.Fold(append(chain, again), nil))); diff != "" {
		t.Errorf("journal (-want +got):\n%s", diff)
	}
}

func TestStaleEntriesAreNotLive(t *testing.T) {
	chain := batches(t, chat("> Always use tabs.", "> two", "> three", "> four", "> Never force-push."))
	j := consolidate.Fold(chain, func(b consolidate.Batch) bool { return b.Hash == chain[0].Hash })
	want := []string{"stale: Always use tabs.", "live: Never force-push."}
	if diff := cmp.Diff(want, states(j)); diff != "" {
		t.Errorf("journal (-want +got):\n%s", diff)
	}
	if text := j.Block(consolidate.BlockOptions{}).String(); strings.Contains(text, "tabs") {
		t.Errorf("a stale entry is in the block: %q", text)
	}
}

func TestReviews(t *testing.T) {
	chain := batches(t, chat("> use Postgres", "> no, use MySQL", "> Always use tabs."))
	postgres, mysql, tabs := chain[0].Entries[0].ID, chain[0].Entries[1].ID, chain[0].Entries[2].ID
	reject := review(chain, consolidate.Review{Action: consolidate.Reject, Entries: []string{mysql}})
	edit := review(chain, consolidate.Review{Action: consolidate.Edit, Entries: []string{tabs}, Text: "Tabs, never spaces."})
	undo := review(reject, consolidate.Review{Action: consolidate.Undo, Undoes: reject[1].Hash})
	tests := []struct {
		name  string
		chain []consolidate.Batch
		want  []string
	}{
		{"as read", chain, []string{"superseded: use Postgres", "live: no, use MySQL", "live: Always use tabs."}},
		{"rejected, and what it superseded is back", reject, []string{"live: use Postgres", "rejected: no, use MySQL", "live: Always use tabs."}},
		{"undone", undo, []string{"superseded: use Postgres", "live: no, use MySQL", "live: Always use tabs."}},
		{"undo undone", review(undo, consolidate.Review{Action: consolidate.Undo, Undoes: undo[2].Hash}),
			[]string{"live: use Postgres", "rejected: no, use MySQL", "live: Always use tabs."}},
		{"edited", edit, []string{"superseded: use Postgres", "live: no, use MySQL", "live: Tabs, never spaces."}},
		{"an unknown entry", review(chain, consolidate.Review{Action: consolidate.Reject, Entries: []string{"none"}}),
			[]string{"superseded: use Postgres", "live: no, use MySQL", "live: Always use tabs."}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, states(consolidate.Fold(tt.chain, nil))); diff != "" {
				t.Errorf("journal (-want +got):\n%s", diff)
			}
		})
	}
	if r := consolidate.Fold(edit, nil); r.Find(tabs).Original != "Always use tabs." || r.Find(postgres) == nil {
		t.Error("the words under an edit are lost")
	}
}

func TestRejectedEntryIsNotProposedAgain(t *testing.T) {
	s := chat("> Always use tabs.", "> two", "> three", "> four", "> always use tabs")
	chain := batches(t, s)
	rejected := review(chain[:1], consolidate.Review{Action: consolidate.Reject, Entries: []string{chain[0].Entries[0].ID}})
	again := consolidate.WindowBatch(closed(s).Window(chain[0].From, chain[0].To), "better", chain[0].Entries, rejected[1].Hash)
	for name, chain := range map[string][]consolidate.Batch{"the same words": append(rejected, again), "said again": append(rejected, chain[1])} {
		j := consolidate.Fold(chain, nil)
		if len(j.Records) != 1 || j.Records[0].State != consolidate.Rejected {
			t.Errorf("%s: %v", name, states(j))
		}
	}
}

func TestCandidatesWait(t *testing.T) {
	s := chat("> use Postgres", "> no, use MySQL")
	chain := batches(t, s)
	consolidate.Admit(chain[0].Entries, consolidate.ByReview)
	want := []string{"candidate: use Postgres", "candidate: no, use MySQL"}
	if diff := cmp.Diff(want, states(consolidate.Fold(chain, nil))); diff != "" {
		t.Errorf("journal (-want +got):\n%s", diff)
	}
	approved := review(chain, consolidate.Review{Action: consolidate.Approve, Entries: []string{chain[0].Entries[1].ID}})
	want = []string{"superseded: use Postgres", "live: no, use MySQL"}
	if diff := cmp.Diff(want, states(consolidate.Fold(approved, nil))); diff != "" {
		t.Errorf("approved (-want +got):\n%s", diff)
	}
}

// TestConfirmedSupersede: what a person says was replaced leaves the block, until
// they take it back or turn the newer entry down.
func TestConfirmedSupersede(t *testing.T) {
	chain := batches(t, chat("> use Postgres for the ledger", "> Always use tabs.", "> Never commit on Fridays."))
	postgres, tabs := chain[0].Entries[0].ID, chain[0].Entries[1].ID
	confirmed := review(chain, consolidate.Review{Action: consolidate.Supersede, Entries: []string{tabs}, Superseded: []string{postgres}, Author: "Ann"})
	undone := review(confirmed, consolidate.Review{Action: consolidate.Undo, Undoes: confirmed[1].Hash})
	rejected := review(confirmed, consolidate.Review{Action: consolidate.Reject, Entries: []string{tabs}})
	forgotten := slices.Clone(confirmed)
	forgotten[0].Entries = slices.Clone(chain[0].Entries)
	forgotten[0].Entries[1].Forgotten = true
	for _, tt := range []struct {
		name  string
		chain []consolidate.Batch
		want  string
	}{
		{"confirmed", confirmed, "superseded: use Postgres for the ledger"},
		{"undone", undone, "live: use Postgres for the ledger"},
		{"the newer one rejected", rejected, "live: use Postgres for the ledger"},
		{"the newer one forgotten", forgotten, "superseded: use Postgres for the ledger"},
	} {
		if got := states(consolidate.Fold(tt.chain, nil)); got[0] != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got[0], tt.want)
		}
	}
	other := confirmed[1]
	other.Review = &consolidate.Review{Action: consolidate.Supersede, Entries: []string{tabs}, Superseded: []string{tabs}, Author: "Ann"}
	if other.Sum() == confirmed[1].Hash {
		t.Error("the hash does not cover what is superseded")
	}
}

func TestPolicyIsInTheChain(t *testing.T) {
	chain := batches(t, chat("> hi"))
	set := review(chain, consolidate.Review{Action: consolidate.SetPolicy, Policy: consolidate.ByReview})
	if j := consolidate.Fold(set, nil); j.Policy != consolidate.ByReview || j.Head != set[1].Hash || j.Ends["chat"] != (consolidate.Position{Turn: 1}) {
		t.Errorf("policy %v, head %x, ends %v", j.Policy, j.Head, j.Ends)
	}
	undone := review(set, consolidate.Review{Action: consolidate.Undo, Undoes: set[1].Hash})
	if j := consolidate.Fold(undone, nil); j.Policy != consolidate.Auto {
		t.Error("the policy outlives its undoing")
	}
}

// TestLinkNeedsNoFold checks that a standing that grew with the chain links as
// one that is made anew from the journal before every window.
func TestLinkNeedsNoFold(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var lines []string
		for range rapid.IntRange(1, 16).Draw(rt, "turns") {
			a := rapid.SampledFrom([]string{"Postgres", "MySQL", "SQLite"}).Draw(rt, "a")
			b := rapid.SampledFrom([]string{"Postgres", "MySQL", "SQLite"}).Draw(rt, "b")
			lines = append(lines, "> "+fmt.Sprintf(rapid.SampledFrom([]string{
				"use %s %.0s", "no, use %s %.0s", "Let's use %s instead of %s.", "Always back up %s %.0s", "We no longer want %s %.0s", "hm %.0s%.0s",
			}).Draw(rt, "form"), a, b))
		}
		grown := batches(t, chat(lines...))
		var fresh []consolidate.Batch
		for _, b := range grown {
			entries := slices.Clone(b.Entries)
			consolidate.Fold(fresh, nil).Standing().Link(entries)
			if !cmp.Equal(entries, b.Entries) {
				rt.Fatalf("linked anew: %s", cmp.Diff(b.Entries, entries))
			}
			fresh = append(fresh, b)
		}
	})
}
