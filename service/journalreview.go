package service

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"recalld/consolidate"
	"recalld/ledger"
	recalldv1 "recalld/proto/recalld/v1"
)

const (
	// maxReviewed is how many entries one review may name.
	maxReviewed = 1_000
	// maxEditBytes is how long the text of an entry may be made.
	maxEditBytes = 2_000
)

// Review changes entries. What is changed is a batch of its own, with author
// and time; nothing is ever changed in place.
func (h *journal) Review(ctx context.Context, req *recalldv1.ReviewRequest) (*recalldv1.ReviewResponse, error) {
	if err := checkReview(req); err != nil {
		return nil, err
	}
	m, e, release, err := h.enter(ctx, req.GetMemory())
	if err != nil {
		return nil, err
	}
	defer release()
	var salt []byte
	var touched []string
	batch, e, err := h.addReview(ctx, m, e, func(e *edition) (r consolidate.Review, s []byte, err error) {
		r, touched, err = reviewOf(e, req)
		if r.Action == consolidate.Edit && err == nil {
			if salt == nil {
				salt = make([]byte, 16)
				rand.Read(salt)
			}
			r.TextHash = sha256.Sum256(append(slices.Clone(salt), r.Text...))
		}
		return r, salt, err
	})
	if err != nil {
		return nil, err
	}
	var records []consolidate.Record
	for _, id := range touched {
		if r := e.journal.Find(id); r != nil && !slices.ContainsFunc(records, func(o consolidate.Record) bool { return o.ID == r.ID }) {
			records = append(records, *r)
		}
	}
	resp := &recalldv1.ReviewResponse{Batch: batchOf(&batch)}
	resp.Entries, err = m.entriesOf(ctx, records, maxQuotesShown)
	return resp, err
}

// checkReview refuses a request that is wrong whatever the journal holds.
func checkReview(req *recalldv1.ReviewRequest) error {
	if err := checkEnum("action", req.GetAction(), recalldv1.ReviewAction_name, false); err != nil {
		return err
	}
	if req.GetAction() == recalldv1.ReviewAction_REVIEW_ACTION_SET_POLICY {
		return invalid("action", "is that of SetPolicy; call it instead", nil, nil)
	}
	if err := checkName("author", req.GetAuthor(), true); err != nil {
		return err
	}
	if err := checkSuperseded(req); err != nil {
		return err
	}
	ids, undo, edit := req.GetEntryIds(), req.GetAction() == recalldv1.ReviewAction_REVIEW_ACTION_UNDO, req.GetAction() == recalldv1.ReviewAction_REVIEW_ACTION_EDIT
	switch {
	case undo && len(ids) > 0:
		return invalid("entry_ids", "have no meaning for an undo", nil, nil)
	case undo && req.GetBatchHash() == "":
		return invalid("batch_hash", "is empty", nil, nil)
	case !undo && req.GetBatchHash() != "":
		return invalid("batch_hash", "has a meaning only for an undo", nil, nil)
	case !undo && len(ids) == 0:
		return invalid("entry_ids", "are none", nil, nil)
	case edit && len(ids) != 1:
		return invalid("entry_ids", "are too many for an edit", 1, len(ids))
	case len(ids) > maxReviewed:
		return invalid("entry_ids", "are too many", maxReviewed, len(ids))
	case edit && strings.TrimSpace(req.GetText()) == "":
		return invalid("text", "is empty", nil, nil)
	case len(req.GetText()) > maxEditBytes:
		return invalid("text", "is too long", sizeOf(maxEditBytes), sizeOf(len(req.GetText())))
	case !edit && req.GetText() != "":
		return invalid("text", "has a meaning only for an edit", nil, nil)
	}
	for i, id := range ids {
		if err := checkName(fmt.Sprintf("entry_ids[%d]", i), id, true); err != nil {
			return err
		}
	}
	return nil
}

// checkSuperseded refuses what no review of this action can say of older entries.
func checkSuperseded(req *recalldv1.ReviewRequest) error {
	older := req.GetSupersededIds()
	if req.GetAction() != recalldv1.ReviewAction_REVIEW_ACTION_SUPERSEDE {
		if len(older) > 0 {
			return invalid("superseded_ids", "have a meaning only for a supersede", nil, nil)
		}
		return nil
	}
	switch {
	case len(req.GetEntryIds()) > 1:
		return invalid("entry_ids", "are too many for a supersede", 1, len(req.GetEntryIds()))
	case len(older) == 0:
		return invalid("superseded_ids", "are none", nil, nil)
	case len(older) > maxReviewed:
		return invalid("superseded_ids", "are too many", maxReviewed, len(older))
	}
	for i, id := range older {
		if err := checkName(fmt.Sprintf("superseded_ids[%d]", i), id, true); err != nil {
			return err
		}
	}
	return nil
}

// reviewOf is the review that a request asks for, and the entries it touches.
func reviewOf(e *edition, req *recalldv1.ReviewRequest) (r consolidate.Review, touched []string, err error) {
	r = consolidate.Review{Action: consolidate.Action(req.GetAction()), Author: req.GetAuthor()}
	if r.Action == consolidate.Undo {
		undone, err := findReview(e, req.GetBatchHash())
		if err != nil {
			return r, nil, err
		}
		r.Undoes = undone.Hash
		return r, touchedBy(e, undone), nil
	}
	if r.Entries, err = recordsNamed(e, "entry_ids", req.GetEntryIds()); err != nil {
		return r, nil, err
	}
	if r.Superseded, err = recordsNamed(e, "superseded_ids", req.GetSupersededIds()); err != nil {
		return r, nil, err
	}
	for i, id := range r.Superseded {
		if newer := e.journal.Find(r.Entries[0]); newer.Last.SaidBefore(&e.journal.Find(id).Entry) || id == r.Entries[0] {
			return r, nil, invalid(fmt.Sprintf("superseded_ids[%d]", i), "was not said before the entry", nil, nil)
		}
	}
	if r.Action == consolidate.Edit {
		r.Text = req.GetText()
	}
	return r, slices.Concat(r.Entries, r.Superseded), nil
}

// recordsNamed returns the ids of the entries that a field of a request names:
// a fact said again goes by the id it was first said under.
func recordsNamed(e *edition, field string, ids []string) ([]string, error) {
	var out []string
	for i, id := range ids {
		record := e.journal.Find(id)
		if record == nil {
			return nil, errUnknown(fmt.Sprintf("%s[%d]", field, i))
		}
		if !slices.Contains(out, record.ID) {
			out = append(out, record.ID)
		}
	}
	return out, nil
}

// findReview returns the batch of a hash, which must be a review.
func findReview(e *edition, hash string) (*consolidate.Batch, error) {
	want, err := hex.DecodeString(hash)
	if err != nil || len(want) != 32 {
		return nil, invalid("batch_hash", "is not 64 digits of hex", nil, nil)
	}
	for i := range e.batches {
		if b := &e.batches[i]; b.Hash == [32]byte(want) {
			if b.Review == nil {
				return nil, invalid("batch_hash", "is that of a window; reject its entries instead", nil, nil)
			}
			return b, nil
		}
	}
	return nil, errUnknown("batch_hash")
}

// touchedBy returns the entries that a review changed, through all undoings.
func touchedBy(e *edition, b *consolidate.Batch) []string {
	for range len(e.batches) {
		if b.Review.Action != consolidate.Undo {
			break
		}
		next, err := findReview(e, hashOf(b.Review.Undoes))
		if err != nil {
			break
		}
		b = next
	}
	return slices.Concat(b.Review.Entries, b.Review.Superseded)
}

// addReview adds the batch of a review, made anew when something else was added
// meanwhile, and returns it with the edition that holds it.
func (h *journal) addReview(ctx context.Context, m *memory, e *edition,
	review func(*edition) (r consolidate.Review, salt []byte, err error),
) (consolidate.Batch, *edition, error) {
	for {
		r, salt, err := review(e)
		if err != nil {
			return consolidate.Batch{}, nil, err
		}
		b := consolidate.ReviewBatch(r, e.journal.Head)
		b.At = h.now()
		row, err := encodeBatch(b, nil, salt)
		if err != nil {
			return consolidate.Batch{}, nil, err
		}
		_, err = m.ledger.AddBatch(ctx, row)
		if err != nil && !errors.Is(err, ledger.ErrConflict) {
			return consolidate.Batch{}, nil, err
		}
		added := err == nil
		// A run adds batches faster than this, but not for ever, and ctx ends.
		if e, err = m.chronicle.read(ctx, m); err != nil || added {
			return b, e, err
		}
	}
}

// SetPolicy says whether verified entries go live by themselves from now on.
func (h *journal) SetPolicy(ctx context.Context, req *recalldv1.SetPolicyRequest) (*recalldv1.SetPolicyResponse, error) {
	if err := checkEnum("policy", req.GetPolicy(), recalldv1.Policy_name, false); err != nil {
		return nil, err
	}
	if err := checkName("author", req.GetAuthor(), false); err != nil {
		return nil, err
	}
	m, e, release, err := h.enter(ctx, req.GetMemory())
	if err != nil {
		return nil, err
	}
	defer release()
	policy := consolidate.Auto
	if req.GetPolicy() == recalldv1.Policy_POLICY_REVIEW {
		policy = consolidate.ByReview
	}
	if e.journal.Policy != policy {
		_, _, err = h.addReview(ctx, m, e, func(*edition) (consolidate.Review, []byte, error) {
			return consolidate.Review{Action: consolidate.SetPolicy, Policy: policy, Author: req.GetAuthor()}, nil, nil
		})
	}
	return &recalldv1.SetPolicyResponse{Policy: req.GetPolicy()}, err
}

// policyOf is a policy as it leaves.
func policyOf(p consolidate.Policy) recalldv1.Policy {
	if p == consolidate.ByReview {
		return recalldv1.Policy_POLICY_REVIEW
	}
	return recalldv1.Policy_POLICY_AUTO
}

// Log lists batches, newest first.
func (h *journal) Log(ctx context.Context, req *recalldv1.LogRequest) (*recalldv1.LogResponse, error) {
	limit, err := inRange("limit", req.GetLimit(), defaultEntries, 1, maxEntries)
	if err != nil {
		return nil, err
	}
	before, err := checkCursor(req.GetCursor())
	if err != nil {
		return nil, err
	}
	_, e, release, err := h.enter(ctx, req.GetMemory())
	if err != nil {
		return nil, err
	}
	defer release()
	end := uint64(len(e.batches))
	if before > 0 {
		end = min(end, before-1)
	}
	resp := new(recalldv1.LogResponse)
	for n := end; n > 0 && len(resp.Batches) < limit; n-- {
		resp.Batches = append(resp.Batches, batchOf(&e.batches[n-1]))
		if len(resp.Batches) == limit && n > 1 {
			resp.Cursor = cursorOf(n)
		}
	}
	return resp, nil
}

// batchOf is a batch as it leaves.
func batchOf(b *consolidate.Batch) *recalldv1.Batch {
	out := &recalldv1.Batch{Hash: hashOf(b.Hash), Predecessor: hashOf(b.Previous), At: stampOf(b.At)}
	if r := b.Review; r != nil {
		out.Action = recalldv1.ReviewAction(r.Action)
		out.Author, out.EntryIds = name(r.Author), slices.Concat(r.Entries, r.Superseded)
		if r.Action == consolidate.SetPolicy {
			out.Policy = policyOf(r.Policy)
		}
		return out
	}
	out.SourceHash, out.Extractor = hashOf(b.Source), name(b.Extractor)
	out.SessionId, out.FirstTurn, out.LastTurn = name(b.Session), b.FirstTurn, b.LastTurn
	for i := range b.Entries {
		out.EntryIds = append(out.EntryIds, b.Entries[i].ID)
	}
	return out
}

// Consolidate extracts finished windows now and tells how far it is. What the
// schedule runs in the same memory is waited for. If the client leaves, so does
// the work; the next run goes on where it was.
func (h *journal) Consolidate(req *recalldv1.ConsolidateRequest, stream recalldv1.JournalService_ConsolidateServer) error {
	ctx := stream.Context()
	id, err := h.resolve(ctx, req.GetMemory())
	if err != nil {
		return err
	}
	extractor, err := h.extractorOf(id, req.GetExtractor())
	if err != nil {
		return err
	}
	m, release, err := h.open.acquire(ctx, id)
	if err != nil {
		return err
	}
	defer release()
	told := teller{stream: stream}
	ctx, told.cancel = context.WithCancel(ctx)
	defer told.cancel()
	end, _, err := h.consolidate(ctx, m, consolidation{extractor: extractor, closeTail: req.GetCloseTail(), tell: told.tell})
	if told.failed != nil {
		return told.failed
	}
	if err != nil {
		return err
	}
	return stream.Send(progressOf(end))
}
