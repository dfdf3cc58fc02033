package consolidate

import (
	"crypto/sha256"
	"fmt"
	"time"
)

// An Action is what a review does.
type Action uint8

// The actions, with the numbers they have on the wire.
const (
	Approve Action = iota + 1
	Reject
	Edit
	Pin
	Unpin
	Undo
	SetPolicy
	Supersede
)

var actionNames = [...]string{"none", "approve", "reject", "edit", "pin", "unpin", "undo", "set policy", "supersede"}

// String is a name for people.
func (a Action) String() string {
	if int(a) >= len(actionNames) {
		a = 0
	}
	return actionNames[a]
}

// A Review is one change that a person made.
type Review struct {
	Action  Action
	Entries []string // ids, but for Undo and SetPolicy; of Supersede the one that does

	Superseded []string // of Supersede: ids of what the entry supersedes

	Text     string   // of Edit; empty once forgotten
	TextHash [32]byte // SHA-256(salt ‖ text), with a salt that goes with the text

	Undoes [32]byte // of Undo: the hash of a review
	Policy Policy   // of SetPolicy
	Author string
}

// A Batch is all that was read from one window, or one review. Batches form one
// chain per memory: each names the hash of the one before.
type Batch struct {
	Hash, Previous [32]byte
	At             time.Time // when it was stored; outside the hash

	// Of a window:
	Session             string
	From, To            Position
	FirstTurn, LastTurn uint64
	Window, Context     []Source // what it was read from
	Source              [32]byte // [SourceHash] of those
	Extractor           string
	Entries             []Entry // may be none

	Review *Review // nil for a window
}

// WindowBatch returns the batch of what an extractor found in w, after the batch
// of which previous is the hash; the first batch follows the zero hash.
func WindowBatch(w Window, extractor string, entries []Entry, previous [32]byte) Batch {
	b := Batch{
		Previous: previous, Session: w.Session, From: w.From, To: w.To,
		FirstTurn: w.FirstTurn, LastTurn: w.LastTurn, Extractor: extractor, Entries: entries,
	}
	b.Window, b.Context = w.Sources()
	b.Source = SourceHash(b.Window, b.Context)
	b.Hash = b.Sum()
	return b
}

// ReviewBatch returns the batch of a review.
func ReviewBatch(r Review, previous [32]byte) Batch {
	b := Batch{Previous: previous, Review: &r}
	b.Hash = b.Sum()
	return b
}

// Sum is the hash of b: the SHA-256 over its canonical encoding. Times are not
// in it, nor are words: the source hash stands for those that entries quote,
// and the text hash for an edit's, so that both can be forgotten.
func (b Batch) Sum() [32]byte {
	c := canonical(nil).text("recalld batch 1").bytes(b.Previous[:])
	if r := b.Review; r != nil {
		c = c.text("review").text(r.Action.String()).texts(r.Entries).bytes(r.TextHash[:]).
			bytes(r.Undoes[:]).number(uint64(r.Policy)).text(r.Author)
		if r.Action == Supersede { // the others came before it
			c = c.texts(r.Superseded)
		}
		return sha256.Sum256(c)
	}
	c = c.text("window").text(b.Session).position(b.From).position(b.To).
		number(b.FirstTurn).number(b.LastTurn).bytes(b.Source[:]).text(b.Extractor).number(uint64(len(b.Entries)))
	for _, e := range b.Entries {
		c = c.entry(e)
	}
	return sha256.Sum256(c)
}

func (c canonical) entry(e Entry) canonical {
	return c.text(e.ID).text(e.Kind.String()).quotes(e.Quotes).number(uint64(e.Confidence)).
		text(e.Speaker).text(e.By.String()).number(e.Turn).text(e.DecidedOn).
		flag(e.Candidate).texts(e.Supersedes).texts(e.MaySupersede)
}

// VerifyChain checks that every batch is what its hash says, follows the one
// before it, and was read from the sources its source hash says. before is the
// hash that the first of them follows. The error says which batch is the first
// that does not fit.
func VerifyChain(batches []Batch, before [32]byte) error {
	for i, b := range batches {
		switch {
		case b.Previous != before:
			return fmt.Errorf("batch %d does not follow the one before it", i)
		case b.Review == nil && SourceHash(b.Window, b.Context) != b.Source:
			return fmt.Errorf("batch %d was read from other messages than it names", i)
		case b.Sum() != b.Hash:
			return fmt.Errorf("batch %d is not what its hash says", i)
		}
		before = b.Hash
	}
	return nil
}
