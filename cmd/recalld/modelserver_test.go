package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"recalld/ledger"
	"recalld/llm/llmtest"
)

// flags writes the file of flags that every server of the store uses.
func (p *place) flags(lines ...string) {
	p.t.Helper()
	if err := os.MkdirAll(p.root, 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.root, flagsName), []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// key writes a key to a file and returns its path.
func (p *place) key(key string, mode os.FileMode) string {
	p.t.Helper()
	path := filepath.Join(p.folder, "key")
	if err := os.WriteFile(path, []byte(key+"\n"), 0o600); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		p.t.Fatal(err)
	}
	return path
}

// everything is all that the store's files, the process list and the metrics
// show, besides what was printed.
func (p *place) everything(metrics string, printed ...result) string {
	p.t.Helper()
	var b strings.Builder
	for _, r := range printed {
		b.WriteString(r.out + r.err)
	}
	err := filepath.WalkDir(p.root, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		b.Write(text)
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	for _, name := range []string{"cmdline", "environ"} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p.server(), name))
		if err != nil && runtime.GOOS == "linux" {
			p.t.Fatal(err)
		}
		b.Write(text)
	}
	b.WriteString(p.metrics(metrics))
	return b.String()
}

// metrics reads what a server tells Prometheus.
func (p *place) metrics(socket string) string {
	p.t.Helper()
	h := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}
	resp, err := h.Get("http://localhost/metrics")
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		p.t.Fatalf("metrics: %v, %v", resp.Status, err)
	}
	return string(text)
}

// embedded waits until the shop's messages have vectors.
func (p *place) embedded() {
	p.t.Helper()
	eventually(p.t, "messages have vectors", func() bool {
		o := p.run(of("status", "--json")...).want(p.t, exitDone).object(p.t)
		m := o["memories"].([]any)[0].(map[string]any)
		return m["embeddingModel"] != "" && m["embeddingNextModel"] == "" && m["embeddingDone"] == m["embeddingTotal"]
	})
}

// TestOpenAIModels goes the whole way with a server that speaks OpenAI's
// protocol and wants a key: the key gets there and nowhere else.
func TestOpenAIModels(t *testing.T) {
	const key, wrong = "sk-the-right-key-0123456789", "sk-the-wrong-key-9876543210"
	s := llmtest.New(t, llmtest.Options{Key: key})
	p := newPlace(t)
	metrics := filepath.Join(shortTemp(t), "m.sock")
	p.flags("embed openai:embedder", "expand openai:chat", "--extract=openai:reader", "openai-url "+s.OpenAI(),
		"openai-key-file "+p.key(key, 0o600), "metrics unix:"+metrics, "consolidate off", "maintain off")
	var seen []result
	run := func(args ...string) result {
		t.Helper()
		r := p.run(args...)
		seen = append(seen, r)
		return r
	}
	run("doctor").want(t, exitDone).says(t, "dimensions", "ok      expansion with openai:chat")
	run(of("import", p.write("shop.jsonl", shop))...).want(t, exitDone)
	p.embedded()
	run(of("recall", "--expansion", "always", "--explain", "cache", "dropped", "stale")...).want(t, exitDone).says(t, "Redis")
	run(of("consolidate", "--close-tail")...).want(t, exitDone)
	run(of("status")...).want(t, exitDone).says(t, "embed ", "expand ", "extract ", "openai:reader")
	asked := map[string]int{}
	for _, c := range s.Calls() {
		asked[c.Path+" "+c.Model]++
		if c.Key != key {
			t.Errorf("%s came with the key %q", c.Path, c.Key)
		}
	}
	for _, want := range []string{"/v1/embeddings embedder", "/v1/chat/completions chat", "/v1/chat/completions reader"} {
		if asked[want] == 0 {
			t.Errorf("no call of %s; there were %v", want, asked)
		}
	}
	text := p.everything(metrics, seen...)
	if strings.Contains(text, key) {
		t.Error("the key is shown somewhere")
	}
	for _, want := range []string{`recalld_model_calls_total{model="openai:reader",purpose="extract"}`, `recalld_sources_total{outcome="used",source="meaning"}`} {
		if !strings.Contains(text, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	run("stop").want(t, exitDone)

	p.key(wrong, 0o600)
	run("doctor").want(t, exitFailed).says(t, "does not accept the key", "--openai-key-file")
	run(of("recall", "cache", "dropped")...).want(t, exitDone).says(t, "Redis", "search by meaning failed")
	run(of("status")...).want(t, exitDone).says(t, "embed by openai:embedder failed", "in a row, last: the server does not accept the key")
	run(of("import", p.write("council.jsonl", council))...).want(t, exitDone)
	run(of("consolidate", "--close-tail")...)
	if text := p.everything(metrics, seen...); strings.Contains(text, wrong) || strings.Contains(text, key) {
		t.Error("a key is shown somewhere")
	}
	run("stop").want(t, exitDone)

	if unixRights {
		path := p.key(key, 0o640)
		run("memories").want(t, exitFailed).says(t, "chmod 600 "+path)
		run("doctor").want(t, exitUsage).says(t, "chmod 600 "+path)
		p.key(key, 0o600)
	}
	run("memories").want(t, exitDone)
}

// TestDailyTokens: when a budget is spent no model is asked any more, also by the
// next server, and the person is told.
func TestDailyTokens(t *testing.T) {
	const reason = "daily budget of this memory is spent"
	s := llmtest.New(t, llmtest.Options{})
	p := newPlace(t)
	p.env = []string{"OLLAMA_HOST=" + s.URL}
	// The word that is embedded to learn about the model is one token, so the
	// messages are still read, and spend the rest.
	p.flags("embed ollama:embedder", "expand ollama:chat", "daily-tokens 2", "consolidate off", "maintain off")
	p.run(of("import", p.write("shop.jsonl", shop))...).want(t, exitDone)
	p.embedded()
	asked := s.Count()
	for range 2 {
		p.run(of("recall", "--expansion", "always", "--explain", "cache", "dropped", "stale")...).want(t, exitDone).
			says(t, "Redis", "The search by meaning was left out: "+reason, "expansion  skipped", reason)
		p.run(of("status")...).want(t, exitDone).says(t, "at most 2 tokens a day on one memory", "the daily budget is spent", "midnight UTC")
		if n := s.Count(); n != asked {
			t.Errorf("%d calls after the budget was spent", n-asked)
		}
		p.run("stop").want(t, exitDone)
	}
}

// TestTomorrowsTokens: a budget is for a day, and kept over restarts.
func TestTomorrowsTokens(t *testing.T) {
	s := llmtest.New(t, llmtest.Options{})
	root := filepath.Join(t.TempDir(), "store")
	now := time.Date(2026, 3, 2, 23, 50, 0, 0, time.UTC)
	o := modelOptions{embed: builtIn, expand: "ollama:chat", extract: builtIn, dailyAll: 5}
	// ask says why a model was not asked, in a process of its own.
	ask := func(memory, question string) string {
		t.Helper()
		store, err := ledger.OpenStore(root, ledger.Options{Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		m, err := o.open(store, func(string) string { return s.URL })
		if err != nil {
			t.Fatal(err)
		}
		defer m.close()
		_, err = m.expander.For(memory).Expand(t.Context(), question)
		var skipped interface{ Skipped() string }
		if errors.As(err, &skipped) {
			return skipped.Skipped()
		}
		if err != nil {
			t.Fatal(err)
		}
		return ""
	}
	for i, step := range []struct {
		memory string
		later  time.Duration
		want   string
	}{
		{"one", 0, ""},
		{"one", time.Minute, "daily budget of all memories is spent"},
		{"another", time.Minute, "daily budget of all memories is spent"},
		{"one", 8 * time.Minute, ""}, // past midnight
		{"one", 23 * time.Hour, "daily budget of all memories is spent"},
		{"another", time.Hour, ""},
	} {
		now = now.Add(step.later)
		if got := ask(step.memory, fmt.Sprint("question ", i)); got != step.want {
			t.Errorf("step %d, %v: not asked because %q, want %q", i, now, got, step.want)
		}
	}
	if s.Count() != 3 {
		t.Errorf("%d calls, want 3", s.Count())
	}
}
