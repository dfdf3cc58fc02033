package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"recalld/ledger"
	recalldv1 "recalld/proto/recalld/v1"
)

// contexts answers ContextService.
type contexts struct {
	recalldv1.UnimplementedContextServiceServer
	*Server
	turns turns
}

func newContexts(s *Server) *contexts {
	return &contexts{Server: s, turns: turns{bySession: map[string]*sessionTurn{}}}
}

// PreTurn gives one block of what bears on a new message of a session: first the
// rules and preferences that are live, even when the message says nothing, then
// of the journal what bears on it, together at most two fifths of the budget,
// then the passages that a gated Recall gives. Nothing of that, no block.
//
// A session that is not bound is bound to the memory named, as an Append binds
// it: for good once a turn of it is stored, and until then it stands in nobody's
// way. No memory is made: where there is none, or none that holds a turn, there
// is nothing to give, and the answer is empty. So a PreTurn that no turn follows
// leaves no memory behind, and a binding at most that the next claim replaces.
//
// What was given is noted in the ledger. With kept_in_history nothing is given
// twice until Reset: an entry only if it was edited, or held no longer in
// between, a passage only where other bytes of its message bear on the question.
// Calls for one session wait for each other, for half of their time at most.
// That it could not be noted is told the log and is no error; the same is then
// given again.
//
// The answer comes before the deadline, made without what is late or damaged,
// which sources names; the error is then the caller's own.
func (h *contexts) PreTurn(ctx context.Context, req *recalldv1.PreTurnRequest) (*recalldv1.PreTurnResponse, error) {
	q, err := h.turnQuestion(req)
	if err != nil {
		return nil, err
	}
	m, release, err := h.memoryFor(ctx, req, !req.GetDryRun())
	if err != nil {
		return nil, err
	}
	if m == nil {
		return &recalldv1.PreTurnResponse{Snapshot: new(recalldv1.Reach), Now: spokenAt(q.query.Now, q.zone)}, nil
	}
	t := &turn{contexts: h, memory: m, q: q, req: req, use: newUse(release)}
	defer t.use.end()
	return t.answer(ctx)
}

// turnQuestion checks a PreTurnRequest, and is the question of its Recall.
func (h *contexts) turnQuestion(req *recalldv1.PreTurnRequest) (*question, error) {
	if n := len(req.GetMessage()); n > maxQueryBytes {
		return nil, invalid("message", "is too long", sizeOf(maxQueryBytes), sizeOf(n))
	}
	q, err := h.question(&recalldv1.RecallRequest{
		Query:           req.GetMessage(),
		BudgetBytes:     req.GetBudgetBytes(),
		ExcludeMessages: req.GetExcludeMessages(),
		Expansion:       req.GetExpansion(),
		Now:             req.GetNow(),
	})
	if err != nil {
		return nil, err
	}
	q.budgetUnits, err = inRange("budget_characters", req.GetBudgetCharacters(), 0, minBudgetBytes, maxBudgetBytes)
	return q, err
}

// A chat names a session, and the memory it is to be bound to.
type chat interface {
	GetSessionId() string
	GetAgent() string
	GetProject() string
}

// checkChat refuses a session or a memory that cannot be.
func checkChat(c chat) error {
	if err := checkName("session_id", c.GetSessionId(), true); err != nil {
		return err
	}
	if c.GetSessionId() == ledger.NotesSession {
		return invalid("session_id", "is that of the notes, in which nobody chats", nil, nil)
	}
	if err := checkName("agent", c.GetAgent(), false); err != nil {
		return err
	}
	if err := checkName("project", c.GetProject(), false); err != nil {
		return err
	}
	if c.GetProject() != "" && c.GetAgent() == "" {
		return invalid("agent", "is empty: a project needs its agent", nil, nil)
	}
	return nil
}

// memoryFor opens the memory of a session and binds the session to it, unless it
// is only looked at. The memory is nil when there is nothing in it or it is not
// there.
func (h *contexts) memoryFor(ctx context.Context, c chat, binds bool) (*memory, func(), error) {
	if err := checkChat(c); err != nil {
		return nil, nil, err
	}
	owner, err := h.store.SessionMemory(ctx, c.GetSessionId())
	bound := err == nil
	switch {
	case err != nil && !errors.Is(err, ledger.ErrNotFound):
		return nil, nil, err
	case c.GetAgent() == "" && !bound:
		return nil, nil, errUnknown("session_id")
	case c.GetAgent() == "":
		return h.openFor(ctx, owner)
	}
	id, _, err := h.target(ctx, &recalldv1.MemoryRef{Agent: c.GetAgent(), Project: c.GetProject()})
	switch {
	case err != nil:
		return nil, nil, err
	case bound && owner == id:
		return h.openFor(ctx, id)
	case bound && !binds:
		return nil, nil, fmt.Errorf("session %q belongs to another memory: %w", c.GetSessionId(), ledger.ErrExists)
	}
	m, release, err := h.openFor(ctx, id)
	if err != nil || !binds || m == nil && !bound {
		return m, release, err
	}
	// A session that is bound elsewhere is told so, whatever the memory holds.
	if err := h.lend(ctx, id, c.GetSessionId()); err != nil {
		if m != nil {
			release()
		}
		return nil, nil, err
	}
	return m, release, nil
}

// lend binds a session ahead of its first turn. Where that cannot be written,
// or there is nothing to bind it to, it goes without.
func (h *contexts) lend(ctx context.Context, id, session string) error {
	err := h.store.Lend(ctx, id, session)
	for _, harmless := range []error{ledger.ErrReadOnly, ledger.ErrFull, ledger.ErrNotFound} {
		if errors.Is(err, harmless) {
			return nil
		}
	}
	return err
}

// openFor opens a memory, nil if it is not there or never held a turn.
func (h *contexts) openFor(ctx context.Context, id string) (*memory, func(), error) {
	m, release, err := h.open.acquire(ctx, id)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if head, err := m.ledger.Head(ctx); err != nil || head == 0 {
		release()
		return nil, nil, err
	}
	return m, release, nil
}

// Reset says that the live context of a session holds no longer what it was
// given: all of it may be given again. The error is NotFound for a session that
// is bound to no memory, or to another one than is named.
func (h *contexts) Reset(ctx context.Context, req *recalldv1.ResetRequest) (*recalldv1.ResetResponse, error) {
	if err := checkChat(req); err != nil {
		return nil, err
	}
	session := req.GetSessionId()
	owner, err := h.store.SessionMemory(ctx, session)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, errUnknown("session_id")
	}
	if err != nil {
		return nil, err
	}
	if req.GetAgent() != "" {
		id, err := h.resolve(ctx, &recalldv1.MemoryRef{Agent: req.GetAgent(), Project: req.GetProject()})
		if err != nil {
			return nil, err
		}
		if id != owner {
			return nil, errUnknown("session_id")
		}
	}
	m, release, err := h.open.acquire(ctx, owner)
	if err != nil {
		return nil, err
	}
	defer release()
	leave, ok := h.turns.enter(ctx, session, time.Time{})
	if !ok {
		return nil, ctx.Err()
	}
	defer leave()
	given, err := m.ledger.Given(ctx, session)
	if err != nil || len(given) == 0 {
		return new(recalldv1.ResetResponse), err
	}
	taken, err := m.ledger.TakeBack(ctx, session)
	return &recalldv1.ResetResponse{Given: uint32(taken)}, err
}
