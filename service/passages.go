package service

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

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

// fill puts passages into an answer: it loads their texts with one call of the
// ledger, cuts what is shown of each, drops what is shown twice, keeps as many
// of the best as were asked for, fits these into the budget and frames them.
// What the answer calls omitted is what the budget had no room for.
func (s *Server) fill(ctx context.Context, m *ledger.Memory, q *question, r retrieve.Result, resp *recalldv1.RecallResponse) error {
	if len(r.Passages) == 0 {
		return nil
	}
	records, err := loadRecords(ctx, m, r.Passages)
	if err != nil {
		return err
	}
	neighbours, err := neighbourIDs(ctx, m, r.Passages)
	if err != nil {
		return err
	}
	list, damage := choose(r.Passages, records, q)
	if damage != nil {
		resp.Sources = append(resp.Sources, &recalldv1.SourceOutcome{
			Source: "ledger", Outcome: recalldv1.Outcome_OUTCOME_FAILED, Reason: name(damage.Error()),
		})
	}
	passages := make([]*recalldv1.Passage, 0, len(list))
	texts := map[string]bool{}
	for i := range list {
		if len(passages) == q.query.Limit {
			break
		}
		p := list[i].passageOf(q.passageBytes, neighbours)
		if text := strings.TrimSpace(p.GetText()); text != "" && !texts[text] {
			texts[text] = true
			passages = append(passages, p)
		}
	}
	s.fit(q, passages, resp)
	return nil
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

// fit puts as many passages into the answer, best first, as the rendered block
// has room for, and then into the order that was asked for.
func (s *Server) fit(q *question, passages []*recalldv1.Passage, resp *recalldv1.RecallResponse) {
	rendered := make(map[*recalldv1.Passage]string, len(passages))
	sizes := make([]int, len(passages))
	for i, p := range passages {
		rendered[p] = renderPassage(p)
		sizes[i] = len(rendered[p])
	}
	for _, i := range retrieve.Fit(frameBytes, sizes, q.budgetBytes) {
		resp.Passages = append(resp.Passages, passages[i])
	}
	resp.Omitted = uint32(len(passages) - len(resp.Passages))
	if q.byTime {
		slices.SortStableFunc(resp.Passages, older)
	}
	lines := make([]string, len(resp.Passages))
	for i, p := range resp.Passages {
		lines[i] = rendered[p]
	}
	resp.Block = s.frame.block(lines)
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
