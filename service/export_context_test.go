package service

import (
	"context"
	"time"

	"recalld/consolidate"
	recalldv1 "recalld/proto/recalld/v1"
)

// Echoes returns where in a text there are blocks that came back.
func Echoes(text []byte) (ranges [][2]int) {
	for _, r := range echoes(text) {
		ranges = append(ranges, [2]int{r.Start, r.End})
	}
	return ranges
}

// WithoutEchoes is a text as it is found and read.
func WithoutEchoes(text []byte) []byte { return withoutEchoes(text) }

// ComposeTurn puts a block together as PreTurn does once all is read and ranked.
func (s *Server) ComposeTurn(records []consolidate.Record, reach *consolidate.Reach, passages []*recalldv1.Passage, message string, bytes, units int) *recalldv1.PreTurnResponse {
	t := &turn{
		contexts: newContexts(s),
		q:        &question{budgetBytes: bytes, budgetUnits: units},
		req:      new(recalldv1.PreTurnRequest),
		resp:     &recalldv1.PreTurnResponse{Gate: &recalldv1.Gate{Passed: true}},
		display:  display{passages: passages},
	}
	t.q.query.Text = message
	block := t.journalBlock(journalRead{edition: &edition{journal: consolidate.Journal{Records: records}}, reach: reach})
	t.dropRepeats(block.Entries, nil)
	t.resp.Omitted = uint32(block.Left)
	t.compose(block.Entries, block.Lines)
	return t.resp
}

// HoldJournal keeps the journal of a memory from being read until release is called.
func (s *Server) HoldJournal(ctx context.Context, id string) (release func(), err error) {
	m, free, err := s.open.acquire(ctx, id)
	if err != nil {
		return nil, err
	}
	m.chronicle.reading <- struct{}{}
	return func() { <-m.chronicle.reading; free() }, nil
}

// PreTurnDirectly is PreTurn without the wire between.
func (s *Server) PreTurnDirectly(ctx context.Context, req *recalldv1.PreTurnRequest) (*recalldv1.PreTurnResponse, error) {
	resp, err := newContexts(s).PreTurn(ctx, req)
	return resp, mapError(err)
}

// SessionTurns are the turns of sessions.
type SessionTurns struct{ turns turns }

// NewSessionTurns has none under way.
func NewSessionTurns() *SessionTurns {
	return &SessionTurns{turns{bySession: map[string]*sessionTurn{}}}
}

// Enter waits for the turn of a session.
func (t *SessionTurns) Enter(ctx context.Context, session string, until time.Time) (func(), bool) {
	return t.turns.enter(ctx, session, until)
}

// Len is how many sessions are known.
func (t *SessionTurns) Len() int {
	t.turns.mu.Lock()
	defer t.turns.mu.Unlock()
	return len(t.turns.bySession)
}
