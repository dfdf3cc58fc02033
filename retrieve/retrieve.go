// Package retrieve answers: what earlier words bear on this message?
//
// An [Index] holds the messages of one memory, ranks them for a [Query] and
// says which slice of each bears on it. Messages are ranked by shared words
// (our own BM25 over bleve's postings), by meaning (cosine of unit vectors)
// and by their context: neighbours, session, speaker and date. Every term of
// a score is in the answer.
//
// Words are primary: they are local and always ready, and if they fail the
// call fails. Meaning and expansion are secondary: when one is late or broken
// the answer is made without it, and [Result.Sources] says so. Meaning comes of
// a token table, at once, or of a model that is asked and reads the messages in
// the background; the words that a model proposes add to a score and never
// decide it.
//
// An Index is a view of the ledger, never a source of truth: its folder may be
// deleted at any time and is filled again with [Index.Add], in order. The same
// documents in the same order give the same answers. It knows neither the
// ledger nor texts after they were analysed: callers load what is shown by
// sequence number, and cut it with [Excerpt].
//
// An Index is safe for concurrent use. Its constructor starts nothing;
// [Index.Run] makes durable what [Index.Add] made findable.
package retrieve

import (
	"context"
	"time"
)

// A Kind says what a message is; the numbers are those of the wire.
type Kind uint8

// The kinds of messages. User, Reply and Note are the default kinds: ranking
// looks at them unless others are asked for, and all statistics are theirs.
const (
	User Kind = iota + 1
	Reply
	Trace
	Work
	Note
	Mark
)

// IsDefault reports whether messages of this kind are ranked unless others are
// asked for.
func (k Kind) IsDefault() bool { return k == User || k == Reply || k == Note }

// A Document is one message as it is handed to an Index.
type Document struct {
	// Seq is the message's sequence number: ascending by one from 1.
	Seq uint64
	// Session is the id of the chat, TurnSeq and Ordinal the place in it.
	Session string
	TurnSeq uint64
	Ordinal int
	Speaker string
	Kind    Kind
	// Time is when it was said, in the speaker's zone; the zero Time is unknown.
	Time time.Time
	// Text holds the stored bytes. Bytes that are not UTF-8 separate words.
	Text string
}

// A Source is a source of evidence that can be switched off.
type Source uint8

// The sources of evidence.
const (
	Words Source = iota + 1
	Meaning
	Context
	Expansion
)

// String gives the name used on the wire and in [SourceOutcome].
func (s Source) String() string {
	switch s {
	case Words:
		return "words"
	case Meaning:
		return "meaning"
	case Context:
		return "context"
	case Expansion:
		return "expansion"
	}
	return "unknown"
}

// An Outcome tells what became of a source; the numbers are those of the wire.
type Outcome uint8

// The outcomes of a source.
const (
	Used Outcome = iota + 1
	Skipped
	Late
	Off
	Failed
	Cancelled
	Rebuilding
)

// A SourceOutcome is one line of a result's account of itself.
type SourceOutcome struct {
	Source  Source
	Outcome Outcome
	Took    time.Duration
	Reason  string
}

// Relevance says whether an irrelevant query gets an answer.
type Relevance uint8

// The values of Relevance.
const (
	// Gated: an irrelevant query gets no passages.
	Gated Relevance = iota
	// Always: whatever comes closest.
	Always
)

// ExpansionMode says when a model may propose other wordings.
type ExpansionMode uint8

// The values of ExpansionMode.
const (
	ExpandWhenWeak ExpansionMode = iota
	ExpandOff
	ExpandAlways
)

// A Query asks for passages. The zero value of every field but Text is its
// default.
type Query struct {
	Text string
	// Limit is the most passages wanted; 0 is 20.
	Limit int
	// Kinds of messages; none is the default kinds.
	Kinds []Kind
	// After and Before bound when a message was said: [After, Before).
	After, Before time.Time
	// Sessions to look in; none is all. ExcludeSessions and Exclude (sequence
	// numbers) are left out.
	Sessions, ExcludeSessions []string
	Exclude                   []uint64
	Relevance                 Relevance
	Expansion                 ExpansionMode
	// WithoutSources are switched off.
	WithoutSources []Source
	// WithoutParts are left out of the sum, by name.
	WithoutParts []string
	// Now is the reference time, in the zone of whoever asks; the zero Time
	// recognises no relative dates.
	Now time.Time
	// Yield, if any, is called when nothing is left to do but wait for a model,
	// and the function it returns once the wait is over: a caller that bounds
	// how many rank at once can let another rank meanwhile. resume waits for
	// its turn until ctx is done; after its error the answer is made of what is
	// there, without that model. Both may be called several times for one
	// query, one after the other, on the goroutine of Recall.
	Yield func() (resume func(ctx context.Context) error)
}

// A Part is one term of a score; it adds Value × Weight.
type Part struct {
	Name          string
	Value, Weight float64
}

// A Range is [Start, End) in the bytes of a message.
type Range struct{ Start, End int }

// A Passage is a slice of one message, with its rank's reasons.
type Passage struct {
	Seq uint64
	// Range is the indexed slice that bears most on the query.
	Range Range
	Score float64
	Parts []Part
	// ExpansionParts is what proposed words added to Score.
	ExpansionParts []Part
	// Previous and Next are the sequence numbers of the neighbours; 0 is none.
	Previous, Next uint64
}

// A Gate is the judgement whether anything remembered is relevant.
type Gate struct {
	Measure, Threshold float64
	// PassageThreshold is the bar of each passage.
	PassageThreshold float64
	Passed           bool
	Parts            []Part
	// Reason says why the gate was closed without measuring, or not asked.
	Reason string
}

// A Result is the answer to a Query.
type Result struct {
	// Passages, best first.
	Passages []Passage
	Gate     Gate
	Sources  []SourceOutcome
	// NothingToSearch: the query held no words.
	NothingToSearch bool
	// Held, Indexed and Embedded are sequence numbers: found by words at all,
	// durable in the word index, found by meaning.
	Held, Indexed, Embedded uint64
	// PeriodStart and PeriodEnd are the period the query named, if one was
	// recognised.
	PeriodStart, PeriodEnd time.Time
	// Expansions are the words a model proposed.
	Expansions []string
}

// An Embedder turns texts into vectors, in the order given; their lengths do
// not matter. A nil vector means "no opinion": the text is then ranked by words
// alone. It must return soon after ctx is done, and be safe for concurrent use.
//
// An error that has a method Skipped() string says that the model was not
// asked, and why, without a word of any text.
type Embedder interface {
	// Identity names model, dimension and preprocessing: vectors of two
	// identities never meet.
	Identity() string
	// EmbedDocuments is asked for 32 texts at most.
	EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error)
	EmbedQuery(ctx context.Context, text string) ([]float32, error)
}

// A TokenTable is an Embedder whose vectors are sums of token rows, so that a
// memory can weight them by its own statistics.
type TokenTable interface {
	Embedder
	Dimensions() int
	// Tokens lists the rows of a text, with repeats.
	Tokens(text string) []int32
	// AddRow adds weight × row to dst, which has Dimensions elements.
	AddRow(dst []float32, token int32, weight float32)
	// Represents reports whether the table has an opinion on the text.
	Represents(text string) bool
}

// An Expander proposes other wordings of query, best first; none is a valid
// answer. It must return before ctx's deadline, and be safe for concurrent use.
// Its errors may have a method Skipped, as those of an [Embedder].
type Expander interface {
	Expand(ctx context.Context, query string) ([]string, error)
}

// Options of an Index. The zero value ranks by words alone.
type Options struct {
	// Tokens makes the token rows that are kept of every message, whoever
	// embeds: with it the Embedder can change and the views stay. Nil is the
	// Embedder, if that is a TokenTable, else there are none.
	Tokens TokenTable
	// Embedder, if any. The TokenTable that makes the rows gives meaning with
	// the memory's own weighting and at once. Any other is a model to be asked:
	// [Index.Run] has it read the messages, and its vectors are kept by its
	// identity beside the views.
	Embedder Embedder
	// Texts gives the texts of messages by sequence number, in the order asked
	// for, byte for byte as they were added; one that is gone is empty. It is
	// needed for an Embedder that is asked, since an index keeps no texts.
	Texts func(ctx context.Context, seqs []uint64) ([]string, error)
	// Expander, if any.
	Expander Expander
}

// An Embedding says how far a memory's messages have been embedded.
type Embedding struct {
	// Identity names what gives meaning now; empty is nothing: words answer
	// alone.
	Identity string
	// Next names what is still reading the messages before it can answer; empty
	// is nothing.
	Next string
	// Done of Total messages have been embedded by whichever of the two there
	// is.
	Done, Total uint64
	// LastError is that of the last attempt to have messages embedded; nil once
	// one has succeeded.
	LastError error
}
