package service

import (
	"context"
	"os"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"recalld/ledger"
	recalldv1 "recalld/proto/recalld/v1"
)

// admin answers AdminService.
type admin struct {
	recalldv1.UnimplementedAdminServiceServer
	*Server
}

// Status tells what the server is and how far each memory has come. It opens no
// views for it: of a memory that is closed it tells what the ledger holds.
func (h *admin) Status(ctx context.Context, req *recalldv1.StatusRequest) (*recalldv1.StatusResponse, error) {
	only := ""
	if req.GetMemory() != nil {
		id, err := h.resolve(ctx, req.GetMemory())
		if err != nil {
			return nil, err
		}
		only = id
	}
	infos, err := h.store.List(ctx)
	if err != nil {
		return nil, err
	}
	resp := &recalldv1.StatusResponse{
		Build:     name(h.options.Build),
		Root:      name(h.options.Root),
		Socket:    name(h.options.Socket),
		ProcessId: uint32(os.Getpid()),
		Started:   stampOf(h.started),
	}
	if err := h.modelStatus(ctx, resp); err != nil {
		return nil, err
	}
	for _, info := range infos {
		if only != "" && info.ID != only {
			continue
		}
		row, err := h.memoryStatus(ctx, info)
		if err != nil {
			return nil, err
		}
		if only == "" && isUnlisted(info, row.GetTurns(), row.GetDamage()) {
			continue
		}
		resp.Memories = append(resp.Memories, row)
	}
	return resp, nil
}

func (h *admin) memoryStatus(ctx context.Context, info ledger.MemoryInfo) (*recalldv1.MemoryStatus, error) {
	counts, damage, err := h.counts(ctx, info.ID)
	if err != nil {
		return nil, err
	}
	row := &recalldv1.MemoryStatus{
		Id:          info.ID,
		Agent:       name(info.Key.Agent),
		Project:     name(info.Key.Project),
		DisplayName: name(info.Name),
		Sessions:    counts.Sessions,
		Turns:       counts.Turns,
		Messages:    counts.Messages,
		TextBytes:   counts.TextBytes,
		DiskBytes:   diskBytes(h.store.Folder(info.ID)),
		Reach:       &recalldv1.Reach{Sequence: counts.Messages},
		Damage:      damage,
	}
	if damage != "" {
		return row, nil
	}
	spent, err := h.store.SpendToday(ctx, info.ID)
	if err != nil {
		return nil, err
	}
	row.SpendToday = spendOf(spent)
	if err := h.journalStatus(ctx, info.ID, row); err != nil {
		return nil, err
	}
	if !h.open.isOpen(info.ID) {
		return row, nil
	}
	m, release, err := h.open.peek(ctx, info.ID)
	if err != nil {
		return nil, err
	}
	defer release()
	return row, describe(ctx, m, row)
}

// describe tells how far the views of an open memory are.
func describe(ctx context.Context, m *memory, row *recalldv1.MemoryStatus) error {
	head, err := m.ledger.Head(ctx)
	if err != nil {
		return err
	}
	row.Reach.Sequence = head
	lastErr := m.lastError()
	if index := m.presentIndex(); index != nil {
		reach := index.Reach()
		row.Open = true
		row.Rebuilding = reach.Rebuilding
		row.Reach.Indexed, row.Reach.Embedded = reach.Held, reach.Embedded
		e := index.Embedding()
		row.EmbeddingModel, row.EmbeddingNextModel = name(e.Identity), name(e.Next)
		row.EmbeddingDone, row.EmbeddingTotal = e.Done, e.Total
		if e.LastError != nil {
			lastErr = e.LastError
		}
		if err := index.LastError(); err != nil {
			lastErr = err
		}
	}
	if lastErr != nil {
		row.LastError = name(lastErr.Error())
	}
	return nil
}

// Stop ends the server once the calls under way are answered, this one too.
func (h *admin) Stop(context.Context, *recalldv1.StopRequest) (*recalldv1.StopResponse, error) {
	if h.options.Stop == nil {
		return nil, status.Error(codes.Unimplemented, "this server is not stopped by a call")
	}
	h.options.Stop()
	return &recalldv1.StopResponse{ProcessId: uint32(os.Getpid())}, nil
}

// Rebuild makes the views of a memory anew from its ledger. Recalls go on
// meanwhile and say how far the views reach. If the client leaves, the work goes
// on without telling anybody. Rebuilds of one memory come one after the other.
func (h *admin) Rebuild(req *recalldv1.RebuildRequest, stream recalldv1.AdminService_RebuildServer) error {
	ctx := stream.Context()
	id, err := h.resolve(ctx, req.GetMemory())
	if err != nil {
		return err
	}
	m, release, err := h.open.acquire(ctx, id)
	if err != nil {
		return err
	}
	defer release()
	// One that waits for another of its memory takes no place from the others.
	select {
	case m.rebuilding <- struct{}{}:
		defer func() { <-m.rebuilding }()
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case h.rebuilds <- struct{}{}:
		defer func() { <-h.rebuilds }()
	default:
		return tooLarge("rebuilds", "are too many at once", maxRebuilds, maxRebuilds+1)
	}
	total, err := m.ledger.Head(ctx)
	if err != nil {
		return err
	}
	v, err := m.rebuild(ctx)
	if err != nil {
		return err
	}
	for done := uint64(0); done < total; {
		if err := v.index.WaitHeld(ctx, min(done+rebuildStep, total)); err != nil {
			return err
		}
		done = min(max(v.index.Held(), done+rebuildStep), total)
		if err := stream.Send(&recalldv1.RebuildResponse{MessagesDone: done, MessagesTotal: total}); err != nil {
			return err
		}
	}
	if err := v.index.Flush(ctx); err != nil {
		return err
	}
	return stream.Send(&recalldv1.RebuildResponse{MessagesDone: total, MessagesTotal: total, Done: true})
}

// rebuildStep is how many messages lie between two reports.
const rebuildStep = 1_000

// rebuild replaces the views by new ones and returns these.
func (m *memory) rebuild(ctx context.Context) (*views, error) {
	m.want()
	r := &rebuild{made: make(chan *views, 1)}
	select {
	case m.anew <- r:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	var v *views
	select {
	case v = <-r.made:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case <-v.ready:
		return v, v.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
