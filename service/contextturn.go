package service

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"recalld/consolidate"
	"recalld/ledger"
	recalldv1 "recalld/proto/recalld/v1"
	"recalld/retrieve"
)

// A turn is one PreTurn under way.
type turn struct {
	*contexts
	*memory
	q   *question
	req *recalldv1.PreTurnRequest
	use *use

	excluded map[string]bool // ids of messages in the live context
	by       time.Time       // what is not there by then is left out; zero for no deadline
	given    given
	edition  *edition // nil when the journal could not be read
	leave    func()   // lets the next call for the session go on; nil if nobody waits
	resp     *recalldv1.PreTurnResponse
	display  display
	repeats  []*recalldv1.Passage // of what entries of the block say
}

const (
	// journalShare of the budget is the most that the journal takes, in tenths.
	journalShare = 4
	// journalTime and noteTime bound what goes on after an answer that could not
	// wait for it.
	journalTime = 10 * time.Second
	noteTime    = 5 * time.Second
	// noteReserve is the part of the last reserve that is left for sending, once
	// what was given is noted.
	noteReserve = 4
)

// answer makes the block.
func (t *turn) answer(ctx context.Context) (*recalldv1.PreTurnResponse, error) {
	now := time.Now()
	_, t.by = divide(ctx, now)
	t.excluded = make(map[string]bool, len(t.q.exclude))
	for _, id := range t.q.exclude {
		t.excluded[id] = true
	}
	reading := t.readJournal(ctx)
	if !t.req.GetDryRun() {
		t.awaitTurn(ctx, now)
		defer func() {
			if t.leave != nil {
				t.leave()
			}
		}()
	}
	t.readGiven(ctx)
	if err := t.recall(ctx); err != nil {
		return nil, err
	}
	entries, lines, err := t.chronicled(ctx, reading)
	if err != nil {
		return nil, err
	}
	t.dropRepeats(entries, t.edition)
	t.compose(entries, lines)
	t.metrics.answered(t.resp.Sources)
	skippedSources(ctx, t.resp.Sources)
	if err := ctx.Err(); errors.Is(err, context.Canceled) {
		return nil, err // nobody is there to be given anything
	}
	if !t.req.GetDryRun() {
		t.note(ctx, entries)
	}
	return t.resp, nil
}

// awaitTurn waits for other calls of the session, for half of the time at most.
func (t *turn) awaitTurn(ctx context.Context, now time.Time) {
	until, _ := divide(ctx, now)
	if leave, ok := t.turns.enter(ctx, t.req.GetSessionId(), until); ok {
		t.leave = leave
	}
}

// recall ranks the passages. Those that were given count among the few that a
// message is worth, or a long talk about one thing would bring all there is. That
// there are none in time, or the views are in trouble, is told in the answer.
func (t *turn) recall(ctx context.Context) error {
	head, err := t.ledger.Head(ctx)
	if err != nil {
		return err
	}
	if t.q.query.Exclude, err = sequences(ctx, t.ledger, t.q.exclude); err != nil {
		return err
	}
	t.q.given = t.given.ranges
	result, err := t.rank(ctx, t.places, t.q, head)
	if err == nil {
		t.display, err = show(ctx, t.ledger, t.q, result.Passages)
	}
	if err != nil {
		return t.withoutPassages(ctx, head, err)
	}
	t.resp = turnAnswer(answer(t.id, head, t.q, result))
	t.resp.Sources = append(t.resp.Sources, t.display.damage...)
	return nil
}

// withoutPassages answers without them: the journal is there all the same.
func (t *turn) withoutPassages(ctx context.Context, head uint64, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, ledger.ErrClosed) || errors.Is(err, errEnding) {
		return err
	}
	words := &recalldv1.SourceOutcome{Source: retrieve.Words.String(), Outcome: recalldv1.Outcome_OUTCOME_LATE, Reason: tooLate}
	if busy := (*fieldError)(nil); errors.As(err, &busy) {
		words.Reason = name(busy.Error())
	} else if !errors.Is(err, context.DeadlineExceeded) {
		words.Outcome, words.Reason = recalldv1.Outcome_OUTCOME_FAILED, reasonOf(err, "the views could not be read")
		t.log.Error("recall for a turn", "memory", t.id, "cause", err.Error())
	}
	t.resp = turnAnswer(answer(t.id, head, t.q, retrieve.Result{}))
	t.resp.Gate = nil // nothing was measured
	t.resp.Sources = append(t.resp.Sources, words)
	t.display = display{}
	return nil
}

const tooLate = "the deadline came first"

// reasonOf is what a client is told of an error: where the damage is, or else no
// more than what could not be done.
func reasonOf(err error, what string) string {
	var d *ledger.DamageError
	if errors.As(err, &d) {
		return name(d.Error())
	}
	return what
}

// turnAnswer is the answer of a Recall as one of PreTurn.
func turnAnswer(r *recalldv1.RecallResponse) *recalldv1.PreTurnResponse {
	return &recalldv1.PreTurnResponse{
		MemoryId: r.MemoryId, Snapshot: r.Snapshot, Sources: r.Sources, Gate: r.Gate, Now: r.Now,
		NothingToSearch: r.NothingToSearch, Expansions: r.Expansions,
	}
}

// A journalRead is the journal, or why it could not be read.
type journalRead struct {
	edition *edition
	reach   *consolidate.Reach
	words   *consolidate.Words
	took    time.Duration
	err     error
}

// readJournal reads the journal beside the ranking. What has begun goes on when
// the answer cannot wait for it, so that the next one finds it done.
func (t *turn) readJournal(ctx context.Context) <-chan journalRead {
	done := make(chan journalRead, 1)
	t.use.begin()
	go func() {
		defer t.use.end()
		began := time.Now()
		lasting, cancel := context.WithTimeout(context.WithoutCancel(ctx), journalTime)
		defer cancel()
		r := journalRead{words: &t.chronicle.words}
		r.err = guard(func() (err error) {
			if r.edition, err = t.chronicle.readWithin(ctx, lasting, t.memory); err == nil {
				r.reach, err = t.chatReach(lasting, t.req.GetSessionId())
			}
			return err
		})
		r.took = time.Since(began)
		done <- r
	}()
	return done
}

// chronicled waits for the journal and returns what of it is given, and its
// lines. That there is none in time is told in the answer.
func (t *turn) chronicled(ctx context.Context, reading <-chan journalRead) (entries []consolidate.Record, lines []string, err error) {
	waiting, cancel := withDeadline(ctx, t.by)
	defer cancel()
	source := &recalldv1.SourceOutcome{Source: "journal", Outcome: recalldv1.Outcome_OUTCOME_USED}
	t.resp.Sources = append(t.resp.Sources, source)
	var r journalRead
	select {
	case r = <-reading:
	default:
		select {
		case r = <-reading:
		case <-waiting.Done():
			r.err = waiting.Err()
		}
	}
	source.Milliseconds = float64(r.took) / float64(time.Millisecond)
	switch {
	case r.err == nil:
		block := t.journalBlock(r)
		t.edition = r.edition
		t.given.compare(r.edition)
		t.resp.Omitted += uint32(block.Left)
		return block.Entries, block.Lines, nil
	case ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled):
		return nil, nil, ctx.Err()
	case errors.Is(r.err, context.DeadlineExceeded):
		source.Outcome, source.Reason = recalldv1.Outcome_OUTCOME_LATE, tooLate
	default:
		source.Outcome, source.Reason = recalldv1.Outcome_OUTCOME_FAILED, reasonOf(r.err, "the journal could not be read")
		t.log.Error("journal for a turn", "memory", t.id, "cause", r.err.Error())
	}
	return nil, nil, nil
}

// journalBlock chooses of the journal what the turn needs. When nothing that is
// remembered bears on the message, no entry does.
func (t *turn) journalBlock(r journalRead) consolidate.Block {
	room := t.q.room()
	room.Bytes = min(room.Bytes, t.q.budgetBytes*journalShare/10)
	if t.q.budgetUnits > 0 {
		room.Units = min(room.Units, t.q.budgetUnits*journalShare/10)
	}
	options := consolidate.TurnOptions{Room: room, Recalled: map[string]bool{}, Given: t.hasEntry, Words: r.words, Quiet: !t.resp.Gate.GetPassed()}
	for _, p := range t.display.passages {
		options.Recalled[p.GetMessageId()] = true
	}
	return r.edition.journal.Block(consolidate.BlockOptions{
		Message: t.q.query.Text, Reach: r.reach, Turn: &options, Escape: entryLine, In: zones{}.in,
	})
}

// hasEntry reports whether the live context has an entry: it was given before,
// or the words it quotes are in it.
func (t *turn) hasEntry(r *consolidate.Record) bool {
	if t.req.GetKeptInHistory() && t.given.hasEntry(r) {
		return true
	}
	return slices.ContainsFunc(r.Quotes, func(q consolidate.Quote) bool {
		return q.Role == consolidate.Says && t.excluded[q.Message]
	})
}

// dropRepeats leaves out the passages that say just what an entry quotes of
// them, if the block holds the entry or, once it was given, the live context.
func (t *turn) dropRepeats(entries []consolidate.Record, e *edition) {
	shown := map[string]bool{}
	for _, p := range t.display.passages {
		shown[p.GetMessageId()] = true
	}
	type words struct{ message, text string }
	said := map[words]bool{}
	add := func(r *consolidate.Record) {
		for _, q := range r.Quotes {
			if shown[q.Message] {
				said[words{q.Message, oneLine(r.Text)}] = true
			}
		}
	}
	for i := range entries {
		add(&entries[i])
	}
	if e != nil && t.req.GetKeptInHistory() && len(shown) > 0 {
		for i := range e.journal.Records {
			if r := &e.journal.Records[i]; t.given.hasEntry(r) {
				add(r)
			}
		}
	}
	t.display.passages = slices.DeleteFunc(t.display.passages, func(p *recalldv1.Passage) bool {
		repeats := said[words{p.GetMessageId(), oneLine(p.GetText())}]
		if repeats {
			t.repeats = append(t.repeats, p)
		}
		return repeats
	})
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// compose puts the block together.
func (t *turn) compose(entries []consolidate.Record, lines []string) {
	t.resp.Passages, t.resp.Block = t.arrange(t.q, lines, t.display.passages)
	t.resp.Omitted += uint32(len(t.display.passages) - len(t.resp.Passages))
	for i := range entries {
		t.resp.EntryIds = append(t.resp.EntryIds, entries[i].ID)
	}
}

// A use of a memory is shared by a call and what it leaves to be done.
type use struct {
	left    atomic.Int32
	release func()
}

func newUse(release func()) *use {
	u := &use{release: release}
	u.begin()
	return u
}

func (u *use) begin() { u.left.Add(1) }

func (u *use) end() {
	if u.left.Add(-1) == 0 {
		u.release()
	}
}
