package service

import (
	"context"
	"errors"
	"time"

	"recalld/ledger"
	recalldv1 "recalld/proto/recalld/v1"
)

// progressEvery is the least time between two reports of progress.
const progressEvery = 200 * time.Millisecond

// Verify checks the ledger: of one memory, or of the whole store with its
// catalog. Memories are checked one after the other and problems told as they
// are found; the last response says whether all was sound. Deep, and where a head of
// the journal is given, the journal is held against the words it rests on.
func (h *admin) Verify(req *recalldv1.VerifyRequest, stream recalldv1.AdminService_VerifyServer) error {
	head, err := checkHead(req.GetHead())
	if err != nil {
		return err
	}
	if head != nil && req.GetMemory() == nil {
		return invalid("head", "is that of one memory, and none is named", nil, nil)
	}
	ctx := stream.Context()
	v := verification{Server: h.Server, stream: stream, head: head, options: ledger.VerifyOptions{Deep: req.GetDeep(), Sample: int(req.GetSample())}}
	ids, err := v.scope(ctx, req.GetMemory())
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := v.memory(ctx, id); err != nil {
			return err
		}
	}
	return stream.Send(&recalldv1.VerifyResponse{Done: true, Ok: !v.bad, Memories: uint64(len(ids))})
}

// A verification is a Verify under way.
type verification struct {
	*Server
	stream  recalldv1.AdminService_VerifyServer
	options ledger.VerifyOptions
	head    []byte // of the journal, nil if none is given
	bad     bool
}

// scope returns the memories to check. For the whole store it checks what is
// around them first.
func (v *verification) scope(ctx context.Context, ref *recalldv1.MemoryRef) ([]string, error) {
	if ref != nil {
		id, err := v.resolve(ctx, ref)
		return []string{id}, err
	}
	problems, err := v.store.Verify(ctx)
	if err != nil {
		return nil, err
	}
	if err := v.report("", problems); err != nil {
		return nil, err
	}
	infos, err := v.store.List(ctx)
	if damage := (*ledger.DamageError)(nil); errors.As(err, &damage) {
		return nil, v.report("", []ledger.Problem{problemOf(damage)})
	}
	ids := make([]string, len(infos))
	for i, info := range infos {
		ids[i] = info.ID
	}
	return ids, err
}

// memory checks one memory. One that cannot be opened is a problem, not the end.
func (v *verification) memory(ctx context.Context, id string) error {
	m, release, err := v.open.peek(ctx, id)
	if damage := (*ledger.DamageError)(nil); errors.As(err, &damage) {
		return v.report(id, []ledger.Problem{problemOf(damage)})
	}
	if err != nil {
		return err
	}
	defer release()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var sent time.Time
	var failed error
	problems, err := m.ledger.Verify(ctx, v.options, func(done, total uint64) {
		if now := time.Now(); now.Sub(sent) >= progressEvery && failed == nil {
			sent = now
			failed = v.stream.Send(&recalldv1.VerifyResponse{MemoryId: id, MessagesDone: done, MessagesTotal: total})
			if failed != nil {
				cancel() // nobody listens any more
			}
		}
	})
	if failed != nil {
		return failed
	}
	if err != nil {
		return err
	}
	if err := v.report(id, problems); err != nil {
		return err
	}
	if v.options.Deep || v.head != nil {
		return v.journal(ctx, m)
	}
	return nil
}

// report sends problems, as many in one response as surely fit.
func (v *verification) report(id string, problems []ledger.Problem) error {
	const most = 200
	for len(problems) > 0 {
		v.bad = true
		n := min(len(problems), most)
		resp := &recalldv1.VerifyResponse{MemoryId: id}
		for _, p := range problems[:n] {
			resp.Problems = append(resp.Problems, &recalldv1.Problem{
				MemoryId: id, File: name(p.File), Table: name(p.Table), Row: p.Row, What: name(p.What),
			})
		}
		if err := v.stream.Send(resp); err != nil {
			return err
		}
		problems = problems[n:]
	}
	return nil
}

func problemOf(d *ledger.DamageError) ledger.Problem {
	return ledger.Problem{File: d.File, Table: d.Table, Row: d.Row, What: d.What}
}
