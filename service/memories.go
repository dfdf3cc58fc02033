package service

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"google.golang.org/protobuf/proto"

	"recalld/ledger"
	recalldv1 "recalld/proto/recalld/v1"
)

// memories answers MemoriesService.
type memories struct {
	recalldv1.UnimplementedMemoriesServiceServer
	*Server
}

// Bind ties a session to a memory, which it makes when it is new.
func (h *memories) Bind(ctx context.Context, req *recalldv1.BindRequest) (*recalldv1.BindResponse, error) {
	if len(req.GetAliases()) > maxListed {
		return nil, invalid("aliases", "are too many", maxListed, len(req.GetAliases()))
	}
	id, bound, err := h.store.Bind(ctx, ledger.Binding{
		Session: req.GetSessionId(),
		Key:     ledger.MemoryKey{Agent: req.GetAgent(), Project: req.GetProject()},
		Name:    req.GetDisplayName(),
		Aliases: req.GetAliases(),
	})
	if err != nil {
		return nil, err
	}
	return &recalldv1.BindResponse{MemoryId: id, Bound: bound}, nil
}

// List tells which memories there are, but for those without turns that nobody
// gave a name. One that cannot be opened is in the list
// and says why.
func (h *memories) List(ctx context.Context, req *recalldv1.ListRequest) (*recalldv1.ListResponse, error) {
	if err := checkName("agent", req.GetAgent(), false); err != nil {
		return nil, err
	}
	infos, err := h.store.List(ctx)
	if err != nil {
		return nil, err
	}
	resp := new(recalldv1.ListResponse)
	for _, info := range infos {
		if req.GetAgent() != "" && info.Key.Agent != req.GetAgent() {
			continue
		}
		counts, damage, err := h.counts(ctx, info.ID)
		if err != nil {
			return nil, err
		}
		if isUnlisted(info, counts.Turns, damage) {
			continue
		}
		row := &recalldv1.MemorySummary{
			Id:          info.ID,
			Agent:       name(info.Key.Agent),
			Project:     name(info.Key.Project),
			DisplayName: name(info.Name),
			Sessions:    counts.Sessions,
			Turns:       counts.Turns,
			Messages:    counts.Messages,
			TextBytes:   counts.TextBytes,
			DiskBytes:   diskBytes(h.store.Folder(info.ID)),
			First:       stampOf(counts.First),
			Last:        stampOf(counts.Last),
			Damage:      damage,
		}
		for _, alias := range info.Aliases {
			row.Aliases = append(row.Aliases, name(alias))
		}
		resp.Memories = append(resp.Memories, row)
	}
	return resp, nil
}

// counts returns how much a memory holds, or why it cannot be opened. An error
// is that of the call, not of the memory.
func (s *Server) counts(ctx context.Context, id string) (counts ledger.Counts, damage string, err error) {
	m, release, err := s.open.peek(ctx, id)
	if err == nil {
		defer release()
		counts, err = m.ledger.Counts(ctx)
	}
	if err == nil {
		return counts, "", nil
	}
	if ctx.Err() != nil || errors.Is(err, errEnding) {
		return ledger.Counts{}, "", err
	}
	return ledger.Counts{}, damageOf(err), nil
}

// isUnlisted reports whether a memory is left out where all are told of: nothing
// was ever kept in it and nobody gave it a name.
func isUnlisted(info ledger.MemoryInfo, turns uint64, damage string) bool {
	return turns == 0 && damage == "" && info.Name == "" && len(info.Aliases) == 0
}

// damageOf says why a memory cannot be opened. An error that has no name in the
// contract is told in its own words: whoever may ask for it owns the store.
func damageOf(err error) string {
	var d *ledger.DamageError
	if errors.As(err, &d) {
		return d.Error()
	}
	return err.Error()
}

// diskBytes is how much a folder holds. What cannot be looked at, because it
// was just merged away, counts nothing.
func diskBytes(folder string) uint64 {
	var sum uint64
	_ = filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return nil
		}
		if info, err := entry.Info(); err == nil {
			sum += uint64(info.Size())
		}
		return nil
	})
	return sum
}

// maxPageSize is what the contract allows a page of history on the wire.
const maxPageSize = 2_000_000

// History pages backwards through turns. A session that is bound to the memory
// and has no turns yet has an empty page.
func (h *memories) History(ctx context.Context, req *recalldv1.HistoryRequest) (*recalldv1.HistoryResponse, error) {
	limit, err := inRange("limit", req.GetLimit(), defaultPageTurns, 1, maxPageTurns)
	if err != nil {
		return nil, err
	}
	kinds, err := checkKinds[ledger.Kind]("kinds", req.GetKinds())
	if err != nil {
		return nil, err
	}
	if err := checkName("session_id", req.GetSessionId(), false); err != nil {
		return nil, err
	}
	id, err := h.resolve(ctx, req.GetMemory())
	if err != nil {
		return nil, err
	}
	m, release, err := h.open.acquire(ctx, id)
	if err != nil {
		return nil, err
	}
	defer release()
	if req.GetSessionId() != "" {
		if err := h.checkSession(ctx, id, "session_id", req.GetSessionId()); err != nil {
			return nil, err
		}
	}
	turns, next, err := m.ledger.History(ctx, ledger.HistoryQuery{
		Session: req.GetSessionId(), Before: req.GetBefore(), Limit: limit, Kinds: kinds, MaxBytes: maxPageBytes,
	})
	if errors.Is(err, ledger.ErrNotFound) {
		return new(recalldv1.HistoryResponse), nil // bound, and nothing said in it yet
	}
	if err != nil {
		return nil, err
	}
	resp := &recalldv1.HistoryResponse{Next: next}
	for i := range turns {
		turn, err := turnOf(&turns[i])
		if err != nil {
			return nil, err
		}
		resp.Turns = append(resp.Turns, turn)
	}
	fitPage(resp)
	return resp, nil
}

// fitPage leaves the oldest turns to the next page until this one is as small
// as promised: what is shown may be larger than what is stored.
func fitPage(resp *recalldv1.HistoryResponse) {
	for size := proto.Size(resp); size >= maxPageSize && len(resp.Turns) > 1; {
		size -= proto.Size(resp.Turns[0])
		resp.Turns = resp.Turns[1:]
		resp.Next = resp.Turns[0].Sequence
	}
}

// GetMessage streams the stored bytes of one message.
func (h *memories) GetMessage(req *recalldv1.GetMessageRequest, stream recalldv1.MemoriesService_GetMessageServer) error {
	ctx := stream.Context()
	if err := checkName("message_id", req.GetMessageId(), true); err != nil {
		return err
	}
	id, err := h.resolve(ctx, req.GetMemory())
	if err != nil {
		return err
	}
	m, release, err := h.open.acquire(ctx, id)
	if err != nil {
		return err
	}
	defer release()
	record, err := m.ledger.Message(ctx, req.GetMessageId())
	if errors.Is(err, ledger.ErrNotFound) {
		return errUnknown("message_id")
	}
	if err != nil {
		return err
	}
	left := leave(record.Text)
	first := messageOf(&record.Message, record.Session, record.TurnID)
	first.Exact = !left.masked
	if err := stream.Send(&recalldv1.GetMessageResponse{Message: first}); err != nil {
		return err
	}
	for rest := left.bytes; len(rest) > 0; {
		n := min(len(rest), chunkBytes)
		if err := stream.Send(&recalldv1.GetMessageResponse{Data: rest[:n]}); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}
