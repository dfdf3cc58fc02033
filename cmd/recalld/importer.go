package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	recalldv1 "recalld/proto/recalld/v1"
)

const (
	// batchTurns and batchBytes bound one Append. The server takes 500 turns and
	// 16 MiB; a smaller batch is acknowledged sooner.
	batchTurns = 200
	batchBytes = 4 << 20
	// appendPatience is long: an Append waits while the views catch up.
	appendPatience = 5 * time.Minute
	// maxRefused turns in a row are taken for a fault of the whole, like a full
	// disk, and not of each of them.
	maxRefused = 50
	// maxProblems are reported one by one.
	maxProblems = 20
)

// An importer appends turns to a memory in batches and keeps account.
type importer struct {
	client *client
	memory *recalldv1.MemoryRef

	id       string // of the memory, once it is known
	sequence uint64 // the last number given to a message

	batch   []*recalldv1.NewTurn
	bytes   int
	refused int // in a row

	result   *imported
	sessions map[string]int // of the file, to how many turns are not known to be copies
	tell     func(problem string)
}

// begin starts the account of a file.
func (im *importer) begin(result *imported, tell func(problem string)) {
	im.result, im.tell = result, tell
	im.sessions = make(map[string]int)
	im.batch, im.bytes, im.refused = nil, 0, 0
}

// skip notes something that is left out.
func (im *importer) skip(problem string) {
	im.result.Skipped++
	switch n := len(im.result.Problems); {
	case n < maxProblems:
		im.result.Problems = append(im.result.Problems, problem)
		im.tell(problem + "; skipped")
	case n == maxProblems:
		im.result.Problems = append(im.result.Problems, "and more")
		im.tell("more is skipped without a word for each")
	}
}

// add appends a turn, now or with those that follow.
func (im *importer) add(ctx context.Context, turn *recalldv1.NewTurn) error {
	n := proto.Size(turn)
	if len(im.batch) == batchTurns || len(im.batch) > 0 && im.bytes+n > batchBytes {
		if err := im.flush(ctx); err != nil {
			return err
		}
	}
	im.batch = append(im.batch, turn)
	im.bytes += n
	switch left, known := im.sessions[turn.GetSessionId()]; {
	case !known:
		im.result.Sessions++
	case left == 0:
		im.result.CopiedSessions--
	}
	im.sessions[turn.GetSessionId()]++
	im.result.Turns++
	im.result.Messages += len(turn.GetMessages())
	return nil
}

// flush appends what waits.
func (im *importer) flush(ctx context.Context) error {
	batch := im.batch
	im.batch, im.bytes = nil, 0
	if len(batch) == 0 {
		return nil
	}
	return im.send(ctx, batch)
}

// send appends turns. An Append is stored whole or not at all, so when one is
// refused its halves are tried, down to the turn that is to blame.
func (im *importer) send(ctx context.Context, turns []*recalldv1.NewTurn) error {
	limited, cancel := context.WithTimeout(ctx, appendPatience)
	defer cancel()
	response, err := im.client.memories.Append(limited, &recalldv1.AppendRequest{Memory: im.memory, Turns: turns})
	switch {
	case err == nil:
		im.note(response)
		return nil
	case !refusesTurn(err):
		return err
	case len(turns) > 1:
		half := len(turns) / 2
		return firstError(im.send(ctx, turns[:half]), func() error { return im.send(ctx, turns[half:]) })
	}
	if im.refused++; im.refused > maxRefused {
		return fmt.Errorf("gave up after %d turns in a row were refused: %w", maxRefused, err)
	}
	im.skip(fmt.Sprintf("turn %s of session %s: %s", turns[0].GetTurnId(), turns[0].GetSessionId(), status.Convert(err).Message()))
	return nil
}

// firstError goes on with next unless there is an error already.
func firstError(err error, next func() error) error {
	if err != nil {
		return err
	}
	return next()
}

// refusesTurn reports whether an error is about what a turn holds.
func refusesTurn(err error) bool {
	switch status.Code(err) {
	case codes.InvalidArgument, codes.AlreadyExists, codes.ResourceExhausted:
		return true
	}
	return false
}

// note keeps account of an acknowledged Append.
func (im *importer) note(r *recalldv1.AppendResponse) {
	im.refused = 0
	im.id = r.GetMemoryId()
	im.result.Stored += int(r.GetStored())
	im.result.Duplicates += int(r.GetDuplicates())
	im.result.Forgotten += int(r.GetForgotten())
	for _, turn := range r.GetTurns() {
		copied := len(turn.GetMessages()) > 0
		for _, m := range turn.GetMessages() {
			im.sequence = max(im.sequence, m.GetSequence())
			copied = copied && m.GetOutcome() == recalldv1.AppendOutcome_APPEND_OUTCOME_DUPLICATE
		}
		if copied {
			im.noteCopy(turn.GetSessionId())
		}
	}
}

// noteCopy keeps account of a turn that was stored already.
func (im *importer) noteCopy(session string) {
	im.result.CopiedTurns++
	if im.sessions[session]--; im.sessions[session] == 0 {
		im.result.CopiedSessions++
	}
}

const (
	// reachEvery is how often the reach is asked for.
	reachEvery = 50 * time.Millisecond
	// reachPatience is how long the reach may stand still.
	reachPatience = 2 * time.Minute
)

// errBehind says that what is stored cannot all be found yet.
var errBehind = errors.New("all is stored, but the index has stood still")

// waitCovered waits until words and, where there is a model, meanings cover a
// sequence number. The error wraps errBehind when they get no further.
func waitCovered(ctx context.Context, c *client, ref *recalldv1.MemoryRef, sequence uint64, tell func(covered uint64)) error {
	tick := time.NewTicker(reachEvery)
	defer tick.Stop()
	var before uint64
	moved := time.Now()
	for {
		s, err := c.admin.Status(ctx, &recalldv1.StatusRequest{Memory: ref})
		if err != nil {
			return fmt.Errorf("wait for the index: %s", status.Convert(err).Message())
		}
		if len(s.GetMemories()) != 1 {
			return fmt.Errorf("wait for the index: the server tells of %d memories instead of one", len(s.GetMemories()))
		}
		reach := s.GetMemories()[0].GetReach()
		covered := reach.GetIndexed()
		if givesMeaningAtOnce(s) {
			covered = min(covered, reach.GetEmbedded())
		}
		tell(covered)
		if covered >= sequence {
			return nil
		}
		if covered != before {
			before, moved = covered, time.Now()
		}
		if time.Since(moved) > reachPatience {
			return fmt.Errorf("%w at message %d of %d; see recalld status", errBehind, covered, sequence)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// givesMeaningAtOnce reports whether vectors are made as fast as words are read.
// A model server takes its time, and words answer meanwhile.
func givesMeaningAtOnce(s *recalldv1.StatusResponse) bool {
	return s.GetEmbeddingModel() != off && !slices.ContainsFunc(s.GetModels(), func(m *recalldv1.ModelStatus) bool {
		return m.GetPurpose() == purposeEmbed
	})
}
