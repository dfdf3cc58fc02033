package retrieve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// The two fields of the word index. Apart, their document frequencies are
// apart as well: statistics are those of the default kinds.
const (
	mainField = "m"
	restField = "r"
)

const (
	// maxTail is how many messages may be held in memory only; Add waits while
	// there are more.
	maxTail = 4000
	// maxFlush is how many messages one batch takes to disk.
	maxFlush = 1000
	// advanceAfter is how many messages on disk are kept in memory as well
	// before a new snapshot of the word index is taken: a snapshot costs time
	// in proportion to the whole memory.
	advanceAfter = 8192
	// formatVersion changes when stored views can no longer be read.
	formatVersion = "2"
)

var (
	// ErrClosed is returned by an Index after Close.
	ErrClosed = errors.New("index is closed")
	// ErrOrder is returned by Add for a document out of sequence.
	ErrOrder = errors.New("documents out of sequence")
)

// A Reach says how far an Index has come, in sequence numbers.
type Reach struct {
	// Held messages are found by their words.
	Held uint64
	// Indexed messages are on disk as well.
	Indexed uint64
	// Embedded messages are found by their meaning, weighted as due.
	Embedded uint64
	// Rebuilding: a catch-up longer than the tail is under way.
	Rebuilding bool
}

// An Index ranks the messages of one memory. Make one with [Open].
type Index struct {
	options Options
	tokens  TokenTable // makes token rows; nil makes none
	folder  string
	words   *wordIndex
	columns *columns
	// temporary views are removed by Close.
	temporary bool
	// expanderSlots are taken by questions to the expander.
	expanderSlots slots

	wake    chan struct{} // has room for one signal to Run
	writing sync.Mutex    // held by what Run does to disk, and by Close

	// mu guards everything below. Nothing is read from or written to disk
	// under it.
	mu      sync.RWMutex
	closed  bool
	main    *lexicon
	rest    *lexicon
	where   []int32 // by sequence number - 1: ordinal in main, or ^ordinal in rest
	pin     *pin
	pending []analysed // held in memory only, ascending
	meaning *meaning   // nil: the token table gives no meaning
	remote  *remote    // nil: no model does; has fields of its own under mu
	levels  levels     // by words, and by meaning if there is any
	indexed uint64
	target  uint64
	ahead   *Index // newest messages, while a rebuild catches up
	lastErr error
	changed chan struct{} // closed and replaced whenever the reach changes
}

// A pin is a snapshot of the word index and how many use it.
type pin struct {
	reader *wordReader
	users  sync.WaitGroup
}

// Open opens the views in folder, or makes them. Views that are damaged, of
// another format or analysis, or that a start died over are moved aside and
// begun anew: the caller adds the documents again. Where nothing may be
// written, views are made in a temporary folder for as long as the index is
// open. The error is one of the file system.
func Open(folder string, o Options) (*Index, error) {
	x, err := open(folder, o)
	if !errors.Is(err, syscall.EROFS) && !errors.Is(err, fs.ErrPermission) {
		return x, err
	}
	folder, err = os.MkdirTemp("", "recalld-views-")
	if err != nil {
		return nil, fmt.Errorf("open index: %w", err)
	}
	if x, err = open(folder, o); err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	x.temporary = true
	return x, nil
}

func open(folder string, o Options) (*Index, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("open index: %w", err)
	}
	marker := filepath.Join(folder, "opening")
	if _, err := os.Stat(marker); err == nil {
		if err := moveAside(folder); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(marker, nil, 0o600); err != nil {
		return nil, fmt.Errorf("open index: %w", err)
	}
	x, err := load(folder, o)
	if err != nil {
		if err := moveAside(folder); err != nil {
			return nil, err
		}
		x, err = load(folder, o)
	}
	if err != nil {
		return nil, fmt.Errorf("open index: %w", err)
	}
	if err := os.Remove(marker); err != nil {
		_ = x.Close()
		return nil, fmt.Errorf("open index: %w", err)
	}
	if err := x.openRemote(); err != nil {
		_ = x.Close()
		return nil, fmt.Errorf("open index: %w", err)
	}
	return x, nil
}

// moveAside puts damaged views where they can be looked at, in place of the
// ones put there before.
// Vectors of a model are not among them: they took long to make, and each says
// which text it belongs to.
func moveAside(folder string) error {
	for _, name := range []string{"words", "columns.db", "vectors"} {
		if err := moveFileAside(filepath.Join(folder, name)); err != nil {
			return err
		}
	}
	return nil
}

func moveFileAside(path string) error {
	if err := os.RemoveAll(path + ".damaged"); err != nil {
		return fmt.Errorf("move views aside: %w", err)
	}
	if err := os.Rename(path, path+".damaged"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("move views aside: %w", err)
	}
	return nil
}

func newIndex(folder string, o Options) *Index {
	x := &Index{
		options: o, folder: folder, expanderSlots: newSlots(), wake: make(chan struct{}, 1), changed: make(chan struct{}),
		main: newLexicon(mainField, true), rest: newLexicon(restField, false),
	}
	table, _ := o.Embedder.(TokenTable)
	x.tokens = o.Tokens
	if x.tokens == nil && table != nil {
		x.tokens = table
	}
	switch {
	case o.Embedder == nil:
	case table != nil && table.Identity() == x.tokens.Identity():
		x.meaning = newMeaning(table)
	default:
		x.remote = newRemote(o.Embedder)
	}
	return x
}

// identity names what stored rows were made with.
func (x *Index) identity() string {
	model := "none"
	if x.tokens != nil {
		model = x.tokens.Identity()
	}
	return formatVersion + " " + analyzerName + " " + model
}

// load reads views that are whole.
func load(folder string, o Options) (x *Index, err error) {
	defer guarded("load index", &err)()
	x = newIndex(folder, o)
	if x.columns, err = openColumns(filepath.Join(folder, "columns.db"), x.identity()); err != nil {
		return nil, err
	}
	words, covered, err := openWordIndex(filepath.Join(folder, "words"), mainField, restField)
	if err != nil {
		_ = x.columns.close()
		return nil, err
	}
	x.words = words
	if err := x.loadRows(covered); err != nil {
		_ = words.close()
		_ = x.columns.close()
		return nil, err
	}
	return x, nil
}

func (x *Index) loadRows(covered uint64) error {
	err := x.columns.read(covered, func(r row) { x.place(r) })
	if err != nil {
		return err
	}
	x.indexed = covered
	x.main.recentFrom = int32(len(x.main.table.slices))
	x.rest.recentFrom = int32(len(x.rest.table.slices))
	if covered > 0 {
		reader, err := x.words.read()
		if err != nil {
			return err
		}
		x.pin = &pin{reader: reader}
	}
	if x.meaning != nil {
		x.meaning = x.loadMeaning()
	}
	if x.levels, err = x.keptLevels(); err != nil {
		return err
	}
	if x.levels.since > covered {
		x.levels = levels{} // measured on messages that are not on disk
	}
	return nil
}

// loadMeaning takes the vectors from their file if it holds those that are due,
// else it makes them anew.
func (x *Index) loadMeaning() *meaning {
	m, err := loadMeaning(x.meaning.table, x.vectorPath(), x.identity())
	if err != nil || m.since != refreshPoint(uint64(len(x.where))) || len(m.norms) > len(x.main.table.messages) {
		return x.refreshed()
	}
	m.add(x.main.table)
	return m
}

func (x *Index) vectorPath() string { return filepath.Join(x.folder, "vectors") }

// place puts a row into its table and remembers where.
func (x *Index) place(r row) *lexicon {
	if r.Kind.IsDefault() {
		x.where = append(x.where, x.main.table.add(r))
		return x.main
	}
	x.where = append(x.where, ^x.rest.table.add(r))
	return x.rest
}

// Held is the sequence number of the newest message in the index; the next
// document to add has the one after it.
func (x *Index) Held() uint64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return uint64(len(x.where))
}

// SetTarget says how many messages the ledger holds, so that a long catch-up
// is reported as rebuilding.
func (x *Index) SetTarget(seq uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.target = max(x.target, seq)
}

// Reach says how far the index has come.
func (x *Index) Reach() Reach {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.reach()
}

func (x *Index) reach() Reach {
	held := uint64(len(x.where))
	r := Reach{Held: held, Indexed: x.indexed, Rebuilding: x.rebuilding()}
	switch {
	case x.meaning != nil:
		r.Embedded = x.meaning.reach(held)
		if x.levelsDue() {
			r.Embedded = min(r.Embedded, x.levels.since)
		}
	case x.remote != nil:
		r.Embedded = x.remote.reach(x.main.table, held)
	}
	return r
}

func (x *Index) rebuilding() bool {
	return x.target > uint64(len(x.where))+maxTail || x.ahead != nil
}

// LastError is the error of the last attempt to write the views, nil once one
// has succeeded.
func (x *Index) LastError() error {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.lastErr
}

// Add takes documents, the first of them with the sequence number Held()+1.
// They are found when it returns, and on disk some time later. While more than
// 4,000 messages are not on disk it waits for Run. The error wraps ctx's error,
// ErrOrder or ErrClosed; documents before the error have been added.
func (x *Index) Add(ctx context.Context, docs []Document) error {
	const chunk = 100 // messages analysed and added under one lock
	for len(docs) > 0 {
		n := min(chunk, len(docs))
		if err := x.waitFor(ctx, func() bool { return len(x.pending) < maxTail }); err != nil {
			return fmt.Errorf("add documents: %w", err)
		}
		list := make([]analysed, n)
		for i, d := range docs[:n] {
			list[i] = analyse(d, x.tokens)
		}
		if err := x.addAnalysed(list); err != nil {
			return fmt.Errorf("add documents: %w", err)
		}
		docs = docs[n:]
	}
	return nil
}

func (x *Index) addAnalysed(list []analysed) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return ErrClosed
	}
	for _, a := range list {
		if want := uint64(len(x.where)) + 1; a.row.Seq != want {
			return fmt.Errorf("%w: message %d, want %d", ErrOrder, a.row.Seq, want)
		}
		l := x.place(a.row)
		l.add(a.words)
		switch {
		case x.meaning == nil || l != x.main:
		case x.busy():
			x.meaning.skip(x.main.table)
		default:
			x.meaning.add(x.main.table)
		}
		x.pending = append(x.pending, a)
	}
	if x.ahead != nil && uint64(len(x.where)) >= x.target {
		x.ahead = nil
	}
	x.signal()
	return nil
}

// signal wakes Run and everyone in waitFor. The caller holds mu.
func (x *Index) signal() {
	close(x.changed)
	x.changed = make(chan struct{})
	select {
	case x.wake <- struct{}{}:
	default:
	}
}

// waitFor waits until ready, which is called under mu, holds.
func (x *Index) waitFor(ctx context.Context, ready func() bool) error {
	for {
		x.mu.RLock()
		ok, closed, changed := ready(), x.closed, x.changed
		x.mu.RUnlock()
		if closed {
			return ErrClosed
		}
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// WaitHeld waits until the index holds the message numbered seq.
func (x *Index) WaitHeld(ctx context.Context, seq uint64) error {
	return x.waitFor(ctx, func() bool { return uint64(len(x.where)) >= seq })
}

// Hold takes the newest messages while a rebuild catches up with them: they
// are found, by words, until the index holds them itself. Their sequence
// numbers ascend and lie above Held.
func (x *Index) Hold(ctx context.Context, docs []Document) error {
	ahead := newIndex("", Options{})
	for i, d := range docs {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("hold documents: %w", err)
		}
		if i > 0 && d.Seq <= docs[i-1].Seq {
			return fmt.Errorf("hold documents: %w", ErrOrder)
		}
		a := analyse(d, nil)
		ahead.place(a.row).add(a.words)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if n := len(docs); n > 0 && uint64(len(x.where)) < docs[n-1].Seq {
		x.ahead = ahead
		x.target = max(x.target, docs[n-1].Seq)
	}
	return nil
}

// Flush waits until everything added so far is on disk and, by a token table,
// embedded as due, and the gate's level is measured as due; for a model that is
// asked it does not wait. Run must be running.
func (x *Index) Flush(ctx context.Context) error {
	held := x.Held()
	err := x.waitFor(ctx, func() bool {
		r := x.reach()
		return r.Indexed >= held && (!x.levelsDue() || x.busy()) && (x.meaning == nil || r.Embedded >= held)
	})
	if err != nil {
		return fmt.Errorf("flush index: %w", err)
	}
	return nil
}

// Close releases the views. What is not on disk yet is added again from the
// ledger at the next start. Run must have returned.
func (x *Index) Close() error {
	x.writing.Lock()
	defer x.writing.Unlock()
	x.mu.Lock()
	if x.closed {
		x.mu.Unlock()
		return nil
	}
	x.closed = true
	p := x.pin
	x.pin = nil
	x.signal()
	x.mu.Unlock()
	var errs []error
	if p != nil {
		p.users.Wait()
		errs = append(errs, p.reader.close())
	}
	errs = append(errs, x.words.close(), x.columns.close())
	if x.remote != nil && x.remote.db != nil {
		errs = append(errs, x.remote.db.close())
	}
	if x.temporary {
		errs = append(errs, os.RemoveAll(x.folder))
	}
	return errors.Join(errs...)
}

// backOff bounds the pause after a failed write.
const (
	firstBackOff = time.Second
	maxBackOff   = time.Minute
)
