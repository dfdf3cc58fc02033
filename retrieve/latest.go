package retrieve

import (
	_ "embed"
	"slices"
	"strings"
)

//go:embed data/reversal-cues.txt
var reversalText string

// reversalCues are the phrases of a statement that takes the place of an
// earlier one, by their first word.
var reversalCues = byFirstWord(readLines(reversalText))

func byFirstWord(phrases []string) map[string][][]string {
	index := map[string][][]string{}
	for _, phrase := range phrases {
		if words := strings.Fields(phrase); len(words) > 0 {
			index[words[0]] = append(index[words[0]], words)
		}
	}
	return index
}

// reverses reports whether a text speaks like a statement that takes the place
// of an earlier one.
func reverses(text string) bool {
	words := queryWords(text)
	for i, w := range words {
		for _, phrase := range reversalCues[w] {
			if i+len(phrase) <= len(words) && slices.Equal(words[i:i+len(phrase)], phrase) {
				return true
			}
		}
	}
	return false
}

const (
	// partLater raises a statement above an earlier one whose place it takes.
	partLater = "later"
	// laterWindow is how many of the best are looked at.
	laterWindow = 10
	// laterShare is the least a later statement must hold of what the earlier
	// one holds of the query, and laterGap the most it may lie behind.
	laterShare = .75
	laterGap   = .8
	// laterMargin puts it just above the other; both are shown.
	laterMargin = .001
)

// latestFirst raises, among the best candidates, a statement that speaks like a
// reversal above the earlier ones it answers as well as. The candidates are
// best first; the result is again.
func latestFirst(list []candidate) []candidate {
	n := min(len(list), laterWindow)
	for i := 1; i < n; i++ {
		later := list[i]
		if later.message().flags&flagReverses == 0 || later.from.coverage == nil {
			continue
		}
		for k := range i {
			earlier := list[k]
			if earlier.from == later.from && later.takesPlaceOf(earlier) {
				gap := earlier.score - later.score + laterMargin
				later.score += gap
				later.raised += gap
				copy(list[k+1:i+1], list[k:i])
				list[k] = later
				break
			}
		}
	}
	return list
}

func (c candidate) takesPlaceOf(earlier candidate) bool {
	return c.seq() > earlier.seq() &&
		c.message().session != earlier.message().session &&
		earlier.score-c.score <= laterGap &&
		c.from.coverage(c.ord) >= laterShare*earlier.from.coverage(earlier.ord)
}
