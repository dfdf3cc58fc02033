package retrieve

import (
	"context"
	"os"
	"strings"
)

func joinWords(words []string) string { return strings.Join(words, " ") }

func splitWords(text string) []string { return strings.Fields(text) }

// copyPart copies the first size bytes of a file.
func copyPart(from, to string, size int64) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data[:size], 0o600)
}

// WaitEmbedded waits until the model has read all messages and everything that
// follows from its vectors has been taken.
func (x *Index) WaitEmbedded(ctx context.Context) error {
	return x.waitFor(ctx, func() bool {
		held := uint64(len(x.where))
		return x.remote.done == len(x.main.table.messages) && !x.remote.others &&
			(x.remote.space == nil || x.remote.reach(x.main.table, held) == held)
	})
}

// WaitDone waits until the model has read so many messages.
func (x *Index) WaitDone(ctx context.Context, n int) error {
	return x.waitFor(ctx, func() bool { return x.remote.done >= n })
}

// WaitEmbeddingError waits until the last attempt of the model to read failed.
func (x *Index) WaitEmbeddingError(ctx context.Context) error {
	return x.waitFor(ctx, func() bool { return x.remote.lastErr != nil })
}

// WaitLevels waits until the gate's level has been measured as due.
func (x *Index) WaitLevels(ctx context.Context) error {
	return x.waitFor(ctx, func() bool { return !x.levelsDue() })
}

// ForgetEmbeddingError lets WaitEmbeddingError wait for the next one.
func (x *Index) ForgetEmbeddingError() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.remote.lastErr = nil
}
