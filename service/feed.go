package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"recalld/ledger"
	"recalld/retrieve"
)

// feed carries what the ledger has and the index has not, in order and in
// batches, until ctx is done, the index fails or a rebuild is asked for. This
// is the only way into the views, at the start as in daily life. What fails in
// the ledger is tried again later: the index is none the worse for it.
func (m *memory) feed(ctx context.Context, index *retrieve.Index) (*rebuild, error) {
	pause := minPause
	for {
		more, err := m.feedBatch(ctx, index)
		var failed *readError
		switch {
		case errors.As(err, &failed):
			m.note(err, true)
			m.registry.log.Error("feed views", "memory", m.id, "cause", err.Error())
			if err := sleep(ctx, pause); err != nil {
				return nil, err
			}
			pause = min(2*pause, maxPause)
			continue
		case err != nil:
			return nil, err
		}
		pause = minPause
		m.note(nil, false)
		again, err := m.awaitMore(ctx, more)
		if again != nil || err != nil {
			return again, err
		}
	}
}

// awaitMore waits for a reason to feed the next batch; if there is more of the
// ledger it only looks whether a rebuild is asked for.
func (m *memory) awaitMore(ctx context.Context, more bool) (*rebuild, error) {
	if more {
		select {
		case again := <-m.anew:
			return again, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		default:
			return nil, nil
		}
	}
	select {
	case again := <-m.anew:
		return again, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-m.kick:
		return nil, nil
	}
}

// A readError is a failure of the ledger, not of the views.
type readError struct{ err error }

func (e *readError) Error() string { return "read ledger: " + e.err.Error() }
func (e *readError) Unwrap() error { return e.err }

// feedBatch carries one batch and reports whether there is more.
func (m *memory) feedBatch(ctx context.Context, index *retrieve.Index) (more bool, err error) {
	if err := m.aim(ctx, index); err != nil {
		return false, err
	}
	records, err := m.ledger.Read(ctx, index.Held(), feedMessages, feedBytes)
	if err != nil {
		return false, &readError{err}
	}
	if len(records) == 0 {
		return false, nil
	}
	if err := index.Add(ctx, m.documents(records)); err != nil {
		return false, fmt.Errorf("add to views: %w", err)
	}
	return true, nil
}

// aim tells the index how far the ledger is. If that is further than a recall
// waits, it shows the index the newest messages first, once for each such gap.
func (m *memory) aim(ctx context.Context, index *retrieve.Index) error {
	head, err := m.ledger.Head(ctx)
	if err != nil {
		return &readError{err}
	}
	wasBehind := index.Reach().Rebuilding
	index.SetTarget(head)
	if held := index.Held(); wasBehind || head <= held || head-held <= maxTail {
		return nil
	}
	records, err := m.ledger.ReadBefore(ctx, head, maxTail)
	if err != nil {
		return &readError{err}
	}
	if err := index.Hold(ctx, m.documents(records)); err != nil {
		return fmt.Errorf("hold newest: %w", err)
	}
	return nil
}

// documents are records as the index takes them. A damaged one keeps its
// number, so that the others keep theirs, and holds nothing to be found.
func (m *memory) documents(records []ledger.Record) []retrieve.Document {
	zones := zones{}
	docs := make([]retrieve.Document, len(records))
	for i := range records {
		r := &records[i]
		if r.Damage != nil {
			m.noteDamage(r.Damage)
			docs[i] = retrieve.Document{Seq: r.Seq, Kind: retrieve.Mark}
			continue
		}
		docs[i] = retrieve.Document{
			Seq:     r.Seq,
			Session: r.Session,
			TurnSeq: r.TurnSeq,
			Ordinal: r.Ordinal,
			Speaker: r.Speaker,
			Kind:    retrieve.Kind(r.Kind),
			Time:    zones.in(r.Time, r.Zone),
			Text:    textToRank(r),
		}
	}
	return docs
}

// textToRank is what the views get to see of a message.
func textToRank(r *ledger.Record) string { return string(withoutEchoes(leave(r.Text).bytes)) }

// texts gives the views the texts of messages again, for a model that reads
// them later. A damaged one is empty.
func (m *memory) texts(ctx context.Context, seqs []uint64) ([]string, error) {
	records, err := m.ledger.MessagesBySeq(ctx, seqs)
	if err != nil {
		return nil, err
	}
	list := make([]string, len(records))
	for i := range records {
		if records[i].Damage == nil {
			list[i] = textToRank(&records[i])
		}
	}
	return list, nil
}

// kickFeeder tells the feeder that the ledger has more.
func (m *memory) kickFeeder() {
	m.want()
	select {
	case m.kick <- struct{}{}:
	default:
	}
}

// guard calls f and makes an error of its panic: what a library does to one
// memory must not end the process.
func guard(f func() error) (err error) {
	defer func() {
		if e := recovered(recover()); e != nil {
			err = e
		}
	}()
	return f()
}

// unlessDone drops the error of a context that has ended.
func unlessDone(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// sleep waits for d, or returns the error of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
