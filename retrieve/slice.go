package retrieve

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxSliceBytes is the most an indexed slice holds: about 120 words. The
	// relevance of a message is judged by its slices, and longer ones hold so
	// many words that something always matches.
	maxSliceBytes = 800
	// overlapBytes is how far a slice reaches back into the one before, so that
	// what stands at the border is read together. Words count once.
	overlapBytes = 100
	// maxIndexedBytes is the part of one message that is indexed: its head and
	// its tail. A longer text would stall the writes after it (a text of a
	// million distinct words: 80 seconds). The ledger keeps all of it.
	maxIndexedBytes = 256 << 10
)

// A slice is an indexed part of one message. Words before own belong to the
// slice before.
type slice struct {
	Range
	own int
}

// cutSlices cuts a text into slices at sentence ends, else at white space, else
// at characters; never inside a character. An empty text has one empty slice.
func cutSlices(text string) []slice {
	if len(text) <= maxSliceBytes {
		return []slice{{Range: Range{0, len(text)}}}
	}
	if len(text) > maxIndexedBytes {
		half := maxIndexedBytes / 2
		tail := breakBefore(text, len(text)-half, 0)
		return append(cutRange(text, 0, breakBefore(text, half, 0)), cutRange(text, tail, len(text))...)
	}
	return cutRange(text, 0, len(text))
}

func cutRange(text string, start, end int) []slice {
	var list []slice
	first := start
	for start < end {
		from := start
		if start > first {
			from = wordStart(text, start-overlapBytes, first)
		}
		to := end
		if end-from > maxSliceBytes {
			to = breakBefore(text, from+maxSliceBytes, max(start, from+maxSliceBytes/2))
		}
		list = append(list, slice{Range{from, to}, start})
		start = to
	}
	return list
}

// breakBefore gives the best place to cut at or before limit and after floor:
// the end of a paragraph, of a sentence, of a word, of a character.
func breakBefore(text string, limit, floor int) int {
	if limit >= len(text) {
		return len(text)
	}
	part := text[floor:limit]
	if i := strings.LastIndex(part, "\n\n"); i > 0 {
		return floor + i + 2
	}
	if i := lastSentenceEnd(part); i > 0 {
		return floor + i
	}
	if i := strings.LastIndexFunc(part, unicode.IsSpace); i > 0 {
		_, size := utf8.DecodeRuneInString(part[i:])
		return floor + i + size
	}
	return charStart(text, limit, floor)
}

// lastSentenceEnd finds the last place after a mark that ends a sentence and is
// followed by white space, or after one that needs none.
func lastSentenceEnd(s string) int {
	for i := len(s); i > 0; {
		r, size := utf8.DecodeLastRuneInString(s[:i])
		switch r {
		case '。', '！', '？', '।', '؟':
			return i
		case '.', '!', '?', '\n':
			if next, _ := utf8.DecodeRuneInString(s[i:]); i < len(s) && (r == '\n' || unicode.IsSpace(next)) {
				return i
			}
		}
		i -= size
	}
	return 0
}

// charStart moves i back to the start of a character, but not below floor.
func charStart(text string, i, floor int) int {
	i = min(max(i, floor), len(text))
	for n := 0; i > floor && i < len(text) && n < utf8.UTFMax && !utf8.RuneStart(text[i]); n++ {
		i--
	}
	return i
}

// wordStart moves i forward to the start of the next word, for at most 40
// bytes, and to the start of a character.
func wordStart(text string, i, floor int) int {
	i = charStart(text, i, floor)
	if i <= floor {
		return floor
	}
	for k := i; k < len(text) && k < i+40; {
		r, size := utf8.DecodeRuneInString(text[k:])
		k += size
		if unicode.IsSpace(r) {
			return k
		}
	}
	return i
}
