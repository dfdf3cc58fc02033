package retrieve

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// flushDelay gathers what arrives close together into one batch: a batch of
// one message costs as much disk time as one of a hundred.
const flushDelay = 100 * time.Millisecond

// Run writes to disk what Add holds in memory, keeps the weights of meaning as
// due, and has the model that is asked, if there is one, read the messages,
// until ctx is done. A failed write is tried again after a pause that grows to a
// minute; meanwhile everything held is found. No write waits for a model. It
// returns ctx's error.
func (x *Index) Run(ctx context.Context) error {
	if x.remote == nil {
		return x.keep(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	var models sync.WaitGroup
	models.Go(func() { x.embed(ctx) })
	models.Go(func() { x.wakeModel(ctx) })
	defer func() {
		cancel()
		models.Wait()
	}()
	return x.keep(ctx)
}

// keep makes durable what was added.
func (x *Index) keep(ctx context.Context) error {
	pause := firstBackOff
	for {
		if err := x.awaitWork(ctx); err != nil {
			return err
		}
		err := x.work(ctx)
		x.mu.Lock()
		x.lastErr = err
		x.mu.Unlock()
		if err == nil {
			pause = firstBackOff
			continue
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
		pause = min(2*pause, maxBackOff)
	}
}

// awaitWork waits for something to do, and a little longer for more of it.
func (x *Index) awaitWork(ctx context.Context) error {
	for {
		x.mu.RLock()
		waiting := len(x.pending)
		due := (x.meaning != nil && x.meaning.due(uint64(len(x.where))) || x.levelsDue()) && !x.busy()
		x.mu.RUnlock()
		switch {
		case waiting >= maxFlush || due:
			return nil
		case waiting > 0:
			return sleep(ctx, flushDelay)
		}
		select {
		case <-x.wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

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

// work does one round: a batch to disk, a new snapshot if it pays, the weights
// of meaning if they are due.
func (x *Index) work(ctx context.Context) error {
	x.writing.Lock()
	defer x.writing.Unlock()
	if err := x.flushBatch(); err != nil {
		return err
	}
	if err := x.advance(); err != nil {
		return err
	}
	if err := x.refreshMeaning(); err != nil {
		return err
	}
	return x.refreshLevels(ctx)
}

// flushBatch writes the oldest pending messages. Rows go first: what the word
// index covers always has its rows.
func (x *Index) flushBatch() error {
	x.mu.RLock()
	batch := x.pending[:min(len(x.pending), maxFlush)]
	x.mu.RUnlock()
	if len(batch) == 0 {
		return nil
	}
	rows := make([]row, len(batch))
	var docs []wordDocument
	for i, a := range batch {
		rows[i] = a.row
		field := restField
		if a.row.Kind.IsDefault() {
			field = mainField
		}
		for k, tokens := range a.words {
			docs = append(docs, wordDocument{sliceKey{a.row.Seq, uint16(k)}, field, tokens})
		}
	}
	if err := x.columns.write(rows); err != nil {
		return err
	}
	covered := rows[len(rows)-1].Seq
	if err := x.words.write(docs, covered); err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	// A fresh slice lets go of the words of what was written.
	x.pending = append([]analysed(nil), x.pending[len(batch):]...)
	x.indexed = covered
	x.signal()
	return nil
}

// advance takes a new snapshot of the word index once enough messages are both
// on disk and in memory, and lets go of the latter.
func (x *Index) advance() error {
	x.mu.RLock()
	pending := uint64(len(x.pending))
	recent := uint64(len(x.main.table.slices)-int(x.main.recentFrom)) + uint64(len(x.rest.table.slices)-int(x.rest.recentFrom))
	x.mu.RUnlock()
	if recent < pending+advanceAfter {
		return nil
	}
	reader, err := x.words.read()
	if err != nil {
		return fmt.Errorf("advance snapshot: %w", err)
	}
	x.mu.Lock()
	was := x.pin
	x.pin = &pin{reader: reader}
	x.main.advance(x.sliceAfter(x.indexed, x.main))
	x.rest.advance(x.sliceAfter(x.indexed, x.rest))
	x.mu.Unlock()
	if was != nil {
		was.users.Wait()
		return was.reader.close()
	}
	return nil
}

// sliceAfter gives the first slice of l that belongs to a message after seq.
// The caller holds mu.
func (x *Index) sliceAfter(seq uint64, l *lexicon) int32 {
	for i := int(seq); i < len(x.where); i++ {
		if ord := x.where[i]; ord >= 0 && l == x.main {
			return l.table.messages[ord].firstSlice
		} else if ord < 0 && l == x.rest {
			return l.table.messages[^ord].firstSlice
		}
	}
	return int32(len(l.table.slices))
}

// refreshMeaning recomputes the weights of meaning when a sequence number at
// which they are due has passed, and keeps the vectors on disk.
func (x *Index) refreshMeaning() error {
	if x.meaning == nil {
		return nil
	}
	x.mu.RLock()
	due := x.meaning.due(uint64(len(x.where))) && !x.busy()
	x.mu.RUnlock()
	if !due {
		return nil
	}
	next := x.refreshed()
	if err := next.save(x.vectorPath(), x.identity()); err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	next.add(x.main.table)
	x.meaning = next
	x.signal()
	return nil
}

// busy reports whether so much arrives that statistics had better wait: in a
// long import only the last refresh point matters. The caller holds mu.
func (x *Index) busy() bool {
	held := uint64(len(x.where))
	return (len(x.pending) >= maxFlush || x.target > held+maxFlush) && (x.meaning == nil || held < busyGrowth*x.meaning.since)
}

// busyGrowth is how far a memory may outgrow its statistics while busy.
const busyGrowth = 8
