package consolidate

import (
	"regexp"
	"strings"
	"unicode"
)

// A clause is a part of a sentence in the form in which cues read it: small
// letters, words and marks apart, each with one space before and after it, so
// that a space in a cue is the edge of a word in any script.
type clause struct {
	text     string
	words    int
	question bool
}

// quoteRunes is how long what stands in quotation marks must be to be someone
// else's words; a shorter one is a name.
const quoteRunes = 12

// quoted is the placeholder for quoted words.
const quoted = "“”"

// normalise returns s as cues read it.
func normalise(s string) string {
	s = hideQuotes(strings.ToLower(s))
	var b strings.Builder
	b.WriteByte(' ')
	for _, word := range strings.FieldsFunc(s, unicode.IsSpace) {
		writeWord(&b, word)
	}
	return b.String()
}

// marks are written apart from the words they stand at.
const marks = ",;:?!.()—–…，、；：？！。।"

func writeWord(b *strings.Builder, word string) {
	word = strings.Trim(word, "*_`\"'“”‘[]{}")
	if word == "" {
		return
	}
	if word == quoted {
		b.WriteString(word + " ")
		return
	}
	// Marks before and after; those within a word (main.go, 10:30) stay, but the
	// full-width ones separate wherever they stand.
	for len(word) > 0 && strings.ContainsRune(marks, rune(word[0])) && word[0] < 0x80 {
		b.WriteByte(word[0])
		b.WriteByte(' ')
		word = word[1:]
	}
	end := len(word)
	for end > 0 && word[end-1] < 0x80 && strings.IndexByte(",;:?!.()*_`\"'", word[end-1]) >= 0 {
		end--
	}
	for _, r := range word[:end] {
		switch {
		case r == '’' || r == 'ʼ':
			b.WriteByte('\'')
		case r >= 0x80 && strings.ContainsRune(marks, r):
			b.WriteString(" " + string(r) + " ")
		default:
			b.WriteRune(r)
		}
	}
	if end > 0 {
		b.WriteByte(' ')
	}
	for _, c := range []byte(word[end:]) {
		if strings.IndexByte(",;:?!.()", c) >= 0 {
			b.WriteByte(c)
			b.WriteByte(' ')
		}
	}
}

// hideQuotes puts a placeholder where someone else's words are quoted.
func hideQuotes(s string) string {
	for _, pair := range [...][2]string{{`"`, `"`}, {"“", "”"}, {"«", "»"}, {"„", "“"}, {"「", "」"}} {
		from := 0
		for {
			open := strings.Index(s[from:], pair[0])
			if open < 0 {
				break
			}
			open += from + len(pair[0])
			length := strings.Index(s[open:], pair[1])
			if length < 0 {
				break
			}
			if length >= quoteRunes {
				s = s[:open-len(pair[0])] + " " + quoted + " " + s[open+length+len(pair[1]):]
				from = open - len(pair[0]) + len(quoted) + 2
				continue
			}
			from = open + length + len(pair[1])
		}
	}
	return s
}

// clauses splits a normalised sentence. breaks says where, questions how a
// clause begins that asks.
func (l *language) clauses(sentence string) []clause {
	question := strings.HasSuffix(sentence, "? ") || strings.HasSuffix(sentence, "？ ")
	parts := []string{sentence}
	if l.breaks != nil {
		parts = splitBefore(l.breaks, sentence)
	}
	out := make([]clause, len(parts))
	for i, part := range parts {
		out[i] = clause{
			text:     part,
			words:    strings.Count(part, " ") - 1,
			question: question && i == len(parts)-1 || l.asks != nil && l.asks.MatchString(part),
		}
	}
	return out
}

// splitBefore cuts s where a match of re begins; the first byte of every part
// is a space.
func splitBefore(re *regexp.Regexp, s string) []string {
	var parts []string
	start := 0
	for _, at := range re.FindAllStringIndex(s, -1) {
		if at[0] > start {
			parts = append(parts, s[start:at[0]+1])
			start = at[0]
		}
	}
	return append(parts, s[start:])
}
