package consolidate

import (
	"cmp"
	"slices"
)

// A State says how an entry stands.
type State uint8

// The states, with the numbers they have on the wire.
const (
	Live State = iota + 1
	Candidate
	Superseded
	Rejected
	Stale
)

var stateNames = [...]string{"unknown", "live", "candidate", "superseded", "rejected", "stale"}

// String is the name the contract has for s.
func (s State) String() string {
	if int(s) >= len(stateNames) {
		s = 0
	}
	return stateNames[s]
}

// A Record is an entry as the batches left it.
type Record struct {
	Entry // Text is that of the last edit; Quotes are those of every repetition

	State    State
	Pinned   bool
	Original string   // the quoted words, if the text was edited
	IDs      []string // of the entries that say the same, oldest first; the first is the ID
	Last     Entry    // the last repetition
	Batch    [32]byte // the batch it is from

	SupersededBy []string // ids
}

// A Journal is what its batches amount to.
type Journal struct {
	Records []Record // in the order in which they were first said
	Head    [32]byte // hash of the last batch
	Policy  Policy
	Ends    map[string]Position // where the last batch of each session ends

	standing []Entry // what [Journal.Standing] begins with
}

// Fold returns the journal of the batches of one memory, oldest first. stale
// says whether what a batch was read from reads otherwise now; nil is never.
//
// Of several batches of one window the last counts. A fact said again is one
// entry with all its quotes, unless it was superseded in between. What an entry
// superseded stays superseded when the entry is forgotten, and comes back when
// it is rejected, or when a later reading of its window no longer finds it.
func Fold(batches []Batch, stale func(Batch) bool) Journal {
	f := folding{stale: stale, home: map[string]int{}, undone: undone(batches), verdict: map[string]State{}}
	f.journal.Ends = map[string]Position{}
	f.verdicts(batches)
	f.windows(batches)
	f.confirmed(batches)
	f.records()
	f.edits(batches)
	f.states()
	for _, s := range f.said {
		if state := f.journal.Records[f.home[s.entry.ID]].State; state == Live || state == Candidate {
			f.journal.standing = append(f.journal.standing, s.entry)
		}
	}
	for _, b := range batches {
		f.journal.Head = b.Hash
		if b.Review == nil {
			if b.To.Compare(f.journal.Ends[b.Session]) > 0 {
				f.journal.Ends[b.Session] = b.To
			}
		} else if b.Review.Action == SetPolicy && !f.undone[b.Hash] {
			f.journal.Policy = b.Review.Policy
		}
	}
	return f.journal
}

// Find returns the record that holds the entry of that id, or nil.
func (j *Journal) Find(id string) *Record {
	for i := range j.Records {
		if slices.Contains(j.Records[i].IDs, id) {
			return &j.Records[i]
		}
	}
	return nil
}

// undone returns the hashes of the reviews that were taken back. An undo can be
// taken back too.
func undone(batches []Batch) map[[32]byte]bool {
	out := map[[32]byte]bool{}
	for _, b := range slices.Backward(batches) {
		if b.Review != nil && b.Review.Action == Undo && !out[b.Hash] {
			out[b.Review.Undoes] = true
		}
	}
	return out
}

// folding is what Fold knows on its way.
type folding struct {
	stale   func(Batch) bool
	undone  map[[32]byte]bool
	said    []saying
	links   []link
	home    map[string]int   // entry id → record
	verdict map[string]State // what a person said of an entry: Live or Rejected
	journal Journal
}

// A saying is an entry of a batch that counts.
type saying struct {
	entry Entry
	batch [32]byte
	stale bool
}

// A link says that one entry superseded another. One whose entry was forgotten
// holds for good.
type link struct {
	from, to string
	by       *Entry // that superseded
	waits    bool   // it is a candidate
	forever  bool
}

// windows collects the entries of the last batch of every window, and the links
// of all that are forgotten.
func (f *folding) windows(batches []Batch) {
	type window struct {
		session  string
		from, to Position
	}
	last := map[window]int{}
	for i, b := range batches {
		if b.Review == nil {
			last[window{b.Session, b.From, b.To}] = i
		}
	}
	for i, b := range batches {
		if b.Review != nil {
			continue
		}
		counts := last[window{b.Session, b.From, b.To}] == i
		old := counts && f.stale != nil && f.stale(b)
		for _, e := range b.Entries {
			if counts || e.Forgotten {
				for _, id := range e.Supersedes {
					f.links = append(f.links, link{from: e.ID, to: id, by: &e, waits: e.Candidate, forever: e.Forgotten})
				}
			}
			if counts && !e.Forgotten {
				f.said = append(f.said, saying{entry: e, batch: b.Hash, stale: old})
			}
		}
	}
	slices.SortStableFunc(f.said, func(a, b saying) int { return cmp.Compare(a.entry.Turn, b.entry.Turn) })
}

// confirmed collects the links that people made.
func (f *folding) confirmed(batches []Batch) {
	said := map[string]Entry{}
	for _, b := range batches {
		for _, e := range b.Entries {
			said[e.ID] = e
		}
	}
	for _, b := range batches {
		if b.Review == nil || b.Review.Action != Supersede || f.undone[b.Hash] {
			continue
		}
		for _, from := range b.Review.Entries {
			e := said[from]
			for _, to := range b.Review.Superseded {
				f.links = append(f.links, link{from: from, to: to, by: &e, forever: e.Forgotten})
			}
		}
	}
}

// records makes one record of all that say the same.
func (f *folding) records() {
	type saidBy struct {
		fact, speaker string
		by            MessageKind
		standing      bool
	}
	open := map[saidBy]int{}
	for _, s := range f.said {
		e := s.entry
		key := saidBy{fact: fact(e.Text), speaker: e.Speaker, by: e.By, standing: !e.Kind.choice()}
		if at, ok := open[key]; ok && key.fact != "" && !f.supersededBefore(at, &e) {
			f.merge(at, s)
			continue
		}
		at := len(f.journal.Records)
		open[key] = at
		f.home[e.ID] = at
		r := Record{Entry: e, IDs: []string{e.ID}, Last: e, Batch: s.batch, State: Live}
		r.Quotes = slices.Clone(e.Quotes)
		if s.stale {
			r.State = Stale
		}
		f.journal.Records = append(f.journal.Records, r)
	}
}

// merge adds a repetition to a record.
func (f *folding) merge(at int, s saying) {
	r := &f.journal.Records[at]
	f.home[s.entry.ID] = at
	if slices.Contains(r.IDs, s.entry.ID) {
		return
	}
	r.IDs = append(r.IDs, s.entry.ID)
	r.Quotes = append(r.Quotes, s.entry.Quotes...)
	if !s.entry.SaidBefore(&r.Last) {
		r.Last = s.entry
	}
	r.Candidate = r.Candidate && s.entry.Candidate
	r.Confidence = max(r.Confidence, s.entry.Confidence)
	r.MaySupersede = union(r.MaySupersede, s.entry.MaySupersede)
	if !s.stale && r.State == Stale {
		r.State = Live
	}
}

// union is a followed by what only b has.
func union(a, b []string) []string {
	out := slices.Clone(a)
	for _, s := range b {
		if len(out) < maxProposals && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// supersededBefore reports whether anything said before e superseded the record.
func (f *folding) supersededBefore(at int, e *Entry) bool {
	return slices.ContainsFunc(f.links, func(l link) bool {
		home, ok := f.home[l.to]
		return ok && home == at && !e.SaidBefore(l.by) && f.holds(l)
	})
}

// verdicts collects what people approved and rejected.
func (f *folding) verdicts(batches []Batch) {
	for _, b := range batches {
		if b.Review == nil || f.undone[b.Hash] {
			continue
		}
		for _, id := range b.Review.Entries {
			switch b.Review.Action {
			case Approve:
				f.verdict[id] = Live
			case Reject:
				f.verdict[id] = Rejected
			}
		}
	}
}

// edits applies what else people changed.
func (f *folding) edits(batches []Batch) {
	for _, b := range batches {
		if b.Review == nil || f.undone[b.Hash] {
			continue
		}
		for _, id := range b.Review.Entries {
			at, ok := f.home[id]
			if !ok {
				continue
			}
			r := &f.journal.Records[at]
			switch b.Review.Action {
			case Edit:
				if r.Original == "" {
					r.Original = r.Text
				}
				if b.Review.Text != "" {
					r.Text = b.Review.Text
				}
			case Pin, Unpin:
				r.Pinned = b.Review.Action == Pin
			}
		}
	}
}

// verdictOn returns the last word of a person on any of the entries that a
// record holds; a rejection counts for all of them.
func (f *folding) verdictOn(r *Record) State {
	verdict := State(0)
	for _, id := range r.IDs {
		if v := f.verdict[id]; v == Rejected || verdict == 0 {
			verdict = v
		}
	}
	return verdict
}

// states settles how the records stand.
func (f *folding) states() {
	records := f.journal.Records
	for _, l := range f.links {
		to, ok := f.home[l.to]
		from, known := f.home[l.from]
		if itself := known && from == to; ok && !itself && f.holds(l) && !slices.Contains(records[to].SupersededBy, l.from) {
			records[to].SupersededBy = append(records[to].SupersededBy, l.from)
		}
	}
	for at := range records {
		r := &records[at]
		verdict := f.verdictOn(r)
		switch {
		case verdict == Rejected:
			r.State = Rejected
		case len(r.SupersededBy) > 0:
			r.State = Superseded
		case r.State == Stale:
		case r.Candidate && verdict != Live:
			r.State = Candidate
		}
	}
}

// holds reports whether a link is in force: it is while the entry that
// superseded is neither rejected nor still waiting for a person, even if it was
// superseded in its turn, and for good once it is forgotten.
func (f *folding) holds(l link) bool {
	verdict := f.verdict[l.from]
	return verdict != Rejected && (l.forever || !l.waits || verdict == Live)
}
