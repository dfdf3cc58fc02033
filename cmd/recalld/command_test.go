package main

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMainJob goes the way of a user: import, ask, look things up.
func TestMainJob(t *testing.T) {
	p := newPlace(t)
	file := p.write("shop.jsonl", shop)
	p.run(of("import", file)...).want(t, exitDone).
		says(t, "shop.jsonl: 2 sessions, 3 turns, 6 messages stored, 0 duplicates")
	p.run(of("import", file)...).want(t, exitDone).
		says(t, "shop.jsonl: 2 sessions, 3 turns, 0 messages stored, 6 duplicates\n",
			"  2 sessions and 3 turns held only messages that were stored already\n")

	t.Run("recall", func(t *testing.T) {
		r := p.run(of("recall", "which", "cache", "was", "dropped")...).want(t, exitDone)
		r.says(t, " 1. Mon 2 Mar 2026 09:1", "+01:00 · ", "score ", "    Cache\n", "    id m")
		if strings.Contains(r.out, "\x1b") {
			t.Errorf("escape sequences in a pipe: %q", r.out)
		}
		if r.err != "" {
			t.Errorf("stderr %q, want nothing", r.err)
		}
	})
	t.Run("recall json", func(t *testing.T) {
		o := p.run(of("recall", "--json", "which cache was dropped")...).want(t, exitDone).object(t)
		passages := o["passages"].([]any)
		if len(passages) == 0 {
			t.Fatal("no passages")
		}
		first := passages[0].(map[string]any)
		if id := first["messageId"]; id != "m1" && id != "m2" {
			t.Errorf("first passage is of message %v", id)
		}
		if first["sessionId"] != "s1" || first["text"] == "" || first["score"].(float64) <= 0 {
			t.Errorf("passage %v lacks session, text or score", first)
		}
		if block := o["block"].(string); !strings.Contains(block, "Redis") {
			t.Errorf("block %q lacks the passage", block)
		}
	})
	t.Run("recall in another zone", func(t *testing.T) {
		p.run(of("recall", "fortlaufende Nummer")...).want(t, exitDone).says(t, "Wed 1 Jul 2026 14:00 CEST · Ines")
	})
	t.Run("recall filtered", func(t *testing.T) {
		for _, flags := range [][]string{{"--after", "2026-06-01"}, {"--session", "s2"}, {"--limit", "1"}} {
			o := p.run(of(append([]string{"recall", "--json", "invoices numbered cache"}, flags...)...)...).want(t, exitDone).object(t)
			for _, passage := range o["passages"].([]any) {
				if s := passage.(map[string]any)["sessionId"]; s != "s2" {
					t.Errorf("%v: a passage of session %v", flags, s)
				}
			}
		}
	})
	t.Run("recall a trace", func(t *testing.T) {
		p.run(of("recall", "--kind", "trace", "connection refused")...).want(t, exitDone).says(t, "agent (trace)", "id m4")
	})
	t.Run("recall block", func(t *testing.T) {
		r := p.run(of("recall", "--block", "cache dropped")...).want(t, exitDone)
		o := p.run(of("recall", "--json", "cache dropped")...).want(t, exitDone).object(t)
		if r.out != o["block"] || r.out == "" {
			t.Errorf("--block prints %q, --json has %q", r.out, o["block"])
		}
	})
	t.Run("recall explained", func(t *testing.T) {
		p.run(of("recall", "--explain", "cache dropped")...).want(t, exitDone).
			says(t, "part", "weight", "source", "outcome", "words", "meaning", "gate ", "searched  all of 6 messages")
	})
	t.Run("recall nothing", func(t *testing.T) {
		r := p.run(of("recall", "--gated", "zeppelin over Kathmandu")...).want(t, exitDone)
		r.says(t, "Nothing found", "6 messages", "words")
		p.run(of("recall", "?!")...).want(t, exitDone).says(t, "Nothing to search for")
	})
	t.Run("search", func(t *testing.T) {
		p.run(of("search", "CONNECTION refused")...).want(t, exitDone).says(t, "id m4", "agent (trace)", "127.0.0.1:5432")
		o := p.run(of("search", "--json", `/\d+\.\d+\.\d+\.\d+/`)...).want(t, exitDone).object(t)
		if hits := o["hits"].([]any); len(hits) != 1 {
			t.Errorf("%d hits, want 1", len(hits))
		}
		p.run(of("search", "zeppelin")...).want(t, exitDone).says(t, "Nothing found in the raw words")
		o = p.run(of("search", "--json", "--limit", "1", "re")...).want(t, exitDone).object(t)
		again := p.run(of("search", "--json", "--limit", "1", "--cursor", o["cursor"].(string), "re")...).want(t, exitDone).object(t)
		if a, b := o["hits"].([]any)[0].(map[string]any)["messageId"], again["hits"].([]any)[0].(map[string]any)["messageId"]; a == b {
			t.Errorf("the cursor gives message %v again", a)
		}
	})
	t.Run("search for what was meant as an expression", func(t *testing.T) {
		for query, hint := range map[string]bool{"/cache/g": true, "/cache/ii": true, "/cache/i": false, "/usr/bin": false, "cache/g": false} {
			r := p.run(of("search", query)...).want(t, exitDone)
			if got := strings.Contains(r.err, "as a phrase"); got != hint || !hint && r.err != "" {
				t.Errorf("search %q: stderr %q, want a hint: %v", query, r.err, hint)
			}
		}
	})
	t.Run("no limit is the default", func(t *testing.T) {
		for _, args := range [][]string{{"recall", "cache dropped"}, {"history"}, {"search", "cache"}} {
			usual, zero := p.run(of(args...)...).want(t, exitDone), p.run(of(append(args, "--limit", "0")...)...).want(t, exitDone)
			if usual.out != zero.out {
				t.Errorf("%q: with --limit 0\n%s\nwithout\n%s", args, zero.out, usual.out)
			}
		}
	})
	t.Run("history", func(t *testing.T) {
		p.run(of("history", "--limit", "2")...).want(t, exitDone).
			says(t, "Cache", "session s1", "Turn 2", "Invoices", "Turn 3", "finished", "Older turns: --before 2")
		o := p.run(of("history", "--json", "--session", "s1", "--kind", "user")...).want(t, exitDone).object(t)
		turns := o["turns"].([]any)
		if len(turns) != 2 || len(turns[1].(map[string]any)["messages"].([]any)) != 1 {
			t.Errorf("turns %v, want two of one message", turns)
		}
	})
	t.Run("show", func(t *testing.T) {
		p.run(of("show", "m3")...).want(t, exitDone).says(t, "Ines · Mon 2 Mar 2026 10:00 +01:00", "session s1 · turn t2", "never deploy on a Friday")
		if r := p.run(of("show", "--raw", "m3")...).want(t, exitDone); r.out != "Rule: never deploy on a Friday." {
			t.Errorf("show --raw prints %q", r.out)
		}
		p.run(of("show", "m99")...).want(t, exitFailed).says(t, "recalld: show: ", "recalld memories")
	})
	t.Run("memories", func(t *testing.T) {
		p.run("memories").want(t, exitDone).says(t, "codex", "shop", "AGENT", "2 Mar 2026")
		o := p.run("memories", "--json").want(t, exitDone).object(t)
		id := o["memories"].([]any)[0].(map[string]any)["id"].(string)
		p.run("recall", "--memory", id, "cache").want(t, exitDone).says(t, "Redis")
	})
	t.Run("status", func(t *testing.T) {
		o := p.run("status", "--json").want(t, exitDone).object(t)
		if o["root"] != p.root || o["embeddingModel"] != "minilm-static-256/plain/v1" {
			t.Errorf("status %v", o)
		}
		m := o["memories"].([]any)[0].(map[string]any)
		if m["turns"] != "3" || m["messages"] != "6" || m["reach"].(map[string]any)["indexed"] != "6" {
			t.Errorf("memory %v, want 3 turns, 6 messages and all of them indexed", m)
		}
		p.run("status").want(t, exitDone).says(t, p.root, "codex", "all")
	})
}

// TestDefaultMemory has the memory of the repository around the current folder
// be found, and ambiguity be an error that lists the choices.
func TestDefaultMemory(t *testing.T) {
	p := newPlace(t)
	file := filepath.Join(p.folder, p.write("shop.jsonl", shop))
	project, err := filepath.EvalSymlinks(p.folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{".git", "a/b"} {
		if err := os.MkdirAll(filepath.Join(p.folder, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	p.folder = filepath.Join(p.folder, "a", "b")
	p.run("import", file).want(t, exitFailed).says(t, "no memory of the project "+project, "--agent")
	p.run("import", "--agent", "codex", file).want(t, exitDone)
	p.run("recall", "cache dropped").want(t, exitDone).says(t, "Redis")
	o := p.run("memories", "--json").want(t, exitDone).object(t)
	if got := o["memories"].([]any)[0].(map[string]any)["project"]; got != project {
		t.Errorf("project %v, want the repository %v", got, project)
	}
	other := strings.NewReplacer(`"s1"`, `"x1"`, `"s2"`, `"x2"`).Replace(shop)
	p.runWith(other, "import", "--agent", "claude-code", "-").want(t, exitDone)
	p.run("recall", "cache dropped").want(t, exitFailed).says(t, "claude-code, codex", "--agent")
	p.run("recall", "--agent", "codex", "cache dropped").want(t, exitDone).says(t, "Redis")
	p.run("recall", "--agent", "nobody", "cache dropped").want(t, exitFailed).says(t, "is not known")
	p.run("recall", "--project", "", "cache dropped").want(t, exitUsage)
}

// TestImportFaults is B110 at the command line: what cannot be read or is
// refused is reported with its place, and the rest is stored.
func TestImportFaults(t *testing.T) {
	p := newPlace(t)
	lines := strings.SplitAfter(shop, "\n")
	torn := lines[0] + lines[1][:70] + "\n" + lines[2]
	p.run(of("import", p.write("torn.jsonl", torn))...).want(t, exitFailed).
		says(t, "torn.jsonl: line 2: not a JSON object", "4 messages stored", "1 skipped", "1 line or turn was skipped")
	o := p.run(of("import", "--json", p.write("shop.jsonl", shop), "torn.jsonl")...).want(t, exitFailed).object(t)
	if o["stored"] != 2.0 || o["duplicates"] != 8.0 || o["skipped"] != 1.0 || len(o["files"].([]any)) != 2 {
		t.Errorf("import --json gives %v", o)
	}
	changed := strings.Replace(shop, "stale prices", "fresh prices", 1)
	p.run(of("import", p.write("changed.jsonl", changed))...).want(t, exitFailed).
		says(t, "turn t1 of session s1", "0 messages stored, 4 duplicates, 1 skipped")
	p.run(of("show", "--raw", "m1")...).want(t, exitDone).says(t, "stale prices")
	// One session has a turn that is new, the other brings nothing.
	more := strings.NewReplacer(`"t2"`, `"t4"`, `"m3"`, `"m7"`, `"m4"`, `"m8"`).Replace(shop)
	o = p.run(of("import", "--json", p.write("more.jsonl", more))...).want(t, exitDone).object(t)
	if o["stored"] != 2.0 || o["copiedTurns"] != 2.0 || o["copiedSessions"] != 1.0 {
		t.Errorf("import of a history with one new turn gives %v", o)
	}

	huge := fmt.Sprintf(`{"session_id":"s3","turn_id":"t9","messages":[{"id":"m9","kind":"user","speaker":"a","text":%q}]}`, strings.Repeat("x", 16<<20+1))
	p.run(of("import", p.write("huge.jsonl", huge+"\n"+lines[0]))...).want(t, exitFailed).
		says(t, "turn t9 of session s3", "16777216", "2 duplicates, 1 skipped")

	p.run(of("import", "missing.jsonl")...).want(t, exitFailed).says(t, "missing.jsonl")
	p.run(of("import", ".")...).want(t, exitFailed).says(t, "folder")
	p.run(of("import", p.write("other.jsonl", `{"type":"user"}`))...).want(t, exitFailed).says(t, "unknown format", "turns, entire, specstory")
	p.run(of("import", "--format", "csv", "shop.jsonl")...).want(t, exitUsage).says(t, "csv")
}

// TestAnyBytes has bytes that are no text arrive and leave unchanged, and a
// command to the terminal inside a text not reach it.
func TestAnyBytes(t *testing.T) {
	p := newPlace(t)
	raw := "zeppelin \x00\xff\xfe \x1b[31mred\x1b[0m \u202etxt"
	line := fmt.Sprintf(`{"session_id":"s\u001b[1m","session_title":"a\u001b[2mb","turn_id":"t","messages":[{"id":"m","kind":"user","speaker":"x\u001b[3m","text_base64":%q}]}`,
		base64.StdEncoding.EncodeToString([]byte(raw)))
	p.runWith(line, of("import", "-")...).want(t, exitDone)
	if r := p.run(of("show", "--raw", "m")...).want(t, exitDone); r.out != raw {
		t.Errorf("show --raw prints %q, want %q", r.out, raw)
	}
	for _, args := range [][]string{{"show", "m"}, {"recall", "zeppelin"}, {"search", "zeppelin"}, {"history"}} {
		r := p.run(of(args...)...).want(t, exitDone).says(t, "zeppelin")
		if strings.ContainsAny(r.out, "\x00\x1b\u202e") {
			t.Errorf("recalld %q lets control characters through: %q", args, r.out)
		}
	}
}

// TestVerify has verify work with a server, without one and without a store.
func TestVerify(t *testing.T) {
	p := newPlace(t)
	p.run("verify").want(t, exitNoStore).says(t, p.root)
	if _, err := os.Stat(p.root); err == nil {
		t.Error("verify made a store")
	}
	p.run(of("import", p.write("shop.jsonl", shop))...).want(t, exitDone)
	for _, running := range []bool{true, false} {
		if !running {
			p.run("stop").want(t, exitDone)
		}
		p.run("verify").want(t, exitDone).says(t, "whole", "1 memory")
		p.run(of("verify", "--deep")...).want(t, exitDone).says(t, "whole")
		r := p.run("verify", "--deep", "--json").want(t, exitDone)
		if last := r.out[strings.LastIndex(strings.TrimSpace(r.out), "\n")+1:]; !strings.Contains(last, `"done":true`) || !strings.Contains(last, `"ok":true`) {
			t.Errorf("the last line of verify --json is %q", last)
		}
	}
	p.run("status", "--no-spawn").want(t, exitFailed).says(t, "no server runs")

	ledgers, err := filepath.Glob(filepath.Join(p.root, "memories", "*", "ledger.db"))
	if err != nil || len(ledgers) != 1 {
		t.Fatalf("ledgers %v, %v", ledgers, err)
	}
	whole, err := os.ReadFile(ledgers[0])
	if err != nil {
		t.Fatal(err)
	}
	damaged := strings.ReplaceAll(string(whole), "never deploy on a Friday", "always deploy on Friday!")
	if damaged == string(whole) {
		t.Fatal("the text is not in the file as it is; damage something else")
	}
	if err := os.WriteFile(ledgers[0], []byte(damaged), 0o600); err != nil {
		t.Fatal(err)
	}
	p.run("verify", "--deep").want(t, exitFailed).says(t, "ledger.db", "1 problem")
	if err := os.WriteFile(ledgers[0], whole, 0o600); err != nil {
		t.Fatal(err)
	}
}
