package retrieve

import (
	_ "embed"
	"slices"
	"strings"
)

//go:embed data/when-questions.txt
var whenText string

// whenCues are the phrases that ask for a time, as words; ^ ties a phrase to
// the start of the query.
var whenCues = readLines(whenText)

// queryCues are what a query says besides its terms.
type queryCues struct {
	// single: the query is one word.
	single bool
	// when: the query asks for a time.
	when bool
	// speakerID is the one speaker the query is about, or none.
	speakerID int32
	// speakerValue is how sure that is: named 1, "I" .5.
	speakerValue float64
	dates        dates
	// period is the span of days the query names, if named is set.
	period period
	named  bool
}

// inPeriod reports whether a day lies in the period the query names.
func (c queryCues) inPeriod(day int32) bool { return c.named && c.period.near(day) > 0 }

// near says how much the day of a message speaks for it.
func (c queryCues) near(day int32) float64 {
	if c.named {
		return c.period.near(day)
	}
	return c.dates.near(day)
}

func (c queryCues) speaker(m *message) float64 {
	if c.speakerID != none && m.speaker == c.speakerID {
		return c.speakerValue
	}
	return 0
}

// readCues reads a query against the speakers of a table.
func readCues(q parsedQuery, t *table) queryCues {
	words := queryWords(q.text)
	c := queryCues{single: q.words == 1, when: asksWhen(words), speakerID: none, dates: readDates(words), period: q.period, named: q.named}
	var about []int32
	for id, name := range t.speakers {
		if t.personally[id] && isNamed(words, firstWord(name)) {
			about = append(about, int32(id))
		}
	}
	value := 1.0
	if person := t.person(); person != none && saysFirstPerson(q.text) && !slices.Contains(about, person) {
		about = append(about, person)
		value = .5
	}
	if len(about) == 1 {
		c.speakerID, c.speakerValue = about[0], value
	}
	return c
}

// person is the one speaker who has spoken as the person of this memory, or
// none where several have: "I" is then nobody in particular.
func (t *table) person() int32 {
	who := none
	for id, personally := range t.personally {
		if personally {
			if who != none {
				return none
			}
			who = int32(id)
		}
	}
	return who
}

// isNamed reports whether a name stands among words, possessive or not.
func isNamed(words []string, name string) bool {
	return slices.ContainsFunc(words, func(word string) bool {
		rest, ok := strings.CutPrefix(word, name)
		return ok && (rest == "" || rest == "'s" || rest == "’s" || rest == "'" || rest == "’")
	})
}

// firstWord is the name a speaker is called by. "user" is a role, not a name.
func firstWord(name string) string {
	words := queryWords(name)
	if len(words) == 0 || words[0] == "user" || words[0] == "assistant" {
		return "\x00" // no word of a query
	}
	return words[0]
}

func saysFirstPerson(text string) bool {
	first, _ := wordFlags(text)
	return first
}

func asksWhen(words []string) bool {
	for _, cue := range whenCues {
		phrase, start := strings.CutPrefix(cue, "^")
		if containsPhrase(words, strings.Fields(phrase), start) {
			return true
		}
	}
	return false
}

// containsPhrase reports whether phrase stands in words, at their start if so
// asked.
func containsPhrase(words, phrase []string, start bool) bool {
	for i := 0; i+len(phrase) <= len(words); i++ {
		if slices.Equal(words[i:i+len(phrase)], phrase) {
			return true
		}
		if start {
			return false
		}
	}
	return false
}

func readLines(text string) []string {
	var list []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			list = append(list, line)
		}
	}
	return list
}
