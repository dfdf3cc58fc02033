package ledger_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"recalld/ledger"
)

// TestSpend: spending adds up by day, memory, purpose and model, and is there
// after a restart.
func TestSpend(t *testing.T) {
	root := filepath.Join(t.TempDir(), "store")
	now := time.Date(2026, 3, 1, 23, 59, 0, 0, time.FixedZone("", 3600))
	o := ledger.Options{Now: func() time.Time { return now }}
	s, err := ledger.OpenStore(root, o)
	if err != nil {
		t.Fatal(err)
	}
	add := func(memory string, spend ledger.Spend) {
		t.Helper()
		if err := s.AddSpend(t.Context(), memory, spend); err != nil {
			t.Fatal(err)
		}
	}
	add("a", ledger.Spend{Purpose: "expand", Model: "ollama:m", Calls: 1, Tokens: 10, Took: 1500 * time.Microsecond})
	add("a", ledger.Spend{Purpose: "expand", Model: "ollama:m", Calls: 2, Tokens: 5, Took: time.Second})
	add("a", ledger.Spend{Purpose: "embed", Model: "ollama:e", Calls: 1, Tokens: 3})
	add("b", ledger.Spend{Purpose: "embed", Model: "ollama:e", Calls: 1, Tokens: 100})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s = openStore(t, root, o)
	check := func(memory string, want []ledger.Spend, own, all uint64) {
		t.Helper()
		got, err := s.SpendToday(t.Context(), memory)
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("SpendToday(%q) = %+v, %v; want %+v", memory, got, err, want)
		}
		gotOwn, gotAll, err := s.TokensToday(t.Context(), memory)
		if err != nil || gotOwn != own || gotAll != all {
			t.Errorf("TokensToday(%q) = %d, %d, %v; want %d, %d", memory, gotOwn, gotAll, err, own, all)
		}
	}
	check("a", []ledger.Spend{
		{Purpose: "embed", Model: "ollama:e", Calls: 1, Tokens: 3},
		{Purpose: "expand", Model: "ollama:m", Calls: 3, Tokens: 15, Took: time.Second + 1500*time.Microsecond},
	}, 18, 118)
	check("", []ledger.Spend{
		{Purpose: "embed", Model: "ollama:e", Calls: 2, Tokens: 103},
		{Purpose: "expand", Model: "ollama:m", Calls: 3, Tokens: 15, Took: time.Second + 1500*time.Microsecond},
	}, 0, 118)
	now = now.Add(2 * time.Hour) // a new day in UTC
	check("a", nil, 0, 0)
	want := []ledger.Spend{
		{Purpose: "embed", Model: "ollama:e", Calls: 2, Tokens: 103},
		{Purpose: "expand", Model: "ollama:m", Calls: 3, Tokens: 15, Took: time.Second + 1500*time.Microsecond},
	}
	if got, err := s.SpendSoFar(t.Context()); err != nil || !cmp.Equal(got, want) {
		t.Errorf("SpendSoFar = %+v, %v; want %+v", got, err, want)
	}
	if problems, err := s.Verify(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("Verify = %+v, %v", problems, err)
	}
}
