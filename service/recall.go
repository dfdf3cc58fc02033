package service

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"recalld/ledger"
	recalldv1 "recalld/proto/recalld/v1"
	"recalld/retrieve"
)

// recaller answers RecallService.
type recaller struct {
	recalldv1.UnimplementedRecallServiceServer
	*Server
}

// A question is a RecallRequest after its checks.
type question struct {
	query        retrieve.Query
	passageBytes int
	budgetBytes  int
	budgetUnits  int // of UTF-16; 0 is no limit
	byTime       bool
	exclude      []string // message ids
	// given holds, by message number, what of it is not to be shown.
	given map[uint64][]retrieve.Range
	zone  string // of query.Now
}

// Recall ranks passages by how much they bear on a message.
//
// Every turn that was acknowledged before the call is found, unless the views
// are being made anew: then the source "words" says rebuilding and the snapshot
// how far they are.
func (h *recaller) Recall(ctx context.Context, req *recalldv1.RecallRequest) (*recalldv1.RecallResponse, error) {
	q, err := h.question(req)
	if err != nil {
		return nil, err
	}
	m, release, err := h.opened(ctx, req.GetMemory(), req.GetSessions())
	if err != nil {
		return nil, err
	}
	defer release()
	head, err := m.ledger.Head(ctx)
	if err != nil {
		return nil, err
	}
	if q.query.Exclude, err = sequences(ctx, m.ledger, q.exclude); err != nil {
		return nil, err
	}
	result, err := m.rank(ctx, h.places, q, head)
	if err != nil {
		return nil, err
	}
	resp := answer(m.id, head, q, result)
	if err := h.fill(ctx, m.ledger, q, result, resp); err != nil {
		return nil, err
	}
	h.metrics.answered(resp.Sources)
	skippedSources(ctx, resp.Sources)
	return resp, nil
}

// skippedSources puts into the log line of the call what its answer was made
// without.
func skippedSources(ctx context.Context, sources []*recalldv1.SourceOutcome) {
	for _, s := range sources {
		if o := s.GetOutcome(); o != recalldv1.Outcome_OUTCOME_USED && o != recalldv1.Outcome_OUTCOME_OFF {
			skipped(ctx, s.GetSource()+"="+outcomeName(o))
		}
	}
}

// opened gives the memory that a request names, once its sessions are known to
// be of it. The caller releases it.
func (h *recaller) opened(ctx context.Context, ref *recalldv1.MemoryRef, sessions []string) (*memory, func(), error) {
	id, err := h.resolve(ctx, ref)
	if err != nil {
		return nil, nil, err
	}
	if err := h.checkSessions(ctx, id, "sessions", sessions); err != nil {
		return nil, nil, err
	}
	return h.open.acquire(ctx, id)
}

// sparePassages are asked for beyond the limit, in the place of those whose
// shown text repeats another's.
const sparePassages = 10

// rank asks the views of m, once they hold the message numbered head or as far
// as they are, and once there is a place. Views that are replaced meanwhile are
// no error.
func (m *memory) rank(ctx context.Context, places places, of *question, head uint64) (retrieve.Result, error) {
	catchUp, ranking := divide(ctx, time.Now())
	ctx, cancel := withDeadline(ctx, ranking)
	defer cancel()
	q := of.query
	q.Limit += sparePassages
	for {
		v, err := m.ranks(ctx)
		if err != nil {
			return retrieve.Result{}, fmt.Errorf("open views: %w", err)
		}
		var result retrieve.Result
		if err = m.awaitHeld(ctx, catchUp, v.index, head); err == nil {
			result, err = recallIn(ctx, places, v.index, q)
		}
		if errors.Is(err, retrieve.ErrClosed) && ctx.Err() == nil && m.presentIndex() != v.index {
			continue
		}
		if err != nil {
			return retrieve.Result{}, fmt.Errorf("rank: %w", err)
		}
		return result, nil
	}
}

// recallIn ranks once there is a place for it. While it waits for a model it
// gives its place up.
func recallIn(ctx context.Context, places places, index *retrieve.Index, q retrieve.Query) (retrieve.Result, error) {
	leave, err := places.enter(ctx)
	if err != nil {
		return retrieve.Result{}, err
	}
	defer func() { leave() }()
	q.Yield = func() func(context.Context) error {
		leave()
		return func(ctx context.Context) error {
			again, err := places.enter(ctx)
			if err == nil {
				leave = again
			}
			return err
		}
	}
	return index.Recall(ctx, q)
}

// The smaller of lastReserve and a part in lastShare of the time left is kept
// back from the deadline to load, frame and send what was ranked.
const (
	lastReserve = 20 * time.Millisecond
	lastShare   = 5
)

// divide divides what is left of the deadline: half of it may be spent waiting
// for the views to catch up, and all but a reserve until the ranking is there.
// Without a deadline both are zero.
func divide(ctx context.Context, now time.Time) (catchUp, ranking time.Time) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return time.Time{}, time.Time{}
	}
	left := deadline.Sub(now)
	return now.Add(left / 2), deadline.Add(-min(lastReserve, left/lastShare))
}

// withDeadline is context.WithDeadline, but for the zero time.
func withDeadline(ctx context.Context, t time.Time) (context.Context, context.CancelFunc) {
	if t.IsZero() {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, t)
}

// awaitHeld waits until the views hold the message numbered head, at most until
// the time given. It does not wait for views that have far to go or are in
// trouble: their answer says how far they reach.
func (m *memory) awaitHeld(ctx context.Context, until time.Time, index *retrieve.Index, head uint64) error {
	if m.isStuck() {
		return nil
	}
	// The feeder learns of a long way before it sets out, we may ask before it.
	if index.Reach().Rebuilding || head > index.Held()+maxTail {
		return nil
	}
	waiting, cancel := withDeadline(ctx, until)
	defer cancel()
	err := index.WaitHeld(waiting, head)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil
	}
	return err
}

// answer is what a result says besides its passages.
func answer(id string, head uint64, q *question, r retrieve.Result) *recalldv1.RecallResponse {
	resp := &recalldv1.RecallResponse{
		MemoryId:        id,
		Snapshot:        &recalldv1.Reach{Sequence: head, Indexed: min(r.Held, head), Embedded: min(r.Embedded, head)},
		Gate:            gateOf(r.Gate),
		Now:             spokenAt(q.query.Now, q.zone),
		NothingToSearch: r.NothingToSearch,
		PeriodStart:     stampOf(r.PeriodStart),
		PeriodEnd:       stampOf(r.PeriodEnd),
	}
	for _, word := range r.Expansions {
		resp.Expansions = append(resp.Expansions, name(word))
	}
	for _, s := range r.Sources {
		o := sourceOf(s)
		if s.Source == retrieve.Words && s.Outcome == retrieve.Used && r.Held < head {
			o.Outcome = recalldv1.Outcome_OUTCOME_REBUILDING
		}
		if o.Outcome == recalldv1.Outcome_OUTCOME_REBUILDING && o.Reason == "" {
			o.Reason = fmt.Sprintf("the views reach message %d of %d", min(r.Held, head), head)
		}
		resp.Sources = append(resp.Sources, o)
	}
	return resp
}

func sourceOf(s retrieve.SourceOutcome) *recalldv1.SourceOutcome {
	return &recalldv1.SourceOutcome{
		Source:       s.Source.String(),
		Outcome:      recalldv1.Outcome(s.Outcome),
		Milliseconds: float64(s.Took) / float64(time.Millisecond),
		Reason:       name(s.Reason),
	}
}

func gateOf(g retrieve.Gate) *recalldv1.Gate {
	return &recalldv1.Gate{
		Measure:          g.Measure,
		Threshold:        g.Threshold,
		Passed:           g.Passed,
		PassageThreshold: g.PassageThreshold,
		Parts:            partsOf(g.Parts),
		Reason:           name(g.Reason),
	}
}

func partsOf(parts []retrieve.Part) []*recalldv1.Part {
	list := make([]*recalldv1.Part, len(parts))
	for i, p := range parts {
		list[i] = &recalldv1.Part{Name: p.Name, Value: p.Value, Weight: p.Weight}
	}
	return list
}

// sequences returns the numbers of messages by id. Ids that are not known are
// left out: what is in a live context need not have been appended yet.
func sequences(ctx context.Context, m *ledger.Memory, ids []string) ([]uint64, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	numbers, err := m.Sequences(ctx, ids)
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Values(numbers)), nil
}
