package service

import (
	"context"
	"errors"
	"fmt"

	"recalld/ledger"
	recalldv1 "recalld/proto/recalld/v1"
	"recalld/retrieve"
)

// Append stores turns and answers when they are on disk. They are found by
// their words in the next recall.
//
// Blocks that recalld itself rendered are stripped from messages of the person,
// where a harness leaves them (StripFrame); every other byte is stored as it
// came. Sessions are bound to the memory just before their turns are stored; a
// request that is refused, or holds only copies of what is known, leaves no
// binding and no empty memory behind.
func (h *memories) Append(ctx context.Context, req *recalldv1.AppendRequest) (*recalldv1.AppendResponse, error) {
	turns, err := newTurns(req.GetTurns())
	if err != nil {
		return nil, err
	}
	for i := range turns {
		for j := range turns[i].Messages {
			h.frame.strip(&turns[i].Messages[j])
		}
	}
	id, key, err := h.target(ctx, req.GetMemory())
	if err != nil {
		return nil, err
	}
	reserved, err := h.store.Reserve(ctx, id, key, sessionsOf(turns))
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, errUnknown("memory")
	}
	if err != nil {
		return nil, err
	}
	var results []ledger.AppendResult
	defer func() { h.settle(ctx, reserved, results) }()
	if results, err = h.keep(ctx, id, turns); err != nil {
		return nil, err
	}
	return appended(id, results), nil
}

// keep stores turns in the memory id.
func (s *Server) keep(ctx context.Context, id string, turns []ledger.Turn) ([]ledger.AppendResult, error) {
	m, release, err := s.open.acquire(ctx, id)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := m.awaitRoom(ctx); err != nil {
		return nil, err
	}
	results, err := m.ledger.Append(ctx, turns)
	s.runs.touch(m.id)
	m.kickFeeder() // after an error of the disk, too, something may be stored
	return results, err
}

// settle takes away what was made for an Append and has no turn: bindings of
// sessions, and the memory. It is done even if the client has left.
func (s *Server) settle(ctx context.Context, reserved *ledger.Reservation, results []ledger.AppendResult) {
	lasting := context.WithoutCancel(ctx)
	var stored []string
	for _, r := range results {
		if r.Seq > 0 {
			stored = append(stored, r.Session)
		}
	}
	if err := reserved.Release(lasting, stored); err != nil {
		s.log.Error("release memory", "memory", reserved.Memory(), "cause", err.Error())
	}
	if len(stored) > 0 {
		return
	}
	counts, damage, err := s.counts(lasting, reserved.Memory())
	if err == nil && damage == "" && counts.Turns == 0 {
		s.open.discard(ctx, reserved.Memory())
	}
}

// awaitRoom waits while the views lag so far behind that the next messages
// would not be found at once. During a rebuild, or when the views are in
// trouble, it does not: what is said is stored first and found later.
func (m *memory) awaitRoom(ctx context.Context) error {
	index := m.presentIndex()
	if index == nil {
		return nil
	}
	head, err := m.ledger.Head(ctx)
	if err != nil {
		return err
	}
	if m.isStuck() || head <= maxTail || index.Reach().Rebuilding {
		return nil
	}
	if err := index.WaitHeld(ctx, head-maxTail); !errors.Is(err, retrieve.ErrClosed) {
		return err
	}
	return nil
}

// newTurns checks turns and returns them as the ledger takes them. Sizes come
// first: they bound the rest.
func newTurns(list []*recalldv1.NewTurn) ([]ledger.Turn, error) {
	switch {
	case len(list) == 0:
		return nil, invalid("turns", "are missing", fmt.Sprintf("1 to %d", maxTurns), 0)
	case len(list) > maxTurns:
		return nil, tooLarge("turns", "are too many", maxTurns, len(list))
	}
	messages, bytes := 0, 0
	for _, t := range list {
		messages += len(t.GetMessages())
		for _, m := range t.GetMessages() {
			bytes += len(m.GetText())
		}
	}
	switch {
	case messages > ledger.MaxAppendMessages:
		return nil, tooLarge("turns.messages", "are too many", ledger.MaxAppendMessages, messages)
	case bytes > maxTextBytes:
		return nil, tooLarge("turns.messages.text", "is too large", sizeOf(maxTextBytes), sizeOf(bytes))
	}
	turns := make([]ledger.Turn, len(list))
	for i, t := range list {
		var err error
		if turns[i], err = newTurn(fmt.Sprintf("turns[%d]", i), t); err != nil {
			return nil, err
		}
	}
	return turns, nil
}

func newTurn(at string, t *recalldv1.NewTurn) (ledger.Turn, error) {
	turn := ledger.Turn{
		Session:      t.GetSessionId(),
		SessionTitle: t.GetSessionTitle(),
		ID:           t.GetTurnId(),
		Status:       ledger.Status(t.GetStatus()),
		Messages:     make([]ledger.Message, len(t.GetMessages())),
	}
	if err := checkName(at+".session_id", turn.Session, true); err != nil {
		return turn, err
	}
	if err := checkName(at+".session_title", turn.SessionTitle, false); err != nil {
		return turn, err
	}
	if err := checkName(at+".turn_id", turn.ID, true); err != nil {
		return turn, err
	}
	if err := checkEnum(at+".status", t.GetStatus(), recalldv1.TurnStatus_name, true); err != nil {
		return turn, err
	}
	for j, m := range t.GetMessages() {
		var err error
		if turn.Messages[j], err = newMessage(fmt.Sprintf("%s.messages[%d]", at, j), m); err != nil {
			return turn, err
		}
	}
	return turn, nil
}

func newMessage(at string, m *recalldv1.NewMessage) (ledger.Message, error) {
	message := ledger.Message{
		ID:      m.GetId(),
		Kind:    ledger.Kind(m.GetKind()),
		Speaker: m.GetSpeaker(),
		Text:    m.GetText(),
	}
	if err := checkName(at+".id", message.ID, false); err != nil {
		return message, err
	}
	if err := checkEnum(at+".kind", m.GetKind(), recalldv1.Kind_name, false); err != nil {
		return message, err
	}
	if err := checkName(at+".speaker", message.Speaker, false); err != nil {
		return message, err
	}
	var err error
	message.Time, message.Zone, err = checkSpoken(at+".time", m.GetTime())
	return message, err
}

// sessionsOf lists the sessions of turns, each once, in their order.
func sessionsOf(turns []ledger.Turn) []string {
	var list []string
	seen := map[string]bool{}
	for i := range turns {
		if s := turns[i].Session; !seen[s] {
			seen[s] = true
			list = append(list, s)
		}
	}
	return list
}

func appended(id string, results []ledger.AppendResult) *recalldv1.AppendResponse {
	resp := &recalldv1.AppendResponse{MemoryId: id, Turns: make([]*recalldv1.AppendedTurn, len(results))}
	for i, r := range results {
		turn := &recalldv1.AppendedTurn{
			SessionId: name(r.Session),
			TurnId:    name(r.TurnID),
			Sequence:  r.Seq,
			Status:    recalldv1.TurnStatus(r.Status),
			Messages:  make([]*recalldv1.AppendedMessage, len(r.Messages)),
		}
		for j, m := range r.Messages {
			turn.Messages[j] = &recalldv1.AppendedMessage{
				MessageId: name(m.ID),
				Outcome:   recalldv1.AppendOutcome(m.Outcome),
				Sequence:  m.Seq,
			}
			switch m.Outcome {
			case ledger.Stored:
				resp.Stored++
			case ledger.Duplicate:
				resp.Duplicates++
			case ledger.Forgotten:
				resp.Forgotten++
			}
		}
		resp.Turns[i] = turn
	}
	return resp
}
