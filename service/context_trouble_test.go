package service_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"recalld/ledger"
	recalldv1 "recalld/proto/recalld/v1"
	"recalld/service"
)

// of returns what became of a source of an answer.
func of(resp *recalldv1.PreTurnResponse, source string) *recalldv1.SourceOutcome {
	for _, s := range resp.Sources {
		if s.Source == source {
			return s
		}
	}
	return nil
}

// reopened stops the server of an asker, changes its ledger and starts another.
func (a *asker) reopened(statements ...string) *asker {
	a.t.Helper()
	a.stop()
	id := ledger.MemoryID(ledger.MemoryKey{Agent: "agent", Project: "project"})
	db, err := sql.Open("sqlite", filepath.Join(a.root, "memories", id, "ledger.db"))
	if err != nil {
		a.t.Fatal(err)
	}
	defer db.Close()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			a.t.Fatal(err)
		}
	}
	b := askerOf(startIn(a.t, a.root, service.Options{Consolidate: "off"}))
	b.settle()
	return b
}

// TestDamagedJournalGivesPassages: what can be read is given, and what cannot is
// named.
func TestDamagedJournalGivesPassages(t *testing.T) {
	a := counselled(t).reopened("UPDATE batch SET dropped = dropped + 1 WHERE number = 1")
	resp, e := a.gives(asks("chat", tabs))
	if len(e.Entries) > 0 || len(e.Passages) == 0 {
		t.Errorf("given %v", e.texts())
	}
	if s := of(resp, "journal"); s.GetOutcome() != recalldv1.Outcome_OUTCOME_FAILED || !strings.Contains(s.GetReason(), "ledger.db, table batch, row 1") {
		t.Errorf("journal: %v", s)
	}
	if !strings.Contains(a.rig.log.String(), "journal=failed") {
		t.Error("the log does not say so")
	}
}

// TestDamagedGivenGivesAgain: rather twice than never.
func TestDamagedGivenGivesAgain(t *testing.T) {
	a := counselled(t)
	a.gives(asks("chat", chatter))
	b := a.reopened("UPDATE given SET digest = x'00' WHERE number = 1")
	if _, e := b.gives(asks("chat", chatter)); len(e.Entries) != 1 {
		t.Errorf("given %v, want the one whose row is damaged", e.texts())
	}
}

// TestJournalLate: the passages do not wait for the journal beyond the deadline,
// and the journal not for the passages.
func TestJournalLate(t *testing.T) {
	a := counselled(t)
	first, _ := a.gives(asks("chat", "ok"))
	release, err := a.server.HoldJournal(t.Context(), first.MemoryId)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	resp, err := a.PreTurn(ctx, asks("other", tabs))
	release()
	if err != nil || len(a.read(resp).Passages) == 0 || of(resp, "journal").GetOutcome() != recalldv1.Outcome_OUTCOME_LATE {
		t.Errorf("PreTurn = %v, %v; want passages and a late journal", resp, err)
	}
	// What was not given is not noted.
	if _, e := a.gives(asks("other", chatter)); e.says(rule, preference) != "" {
		t.Errorf("then given %v", e.texts())
	}

	leave := a.server.TakePlaces()
	defer leave()
	ctx, cancel = context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	resp, err = a.PreTurn(ctx, asks("third", tabs))
	if err != nil || a.read(resp).says(rule, preference) != "" || of(resp, "words").GetOutcome() != recalldv1.Outcome_OUTCOME_LATE {
		t.Errorf("PreTurn = %v, %v; want the rules and words that are late", resp, err)
	}
}

// TestPreTurnCancelled: whoever left is given nothing.
func TestPreTurnCancelled(t *testing.T) {
	a := counselled(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := a.server.PreTurnDirectly(ctx, asks("chat", tabs))
	wants(t, err, codes.Canceled)
	if _, e := a.gives(asks("chat", chatter)); e.says(rule, preference) != "" {
		t.Errorf("then given %v", e.texts())
	}
}

// TestPreTurnHasADeadline: a client that sets none is answered all the same.
func TestPreTurnHasADeadline(t *testing.T) {
	a := counselled(t)
	leave := a.server.TakePlaces()
	defer leave()
	resp, err := a.PreTurn(context.Background(), asks("chat", tabs))
	if err != nil || a.read(resp).says(rule, preference) != "" {
		t.Errorf("PreTurn = %v, %v; want the rules", resp, err)
	}
}

// TestNotNotedIsGiven: that a block cannot be noted is told the log alone, and
// then it is given again.
func TestNotNotedIsGiven(t *testing.T) {
	a := counselled(t).reopened(`CREATE TRIGGER full BEFORE INSERT ON given BEGIN SELECT raise(ABORT, 'no'); END`)
	for range 2 {
		if _, e := a.gives(asks("chat", chatter)); e.says(rule, preference) != "" {
			t.Errorf("given %v", e.texts())
		}
	}
	if log := a.rig.log.String(); !strings.Contains(log, "given=failed") || !strings.Contains(log, "note what was given") || strings.Contains(log, "linter") {
		t.Errorf("the log says %s", log)
	}
	a.talk("old", 300, [2]string{"one more", "yes"}) // the writer is none the worse
}

// TestGivenLeavesNoText: neither ids of sessions nor words are in the log.
func TestGivenLeavesNoText(t *testing.T) {
	a := counselled(t)
	a.gives(asks("canary-session", "where is the canary-question kept, and the events?"))
	a.reset("canary-session")
	if log := a.rig.log.String(); strings.Contains(log, "canary") {
		t.Errorf("the log says %s", log)
	}
}

// TestJournalGetKnowsTheChat: the block says how far the chat was read.
func TestJournalGetKnowsTheChat(t *testing.T) {
	a := counselled(t)
	a.talk("chat", 0, council[3], council[3])
	for _, tt := range []struct{ session, want string }{
		{"", "What was decided:\n"},
		{"chat", "What was decided; 2 turns of this chat not yet.\n"},
		{"old", "What was decided; read up to 2026-03-02 10:19 +01:00.\n"},
	} {
		resp, err := a.Get(t.Context(), &recalldv1.GetRequest{Memory: a.ref, SessionId: tt.session})
		if err != nil || !strings.Contains(resp.Block, "\n"+tt.want) {
			t.Errorf("Get for %q = %v, %v; want %q", tt.session, resp, err, tt.want)
		}
	}
	_, err := a.Get(t.Context(), &recalldv1.GetRequest{Memory: a.ref, SessionId: "nobody's"})
	wants(t, err, codes.NotFound, "session_id")
	_, err = a.Get(t.Context(), &recalldv1.GetRequest{Memory: a.ref, SessionId: "a\x00b"})
	wants(t, err, codes.InvalidArgument, "session_id")
}

// TestSessionTurns: calls of one session follow each other, those of others do
// not wait, and a wait ends in time.
func TestSessionTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := service.NewSessionTurns()
		ctx := t.Context()
		leave, ok := turns.Enter(ctx, "s", time.Time{})
		if !ok {
			t.Fatal("the first has to wait")
		}
		other, ok := turns.Enter(ctx, "other", time.Time{})
		if !ok {
			t.Fatal("another session has to wait")
		}
		other()
		began := time.Now()
		if _, ok := turns.Enter(ctx, "s", began.Add(time.Second)); ok || time.Since(began) != time.Second {
			t.Errorf("the second got its turn: %v after %v", ok, time.Since(began))
		}
		cancelled, cancel := context.WithCancel(ctx)
		cancel()
		if _, ok := turns.Enter(cancelled, "s", time.Time{}); ok {
			t.Error("who left got a turn")
		}
		var order []string
		for i := range 3 {
			go func() {
				time.Sleep(time.Duration(i+1) * time.Second)
				leave, ok := turns.Enter(ctx, "s", time.Time{})
				order = append(order, fmt.Sprint(i, ok))
				leave()
			}()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(order) > 0 {
			t.Errorf("%v came before their turn", order)
		}
		leave()
		leave() // once is enough
		synctest.Wait()
		if slices.Sort(order); !slices.Equal(order, []string{"0 true", "1 true", "2 true"}) || turns.Len() != 0 {
			t.Errorf("turns %v, %d sessions are left", order, turns.Len())
		}
	})
}
