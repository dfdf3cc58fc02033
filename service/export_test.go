package service

import (
	"context"

	"recalld/ledger"
	recalldv1 "recalld/proto/recalld/v1"
	"recalld/retrieve"
)

// What the tests outside this package look at.

// DeadlineUnary is the interceptor that gives calls a deadline.
var DeadlineUnary = deadlineUnary

// MapError gives an error its code.
var MapError = mapError

// Frame renders passages into a block.
func Frame(secret []byte, passages []*recalldv1.Passage) string {
	rendered := make([]string, len(passages))
	for i, p := range passages {
		rendered[i] = renderPassage(p)
	}
	return framer{secret}.block(rendered)
}

// FitBudget fills an answer with the passages that fit a budget.
func (s *Server) FitBudget(passages []*recalldv1.Passage, budgetBytes int) *recalldv1.RecallResponse {
	resp := new(recalldv1.RecallResponse)
	s.fit(&question{budgetBytes: budgetBytes}, passages, resp)
	return resp
}

// Cut shows a part of a stored text.
func Cut(stored []byte, start, end, limit int) (text string, to int, exact bool) {
	return leave(stored).cut(start, end, limit)
}

// OpenMemories lists the memories that hold a place.
func (s *Server) OpenMemories() []string {
	s.open.mu.Lock()
	defer s.open.mu.Unlock()
	var ids []string
	for id, m := range s.open.memories {
		if !m.brief {
			ids = append(ids, id)
		}
	}
	return ids
}

// Hold keeps a memory in use until release is called.
func (s *Server) Hold(ctx context.Context, id string) (release func(), err error) {
	_, release, err = s.open.acquire(ctx, id)
	return release, err
}

// Secret is the one that boundaries of blocks are made with.
func (s *Server) Secret() []byte { return s.frame.secret }

// Choose says what is shown of the slices of one message, best first.
func Choose(text string, passageBytes int, slices ...[2]int) [][2]int {
	record := &ledger.Record{Message: ledger.Message{Seq: 1, Text: []byte(text)}}
	passages := make([]retrieve.Passage, len(slices))
	for i, s := range slices {
		passages[i] = retrieve.Passage{Seq: 1, Range: retrieve.Range{Start: s[0], End: s[1]}}
	}
	list, _ := choose(passages, map[uint64]*ledger.Record{1: record}, &question{passageBytes: passageBytes})
	ranges := make([][2]int, len(list))
	for i, s := range list {
		ranges[i] = [2]int{s.shown.Start, s.shown.End}
	}
	return ranges
}

// Places bound how many recalls rank at once.
type Places = places

// Enter takes a place.
func (p places) Enter(ctx context.Context) (leave func(), err error) { return p.enter(ctx) }

// Divide divides what is left of a deadline.
var Divide = divide

// RecallDirectly is Recall without the wire between.
func (s *Server) RecallDirectly(ctx context.Context, req *recalldv1.RecallRequest) (*recalldv1.RecallResponse, error) {
	resp, err := (&recaller{Server: s}).Recall(ctx, req)
	return resp, mapError(err)
}

// TakePlaces takes all places in which recalls rank until leave is called.
func (s *Server) TakePlaces() (leave func()) {
	for range cap(s.places) {
		s.places <- struct{}{}
	}
	return func() {
		for range cap(s.places) {
			<-s.places
		}
	}
}

// LastError is what Status says after carrying went as told, for each step the
// error or nil when it went on, and after damage was met.
func LastError(damage error, steps ...error) error {
	m := newMemory(nil, "")
	m.noteDamage(damage)
	for _, err := range steps {
		m.note(err, err != nil)
	}
	return m.lastError()
}
