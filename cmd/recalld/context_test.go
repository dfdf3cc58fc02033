package main

import (
	"strings"
	"testing"
)

// TestContext goes the way of a person who looks at what an agent gets.
func TestContext(t *testing.T) {
	p := withCouncil(t)
	show := func(args ...string) result {
		t.Helper()
		return p.run(of(append([]string{"context", "--session", "chat"}, args...)...)...).want(t, exitDone)
	}
	const rule = "run the tests before you commit"

	t.Run("looking changes nothing", func(t *testing.T) {
		first := show("--kept", "thanks")
		if !strings.HasPrefix(first.out, "<recalled-evidence boundary=") || !strings.Contains(first.out, rule) || first.err != "" {
			t.Errorf("the block is %q, stderr %q", first.out, first.err)
		}
		if again := show("--kept", "thanks"); again.out != first.out {
			t.Errorf("then %q", again.out)
		}
		o := show("--kept", "--json", "thanks").object(t)
		if o["block"] != first.out || len(o["entryIds"].([]any)) != 1 {
			t.Errorf("--json has %v", o)
		}
		p.run("context", "--session", "chat", "--reset").want(t, exitFailed).says(t, "session_id", "not known")
	})
	t.Run("recording does", func(t *testing.T) {
		show("--kept", "--record", "thanks").says(t, rule)
		r := show("--kept", "thanks")
		if r.out != "" || !strings.Contains(r.err, "chatter") || !strings.Contains(r.err, "no rule or preference is new to the session") {
			t.Errorf("stdout %q, stderr %q", r.out, r.err)
		}
		show("thanks").says(t, rule) // a harness that drops blocks gets it again
	})
	t.Run("reset", func(t *testing.T) {
		p.run("context", "--session", "chat", "--reset").want(t, exitDone).says(t, "Forgotten: 1 entry or passage")
		p.run("context", "--session", "chat", "--reset").want(t, exitDone).says(t, "was given nothing")
		show("--kept", "--record", "thanks").says(t, rule)
		show("--kept", "--reset", "thanks").says(t, rule)
		show("--kept", "--record", "thanks").says(t, rule)
		o := p.run("context", "--session", "chat", "--reset", "--json").want(t, exitDone).object(t)
		if o["given"] != float64(1) {
			t.Errorf("--reset --json gives %v", o)
		}
	})
	t.Run("why there is none", func(t *testing.T) {
		p.run(of("journal", "reject", p.entry("rule"))...).want(t, exitDone)
		r := show("ok")
		if r.out != "" || !strings.Contains(r.err, "no rule or preference is live") {
			t.Errorf("stdout %q, stderr %q", r.out, r.err)
		}
		if r := show("...!?"); !strings.Contains(r.err, "holds no words") {
			t.Errorf("stderr %q", r.err)
		}
		if r := show("zebras galloping through quicksand"); !strings.Contains(r.err, "measure") || !strings.Contains(r.err, "threshold") {
			t.Errorf("stderr %q", r.err)
		}
	})
	t.Run("by memory", func(t *testing.T) {
		list := p.run("memories", "--json").want(t, exitDone).object(t)
		id := list["memories"].([]any)[0].(map[string]any)["id"].(string)
		p.run("context", "--session", "new", "--memory", id, "thanks").want(t, exitDone)
		p.run("context", "--session", "new", "--memory", "nobody", "thanks").want(t, exitFailed).says(t, "nobody", "recalld memories")
		p.run("context", "--session", "c1", "thanks").want(t, exitDone) // bound, so nothing else is needed
		p.run("context", "--session", "c1", "--agent", "codex", "--project", "elsewhere", "thanks").want(t, exitFailed).says(t, "another memory")
	})
}

func TestContextUsage(t *testing.T) {
	p := newPlace(t)
	for _, tt := range []struct{ args, says string }{
		{"context", "needs a message"},
		{"context hello", "--session"},
		{"context --session s --timeout 1ms hello", "--timeout"},
		{"context --session s --expansion maybe hello", "--expansion"},
		{"context --session s --reset --kept", "--kept"},
		{"context --session s --budget -1 hello", "--budget"},
	} {
		r := p.run(strings.Fields(tt.args)...).want(t, exitUsage).says(t, tt.says)
		if r.out != "" || strings.Count(r.err, "\n") != 1 {
			t.Errorf("%s: stdout %q, stderr %q; want one sentence on stderr", tt.args, r.out, r.err)
		}
	}
}
