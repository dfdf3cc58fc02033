package consolidate

import (
	"regexp"
	"slices"
	"strings"
)

const (
	// pickRunes is how much of a reply's end may hold the options.
	pickRunes = 4000
	// maxPicks is how many options an entry quotes.
	maxPicks = 4
)

// pickedLabel is how an option is named: by a number, or by a letter that is no
// word.
var pickedLabel = regexp.MustCompile(`(?:^|[\s(,+&#*])(?:(?i:option|approach|variant|solution|number|variante|ansatz|opción|opzione|opção|вариант)s? #?([0-9]{1,2}|[A-Ea-e])|([0-9]{1,2})|([A-E]))(?:[\s.,:;)+&*!]|$)`)

// itemLabel is how a line begins that describes an option.
var itemLabel = regexp.MustCompile(`^[\s*_#>•-]*((?i:(?:option|approach|variant|solution|variante|ansatz|opción|opzione|opção|вариант) )?\(?([0-9]{1,2}|[A-Ea-e]))(?:[.):]|\*\*|: | [–—-] )`)

// bareLabel is a sentence that is nothing but the number of a list's item: who
// goes on after it answers a list.
var bareLabel = regexp.MustCompile(`^ \(?(?:\d{1,2}|[a-e]) ?[.)] *$`)

// labels returns the options that a person names, in small letters.
func labels(said string) []string {
	var out []string
	for len(out) < maxPicks {
		m := pickedLabel.FindStringSubmatchIndex(said)
		if m == nil {
			break
		}
		for group := 2; group < len(m); group += 2 {
			if m[group] < 0 {
				continue
			}
			if label := strings.ToLower(said[m[group]:m[group+1]]); !slices.Contains(out, label) {
				out = append(out, label)
			}
			said = said[m[group+1]:] // the mark behind it may stand before the next
			break
		}
	}
	return out
}

// picked returns quotes of the options that a person names, as the reply lists
// them: the last line of each label. missing says that the reply has such a
// list, and that one of them is not in it.
func picked(reply Piece, said string) (quotes []Quote, missing bool) {
	text := reported(reply.Text())
	from := lastRunes(text, pickRunes)
	items := map[string]sentence{}
	for _, s := range short(sentences(text)) {
		if s.start < from || s.line < from {
			continue
		}
		line := text[s.line:s.end]
		m := itemLabel.FindSubmatchIndex(line)
		if m == nil || s.start-s.line > m[1]+len("** ") {
			continue // no item, or a later sentence of one
		}
		for s.start = s.line + m[2]; s.start > s.line && strings.IndexByte("*_#", text[s.start-1]) >= 0; {
			s.start--
		}
		s.start, s.end = trimRange(text, s.start, s.end)
		if s.end-s.start <= maxQuoteBytes {
			items[strings.ToLower(string(line[m[4]:m[5]]))] = s
		}
	}
	for _, label := range labels(said) {
		item, ok := items[label]
		if !ok {
			return nil, len(items) > 1
		}
		quotes = append(quotes, reply.quote(item, Proposal))
	}
	return quotes, false
}
