package consolidate

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"math"
	"slices"
	"unicode/utf8"
)

// A Reason is why a draft was dropped.
type Reason string

// The reasons. A draft is dropped for the first one that holds.
const (
	UnknownKind     Reason = "unknown kind"
	BadConfidence   Reason = "confidence not between 0 and 1"
	NoWords         Reason = "quotes nobody's words"
	TooManyQuotes   Reason = "too many quotes"
	UnknownRole     Reason = "unknown role of a quote"
	UnknownMessage  Reason = "quoted message is not in the window"
	OutOfRange      Reason = "quoted bytes are not in the message"
	SplitsCharacter Reason = "quote begins or ends inside a character"
	BlankQuote      Reason = "quote is blank"
	TooLong         Reason = "quote is too long"
	OnlyContext     Reason = "words are from before the window"
	NotProposed     Reason = "proposal is not the agent's, or not before its acceptance"
	TwoSpeakers     Reason = "words of several speakers"
	Repeated        Reason = "same as another draft"

	// Those of what a model proposes.
	Unreadable Reason = "not of the form that was asked for"
	NotSaid    Reason = "quoted words are not in the message"
	TooMany    Reason = "more entries than one window may have"
)

const (
	// maxQuotes and maxQuoteBytes bound what one draft may hold.
	maxQuotes     = 10
	maxQuoteBytes = 2000
	// textRunes is how much of the quoted words an entry shows.
	textRunes = 400
	// idDigits of hex name an entry: 80 bits of a hash.
	idDigits = 20
)

// Check turns the drafts into entries whose quotes are in w: bytes that exist,
// of a message that exists, said in the role the draft gives them. Speaker and
// times are the message's. It returns how many drafts were dropped for what,
// and it needs no model. The entries are in the order in which their words were
// said.
func Check(w Window, drafts []Draft) ([]Entry, map[Reason]int) {
	entries := make([]Entry, 0, len(drafts))
	dropped := map[Reason]int{}
	seen := map[string]bool{}
	for _, d := range drafts {
		e, reason := w.check(d)
		if reason == "" && seen[e.ID] {
			reason = Repeated
		}
		if reason != "" {
			dropped[reason]++
			continue
		}
		seen[e.ID] = true
		entries = append(entries, e)
	}
	w.inOrder(entries)
	return entries, dropped
}

// check returns the entry of a draft, or why there is none.
func (w Window) check(d Draft) (Entry, Reason) {
	switch {
	case d.Refused != "":
		return Entry{}, d.Refused
	case !d.Kind.valid():
		return Entry{}, UnknownKind
	case !(d.Confidence >= 0 && d.Confidence <= 1): // NaN is neither
		return Entry{}, BadConfidence
	case len(d.Quotes) == 0 || d.Quotes[0].Role != Says:
		return Entry{}, NoWords
	case len(d.Quotes) > maxQuotes:
		return Entry{}, TooManyQuotes
	}
	var first place
	for i, q := range d.Quotes {
		at, reason := w.find(q)
		if reason != "" {
			return Entry{}, reason
		}
		if i == 0 {
			first = at
		}
		switch {
		case q.Role == Says && at.context:
			return Entry{}, OnlyContext
		case q.Role == Says && (at.piece.Message.Speaker != first.piece.Message.Speaker || at.piece.Message.Kind != first.piece.Message.Kind):
			return Entry{}, TwoSpeakers
		case q.Role == Proposal && (at.piece.Message.Kind != Reply || first.piece.Message.Kind != User || at.order >= first.order):
			return Entry{}, NotProposed
		}
	}
	m := first.piece.Message
	e := Entry{
		ID: entryID(d.Kind, d.Quotes), Kind: d.Kind, Quotes: append([]Quote(nil), d.Quotes...),
		Confidence: int(math.Round(d.Confidence * thousand)),
		Speaker:    m.Speaker, By: m.Kind, Session: w.Session, Turn: first.piece.Turn, SaidAt: m.Time, Zone: m.Zone,
	}
	e.Text = w.Words(e)
	e.DecidedOn = decidedOn(w.quoted(d.Quotes[0]), m.Time, m.Zone)
	return e, ""
}

// A place is where a quote stands in a window.
type place struct {
	piece   Piece
	context bool
	order   int // pieces in the order in which they were said
}

// find looks for what q quotes.
func (w Window) find(q Quote) (place, Reason) {
	if !q.Role.valid() {
		return place{}, UnknownRole
	}
	reason := UnknownMessage
	for i, p := range append(append([]Piece(nil), w.Context...), w.Pieces...) {
		if p.Message.ID != q.Message {
			continue
		}
		reason = OutOfRange
		if q.Start < p.Start || q.End > p.End || q.Start > q.End {
			continue
		}
		if reason = checkBytes(p.Message.Text, q.Start, q.End); reason != "" {
			return place{}, reason
		}
		return place{piece: p, context: i < len(w.Context), order: i}, ""
	}
	return place{}, reason
}

// checkBytes says what is wrong with a range that lies within text.
func checkBytes(text []byte, start, end int) Reason {
	switch {
	case end-start > maxQuoteBytes:
		return TooLong
	case start < len(text) && !utf8.RuneStart(text[start]), end < len(text) && !utf8.RuneStart(text[end]):
		return SplitsCharacter
	case clip(string(text[start:end]), 1) == "":
		return BlankQuote
	}
	return ""
}

// quoted returns the words of a quote that was found.
func (w Window) quoted(q Quote) string {
	at, reason := w.find(q)
	if reason != "" {
		return ""
	}
	return string(at.piece.Message.Text[q.Start:q.End])
}

// acceptText joins an acceptance and what it accepts.
const acceptText = " ⟵ "

// Words returns the text of an entry: what its quotes in w say, on one line.
// It is empty when one of them is gone.
func (w Window) Words(e Entry) string {
	text := ""
	for _, q := range e.Quotes {
		words := w.quoted(q)
		switch {
		case words == "":
			return ""
		case text == "":
			text = words
		case q.Role == Proposal:
			text += acceptText + words
		default:
			text += " … " + words
		}
	}
	return clip(text, textRunes)
}

// Holds reports whether the quotes of an entry still stand in w, by the speaker
// it names. It is what a later verification asks.
func (w Window) Holds(e Entry) bool {
	again, reason := w.check(Draft{Kind: e.Kind, Quotes: e.Quotes, Confidence: float64(e.Confidence) / thousand})
	return reason == "" && again.ID == e.ID && again.Speaker == e.Speaker && again.By == e.By && again.Turn == e.Turn
}

// entryID names an entry by what it quotes.
func entryID(kind Kind, quotes []Quote) string {
	c := canonical(nil).text("recalld entry 1").text(kind.String()).quotes(quotes)
	sum := sha256.Sum256(c)
	return hex.EncodeToString(sum[:])[:idDigits]
}

func (c canonical) quotes(quotes []Quote) canonical {
	c = c.number(uint64(len(quotes)))
	for _, q := range quotes {
		c = c.text(q.Message).number(uint64(q.Start)).number(uint64(q.End)).number(uint64(q.Role))
	}
	return c
}

// inOrder sorts entries by where their words stand.
func (w Window) inOrder(entries []Entry) {
	order := func(e Entry) int {
		at, _ := w.find(e.Quotes[0])
		return at.order
	}
	slices.SortStableFunc(entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(order(a), order(b)), cmp.Compare(a.Quotes[0].Start, b.Quotes[0].Start))
	})
}
