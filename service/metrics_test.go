package service_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"recalld/ledger"
	"recalld/service"
)

// TestMetrics: calls and outcomes are counted, spending is that of the store,
// and no label tells what is remembered.
func TestMetrics(t *testing.T) {
	r := start(t, service.Options{Consolidate: "off", Models: func() []service.ModelState {
		return []service.ModelState{{Purpose: "expand", Model: "ollama:m", Failures: 2}}
	}})
	ref := byKey("agent", "project")
	id := r.append(ref, said("s", "1", "the harbour is north of the bridge")).GetMemoryId()
	r.ask(ref, "harbour")
	for range 2 {
		if err := r.store.AddSpend(t.Context(), "m", ledger.Spend{Purpose: "expand", Model: "ollama:m", Calls: 1, Tokens: 7, Took: time.Second}); err != nil {
			t.Fatal(err)
		}
	}
	want := `
# HELP recalld_model_failures Failures in a row of a model server; from three on it is not asked for a while.
# TYPE recalld_model_failures gauge
recalld_model_failures{model="ollama:m",purpose="expand"} 2
# HELP recalld_model_tokens_total Tokens that model servers reported, by purpose and model, over restarts.
# TYPE recalld_model_tokens_total counter
recalld_model_tokens_total{model="ollama:m",purpose="expand"} 14
# HELP recalld_open_memories Memories that are open.
# TYPE recalld_open_memories gauge
recalld_open_memories 1
`
	gatherer := r.server.Metrics()
	if err := testutil.GatherAndCompare(gatherer, strings.NewReader(want),
		"recalld_model_failures", "recalld_model_tokens_total", "recalld_open_memories"); err != nil {
		t.Error(err)
	}
	families, err := gatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, f := range families {
		seen[f.GetName()] = true
		if text := f.String(); strings.Contains(text, "harbour") || strings.Contains(text, id) {
			t.Errorf("%s tells what is remembered", f.GetName())
		}
	}
	for _, name := range []string{"recalld_calls_total", "recalld_call_seconds", "recalld_sources_total", "go_goroutines"} {
		if !seen[name] {
			t.Errorf("%s is missing", name)
		}
	}
}
