package consolidate_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"recalld/consolidate"
)

func TestAcceptancesSayWhatWasAccepted(t *testing.T) {
	const options = "< Two ways are open:\n\n1. **In memory** - fast, lost at restart\n2. **On disk** - slower, kept\n\nWhich one would you like?"
	tests := []struct {
		name  string
		lines []string
		want  []string // live entries
	}{
		{"a number", []string{"> how do we cache?", options, "> 2"}, []string{"decision: 2 ⟵ 2. **On disk** - slower, kept"}},
		{"a number in a sentence", []string{"> how do we cache?", options, "> let's do 1"}, []string{"decision: let's do 1 ⟵ 1. **In memory** - fast, lost at restart"}},
		{"several numbers", []string{"> how do we cache?", options, "> 1 and 2"},
			[]string{"decision: 1 and 2 ⟵ 1. **In memory** - fast, lost at restart ⟵ 2. **On disk** - slower, kept"}},
		{"options listed after the question", []string{"> how do we cache?", "< Where should I put it?\n\n**Option A:** in the store\n**Option B:** beside it\n\nOption A is simpler.", "> option B"},
			[]string{"decision: option B ⟵ **Option B:** beside it"}},
		{"a number that is not listed", []string{"> how do we cache?", options, "> let's do 7"}, nil},
		{"an answer to a list", []string{"> how do we cache?", options, "> 1.\nis that one thread-safe?"}, nil},
		{"a question that says nothing", []string{"> look at the name", "< The flag is called twice. I would call it `limit` everywhere. Want me to rename it?", "> yes"},
			[]string{"decision: yes ⟵ The flag is called twice. I would call it `limit` everywhere. Want me to rename it?"}},
		{"code between proposal and question", []string{"> look at the name", "< Rename `cnt` to `count` instead of documenting it:\n\n```go\ncount := 0\n```\n\nWant me to make this change?", "> yes"},
			[]string{"decision: yes ⟵ Rename `cnt` to `count` instead of documenting it:"}},
		{"a question that says nothing, alone", []string{"> hm", "< Want me to refactor it?", "> yes"}, nil},
		{"a yes to one of two", []string{"> hm", "< Would you prefer to keep the daily run, or should I remove it?", "> yes"}, nil},
		{"a heading is no proposal", []string{"> hm", "< It works.\n\n## Recommendations", "> yes"}, nil},
		{"what others recommend", []string{"> hm", "< The loader is used as the manual recommends.", "> yes"}, nil},
		{"going on", []string{"> hm", "< Should I note this and keep going with the rest?", "> yes, capture it and continue"}, nil},
		{"a choice of the person's own words", []string{"> hm", "< Want me to do that?", "> yes, drop the sidebar"}, []string{"decision: yes, drop the sidebar"}},
		{"words that point at nothing", []string{"> I'd prefer that"}, nil},
		{"a name in marks says something", []string{"> ok, let's rename to \"steps\" instead."}, []string{"decision: ok, let's rename to \"steps\" instead."}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, kinds(read(t, chat(tt.lines...)))); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
		})
	}
}

// TestThinWordsWait keeps what says nothing for a person: it is not lost.
func TestThinWordsWait(t *testing.T) {
	for _, lines := range [][]string{
		{"> let's go with option 3"},
		{"> hm", "< Would you prefer to keep the daily run, or should I remove it?", "> yes"},
	} {
		entries := read(t, chat(lines...))
		if len(entries) != 1 || !entries[0].Candidate {
			t.Errorf("%q gave %+v; want one that waits", lines, entries)
		}
	}
}

func TestWhatIsPastedIsNotChosen(t *testing.T) {
	for _, line := range []string{
		"> The parser should use the shared helper for paths and must not duplicate it there.",
		"> Since opening a file can be slow on a network drive, reading it twice should be avoided.",
		"> shop/cart.go:12:4: make the limit a constant",
		"> // Use the old rounding here, never the new one",
		"> the screen says \"run it once.\nUse 'shop undo' to see the orders of both\"",
	} {
		if got := kinds(read(t, chat(line))); got != nil {
			t.Errorf("%q gave %v", line, got)
		}
	}
}

func TestPassingRemarksAreNotChosen(t *testing.T) {
	for _, line := range []string{
		"let's do these first:", "let's take a long look at the draft", "let's not jump to conclusions just yet",
		"let's make some more changes", "let's try and simplify", "delete that file", "ignore this warning", "this is acceptable",
		"thinking aloud, we probably don't need the index", "ideally we want it in the store", "I'd like to make one more change",
		"the network should be better now", "but he had no changes in the folder", "you can tell what I am getting at",
		"we should pick something shorter, I want something like it", "write to out.txt \"hello\" only", "remember that we have two stores",
		"Should confirm before proceeding.", "any file should do", "each call should take 2ms but it takes 2s",
		"I'm looking for a library that we could use rather than our own",
	} {
		if got := kinds(read(t, chat("> "+line))); got != nil {
			t.Errorf("%q gave %v", line, got)
		}
	}
}

func TestStandingRules(t *testing.T) {
	for _, line := range []string{
		"Don't commit without running the tests.", "Use spaces, not tabs, in this project.", "we don't use default exports here",
		"You should not touch the generated files.", "Commit messages must follow the usual form.", "I don't want any emojis in the output.",
		"Before you commit, ask me.", "ask before deleting anything", "do not edit files in vendor/", "Remember: tests go beside the code",
		"In general, prefer small functions.", "we follow the house style guide", "each PR should only contain one change",
		"don't add stickers to commit messages", "only commit when I ask you to", "use British spelling everywhere",
		"every new endpoint needs a test", "I want you to explain it before you edit", "next time, check the docs first",
		"keep your answers short", "answer in German", "don't use mocks in integration tests", "tests should not hit the network",
		"please add a test for each bug you fix", "let's always squash", "avoid using globals", "do not create summary files",
		"make it a habit to update the notes", "the convention here is one type per file", "we try to keep dependencies few",
	} {
		entries := read(t, chat("> "+line))
		if len(entries) != 1 || entries[0].Kind != consolidate.Rule || entries[0].Candidate {
			t.Errorf("%q gave %v; want a rule", line, kinds(entries))
		}
	}
}

func TestOneOffsAreNoRules(t *testing.T) {
	for _, line := range []string{
		"run the tests before committing this", "when you're done, run the tests", "don't edit that file in vendor", "the tests should pass now",
		"next time it fails show me the log", "please follow the instructions to install it", "avoid that for now", "push it before you leave",
		"I ran the tests after committing", "why do we use tabs in this project?", "use the new name everywhere", "add a test here",
	} {
		for _, e := range read(t, chat("> "+line)) {
			if e.Kind == consolidate.Rule && !e.Candidate {
				t.Errorf("%q is a rule", line)
			}
		}
	}
}

func TestTerseChoices(t *testing.T) {
	for _, line := range []string{
		"sqlite it is", "I'm going with the queue", "we'll store them as JSON", "nah, leave the retries out", "I don't think we need the cache",
		"make the timeout 30 seconds", "put the helper in internal/text", "that's out of scope", "decision: one table per shop",
		"yes to the index", "I want it as a separate package", "scrap the dashboard", "we are not going to support faxes",
		"no fax support needed", "it doesn't need to be backwards compatible", "undo the rename",
	} {
		entries := read(t, chat("> "+line))
		if len(entries) != 1 || entries[0].Kind != consolidate.Decision && entries[0].Kind != consolidate.Reversal || entries[0].Candidate {
			t.Errorf("%q gave %v; want a choice", line, kinds(entries))
		}
	}
}

func TestListsOfWhatIsFineAreNoWork(t *testing.T) {
	for _, reply := range []string{
		"The remaining uses are legitimate:\n\n- as a key of a map\n- for logging\n",
		"Remaining places handle both cases:\n\n- the loader\n- the writer\n",
		"Still open:\n\n- the warning in the log is harmless\n- the local file is fine as it is\n",
		"Now I have a clear picture of the one remaining hook.",
		"If you wanted a shorter name, you would need a second package.",
	} {
		if got := read(t, chat("> look", "< "+reply)); len(got) > 0 {
			t.Errorf("%q gave %+v", reply, got)
		}
	}
	work := read(t, chat("> look", "< Remaining:\n\n- **#1 Slow path** - needs an index\n- **#2 Docs** - two pages\n"))
	if diff := cmp.Diff([]string{"open_work: **#1 Slow path** - needs an index", "open_work: **#2 Docs** - two pages"}, kinds(work)); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}
