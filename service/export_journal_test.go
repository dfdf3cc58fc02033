package service

import (
	"context"

	"recalld/consolidate"
	"recalld/ledger"
)

// SetBetween has f called between reading a window and storing its batch.
func (s *Server) SetBetween(f func() error) { s.betweenStore = f }

// RunDue is what the schedule runs.
func (s *Server) RunDue(ctx context.Context) { s.runDue(ctx) }

// HoldLedger keeps a memory in use until release is called.
func (s *Server) HoldLedger(ctx context.Context, id string) (m *ledger.Memory, release func(), err error) {
	held, release, err := s.open.acquire(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	return held.ledger, release, nil
}

// ReadBatch decodes the body of a batch and makes a block of what it amounts to.
func ReadBatch(body []byte) (string, error) {
	b, err := decodeBatch(&ledger.JournalBatch{Session: "s", Body: body})
	if err != nil {
		return "", err
	}
	j := consolidate.Fold([]consolidate.Batch{b}, nil)
	return j.Block(consolidate.BlockOptions{Escape: entryLine, In: zones{}.in}).String(), nil
}

// EntryCursor reads a cursor of a list of entries.
func EntryCursor(s string) error {
	_, err := checkEntryCursor(s)
	return err
}

// Touch says that turns were added to a memory.
func (s *Server) Touch(id string) { s.runs.touch(id) }

// ConsolidateAll reads all that waits in a memory, its tails too.
func (s *Server) ConsolidateAll(ctx context.Context, id string) error {
	extractor, err := s.extractorOf(id, "")
	if err != nil {
		return err
	}
	m, release, err := s.open.acquire(ctx, id)
	if err != nil {
		return err
	}
	defer release()
	_, _, err = s.consolidate(ctx, m, consolidation{extractor: extractor, closeTail: true})
	return err
}

// MaintainDue is what the schedule of maintenance runs.
func (s *Server) MaintainDue(ctx context.Context) { s.maintainDue(ctx) }

// IsHealthy is what health says of the journal.
func (s *Server) IsHealthy() bool { return s.isHealthy() }
