package retrieve_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"recalld/embed"
	"recalld/retrieve"
)

var update = flag.Bool("update", false, "rewrite the expected lines of the recall scripts")

// TestScripts plays the recall scripts: a few messages, queries, and the
// ranking expected of each. In a script
//
//	@ 2026-03-01T09:00+02:00 chat user: text   is a message (speaker assistant: a reply)
//	! 2026-03-05T10:00+02:00                   is the time of the queries after it
//	? text                                     is a person's query
//	?? text                                    is a query through the gate
//	= 3 1 (…)                                  are the first five, by message
//
// Review reads the difference that -update makes.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/scripts/*.txt")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d scripts: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(data))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != string(data) {
				t.Errorf("the script plays as\n%s\nbut is\n%s", got, data)
			}
		})
	}
}

// play gives the script with the lines it should have after its queries.
func play(t *testing.T, script string) string {
	x, err := retrieve.Open(t.TempDir(), retrieve.Options{Embedder: embed.BuiltIn()})
	if err != nil {
		t.Fatal(err)
	}
	run(t, x)
	var out strings.Builder
	var now time.Time
	seq := 0
	for line := range strings.Lines(script) {
		mark, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if mark == "=" {
			continue
		}
		out.WriteString(line)
		switch mark {
		case "@":
			seq++
			if err := x.Add(t.Context(), []retrieve.Document{message(t, seq, rest)}); err != nil {
				t.Fatal(err)
			}
		case "!":
			now = instant(t, rest)
		case "?", "??":
			if err := x.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			q := retrieve.Query{Text: rest, Now: now, Limit: 5}
			if mark == "?" {
				q.Relevance = retrieve.Always
			}
			r, err := x.Recall(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintln(&out, expected(r, q))
		}
	}
	return out.String()
}

func expected(r retrieve.Result, q retrieve.Query) string {
	line := "="
	for _, p := range r.Passages {
		line += fmt.Sprint(" ", p.Seq)
	}
	if len(r.Passages) == 0 {
		line += " none"
	}
	if r.NothingToSearch {
		line += " (nothing to search)"
	} else if q.Relevance == retrieve.Gated && r.Gate.Reason != "" {
		line += " (" + r.Gate.Reason + ")"
	}
	return line
}

func message(t *testing.T, seq int, line string) retrieve.Document {
	fields := strings.SplitN(line, " ", 3)
	if len(fields) < 3 {
		t.Fatalf("message %d: %q", seq, line)
	}
	speaker, text, ok := strings.Cut(fields[2], ": ")
	if !ok {
		t.Fatalf("message %d has no speaker: %q", seq, line)
	}
	kind := retrieve.User
	if speaker == "assistant" {
		kind = retrieve.Reply
	}
	return retrieve.Document{
		Seq: uint64(seq), Session: fields[1], TurnSeq: uint64(seq), Speaker: speaker, Kind: kind, Time: instant(t, fields[0]), Text: text,
	}
}

func instant(t *testing.T, text string) time.Time {
	at, err := time.Parse("2006-01-02T15:04Z07:00", text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}
