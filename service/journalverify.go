package service

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"recalld/consolidate"
	"recalld/ledger"
	recalldv1 "recalld/proto/recalld/v1"
)

// maxJournalProblems bounds what Verify reports; a journal that is wrong all
// over need not be described batch by batch.
const maxJournalProblems = 1_000

// Verify checks the chain, that a head kept elsewhere is in it, and that every
// quote says byte for byte what it said when its entry was stored.
func (h *journal) Verify(ctx context.Context, req *recalldv1.JournalServiceVerifyRequest) (*recalldv1.JournalServiceVerifyResponse, error) {
	pinned, err := checkHead(req.GetHead())
	if err != nil {
		return nil, err
	}
	m, e, release, err := h.enter(ctx, req.GetMemory())
	if err != nil {
		return nil, err
	}
	defer release()
	return m.verifyJournal(ctx, e, pinned)
}

// verifyJournal checks the journal of m. pinned may be nil.
func (m *memory) verifyJournal(ctx context.Context, e *edition, pinned []byte) (*recalldv1.JournalServiceVerifyResponse, error) {
	v := journalVerification{m: m, resp: &recalldv1.JournalServiceVerifyResponse{Batches: uint64(len(e.batches))}}
	if err := consolidate.VerifyChain(e.batches, [32]byte{}); err != nil {
		v.found("%s", err.Error())
	}
	inChain := pinned == nil
	for i := range e.batches {
		b := &e.batches[i]
		inChain = inChain || string(b.Hash[:]) == string(pinned)
		if err := v.quotes(ctx, b); err != nil {
			return nil, err
		}
	}
	if !inChain {
		v.found("the head that was given is not in the chain")
	}
	v.resp.Ok = len(v.resp.Problems) == 0
	return v.resp, nil
}

// checkHead returns a hash, nil if none is given.
func checkHead(s string) ([]byte, error) {
	if s == "" {
		return nil, nil
	}
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != 32 {
		return nil, invalid("head", "is not 64 digits of hex", nil, nil)
	}
	return b, nil
}

type journalVerification struct {
	m    *memory
	resp *recalldv1.JournalServiceVerifyResponse
}

func (v *journalVerification) found(format string, args ...any) {
	if len(v.resp.Problems) < maxJournalProblems {
		v.resp.Problems = append(v.resp.Problems, fmt.Sprintf(format, args...))
	}
}

// quotes holds the entries of a window against what was said. A window that
// grew since reads otherwise, but what was quoted must still stand in it, in
// messages that are what they were.
func (v *journalVerification) quotes(ctx context.Context, b *consolidate.Batch) error {
	if len(b.Entries) == 0 {
		return nil
	}
	w, err := v.m.readWindow(ctx, windowOf(*b))
	if damage := (*ledger.DamageError)(nil); errors.As(err, &damage) {
		v.found("the window of turns %d to %d cannot be read: %v", b.FirstTurn, b.LastTurn, damage)
		return nil
	}
	if err != nil {
		return err
	}
	inner := map[string][32]byte{}
	window, before := w.Sources()
	for _, s := range append(window, before...) {
		inner[s.Message] = s.Inner
	}
	was := map[string][32]byte{}
	for _, s := range append(append([]consolidate.Source(nil), b.Window...), b.Context...) {
		was[s.Message] = s.Inner
	}
	for i := range b.Entries {
		e := &b.Entries[i]
		if e.Forgotten {
			continue
		}
		for _, q := range e.Quotes {
			v.resp.Quotes++
			if inner[q.Message] != was[q.Message] {
				v.found("entry %s: message %q is not what it was", e.ID, name(q.Message))
			}
		}
		if !w.Holds(*e) || wordsOf(w, *e) != e.Text {
			v.found("entry %s: its quotes do not say what it says", e.ID)
		}
	}
	return nil
}

// A teller sends how far a run is, not oftener than a person can see.
type teller struct {
	stream recalldv1.JournalService_ConsolidateServer
	cancel context.CancelFunc
	sent   time.Time
	failed error
}

func (t *teller) tell(p progress) {
	now := time.Now()
	if t.failed != nil || now.Sub(t.sent) < progressEvery {
		return
	}
	t.sent = now
	if t.failed = t.stream.Send(progressOf(p)); t.failed != nil {
		t.cancel() // nobody listens any more
	}
}

func progressOf(p progress) *recalldv1.ConsolidateResponse {
	return &recalldv1.ConsolidateResponse{
		WindowsDone: p.done, WindowsTotal: p.total, Entries: p.entries, Rejected: p.rejected, SessionId: name(p.session),
	}
}
