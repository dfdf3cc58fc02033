package service

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"recalld/consolidate"
	"recalld/ledger"
)

// A run reads the windows of one memory that are finished and not read yet, and
// adds a batch for each. It holds nothing that an Append or a Recall waits for:
// of the ledger it takes the writer for one short transaction per window. Where
// it is stopped, by whatever, the next one goes on, since a session's place is
// its last batch.
type run struct {
	*memory
	extractor consolidate.Extractor
	closeTail bool
	now       func() time.Time
	// until is when the run leaves what is left to the next one; the zero time is
	// never. It reads one window at least.
	until    time.Time
	progress func(progress)
	// stored is called after each batch; nil is nobody.
	stored func()
	// between is called between reading a window and storing its batch; nil but
	// in tests.
	between func() error

	edition  *edition
	head     [32]byte
	standing *consolidate.Standing
	told     progress
}

// progress is how far a run is.
type progress struct {
	done, total, entries, rejected uint64
	session                        string
}

// idleTail is how long after its last turn was appended a session's tail is
// closed early.
const idleTail = 30 * time.Minute

// maxConflicts is how many reviews may come between reading one window and
// storing it.
const maxConflicts = 20

// A consolidation is what is asked of a run.
type consolidation struct {
	extractor consolidate.Extractor
	closeTail bool          // also those that are not idle
	most      time.Duration // after which the run ends before its time; 0 is never
	tell      func(progress)
}

// consolidate runs an extractor over a memory, once what runs there already is
// done. more says that it ended before its time.
func (s *Server) consolidate(ctx context.Context, m *memory, c consolidation) (told progress, more bool, err error) {
	select {
	case m.chronicle.running <- struct{}{}:
		defer func() { <-m.chronicle.running }()
	case <-ctx.Done():
		return progress{}, false, ctx.Err()
	}
	r := &run{
		memory: m, extractor: c.extractor, closeTail: c.closeTail, now: s.now, progress: c.tell, between: s.betweenStore,
		stored: func() { s.runs.alive(m.id, s.now()) },
	}
	if c.most > 0 {
		r.until = s.now().Add(c.most)
	}
	err = guard(func() (err error) {
		more, err = r.run(ctx)
		return err
	})
	if ctx.Err() == nil {
		s.runs.note(m.id, s.now(), err)
	}
	return r.told, more, err
}

// The names of the extractors on the wire.
const builtinExtractor, modelExtractor = "builtin", "model"

// extractorOf returns what reads the windows of a memory, by its name; no name
// is the model if there is one.
func (s *Server) extractorOf(id, chosen string) (consolidate.Extractor, error) {
	var model consolidate.Extractor
	if s.options.Extractor != nil {
		model = s.options.Extractor(id)
	}
	switch {
	case chosen != "" && chosen != builtinExtractor && chosen != modelExtractor:
		return nil, invalid("extractor", `is neither "builtin" nor "model"`, nil, nil)
	case chosen == modelExtractor && model == nil:
		return nil, &fieldError{field: "extractor", what: "this server has no model that extracts", code: codes.FailedPrecondition}
	case chosen == builtinExtractor || model == nil:
		return consolidate.Builtin{}, nil
	}
	return outward{model}, nil
}

// An outward extractor is one to which the words of a window leave: through the
// mask, like all others. That keeps every byte in its place, so what it quotes
// is found in what was said.
type outward struct{ consolidate.Extractor }

func (o outward) Extract(ctx context.Context, w consolidate.Window) ([]consolidate.Draft, error) {
	w.Pieces, w.Context = piecesOut(w.Pieces), piecesOut(w.Context)
	return o.Extractor.Extract(ctx, w)
}

func piecesOut(pieces []consolidate.Piece) []consolidate.Piece {
	out := slices.Clone(pieces)
	for i := range out {
		out[i].Message.Text = leave(out[i].Message.Text).bytes
	}
	return out
}

// An extractError is that of an extractor: nothing is known about a window,
// which stays to be read.
type extractError struct{ err error }

func (e *extractError) Error() string {
	if isSkipped(e.err) {
		return "windows wait: " + e.err.Error()
	}
	return e.err.Error()
}

func (e *extractError) Unwrap() error { return e.err }

// GRPCStatus tells the client what the extractor says: it holds no text. The code
// is not Unavailable: this server is there, and what clients do when it is not
// would help nobody.
func (e *extractError) GRPCStatus() *status.Status {
	return status.New(codes.FailedPrecondition, name(e.Error()+`; the extractor "builtin" needs no model`))
}

// isSkipped reports whether a model was not asked at all: spending is at its
// cap, or its server failed too often just now.
func isSkipped(err error) bool {
	var skipped interface{ Skipped() string }
	return errors.As(err, &skipped)
}

// run reads what is to be read. more says that some of it was left.
func (r *run) run(ctx context.Context) (more bool, err error) {
	if err := r.reload(ctx); err != nil {
		return false, err
	}
	windows, err := r.plan(ctx)
	if err != nil {
		return false, err
	}
	r.told.total = uint64(len(windows))
	r.tell()
	for i, w := range windows {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if i > 0 && !r.until.IsZero() && !r.now().Before(r.until) {
			return true, nil
		}
		r.told.session = w.session
		// What comes after a window that failed waits with it: an entry is only
		// linked to what was said before it.
		if err := r.window(ctx, w.window); err != nil {
			return false, err
		}
		r.told.done++
		r.tell()
	}
	return false, nil
}

func (r *run) tell() {
	if r.progress != nil {
		r.progress(r.told)
	}
}

// reload reads the journal anew.
func (r *run) reload(ctx context.Context) error {
	e, err := r.chronicle.read(ctx, r.memory)
	if err != nil {
		return err
	}
	r.edition, r.head, r.standing = e, e.journal.Head, e.journal.Standing()
	return nil
}

// window extracts one window and stores its batch.
func (r *run) window(ctx context.Context, at window) error {
	readTo, err := r.ledger.Head(ctx)
	if err != nil {
		return err
	}
	w, err := r.readWindow(ctx, at)
	if err != nil {
		return err
	}
	var drafts []consolidate.Draft
	err = guard(func() (err error) {
		drafts, err = r.extractor.Extract(ctx, w)
		return err
	})
	if p := (*panicError)(nil); err != nil && ctx.Err() == nil && !errors.As(err, &p) {
		return &extractError{err}
	}
	if err != nil {
		return err
	}
	entries, dropped := consolidate.Check(w, drafts)
	for i := range entries {
		entries[i].Text = wordsOf(w, entries[i])
	}
	if r.between != nil {
		if err := r.between(); err != nil {
			return err
		}
	}
	for range maxConflicts {
		err = r.store(ctx, w, entries, dropped, readTo)
		if !errors.Is(err, ledger.ErrConflict) {
			break
		}
		// Somebody reviewed meanwhile: what they said counts for this window.
		if err := r.reload(ctx); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	if r.stored != nil {
		r.stored()
	}
	r.told.entries += uint64(len(entries))
	for _, n := range dropped {
		r.told.rejected += uint64(n)
	}
	return nil
}

// wordsOf is the text of an entry in a form that a batch keeps as it is.
func wordsOf(w consolidate.Window, e consolidate.Entry) string {
	return strings.ToValidUTF8(w.Words(e), replacement)
}

func (r *run) store(ctx context.Context, w consolidate.Window, entries []consolidate.Entry, dropped map[consolidate.Reason]int, readTo uint64) error {
	consolidate.Admit(entries, r.edition.journal.Policy)
	r.standing.Link(entries)
	b := consolidate.WindowBatch(w, r.extractor.Identity(), entries, r.head)
	b.At = r.now()
	row, err := encodeBatch(b, dropped, nil)
	if err != nil {
		return err
	}
	row.ReadTo = readTo
	if _, err := r.ledger.AddBatch(ctx, row); err != nil {
		return err
	}
	r.head = b.Hash
	return nil
}
