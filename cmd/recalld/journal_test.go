package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	recalldv1 "recalld/proto/recalld/v1"
)

// council is a talk that holds a decision, a rule and small talk.
const council = `{"session_id":"c1","turn_id":"u1","status":"finished","messages":[{"id":"c1a","kind":"user","speaker":"Ines","time":"2026-03-02T09:14:05+01:00","text":"Good morning! I looked at both for a week. We decided to store the events in SQLite. Lunch was fine, too."},{"id":"c1b","kind":"reply","speaker":"agent","time":"2026-03-02T09:15:00+01:00","text":"Noted."}]}
{"session_id":"c1","turn_id":"u2","status":"finished","messages":[{"id":"c2a","kind":"user","speaker":"Ines","time":"2026-03-02T10:00:00+01:00","text":"From now on, always run the tests before you commit."},{"id":"c2b","kind":"reply","speaker":"agent","time":"2026-03-02T10:00:10+01:00","text":"I will."}]}
{"session_id":"c1","turn_id":"u3","status":"finished","messages":[{"id":"c3a","kind":"user","speaker":"Ines","time":"2026-03-02T11:00:00+01:00","text":"How is the weather over there?"},{"id":"c3b","kind":"reply","speaker":"agent","time":"2026-03-02T11:00:10+01:00","text":"I cannot see it from here."}]}
`

// withCouncil gives a place whose journal has read the talk.
func withCouncil(t *testing.T) *place {
	t.Helper()
	p := newPlace(t)
	p.run(of("import", p.write("council.jsonl", council))...).want(t, exitDone)
	p.run(of("consolidate", "--close-tail")...).want(t, exitDone).says(t, "1 window read: 2 entries.\n")
	return p
}

// entries gives the entries that journal list prints with some flags.
func (p *place) entries(flags ...string) []map[string]any {
	p.t.Helper()
	o := p.run(of(append([]string{"journal", "list", "--json"}, flags...)...)...).want(p.t, exitDone).object(p.t)
	var out []map[string]any
	for _, e := range o["entries"].([]any) {
		out = append(out, e.(map[string]any))
	}
	return out
}

// entry gives the id of the one entry of a kind.
func (p *place) entry(kind string) string {
	p.t.Helper()
	found := p.entries("--kind", kind)
	if len(found) != 1 {
		p.t.Fatalf("%d entries of kind %s, want 1: %v", len(found), kind, found)
	}
	return found[0]["id"].(string)
}

// TestJournal goes the way of a person who reads and reviews the journal.
func TestJournal(t *testing.T) {
	p := withCouncil(t)
	t.Run("nothing twice", func(t *testing.T) {
		p.run(of("consolidate", "--close-tail")...).want(t, exitDone).says(t, "Nothing to read")
	})
	decision, rule := p.entry("decision"), p.entry("rule")

	t.Run("list", func(t *testing.T) {
		r := p.run(of("journal", "list")...).want(t, exitDone).says(t,
			"decision · Ines · Mon 2 Mar 2026 09:14 +01:00", "store the events in SQLite", "id "+decision,
			"rule · Ines · Mon 2 Mar 2026 10:00 +01:00", "run the tests before you commit", "id "+rule)
		if strings.Contains(r.out, "weather") || strings.Contains(r.out, "Lunch") {
			t.Errorf("small talk is in the journal:\n%s", r.out)
		}
		if strings.Index(r.out, rule) > strings.Index(r.out, decision) {
			t.Errorf("what was said last is not first:\n%s", r.out)
		}
		first := p.run(of("journal", "list", "--json", "--limit", "1")...).want(t, exitDone).object(t)
		second := p.entries("--limit", "1", "--cursor", first["cursor"].(string))
		if len(second) != 1 || second[0]["id"] != decision {
			t.Errorf("the second page holds %v, want %s", second, decision)
		}
		p.run(of("journal", "list", "--limit", "1")...).want(t, exitDone).says(t, "Older entries: --cursor "+first["cursor"].(string))
		p.run(of("journal", "list", "--kind", "open-work,reversal")...).want(t, exitDone).says(t, "There are no such entries")
	})
	t.Run("show", func(t *testing.T) {
		for _, id := range []string{decision, decision[:8], strings.ToUpper(decision[:8])} {
			r := p.run(of("journal", "show", id)...).want(t, exitDone).says(t,
				"says · Ines · Mon 2 Mar 2026 09:14 +01:00", "    session c1\n    message c1a\n", "confidence 0.")
			words := strings.Join(strings.Fields(r.out), " ")
			if !strings.Contains(words, "I looked at both for a week. ⟦") || !strings.Contains(words, "SQLite") || !strings.Contains(words, "Lunch was fine, too.") {
				t.Errorf("the quote is not marked within the words around it:\n%s", r.out)
			}
		}
		o := p.run(of("journal", "show", "--json", decision)...).want(t, exitDone).object(t)
		quote := o["entry"].(map[string]any)["quotes"].([]any)[0].(map[string]any)
		if quote["messageId"] != "c1a" || quote["speaker"] != "Ines" || !strings.Contains(quote["text"].(string), "SQLite") {
			t.Errorf("the quote is %v", quote)
		}
	})
	t.Run("block", func(t *testing.T) {
		r := p.run(of("journal", "block", "--message", "which database")...).want(t, exitDone).says(t, "SQLite", "run the tests")
		o := p.run(of("journal", "block", "--message", "which database", "--json")...).want(t, exitDone).object(t)
		if r.out != o["block"] {
			t.Errorf("block prints %q, --json has %q", r.out, o["block"])
		}
	})
	t.Run("reject and undo", func(t *testing.T) {
		before := p.run(of("journal", "head")...).want(t, exitDone).out
		p.run(of("journal", "reject", decision[:6])...).want(t, exitDone).says(t, "Rejected by ", "recalld journal undo ", "rejected")
		if got := p.entries("--state", "rejected"); len(got) != 1 || got[0]["id"] != decision {
			t.Errorf("rejected are %v, want %s", got, decision)
		}
		if r := p.run(of("journal", "block")...).want(t, exitDone); strings.Contains(r.out, "SQLite") {
			t.Errorf("the block holds what was rejected:\n%s", r.out)
		}
		hash := strings.TrimSpace(p.run(of("journal", "head")...).want(t, exitDone).out)
		if hash+"\n" == before || len(hash) != hashDigits {
			t.Fatalf("the head is %q after the review and was %q", hash, before)
		}
		p.run(of("journal", "undo", hash[:shortDigits], "--author", "Tom")...).want(t, exitDone).says(t, "Undone by Tom", "live")
		if got := p.entries("--state", "rejected"); len(got) != 0 {
			t.Errorf("rejected are %v after the undo", got)
		}
		p.run(of("verify", "--head", strings.TrimSpace(before))...).want(t, exitDone).says(t, "holds the head: 3 batches", "is whole")
	})
	t.Run("edit, pin, approve", func(t *testing.T) {
		p.run(of("journal", "edit", rule, "--text", "Run the tests first.", "--author", "Tom")...).want(t, exitDone).says(t, "Edited by Tom", "Run the tests first.")
		p.run(of("journal", "pin", rule, decision)...).want(t, exitDone).says(t, "Pinned by ", "live, pinned")
		p.run(of("journal", "unpin", rule, decision)...).want(t, exitDone).says(t, "Unpinned by ")
		o := p.run(of("journal", "approve", rule, "--json", "--author", "Tom")...).want(t, exitDone).object(t)
		if batch := o["batch"].(map[string]any); batch["author"] != "Tom" || batch["action"] != "REVIEW_ACTION_APPROVE" {
			t.Errorf("the batch is %v", batch)
		}
	})
	t.Run("policy", func(t *testing.T) {
		p.run(of("journal", "policy", "review")...).want(t, exitDone).says(t, "wait for a review")
		p.run(of("journal", "policy")...).want(t, exitDone).says(t, "wait for a review")
		p.run(of("journal", "policy", "auto")...).want(t, exitDone).says(t, "hold by themselves")
		if o := p.run(of("journal", "policy", "--json")...).want(t, exitDone).object(t); o["policy"] != "POLICY_AUTO" {
			t.Errorf("the policy is %v", o)
		}
	})
	t.Run("log", func(t *testing.T) {
		p.run(of("journal", "log")...).want(t, exitDone).says(t, "2 entries from turns 1 to 3 of c1", "reject 1 entry by ", "undo by Tom", "edit 1 entry by Tom", "pin 2 entries by ", "set policy to review by ", "set policy to auto by ")
		o := p.run(of("journal", "log", "--json", "--limit", "1")...).want(t, exitDone).object(t)
		head := p.run(of("journal", "head", "--json")...).want(t, exitDone).object(t)
		if newest := o["batches"].([]any)[0].(map[string]any)["hash"]; newest != head["hash"] {
			t.Errorf("the newest batch is %v, the head %v", newest, head["hash"])
		}
	})
}

// TestJournalRefusals has what names nothing be refused in one sentence that
// says where names are listed.
func TestJournalRefusals(t *testing.T) {
	p := withCouncil(t)
	rule := p.entry("rule")
	none := strings.Repeat("0", entryDigits)
	for _, tt := range []struct {
		args   []string
		status int
		says   []string
	}{
		{of("journal", "frob"), exitUsage, []string{`unknown command "frob" of recalld journal`}},
		{of("journal", "rejekt"), exitUsage, []string{"did you mean reject?"}},
		{of("journal", "list", "--kind", "wish"), exitUsage, []string{"--kind", "open_work"}},
		{of("journal", "list", "--state", "dead"), exitUsage, []string{"--state", "superseded"}},
		{of("journal", "list", "--limit", "201"), exitUsage, []string{"limit", "200", "201"}},
		{of("journal", "block", "--budget", "100"), exitUsage, []string{"budget_bytes", "512"}},
		{of("journal", "show"), exitUsage, []string{"one entry id"}},
		{of("journal", "show", none), exitFailed, []string{"recalld journal list"}},
		{of("journal", "show", none[:8]), exitFailed, []string{"no entry begins with", "recalld journal list"}},
		{of("journal", "reject"), exitUsage, []string{"an entry id"}},
		{of("journal", "reject", rule, none), exitFailed, []string{"entry_ids[1]", "recalld journal list"}},
		{of("journal", "edit", rule), exitUsage, []string{"--text"}},
		{of("journal", "undo", strings.Repeat("0", hashDigits)), exitFailed, []string{"recalld journal log"}},
		{of("journal", "undo", "0000"), exitFailed, []string{"no batch begins with", "recalld journal log"}},
		{of("journal", "undo", "xyz"), exitUsage, []string{"batch_hash"}},
		{of("journal", "policy", "maybe"), exitUsage, []string{"auto and review"}},
		{of("journal", "policy", "auto", "review"), exitUsage, []string{"takes auto or review"}},
		{of("consolidate", "x"), exitUsage, []string{"takes no argument"}},
		{of("consolidate", "--extractor", "x"), exitUsage, []string{"extractor", "builtin", "model"}},
		{of("consolidate", "--extractor", "model"), exitFailed, []string{"extractor", "no model"}},
		{of("verify", "--head", strings.Repeat("0", hashDigits)), exitFailed, []string{"not in the chain", "1 problem in the journal"}},
		{of("verify", "--head", "xyz"), exitUsage, []string{"head"}},
		{of("verify", "--head="), exitUsage, []string{"--head"}},
	} {
		r := p.run(tt.args...).want(t, tt.status).says(t, tt.says...)
		if strings.Count(r.err, "\n") != 1 {
			t.Errorf("recalld %q: stderr %q, want one sentence", tt.args, r.err)
		}
	}
	if got := p.entries("--state", "rejected"); len(got) != 0 {
		t.Errorf("a refused review left %v", got)
	}
}

// TestConsolidateWithoutItsModel names the model that does not answer, and what
// does without one.
func TestConsolidateWithoutItsModel(t *testing.T) {
	p := withShop(t)
	p.run("stop").want(t, exitDone)
	p.env = []string{"OLLAMA_HOST=127.0.0.1:1"} // where nobody listens
	if err := os.WriteFile(filepath.Join(p.root, "serve.flags"), []byte("--extract=ollama:none\n--consolidate=off\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.run(of("consolidate", "--close-tail")...).want(t, exitFailed).says(t, "ollama:none", `"builtin" needs no model`)
	p.run(of("consolidate", "--close-tail", "--extractor", "builtin")...).want(t, exitDone).says(t, "2 windows read")
}

// TestJournalEmpty has a memory without a journal be nothing to fail for.
func TestJournalEmpty(t *testing.T) {
	p := withShop(t)
	p.run(of("journal", "list")...).want(t, exitDone).says(t, "There are no such entries")
	p.run(of("journal", "log")...).want(t, exitDone).says(t, "There are no batches")
	for _, what := range []string{"head", "block"} {
		if r := p.run(of("journal", what)...).want(t, exitDone); r.out+r.err != "" {
			t.Errorf("journal %s prints %q %q, want nothing", what, r.out, r.err)
		}
	}
	p.run(of("consolidate")...).want(t, exitDone).says(t, "Nothing to read")
}

func TestJournalHelp(t *testing.T) {
	root := (&app{out: io.Discard, err: io.Discard}).rootCommand()
	var commands []*cobra.Command
	for _, name := range []string{"journal", "consolidate", "verify"} {
		c, _, err := root.Find([]string{name})
		if err != nil {
			t.Fatal(err)
		}
		commands = append(append(commands, c), c.Commands()...)
	}
	for _, c := range commands {
		if c.Short == "" || !strings.Contains(c.Example, c.CommandPath()) {
			t.Errorf("%s has no summary or no example", c.CommandPath())
		}
		var out, errs strings.Builder
		args := append(strings.Fields(c.CommandPath())[1:], "--help")
		if status := run(args, strings.NewReader(""), &out, &errs); status != exitDone || errs.Len() > 0 {
			t.Errorf("recalld %q: status %d, %s", args, status, errs.String())
		}
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > defaultWidth {
				t.Errorf("%s: a line of the help has %d columns: %s", c.CommandPath(), n, line)
			}
		}
	}
}

func TestJournalCompletion(t *testing.T) {
	p := withCouncil(t)
	decision, rule := p.entry("decision"), p.entry("rule")
	p.run(of("journal", "pin", rule)...).want(t, exitDone)
	for _, tt := range []struct {
		args []string
		want []string
	}{
		{[]string{"list", "--kind", ""}, entryKinds},
		{[]string{"list", "--state", "live,"}, []string{"live,live", "live,candidate", "live,superseded", "live,rejected", "live,stale"}},
		{[]string{"policy", ""}, []string{"auto", "review"}},
		{[]string{"policy", "auto", ""}, nil},
		{[]string{"show", ""}, []string{rule, decision}},
		{[]string{"show", rule, ""}, nil},
		{[]string{"reject", rule, ""}, []string{decision}},
		{[]string{"undo", ""}, []string{strings.TrimSpace(p.run(of("journal", "head")...).out)[:shortDigits]}},
	} {
		// The word to complete is the last one, so the memory is named before.
		args := append(of("__complete", "journal"), tt.args...)
		r := p.run(args...).want(t, exitDone)
		var got []string
		for line := range strings.Lines(r.out) {
			if value, _, _ := strings.Cut(strings.TrimSpace(line), "\t"); !strings.HasPrefix(value, ":") {
				got = append(got, value)
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%q: offers %q, want %q", tt.args, got, tt.want)
		}
	}
}

// TestJournalUnwritable has the commands fail when their output goes nowhere.
func TestJournalUnwritable(t *testing.T) {
	p := withCouncil(t)
	rule := p.entry("rule")
	for _, args := range [][]string{
		of("journal", "list"), of("journal", "list", "--json"), of("journal", "show", rule), of("journal", "log"),
		of("journal", "head"), of("journal", "block"), of("journal", "policy", "auto"), of("journal", "pin", rule), of("consolidate"),
		of("verify", "--head", strings.TrimSpace(p.run(of("journal", "head")...).out)),
	} {
		for _, room := range []int{0, 10} {
			var errs strings.Builder
			status := run(append(slices.Clone(args), "--no-spawn", "--root", p.root), strings.NewReader(""), &fullDisk{room}, &errs)
			if got := errs.String(); status != exitFailed || !strings.Contains(got, "print: no space left") || strings.Count(got, "\n") != 1 {
				t.Errorf("recalld %q with room for %d bytes: status %d, %q", args, room, status, got)
			}
		}
	}
}

func TestJournalWordsAround(t *testing.T) {
	long := strings.Repeat("größe ", 200)
	text := long + "WE DECIDED" + " " + long
	quote := func(start int, said string) *recalldv1.Quote {
		return &recalldv1.Quote{Range: &recalldv1.ByteRange{Start: uint64(start), End: uint64(start + len(said))}, Text: said}
	}
	before, quoted, after := around(quote(len(long), "WE DECIDED"), &recalldv1.Message{Text: text, Exact: true})
	if quoted != "WE DECIDED" || !strings.HasPrefix(before, "… größe ") || !strings.HasSuffix(after, "größe …") ||
		len(before) > wordsAround+10 || len(before) < wordsAround/2 || len(after) > wordsAround+10 || len(after) < wordsAround/2 {
		t.Errorf("around a quote in a long message: %q, %q, %q", before, quoted, after)
	}
	solid := strings.Repeat("ö", 1000)
	before, _, after = around(quote(len(solid), "x"), &recalldv1.Message{Text: solid + "x" + solid, Exact: true})
	if !utf8.ValidString(before+after) || len(before) > wordsAround+10 || len(after) > wordsAround+10 {
		t.Errorf("around a quote in one long word: %q, %q", before, after)
	}
	for name, m := range map[string]*recalldv1.Message{
		"forgotten":  nil,
		"not exact":  {Text: "before said after"},
		"too short":  {Text: "be", Exact: true},
		"other text": {Text: "before SAID after", Exact: true},
	} {
		before, quoted, after := around(quote(7, "said\x1b"), m)
		if before != "" || quoted != "said\uFFFD" || after != "" {
			t.Errorf("%s: %q, %q, %q; want the quote alone", name, before, quoted, after)
		}
	}
}

func TestJournalTimeLeft(t *testing.T) {
	for _, tt := range []struct {
		elapsed     time.Duration
		done, total int64
		want        string
	}{
		{time.Second, 0, 10, ""},
		{time.Second, 10, 10, ""},
		{time.Second, 1, 0, ""},
		{time.Millisecond, 5, 10, "about 1 s left"},
		{10 * time.Second, 10, 50, "about 40 s left"},
		{time.Minute, 10, 50, "about 4 min left"},
		{time.Hour, 10, 50, "about 4 h left"},
	} {
		t.Run(fmt.Sprint(tt.elapsed, tt.done, tt.total), func(t *testing.T) {
			if got := timeLeft(tt.elapsed, tt.done, tt.total); got != tt.want {
				t.Errorf("timeLeft(%v, %d, %d) = %q, want %q", tt.elapsed, tt.done, tt.total, got, tt.want)
			}
		})
	}
}

// TestJournalProgress has a long run show how far it is and how long the rest
// takes, and a short one nothing.
func TestJournalProgress(t *testing.T) {
	for _, tt := range []struct {
		step time.Duration
		want []string
	}{
		{10 * time.Millisecond, nil},
		{2 * time.Second, []string{"consolidating", "50%", "about 12 s left"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var shown strings.Builder
			bar := estimate{progress: &progress{w: &shown, what: "consolidating", began: time.Now()}}
			for done := range int64(6) {
				bar.tell(done, 10)
				time.Sleep(tt.step)
			}
			bar.end()
			if tt.want == nil && shown.Len() > 0 {
				t.Errorf("a run of %v shows %q", 6*tt.step, shown.String())
			}
			for _, w := range tt.want {
				if !strings.Contains(shown.String(), w) {
					t.Errorf("a run of %v does not show %q: %q", 6*tt.step, w, shown.String())
				}
			}
		})
	}
}
