// Package consolidate answers: what was decided in this window?
//
// A session's finished turns tile into windows ([Session.Windows]). An
// [Extractor] reads one [Window] and proposes drafts; [Check] keeps those whose
// quotes are really there; the entries of one window, with the hash of what
// they were read from and the hash of the batch before, are one [Batch].
// [Fold] turns the batches into a [Journal], and [Journal.Block] chooses and
// renders what fits a budget of bytes.
//
// The package promises that no entry is kept whose quoted bytes are not in the
// message it names, that the speaker is the message's own, and that nothing is
// changed but by a batch that says so. The same turns give the same windows,
// entries, hashes and chain: no function here reads a clock or draws a number.
//
// What this part does not do: store, schedule, call a model, or say how well an
// entry matches what is being asked; its proposals of what an entry replaces
// are proposals. Everything in it may be called concurrently, as long as nobody
// changes what was passed in.
package consolidate

import "time"

// A MessageKind is what a message is. Only [User] and [Reply] are spoken; the
// rest never enters a window.
type MessageKind uint8

// The kinds of message, with the numbers they have on the wire.
const (
	User MessageKind = iota + 1
	Reply
	Trace
	Work
	Note
	Mark
)

var messageKindNames = [...]string{"unknown", "user", "reply", "trace", "work", "note", "mark"}

// String is the name the contract has for k.
func (k MessageKind) String() string {
	if int(k) >= len(messageKindNames) {
		k = 0
	}
	return messageKindNames[k]
}

func (k MessageKind) spoken() bool { return k == User || k == Reply }

// A Status says how a turn stands. Every status but [Open] is final.
type Status uint8

// The statuses of a turn, with the numbers they have on the wire.
const (
	Open Status = iota + 1
	Finished
	Stopped
	Interrupted
)

// A Message is what a window needs to know of one.
type Message struct {
	ID      string
	Seq     uint64 // order within its turn; never 0
	Kind    MessageKind
	Speaker string
	Time    time.Time // zero when unknown
	Zone    string    // IANA name or offset; may be empty
	Text    []byte

	// Inner is SHA-256(salt ‖ text), as the ledger keeps it.
	Inner [32]byte

	// A forgotten message is as if it had never been there.
	Forgotten bool
}

// A Turn is one turn of a session.
type Turn struct {
	ID       string
	Seq      uint64 // dense per memory, never 0
	Status   Status
	Appended time.Time
	Messages []Message
}

// A Kind is what an entry is.
type Kind uint8

// The kinds of entry, with the numbers they have on the wire.
const (
	Decision Kind = iota + 1
	Rule
	Preference
	Reversal
	OpenWork
)

var kindNames = [...]string{"unknown", "decision", "rule", "preference", "reversal", "open_work"}

// String is the name the contract has for k.
func (k Kind) String() string {
	if int(k) >= len(kindNames) {
		k = 0
	}
	return kindNames[k]
}

func (k Kind) valid() bool { return k >= Decision && k <= OpenWork }

// choice reports whether k closes an alternative.
func (k Kind) choice() bool { return k == Decision || k == Reversal }

// A Role is what a quote is to its entry.
type Role uint8

// The roles of a quote: the words of the one who decides, and what they accepted.
const (
	Says Role = iota + 1
	Proposal
)

func (r Role) valid() bool { return r == Says || r == Proposal }

// A Quote is a range of bytes of one message.
type Quote struct {
	Message    string
	Start, End int // half open, in bytes
	Role       Role
}

// A Draft is what an extractor proposes. It is nothing until [Check] has seen it.
// It has no text of its own: what an entry says are the words it quotes.
type Draft struct {
	Kind       Kind
	Quotes     []Quote
	Confidence float64 // 0 to 1

	// Refused is why the extractor itself takes nothing from it, if it does not:
	// Check then only counts it.
	Refused Reason
}

// An Entry is a draft whose quotes were found, with what the quoted messages
// say about it. Its id follows from kind and quotes alone, so the same words
// always give the same entry.
type Entry struct {
	ID         string
	Kind       Kind
	Text       string  // the quoted words on one line; empty once forgotten
	Quotes     []Quote // the first one is [Says]
	Confidence int     // in thousandths
	Speaker    string  // of the first quote
	By         MessageKind
	Session    string
	Turn       uint64
	SaidAt     time.Time
	Zone       string
	DecidedOn  string // a date as 2006-01-02 if the words state one

	// Candidate entries wait for a person.
	Candidate bool
	// Forgotten entries have no words any more. What they superseded stays so.
	Forgotten bool
	// Supersedes holds what this entry replaces, by a rule; MaySupersede what it
	// might replace, best first, at most five.
	Supersedes   []string
	MaySupersede []string
}

// A Policy says which entries go live by themselves.
type Policy uint8

// Under Auto, the zero value, those of at least [Threshold]; under ByReview none.
const (
	Auto Policy = iota
	ByReview
)

// Admit marks the entries that wait for a person. What the agent says it chose
// always waits: it is not the agent who decides.
func Admit(entries []Entry, policy Policy) {
	for i := range entries {
		e := &entries[i]
		own := e.By != User && e.Kind != OpenWork
		e.Candidate = policy == ByReview || own || e.Confidence < int(Threshold*thousand)
	}
}

const thousand = 1000
