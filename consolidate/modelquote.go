package consolidate

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// strayRunes is how long a quote must be to be looked for in other messages
	// than the one that is named: what is shorter stands in many.
	strayRunes = 12
	// bareWords, or bareContent without the commonest, are how many words at most
	// make a sentence that may be nothing but an acceptance.
	bareWords, bareContent = 4, 1
)

// draft is what a model proposes, with the words looked up in what was said.
// Refused says why there is none of it.
func (s shown) draft(e proposed) Draft {
	d := Draft{Kind: e.kind, Confidence: e.confidence}
	if e.unreadable {
		d.Refused = Unreadable
		return d
	}
	if !e.kind.valid() {
		d.Refused = UnknownKind
		return d
	}
	if !(d.Confidence >= 0 && d.Confidence <= 1) { // NaN is neither
		d.Refused = BadConfidence
		return d
	}
	at, says, reason := s.quote(e.message, e.quote, Says)
	if reason != "" {
		d.Refused = reason
		return d
	}
	d.Quotes = []Quote{says}
	if strings.TrimSpace(e.accepted) == "" {
		if s.pieces[at].onlyAccepts(says) {
			d.Refused = NotProposed // "yes" alone says nothing
		}
		return d
	}
	before, offer, reason := s.quote(e.proposal, e.accepted, Proposal)
	switch {
	case reason != "":
		d.Refused = reason
	case before >= at:
		d.Refused = NotProposed
	default:
		d.Quotes = append(d.Quotes, offer) // whose words they are is for Check to say
	}
	return d
}

// quote finds words in the message of that number, or in the only other one that
// holds them, and returns the sentences they stand in: a part of one may lack the
// word that turns it into its opposite. at is the place in s.pieces.
func (s shown) quote(number int, words string, role Role) (at int, q Quote, reason Reason) {
	if len(words) > maxQuoteBytes {
		return 0, q, TooLong
	}
	needle := trimMarks(foldText([]byte(words)).text)
	if needle == "" {
		return 0, q, BlankQuote
	}
	named := number >= 1 && number <= len(s.pieces)
	reason = UnknownMessage
	if named {
		if q, ok := s.pieces[number-1].find(words, needle, role); ok {
			return number - 1, q, fits(q)
		}
		reason = NotSaid
	}
	if utf8.RuneCountInString(needle) < strayRunes {
		return 0, q, reason
	}
	found := 0
	for i := range s.pieces {
		if p := &s.pieces[i]; !p.context || role == Proposal {
			if one, ok := p.find(words, needle, role); ok {
				at, q, found = i, one, found+1
			}
		}
	}
	if found != 1 {
		return 0, Quote{}, reason
	}
	return at, q, fits(q)
}

func fits(q Quote) Reason {
	if q.End-q.Start > maxQuoteBytes {
		return TooLong
	}
	return ""
}

// find looks for words in a piece: as they are, then in folded form.
func (p *shownPiece) find(words, needle string, role Role) (Quote, bool) {
	start, end, ok := findExact(p.text, strings.TrimSpace(words))
	if !ok {
		start, end, ok = foldText(p.text).find(needle)
	}
	if !ok {
		return Quote{}, false
	}
	whole := sentence{start: -1}
	for _, s := range sentences(p.text) {
		if s.start < end && start < s.end {
			if whole.start < 0 {
				whole.start = s.start
			}
			whole.end = s.end
		}
	}
	// What was left out between two sentences cannot be quoted with them.
	if whole.start < 0 || !bytes.Equal(p.text[whole.start:whole.end], p.Text()[whole.start:whole.end]) {
		return Quote{}, false
	}
	return p.Piece.quote(whole, role), true
}

// findExact returns where words stand in text, and not inside longer ones.
func findExact(text []byte, words string) (start, end int, ok bool) {
	for from := 0; words != ""; {
		i := bytes.Index(text[from:], []byte(words))
		if i < 0 {
			break
		}
		start, end = from+i, from+i+len(words)
		if standsAlone(text, start, end) {
			return start, end, true
		}
		_, size := utf8.DecodeRune(text[start:])
		from = start + size
	}
	return 0, 0, false
}

// standsAlone reports whether text[start:end] neither begins nor ends inside a
// word. Scripts without spaces between words have no such insides.
func standsAlone(text []byte, start, end int) bool {
	before, _ := utf8.DecodeLastRune(text[:start])
	first, _ := utf8.DecodeRune(text[start:])
	last, _ := utf8.DecodeLastRune(text[:end])
	after, _ := utf8.DecodeRune(text[end:])
	return !(inWord(before) && inWord(first)) && !(inWord(last) && inWord(after))
}

func inWord(r rune) bool {
	return unicode.IsDigit(r) || unicode.In(r, unicode.Latin, unicode.Cyrillic, unicode.Greek)
}

// A folded text is one without the differences that models make when they copy:
// capital letters, kinds of spaces, quotation marks and dashes, marks of emphasis.
type folded struct {
	text string
	// from and to say of each byte of text which bytes of the source it stands for.
	from, to []int
}

func foldText(source []byte) folded {
	var f folded
	var b strings.Builder
	write := func(s string, from, to int) {
		b.WriteString(s)
		for range len(s) {
			f.from, f.to = append(f.from, from), append(f.to, to)
		}
	}
	space := false
	for at := 0; at < len(source); {
		r, size := utf8.DecodeRune(source[at:])
		switch {
		case unicode.IsSpace(r) || unicode.Is(unicode.Zs, r):
			space = true
		case r == '*' || r == '`' || r == '\u200b' || r == '\ufeff':
		default:
			if space && b.Len() > 0 {
				write(" ", at, at)
			}
			space = false
			write(foldRune(r), at, at+size)
		}
		at += size
	}
	f.text = b.String()
	return f
}

func foldRune(r rune) string {
	switch r {
	case '‘', '’', '‚', '‛', '′', 'ʼ':
		return "'"
	case '“', '”', '„', '‟', '«', '»', '″':
		return `"`
	case '‐', '‑', '‒', '–', '—', '―', '−':
		return "-"
	case '…':
		return "..."
	}
	return string(unicode.ToLower(r))
}

// find returns the bytes of the source that a folded needle stands for.
func (f folded) find(needle string) (start, end int, ok bool) {
	start, end, ok = findExact([]byte(f.text), needle)
	if !ok {
		return 0, 0, false
	}
	return f.from[start], f.to[end-1], true
}

// trimMarks takes from both ends what is neither letter nor digit: models add
// quotation marks and full stops.
func trimMarks(s string) string {
	return strings.TrimFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) })
}

// settles reports whether the words of a draft are the person's and can settle
// something: they ask nothing and suppose nothing.
func (s shown) settles(d Draft) bool {
	for _, p := range s.pieces {
		q := d.Quotes[0]
		if p.context || p.Message.Kind != User || p.Message.ID != q.Message || q.Start < p.Start || q.End > p.End {
			continue
		}
		l, said := p.said(q)
		return !strings.HasSuffix(said, "? ") && !l.is("veto", said) && (d.Kind != Rule || !l.is("once", said))
	}
	return false
}

// said is the language of a piece and the words of a quote of it as cues read them.
func (p *shownPiece) said(q Quote) (*language, string) {
	return languageOf(string(p.text)), normalise(p.words(q))
}

func (p *shownPiece) words(q Quote) string { return string(p.Message.Text[q.Start:q.End]) }

// onlyAccepts reports whether the words of a quote accept something and do not
// say what.
func (p *shownPiece) onlyAccepts(q Quote) bool {
	l, said := p.said(q)
	words := strings.FieldsFunc(p.words(q), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) })
	short := len(words) <= bareWords || len(content(p.words(q), true)) <= bareContent
	return short && (l.is("accept", said) || l.is("agrees", said))
}
