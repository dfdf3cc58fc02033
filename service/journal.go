package service

import (
	"context"
	"fmt"
	"slices"

	"recalld/consolidate"
	recalldv1 "recalld/proto/recalld/v1"
)

// The packages number kinds, states, roles and actions as the wire does; if one
// of them changed, these would no longer compile.
var (
	_ = [1]struct{}{}[int(consolidate.OpenWork)-int(recalldv1.EntryKind_ENTRY_KIND_OPEN_WORK)]
	_ = [1]struct{}{}[int(consolidate.Stale)-int(recalldv1.EntryState_ENTRY_STATE_STALE)]
	_ = [1]struct{}{}[int(consolidate.Proposal)-int(recalldv1.QuoteRole_QUOTE_ROLE_PROPOSAL)]
	_ = [1]struct{}{}[int(consolidate.Undo)-int(recalldv1.ReviewAction_REVIEW_ACTION_UNDO)]
	_ = [1]struct{}{}[int(consolidate.Mark)-int(recalldv1.Kind_KIND_MARK)]
	_ = [1]struct{}{}[int(consolidate.Interrupted)-int(recalldv1.TurnStatus_TURN_STATUS_INTERRUPTED)]
)

// journal answers JournalService.
type journal struct {
	recalldv1.UnimplementedJournalServiceServer
	*Server
}

// enter opens the memory of a request and reads its journal.
func (h *journal) enter(ctx context.Context, ref *recalldv1.MemoryRef) (*memory, *edition, func(), error) {
	id, err := h.resolve(ctx, ref)
	if err != nil {
		return nil, nil, nil, err
	}
	m, release, err := h.open.acquire(ctx, id)
	if err != nil {
		return nil, nil, nil, err
	}
	e, err := m.chronicle.read(ctx, m)
	if err != nil {
		release()
		return nil, nil, nil, err
	}
	return m, e, release, nil
}

// A chronicle keeps what the batches of a memory amount to, so that an answer
// need only read those that were added.
type chronicle struct {
	running chan struct{} // room for one: the run under way

	reading chan struct{} // room for one: who put a value in may use the following
	batches []consolidate.Batch
	readTo  []uint64       // by batch: the last message that was there for it
	latest  map[window]int // the batch of each window that counts
	newest  map[string]map[uint64]uint64
	looked  uint64 // messages up to here are in newest
	checked int    // batches up to here were held against newest
	stale   map[[32]byte]bool
	edition *edition

	words consolidate.Words
}

// A window is what tells windows apart.
type window struct {
	session  string
	from, to consolidate.Position
}

// An edition is a chronicle at one moment. It does not change.
type edition struct {
	batches []consolidate.Batch
	journal consolidate.Journal
	stale   []window // to be read again
}

func newChronicle() *chronicle {
	return &chronicle{
		running: make(chan struct{}, 1),
		reading: make(chan struct{}, 1),
		latest:  map[window]int{},
		newest:  map[string]map[uint64]uint64{},
		stale:   map[[32]byte]bool{},
	}
}

// chronicleStep is how many batches are read at once.
const chronicleStep = 1_000

// read returns the journal as the ledger has it now.
func (c *chronicle) read(ctx context.Context, m *memory) (*edition, error) {
	return c.readWithin(ctx, ctx, m)
}

// readWithin is read with a context of its own for the wait until others have
// read.
func (c *chronicle) readWithin(waiting, ctx context.Context, m *memory) (*edition, error) {
	select {
	case c.reading <- struct{}{}:
		defer func() { <-c.reading }()
	case <-waiting.Done():
		return nil, waiting.Err()
	}
	before := len(c.batches)
	for {
		rows, err := m.ledger.Batches(ctx, uint64(len(c.batches)), chronicleStep)
		if err != nil {
			return nil, err
		}
		if len(rows) == 0 {
			break
		}
		for i := range rows {
			b, err := decodeBatch(&rows[i])
			if err != nil {
				return nil, fmt.Errorf("batch %d of the journal: %w", rows[i].Number, err)
			}
			if b.Review == nil {
				c.latest[windowOf(b)] = len(c.batches)
			}
			c.batches, c.readTo = append(c.batches, b), append(c.readTo, rows[i].ReadTo)
		}
	}
	changed, err := c.look(ctx, m)
	if err != nil {
		c.looked, c.checked = 0, 0 // what was found out is half of it
		return nil, err
	}
	c.checked = len(c.batches)
	if c.edition == nil || changed || len(c.batches) > before {
		c.fold()
	}
	return c.edition, nil
}

func windowOf(b consolidate.Batch) window { return window{b.Session, b.From, b.To} }

func (c *chronicle) fold() {
	e := &edition{batches: slices.Clip(c.batches)}
	e.journal = consolidate.Fold(e.batches, func(b consolidate.Batch) bool { return c.stale[b.Hash] })
	for w, i := range c.latest {
		if c.stale[c.batches[i].Hash] {
			e.stale = append(e.stale, w)
		}
	}
	c.edition = e
}

// look finds the windows that got a spoken message since they were read, or
// whose context did, and reports whether there are new ones.
func (c *chronicle) look(ctx context.Context, m *memory) (changed bool, err error) {
	head, err := m.ledger.Head(ctx)
	if err != nil {
		return false, err
	}
	suspects := map[int]bool{}
	if head > c.looked {
		grown, err := m.ledger.Grown(ctx, c.looked)
		if err != nil {
			return false, err
		}
		for session, turns := range grown {
			if c.newest[session] == nil {
				c.newest[session] = map[uint64]uint64{}
			}
			for turn, last := range turns {
				c.newest[session][turn] = last
				c.suspect(suspects, session, turn)
			}
		}
		c.looked = head
	}
	for _, i := range c.latest {
		if i >= c.checked && c.grew(i) {
			suspects[i] = true
		}
	}
	for i := range suspects {
		stale, err := c.differs(ctx, m, i)
		if err != nil {
			return false, err
		}
		changed = changed || stale
	}
	return changed, nil
}

// suspect adds the windows that hold a turn that has grown, or follow it. Those
// that were not checked yet are looked at as a whole.
func (c *chronicle) suspect(suspects map[int]bool, session string, turn uint64) {
	if c.checked == 0 || c.edition == nil || c.edition.journal.Ends[session].Turn < turn {
		return
	}
	for _, i := range c.latest {
		if b := &c.batches[i]; i < c.checked && b.Session == session && b.From.Turn <= turn && turn <= b.LastTurn {
			suspects[i] = true
		}
	}
}

// grew reports whether a turn of a window, or the one before it, got a message
// that was not there when the window was read.
func (c *chronicle) grew(i int) bool {
	b := &c.batches[i]
	newest := c.newest[b.Session]
	for turn := b.FirstTurn; turn <= b.LastTurn; turn++ {
		if newest[turn] > c.readTo[i] {
			return true
		}
	}
	return newest[b.From.Turn] > c.readTo[i]
}

// differs looks whether a window reads otherwise now than when it was read.
func (c *chronicle) differs(ctx context.Context, m *memory, i int) (bool, error) {
	b := c.batches[i]
	w, err := m.readWindow(ctx, windowOf(b))
	if err != nil {
		return false, err
	}
	if w.SourceHash() == b.Source || c.stale[b.Hash] {
		return false, nil
	}
	c.stale[b.Hash] = true
	return true, nil
}
