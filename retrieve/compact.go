package retrieve

import (
	"context"
	"fmt"

	"github.com/blevesearch/bleve/v2/index/scorch/mergeplan"
)

// merger is what of bleve's index can be merged by hand.
type merger interface {
	ForceMerge(ctx context.Context, options *mergeplan.MergePlanOptions) error
}

// Compact merges the segments of the word index into one. Nothing that is found
// changes; fewer files are read, and the space of replaced postings comes back
// once snapshots that still use them are gone. Writes to disk wait meanwhile,
// messages are found as ever. The error wraps ctx's error, ErrClosed, or is that
// of the word index.
func (x *Index) Compact(ctx context.Context) (err error) {
	defer guarded("compact index", &err)()
	x.writing.Lock()
	defer x.writing.Unlock()
	x.mu.RLock()
	closed := x.closed
	x.mu.RUnlock()
	if closed {
		return fmt.Errorf("compact index: %w", ErrClosed)
	}
	advanced, err := x.words.idx.Advanced()
	if err != nil {
		return fmt.Errorf("compact index: %w", err)
	}
	m, ok := advanced.(merger)
	if !ok {
		return nil // nothing of that kind to do
	}
	if err := m.ForceMerge(ctx, nil); err != nil {
		return fmt.Errorf("compact index: %w", err)
	}
	return nil
}
