package consolidate

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// builtinVersion names the rules below and the cues. It changes with them.
const builtinVersion = "builtin 2"

// longMessage is how many words make a message one that is mostly pasted: of
// such a message only the first and last few sentences are read.
const (
	longMessage = 220
	longEdge    = 4
)

// agreedSure and thinSure are below the threshold: of what follows an agreement
// to something that is not there, and of words that do not say what they are about.
const (
	agreedSure = 0.55
	thinSure   = 0.50
)

// longClause is how many words make a clause one that tells rather than decides.
const longClause = 45

// A Builtin is the extractor that needs no model: it looks for cues (data/) in
// what the person says, for acceptances of what the agent proposed, and for
// lists of work that the agent says is left. It is deterministic, and its zero
// value is ready.
type Builtin struct{}

var _ Extractor = Builtin{}

// Identity is the version of the rules.
func (Builtin) Identity() string { return builtinVersion }

// Extract reads w. The only error is ctx's.
func (b Builtin) Extract(ctx context.Context, w Window) ([]Draft, error) {
	var drafts []Draft
	before := lastPiece(w.Context) // the reply that the person answers
	for i, p := range w.Pieces {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		switch p.Message.Kind {
		case User:
			drafts = append(drafts, b.fromPerson(p, before)...)
		case Reply:
			before = &w.Pieces[i]
			// Only a turn's last reply is what the person was left with.
			if last := i+1 == len(w.Pieces) || w.Pieces[i+1].Message.Kind != Reply; last {
				drafts = append(drafts, b.fromAgent(p)...)
			}
		}
	}
	return drafts, nil
}

func lastPiece(pieces []Piece) *Piece {
	if len(pieces) == 0 {
		return nil
	}
	return &pieces[len(pieces)-1]
}

// fromPerson reads one message of the person; before is the reply it answers, or nil.
func (b Builtin) fromPerson(p Piece, before *Piece) []Draft {
	text := prose(p.Text())
	found := slices.DeleteFunc(short(sentences(text)), func(s sentence) bool { return endsQuote(text[s.start:s.end]) })
	if len(found) == 0 {
		return nil
	}
	words := 0
	for _, s := range found {
		words += len(bytes.Fields(text[s.start:s.end]))
	}
	if words > longMessage && len(found) > 2*longEdge {
		found = append(slices.Clone(found[:longEdge]), found[len(found)-longEdge:]...)
	}
	l := languageOf(string(text))
	requests := slices.ContainsFunc(found, func(s sentence) bool {
		return l.is("request", normalise(string(text[s.start:s.end])))
	})
	var drafts []Draft
	for _, s := range found {
		kind, sure := l.tell(string(text[s.start:s.end]), requests)
		if kind == 0 {
			continue
		}
		if kind == Reversal && sure < Threshold {
			s = l.narrow(text, s, sure, requests)
		}
		drafts = append(drafts, Draft{
			Kind:       kind,
			Confidence: sure,
			Quotes:     []Quote{p.quote(s, Says)},
		})
	}
	// Who agrees to something that is not there to be quoted may have agreed to
	// anything: what follows waits for a person.
	if before == nil && l.is("agrees", normalise(string(text[found[0].start:found[0].end]))) {
		for i := range drafts {
			drafts[i].Confidence = min(drafts[i].Confidence, agreedSure)
		}
	}
	if before != nil {
		drafts = l.acceptances(p, text, found, *before, drafts)
	}
	for i := range drafts {
		d := &drafts[i]
		if at := d.Quotes[0]; len(d.Quotes) == 1 && l.thin(string(p.Message.Text[at.Start:at.End])) {
			d.Confidence = min(d.Confidence, thinSure)
		}
	}
	return drafts
}

// short leaves out what is too long to be quoted: no sentence, but a paste
// without marks.
func short(found []sentence) []sentence {
	return slices.DeleteFunc(found, func(s sentence) bool { return s.end-s.start > maxQuoteBytes })
}

// narrow returns the part of a sentence between two commas that says by itself
// that something changed, if there is one. In a long sentence it alone shows what
// that was.
func (l *language) narrow(text []byte, s sentence, sure float64, requests bool) sentence {
	for start := s.start; start < s.end; {
		end := s.end
		if at := bytes.IndexAny(text[start:s.end], ",;"); at >= 0 {
			end = start + at
		}
		part := s
		part.start, part.end = trimRange(text, start, end)
		if kind, confidence := l.tell(string(text[part.start:part.end]), requests); kind == Reversal && confidence == sure {
			return part
		}
		start = end + 1
	}
	return s
}

// endsQuote reports whether a sentence ends a quotation that begins before it.
func endsQuote(sentence []byte) bool {
	return bytes.HasSuffix(sentence, []byte(`"`)) && bytes.Count(sentence, []byte(`"`))%2 == 1
}

// quote is the quote of a sentence of p.
func (p Piece) quote(s sentence, role Role) Quote {
	return Quote{Message: p.Message.ID, Start: p.Start + s.start, End: p.Start + s.end, Role: role}
}

// order is which kind a clause is that could be several.
var order = [...]Kind{Rule, Preference, OpenWork, Reversal, Decision}

// tell returns what a sentence is and how sure that is; the zero kind for nothing.
// In a message that requests help, what one wants is the reason for asking.
func (l *language) tell(text string, requests bool) (Kind, float64) {
	sentence := normalise(text)
	best, sure := Kind(0), 0.0
	for _, c := range l.clauses(sentence) {
		kind, confidence := l.tellClause(c, sentence, requests)
		if kind != 0 && (best == 0 || rank(kind) < rank(best) || kind == best && confidence > sure) {
			best, sure = kind, confidence
		}
	}
	if best.choice() && sure < asWritten && l.written(text, sentence) {
		sure = min(sure, writtenSure)
	}
	return best, sure
}

const (
	// asWritten is how sure a cue must be to find a choice in a sentence of
	// written prose: such are pasted, from a review or a document.
	asWritten   = 0.65
	writtenSure = 0.55
	// writtenWords is how many words a sentence has that is written prose.
	writtenWords = 8
)

// written reports whether a sentence reads as written prose about something: it
// begins with a capital letter, ends with a full stop and speaks of nobody who
// takes part in the chat.
func (l *language) written(text, sentence string) bool {
	first, _ := utf8.DecodeRuneInString(text)
	return unicode.IsUpper(first) && strings.HasSuffix(text, ".") && strings.Count(sentence, " ") > writtenWords &&
		l.lists["parties"] != nil && !l.is("parties", sentence)
}

func rank(k Kind) int { return slices.Index(order[:], k) }

func (l *language) tellClause(c clause, sentence string, requests bool) (Kind, float64) {
	asked := c.question && !l.is("politely", c.text)
	asks := requests || strings.HasSuffix(sentence, "? ")
	for _, kind := range order {
		if kind.choice() && (asked || c.words > longClause || l.is("veto", c.text)) {
			continue
		}
		if !kind.choice() && asked && kind != Rule {
			continue
		}
		if kind == Rule && l.is("once", sentence) {
			continue
		}
		sure := l.surest(kind, c.text, asked || kind == Rule && requests)
		if kind != Rule && asks && sure < inRequest && sure >= Threshold {
			continue
		}
		if sure > 0 {
			if kind == Decision && l.is("revises", c.text) {
				kind = Reversal
			}
			return kind, sure
		}
	}
	return 0, 0
}

// inRequest is how sure a cue must be to find a choice in a sentence that asks
// for something: what one wants there is the reason for the question.
const inRequest = 0.75

// asRule is how sure a cue must be to find a rule in a question.
const asRule = 0.85

// surest returns the confidence of the surest cue for kind that matches, or 0.
func (l *language) surest(kind Kind, text string, asked bool) float64 {
	sure := 0.0
	for _, c := range l.cues[kind] {
		if c.sure > sure && (!asked || c.sure >= asRule) && c.matches(text) {
			sure = c.sure
		}
	}
	return sure
}

// clip returns text in one line and at most n code points long.
func clip(text string, n int) string {
	text = strings.Join(strings.Fields(text), " ")
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	runes := []rune(text)
	return strings.TrimSpace(string(runes[:n-1])) + "…"
}
