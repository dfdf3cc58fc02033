package service

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"recalld/consolidate"
	"recalld/ledger"
	recalldv1 "recalld/proto/recalld/v1"
	"recalld/retrieve"
)

// A shown passage is one on its way into the answer.
type shown struct {
	passage retrieve.Passage
	record  *ledger.Record
	left    leaving
	shown   retrieve.Range // of the stored bytes
}

// fill puts passages into an answer: those to be shown that fit into the budget,
// framed. What the answer calls omitted is what the budget had no room for.
func (s *Server) fill(ctx context.Context, m *ledger.Memory, q *question, r retrieve.Result, resp *recalldv1.RecallResponse) error {
	d, err := show(ctx, m, q, r.Passages)
	if err != nil {
		return err
	}
	resp.Sources = append(resp.Sources, d.damage...)
	s.fit(q, d.passages, resp)
	return nil
}

// A display is what is shown of the passages of a ranking, best first.
type display struct {
	passages []*recalldv1.Passage
	damage   []*recalldv1.SourceOutcome // one when a message was damaged
}

// show loads the texts of passages with one call of the ledger, cuts what is
// shown of each, drops what is shown twice, and keeps as many of the best as
// were asked for.
func show(ctx context.Context, m *ledger.Memory, q *question, ranked []retrieve.Passage) (d display, err error) {
	if len(ranked) == 0 {
		return d, nil
	}
	records, err := loadRecords(ctx, m, ranked)
	if err != nil {
		return d, err
	}
	neighbours, err := neighbourIDs(ctx, m, ranked)
	if err != nil {
		return d, err
	}
	list, damage := choose(ranked, records, q)
	if damage != nil {
		d.damage = append(d.damage, &recalldv1.SourceOutcome{
			Source: "ledger", Outcome: recalldv1.Outcome_OUTCOME_FAILED, Reason: name(damage.Error()),
		})
	}
	d.passages = make([]*recalldv1.Passage, 0, len(list))
	texts := map[string]bool{}
	for i := range list {
		if len(d.passages) == q.query.Limit {
			break
		}
		p := list[i].passageOf(q.passageBytes, neighbours)
		if text := strings.TrimSpace(p.GetText()); text != "" && !texts[text] {
			texts[text] = true
			d.passages = append(d.passages, p)
		}
	}
	return d, nil
}

// loadRecords reads the messages of passages, by number.
func loadRecords(ctx context.Context, m *ledger.Memory, passages []retrieve.Passage) (map[uint64]*ledger.Record, error) {
	var seqs []uint64
	for _, p := range passages {
		seqs = append(seqs, p.Seq)
	}
	slices.Sort(seqs)
	records, err := m.MessagesBySeq(ctx, slices.Compact(seqs))
	if err != nil {
		return nil, fmt.Errorf("load passages: %w", err)
	}
	bySeq := make(map[uint64]*ledger.Record, len(records))
	for i := range records {
		bySeq[records[i].Seq] = &records[i]
	}
	return bySeq, nil
}

// neighbourIDs returns the ids of the messages around passages, by number. One
// that is damaged has none.
func neighbourIDs(ctx context.Context, m *ledger.Memory, passages []retrieve.Passage) (map[uint64]string, error) {
	var seqs []uint64
	for _, p := range passages {
		for _, seq := range []uint64{p.Previous, p.Next} {
			if seq != 0 {
				seqs = append(seqs, seq)
			}
		}
	}
	ids, err := m.IDs(ctx, seqs)
	if err != nil {
		return nil, fmt.Errorf("load neighbours: %w", err)
	}
	return ids, nil
}

// choose says what is shown of each passage, best first. Of passages of one
// message that overlap, the better one takes the other in. A message that is
// damaged is left out, and the first damage returned.
func choose(passages []retrieve.Passage, records map[uint64]*ledger.Record, q *question) (list []shown, damage error) {
	texts := map[uint64]string{}
	for _, p := range passages {
		record := records[p.Seq]
		if record.Damage != nil {
			damage = cmp.Or[error](damage, record.Damage)
			continue
		}
		left := leave(record.Text)
		text, ok := texts[p.Seq]
		if !ok {
			text = string(left.bytes)
			texts[p.Seq] = text
		}
		s := shown{p, record, left, retrieve.Excerpt(text, p.Range, q.passageBytes, q.query.Text)}
		s.shown = freeAround(p.Range, s.shown, slices.Concat(echoes(left.bytes), q.given[p.Seq]))
		if !absorbed(list, &s, q.passageBytes) {
			list = append(list, s)
		}
	}
	return list, damage
}

// absorbed reports whether nothing of s is left to show, because a better
// passage of the same message shows it, or grew to show it. If both together
// are too long for one passage, s keeps only what the better one leaves.
func absorbed(list []shown, s *shown, passageBytes int) bool {
	for i := range list {
		better := &list[i].shown
		if list[i].record.Seq != s.record.Seq || s.shown.Start > better.End || s.shown.End < better.Start {
			continue
		}
		both := retrieve.Range{Start: min(better.Start, s.shown.Start), End: max(better.End, s.shown.End)}
		switch {
		case both.End-both.Start <= passageBytes:
			*better = both
			return true
		case s.shown.Start < better.Start:
			s.shown.End = min(s.shown.End, better.Start)
		default:
			s.shown.Start = max(s.shown.Start, better.End)
		}
	}
	return s.shown.Start >= s.shown.End
}

// passageOf is a passage as it leaves.
func (s *shown) passageOf(passageBytes int, neighbours map[uint64]string) *recalldv1.Passage {
	text, end, exact := s.left.cut(s.shown.Start, s.shown.End, passageBytes)
	r := s.record
	return &recalldv1.Passage{
		MessageId:         name(r.ID),
		TurnId:            name(r.TurnID),
		SessionId:         name(r.Session),
		SessionTitle:      name(r.SessionTitle),
		Speaker:           name(r.Speaker),
		Kind:              recalldv1.Kind(r.Kind),
		Time:              spokenAt(r.Time, r.Zone),
		Range:             &recalldv1.ByteRange{Start: uint64(s.shown.Start), End: uint64(end)},
		Text:              text,
		Exact:             exact,
		PreviousMessageId: name(neighbours[s.passage.Previous]),
		NextMessageId:     name(neighbours[s.passage.Next]),
		Score:             s.passage.Score,
		Parts:             partsOf(s.passage.Parts),
		ExpansionParts:    partsOf(s.passage.ExpansionParts),
		Sequence:          r.Seq,
	}
}

// freeAround is the part of shown that is free of what is not to be shown and holds
// most of the slice that bears on the query; an empty one if that is nothing.
func freeAround(slice, shown retrieve.Range, hidden []retrieve.Range) retrieve.Range {
	if len(hidden) == 0 {
		return shown
	}
	slices.SortFunc(hidden, func(a, b retrieve.Range) int { return cmp.Compare(a.Start, b.Start) })
	best, most, from := retrieve.Range{Start: shown.Start, End: shown.Start}, 0, shown.Start
	free := func(end int) {
		if n := min(end, slice.End) - max(from, slice.Start); n > most {
			best, most = retrieve.Range{Start: from, End: end}, n
		}
	}
	for _, h := range hidden {
		free(min(h.Start, shown.End))
		from = max(from, h.End)
	}
	free(shown.End)
	return best
}

// fit puts as many passages into the answer, best first, as the rendered block
// has room for, and then into the order that was asked for.
func (s *Server) fit(q *question, passages []*recalldv1.Passage, resp *recalldv1.RecallResponse) {
	resp.Passages, resp.Block = s.arrange(q, nil, passages)
	resp.Omitted = uint32(len(passages) - len(resp.Passages))
}

// arrange frames lines of the journal, which fit, and behind them as many
// passages, best first, as the block has room for, in the order that was asked
// for. A passage that does not fit is left out; a smaller one after it may fit.
func (s *Server) arrange(q *question, lines []string, passages []*recalldv1.Passage) (kept []*recalldv1.Passage, block string) {
	room := q.room()
	for _, line := range lines {
		room.Take(consolidate.SizeOf(line))
	}
	rendered := make(map[*recalldv1.Passage]string, len(passages))
	for _, p := range passages {
		text := renderPassage(p)
		if size := consolidate.SizeOf(text); size.Within(room) {
			room.Take(size)
			rendered[p] = text
			kept = append(kept, p)
		}
	}
	if q.byTime {
		slices.SortStableFunc(kept, older)
	}
	lines = slices.Clone(lines)
	for _, p := range kept {
		lines = append(lines, rendered[p])
	}
	return kept, s.frame.block(lines)
}

// room is what the lines of a block may take.
func (q *question) room() consolidate.Size {
	units := math.MaxInt
	if q.budgetUnits > 0 {
		units = q.budgetUnits - frameBytes
	}
	return consolidate.Size{Bytes: q.budgetBytes - frameBytes, Units: units}
}

// older compares by when something was said; what has no time comes first.
// Passages of one instant keep the order of arrival, and in a message its own.
func older(a, b *recalldv1.Passage) int {
	return cmp.Or(
		a.GetTime().GetAt().AsTime().Compare(b.GetTime().GetAt().AsTime()),
		cmp.Compare(a.GetSequence(), b.GetSequence()),
		cmp.Compare(a.GetRange().GetStart(), b.GetRange().GetStart()),
	)
}
