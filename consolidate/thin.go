package consolidate

import "strings"

// thin reports whether words say nothing by themselves: "I'd prefer that",
// "yes, do 1", "want me to make this change?". A language without a list of such
// words says something with every one, and so does a name in marks.
func (l *language) thin(text string) bool {
	if l.lists["empty"] == nil || strings.ContainsAny(text, nameMarks) {
		return false
	}
	for _, word := range content(text, true) {
		if !l.is("empty", word) {
			return false
		}
	}
	return true
}

// nameMarks are those in which names stand.
const nameMarks = "`\"“«„「"
