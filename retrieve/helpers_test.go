package retrieve_test

import (
	"context"
	"testing"
)

// contextOf gives a context that ends with the test or before.
func contextOf(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	return ctx, cancel
}
