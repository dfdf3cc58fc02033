package service

import (
	"cmp"
	"context"
	"math"
	"slices"

	"recalld/consolidate"
	"recalld/ledger"
)

// A planned window is one to be read, with the turn that gives its place in the order.
type planned struct {
	window
	last uint64
}

// planTurns is how many turns are looked at together for windows. A window is
// full after four.
const planTurns = 32

// plan returns the windows to be read, in the order of their last turns: those
// that read otherwise now and those that are new.
func (r *run) plan(ctx context.Context) ([]planned, error) {
	reach, err := r.ledger.JournalReach(ctx)
	if err != nil {
		return nil, err
	}
	var list []planned
	for _, w := range r.edition.stale {
		list = append(list, planned{w, w.to.Turn})
	}
	for _, s := range reach {
		if s.Waiting == 0 {
			continue
		}
		windows, err := r.planSession(ctx, s.Session, r.edition.journal.Ends[s.Session])
		if err != nil {
			return nil, err
		}
		list = append(list, windows...)
	}
	slices.SortStableFunc(list, func(a, b planned) int {
		return cmp.Or(cmp.Compare(a.last, b.last), a.to.Compare(b.to))
	})
	return list, nil
}

// planSession returns the windows of a session after from, and closes its tail
// if that is asked for or it was idle for long enough.
func (r *run) planSession(ctx context.Context, session string, from consolidate.Position) ([]planned, error) {
	windows, tail, err := r.tile(ctx, session, from)
	if err != nil || tail.Turns == 0 {
		return windows, err
	}
	if !r.closeTail && r.now().Sub(tail.Appended) < idleTail {
		return windows, nil
	}
	if err := r.ledger.CloseTail(ctx, session, tail.LastTurn); err != nil {
		return nil, err
	}
	if len(windows) > 0 {
		from = windows[len(windows)-1].to
	}
	more, _, err := r.tile(ctx, session, from)
	return append(windows, more...), err
}

// tile returns the windows of a session that are closed after from, and the tail.
func (m *memory) tile(ctx context.Context, session string, from consolidate.Position) (list []planned, tail consolidate.Tail, err error) {
	closed, err := m.ledger.Closings(ctx, session)
	if err != nil {
		return nil, tail, err
	}
	for limit := planTurns; ; {
		turns, err := m.spokenTurns(ctx, session, from.Turn, math.MaxInt64, limit)
		if err != nil {
			return nil, tail, err
		}
		var windows []consolidate.Window
		windows, tail = consolidate.Session{ID: session, Turns: turns, Closed: closed}.Windows(from)
		for _, w := range windows {
			list = append(list, planned{window{session, w.From, w.To}, w.LastTurn})
			from = w.To
		}
		if len(turns) < limit {
			return list, tail, nil
		}
		if len(windows) == 0 {
			limit *= 2
		}
	}
}

func (m *memory) spokenTurns(ctx context.Context, session string, from, to uint64, limit int) ([]consolidate.Turn, error) {
	list, err := m.ledger.SpokenTurns(ctx, session, from, to, limit)
	if err != nil {
		return nil, err
	}
	turns := make([]consolidate.Turn, len(list))
	for i := range list {
		turns[i] = turnToRead(&list[i])
	}
	return turns, nil
}

// turnToRead is a turn as consolidate takes it. Message numbers are those of the
// memory: they order the messages of a turn as well.
func turnToRead(t *ledger.SourceTurn) consolidate.Turn {
	out := consolidate.Turn{ID: t.ID, Seq: t.Seq, Status: consolidate.Status(t.Status), Appended: t.Appended}
	for i := range t.Messages {
		m := &t.Messages[i]
		out.Messages = append(out.Messages, consolidate.Message{
			ID: m.ID, Seq: m.Seq, Kind: consolidate.MessageKind(m.Kind), Speaker: m.Speaker, Time: m.Time, Zone: m.Zone,
			Text: withoutEchoes(m.Text), Inner: m.Inner,
		})
	}
	return out
}

// readWindow reads a window as it is now: its turns, and before them the last
// in which the agent said something, which is its context.
func (m *memory) readWindow(ctx context.Context, at window) (consolidate.Window, error) {
	var turns []consolidate.Turn
	if at.from.Turn > 0 {
		before, err := m.ledger.ReplyBefore(ctx, at.session, at.from.Turn)
		if err != nil {
			return consolidate.Window{}, err
		}
		if before > 0 {
			if turns, err = m.spokenTurns(ctx, at.session, before, before, 1); err != nil {
				return consolidate.Window{}, err
			}
		}
	}
	own, err := m.spokenTurns(ctx, at.session, at.from.Turn, at.to.Turn, 0)
	if err != nil {
		return consolidate.Window{}, err
	}
	turns = append(turns, own...)
	if n := len(turns); n > 0 && turns[n-1].Status == consolidate.Open {
		turns[n-1].Status = consolidate.Interrupted // or it would not be in a window
	}
	return consolidate.Session{ID: at.session, Turns: turns}.Window(at.from, at.to), nil
}
