package main

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	recalldv1 "recalld/proto/recalld/v1"
)

// entryIndent is the room before what belongs to an entry.
const entryIndent = 4

// wordsAround is how many bytes of a message are shown on each side of a quote.
const wordsAround = 300

// printEntries prints entries for people.
func (p page) printEntries(entries []*recalldv1.Entry) {
	for i, e := range entries {
		if i > 0 {
			p.printf("\n")
		}
		p.printEntry(e)
	}
}

// printEntry prints what an entry is and who said it when, then its text, and
// the id by which recalld journal show opens it.
func (p page) printEntry(e *recalldv1.Entry) {
	standing := entryState(e.GetState())
	if e.GetPinned() {
		standing += ", pinned"
	}
	p.heading(fmt.Sprintf("%s · %s · %s", entryKind(e.GetKind()), oneLine(e.GetSpeaker()), when(e.GetSaidAt())), standing)
	p.paragraph(entryIndent, printable(e.GetText()), nil)
	p.printf("%s%s\n", strings.Repeat(" ", entryIndent), p.dim("id "+oneLine(e.GetId())))
}

// printEntryWhole prints an entry with all it rests on.
func (p page) printEntryWhole(r *recalldv1.ShowResponse) {
	e := r.GetEntry()
	p.printEntry(e)
	pad := strings.Repeat(" ", entryIndent)
	p.printf("%s%s\n", pad, p.dim(fmt.Sprintf("confidence %.2f · batch %s", e.GetConfidence(), shortHash(e.GetBatchHash()))))
	if on := e.GetDecidedOn(); on.GetAt() != nil {
		p.printf("%sdecided on %s\n", pad, on.GetAt().AsTime().In(location(on.GetZone())).Format("Mon 2 Jan 2006"))
	}
	messages := map[string]*recalldv1.Message{}
	for _, m := range r.GetMessages() {
		messages[m.GetId()] = m
	}
	for _, q := range e.GetQuotes() {
		p.printf("\n")
		p.printQuote(q, messages[q.GetMessageId()])
	}
	p.printRelated(r)
}

// printQuote prints a quote within the words around it. m is nil when the answer
// had no room for the message, or it was forgotten.
func (p page) printQuote(q *recalldv1.Quote, m *recalldv1.Message) {
	role := strings.ToLower(strings.TrimPrefix(q.GetRole().String(), "QUOTE_ROLE_"))
	said := when(nil)
	if m != nil {
		said = when(m.GetTime())
	}
	speaker := oneLine(q.GetSpeaker())
	if speaker == "" {
		p.printf("%s\n", p.bold(role+" · a message that is no longer there"))
	} else {
		p.printf("%s\n", p.bold(fitted(role+" · "+speaker+" · "+said, p.width)))
	}
	before, quoted, after := around(q, m)
	open, shut := "⟦", "⟧"
	if p.styled {
		open, shut = "", ""
	}
	text := before + open
	mark := span{start: len(text)}
	text += quoted
	mark.end = len(text)
	text += shut + after
	p.paragraph(entryIndent, text, []span{mark})
	pad := strings.Repeat(" ", entryIndent)
	if s := oneLine(q.GetSessionId()); s != "" {
		p.printf("%s%s\n", pad, p.dim("session "+s))
	}
	p.printf("%s%s\n", pad, p.dim("message "+oneLine(q.GetMessageId())))
}

// around gives a quote and the words of its message before and after it, safe to
// print. There are none when what is shown of the message is not what was stored,
// as its bytes are then counted otherwise.
func around(q *recalldv1.Quote, m *recalldv1.Message) (before, quoted, after string) {
	start, end := q.GetRange().GetStart(), q.GetRange().GetEnd()
	text := m.GetText()
	if m == nil || !m.GetExact() || start > end || end > uint64(len(text)) || text[start:end] != q.GetText() {
		return "", printable(q.GetText()), ""
	}
	before, after = text[:start], text[end:]
	if cut := len(before) - wordsAround; cut > 0 {
		before = "… " + before[wordBoundary(before, cut):]
	}
	if len(after) > wordsAround {
		n := wordsAround
		for n > 0 && !utf8.RuneStart(after[n]) {
			n--
		}
		if space := strings.LastIndexFunc(after[:n], unicode.IsSpace); space > wordsAround/2 {
			n = space
		}
		after = after[:n] + " …"
	}
	return printable(before), printable(q.GetText()), printable(after)
}

// wordBoundary is where, at or after a byte of a text, the next word begins; if
// that is far, the next character.
func wordBoundary(text string, at int) int {
	for at < len(text) && !utf8.RuneStart(text[at]) {
		at++
	}
	if space := strings.IndexFunc(text[at:], unicode.IsSpace); space >= 0 && space < wordsAround/2 {
		return at + space + len(text[at+space:]) - len(strings.TrimLeftFunc(text[at+space:], unicode.IsSpace))
	}
	return at
}

// printRelated prints the entries that an entry changed or was changed by, and
// those it may change.
func (p page) printRelated(r *recalldv1.ShowResponse) {
	if related := r.GetRelated(); len(related) > 0 {
		p.printf("\n%s\n", p.bold("Related entries"))
		p.printEntries(related)
	}
	if may := r.GetEntry().GetMaySupersede(); len(may) > 0 {
		p.printf("\n")
		p.paragraph(0, "It may change, which nobody has confirmed: "+oneLine(strings.Join(may, ", ")), nil)
	}
}

// isReview tells reviews from windows.
func isReview(b *recalldv1.Batch) bool {
	return b.GetAction() != recalldv1.ReviewAction_REVIEW_ACTION_UNSPECIFIED
}

// batchDeed says what a batch did.
func batchDeed(b *recalldv1.Batch) string {
	entries := count(len(b.GetEntryIds()), "entry", "entries")
	switch {
	case isReview(b):
		deed := strings.ReplaceAll(actionName(b.GetAction()), "_", " ")
		if len(b.GetEntryIds()) > 0 {
			deed += " " + entries
		}
		if policy := b.GetPolicy(); policy != recalldv1.Policy_POLICY_UNSPECIFIED {
			deed += " to " + strings.ToLower(strings.TrimPrefix(policy.String(), "POLICY_"))
		}
		if b.GetAuthor() != "" {
			deed += " by " + oneLine(b.GetAuthor())
		}
		return deed
	}
	turns := fmt.Sprintf("turns %d to %d", b.GetFirstTurn(), b.GetLastTurn())
	if b.GetFirstTurn() == b.GetLastTurn() {
		turns = fmt.Sprintf("turn %d", b.GetFirstTurn())
	}
	return fmt.Sprintf("%s from %s of %s", entries, turns, oneLine(b.GetSessionId()))
}

// printLog prints batches for people.
func (p page) printLog(r *recalldv1.LogResponse) {
	for _, b := range r.GetBatches() {
		left := shortHash(b.GetHash()) + "  " + clock(b.GetAt().AsTime().Local()) + "  "
		p.printf("%s%s\n", p.dim(left), fitted(batchDeed(b), max(p.width-len(left), minWidth)))
	}
	if len(r.GetBatches()) == 0 {
		p.paragraph(0, "There are no batches here.", nil)
	}
	if cursor := r.GetCursor(); cursor != "" {
		p.printf("\nOlder batches: --cursor %s\n", oneLine(cursor))
	}
}
