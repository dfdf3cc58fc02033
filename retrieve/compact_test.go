package retrieve_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"recalld/embed"
	"recalld/retrieve"
)

// TestCompact: merging leaves one segment and changes no answer, also after
// more was added and after a restart.
func TestCompact(t *testing.T) {
	at, o, all := t.TempDir(), retrieve.Options{Embedder: embed.BuiltIn()}, chats(3000, 3)
	x, err := retrieve.Open(at, o)
	if err != nil {
		t.Fatal(err)
	}
	stop := start(t, x)
	for i := range 6 {
		if err := x.Add(t.Context(), all[i*500:][:500]); err != nil {
			t.Fatal(err)
		}
		if err := x.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	want := answers(t, x)
	for range 2 {
		if err := x.Compact(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, answers(t, x)); diff != "" {
		t.Errorf("after merging (-before +after):\n%s", diff)
	}
	stop()
	if err := x.Compact(t.Context()); !errors.Is(err, retrieve.ErrClosed) {
		t.Errorf("Compact of a closed index: %v, want ErrClosed", err)
	}
	x, err = retrieve.Open(at, o)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, answers(t, x)); diff != "" {
		t.Errorf("after a restart (-before +after):\n%s", diff)
	}
	start(t, x)()
	segments, err := filepath.Glob(filepath.Join(at, "words", "store", "*.zap"))
	if err != nil || len(segments) != 1 {
		t.Errorf("segments %v, %v; want one", segments, err)
	}
}
