package retrieve_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"recalld/retrieve"
)

// diffAnswers compares answers but for the progress of a model.
func diffAnswers(want, got []retrieve.Result) string { return cmp.Diff(want, got) }

// contextOf gives a context that ends with the test or before.
func contextOf(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	return ctx, cancel
}
