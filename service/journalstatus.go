package service

import (
	"context"
	"errors"

	"recalld/ledger"
	recalldv1 "recalld/proto/recalld/v1"
)

// journalStatus tells how far the journal of a memory is and what became of its
// last run. What the ledger cannot tell of it is the row's error, not the call's.
func (s *Server) journalStatus(ctx context.Context, id string, row *recalldv1.MemoryStatus) error {
	state := s.runs.state(id)
	row.JournalAttempts = state.attempts
	row.JournalNextRun = stampOf(s.nextRun())
	row.JournalLate = !s.store.ReadOnly() && s.runs.late(id, s.schedule, s.started, s.now())
	if err := s.maintenanceStatus(ctx, id, row); err != nil {
		return err
	}
	last, failed := state.last, state.err
	m, release, err := s.open.peek(ctx, id)
	if err == nil {
		defer release()
		var counts ledger.JournalCounts
		if counts, err = m.ledger.JournalCounts(ctx); err == nil {
			row.JournalTurns, row.JournalLag = counts.Read, counts.Waiting
			row.JournalEntries, row.JournalRejected = counts.Entries, counts.Dropped
			if counts.Last.After(last) {
				last = counts.Last // of a run before the server started
			}
		}
	}
	if ctx.Err() != nil || errors.Is(err, errEnding) {
		return err
	}
	row.JournalLastRun = stampOf(last)
	if err == nil {
		err = failed
	}
	if err != nil && row.LastError == "" {
		row.LastError = name(err.Error())
	}
	return nil
}

// journal checks the chain and every quote of one memory's journal.
func (v *verification) journal(ctx context.Context, m *memory) error {
	file := "memories/" + m.id + "/ledger.db"
	e, err := m.chronicle.read(ctx, m)
	var resp *recalldv1.JournalServiceVerifyResponse
	if err == nil {
		resp, err = m.verifyJournal(ctx, e, v.head)
	}
	if damage := (*ledger.DamageError)(nil); errors.As(err, &damage) {
		return v.report(m.id, []ledger.Problem{problemOf(damage)})
	}
	if err != nil {
		return err
	}
	var problems []ledger.Problem
	for _, what := range resp.GetProblems() {
		problems = append(problems, ledger.Problem{File: file, Table: "batch", What: what})
	}
	return v.report(m.id, problems)
}
