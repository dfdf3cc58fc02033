package ledger

import (
	"bytes"
	"context"
)

// closings checks the records of tails that were closed early.
func (v *verification) closings(ctx context.Context, q querier) error {
	rows, err := q.QueryContext(ctx, "SELECT turn, session, at, seal FROM closing ORDER BY turn")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		r, what, err := scanClosing(rows)
		if err != nil {
			return err
		}
		if what != "" {
			v.found("closing", r.turn, "%s", what)
		}
	}
	return rows.Err()
}

// batches checks that batches are numbered densely and follow each other. What
// their hashes stand for is known to who made them.
func (v *verification) batches(ctx context.Context, q querier) error {
	rows, err := q.QueryContext(ctx, "SELECT "+batchColumns+" FROM batch ORDER BY number")
	if err != nil {
		return err
	}
	defer rows.Close()
	last, hash := int64(0), make([]byte, 32)
	for rows.Next() {
		r, what, err := scanBatch(rows)
		if err != nil {
			return err
		}
		switch {
		case what != "":
			v.found("batch", r.number, "%s", what)
		case r.number != last+1:
			v.found("batch", r.number, "follows batch %d", last)
		case !bytes.Equal(r.previous, hash):
			v.found("batch", r.number, "does not name the hash of the batch before it")
		}
		last, hash = r.number, r.hash
	}
	return rows.Err()
}
