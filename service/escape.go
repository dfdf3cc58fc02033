package service

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Text inside a block is written as it is but for what could be taken for
// something else than text. Such a character is written as ⟦U+001B⟧, and so is
// the bracket ⟦ itself: what was said can be read back exactly.

const escapeOpen = '⟦'

// escapeText writes a text of several lines, each line but the first behind a bar.
func escapeText(b *strings.Builder, s string) {
	var before rune
	for i, r := range s {
		switch {
		case r == '\n':
			b.WriteString("\n| ")
		case r == '\t' || isPlain(r):
			b.WriteByte(byte(r))
		case isHidden(before, r, s[i:]) || isMarker(r, s[i:]):
			writeEscape(b, r)
		default:
			b.WriteRune(r)
		}
		before = r
	}
}

// quoted is a name on one line, in quotes.
func quoted(s string) string { return `"` + escapedName(s) + `"` }

func escapedName(s string) string {
	var b strings.Builder
	var before rune
	for i, r := range s {
		if r == '"' || isHidden(before, r, s[i:]) || isMarker(r, s[i:]) {
			writeEscape(&b, r)
		} else {
			b.WriteRune(r)
		}
		before = r
	}
	return b.String()
}

// isPlain reports whether r is a printable character of ASCII that begins
// nothing: most of what is said, and not worth a closer look.
func isPlain(r rune) bool { return r >= ' ' && r < 0x7F && r != '<' && r != '[' }

func writeEscape(b *strings.Builder, r rune) { fmt.Fprintf(b, "⟦U+%04X⟧", r) }

// isHidden reports whether r is a character one does not see: control
// characters, line separators, marks of direction and of zero width, and those
// used to smuggle text. rest begins with r.
func isHidden(before, r rune, rest string) bool {
	const joiner, nonJoiner = '\u200D', '\u200C'
	switch {
	case r == joiner || r == nonJoiner:
		// Emoji and many scripts need them between their characters.
		after, _ := utf8.DecodeRuneInString(rest[utf8.RuneLen(r):])
		return before < utf8.RuneSelf || after < utf8.RuneSelf || after == utf8.RuneError || isJoiner(before) || isJoiner(after)
	case r >= '\U000E0100' && r <= '\U000E01EF': // choose among forms of a Han character
		return !unicode.Is(unicode.Han, before)
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

func isJoiner(r rune) bool { return r == '\u200D' || r == '\u200C' }

// roleMarkers begin or end the turns of a conversation in the templates of
// common models.
var roleMarkers = []string{
	"<|", "<s>", "</s>", "<<SYS>>", "<</SYS>>", "[INST]", "[/INST]",
	"<start_of_turn>", "<end_of_turn>", "<system>", "</system>",
	// The tags in which harnesses wrap what they were given.
	"<system-reminder", "</system-reminder", "<hook_context", "</hook_context",
	"<memory-context", "</memory-context", "<user-prompt-submit-hook", "</user-prompt-submit-hook",
}

// isMarker reports whether rest, which begins with r, begins with our bracket,
// a role marker or what looks like a tag of ours.
func isMarker(r rune, rest string) bool {
	switch {
	case r == escapeOpen:
		return true
	case r < utf8.RuneSelf && r != '<' && r != '[':
		return false
	}
	for _, marker := range roleMarkers {
		if len(rest) >= len(marker) && strings.EqualFold(rest[:len(marker)], marker) {
			return true
		}
	}
	return looksLikeTag(r, rest)
}

// tagWindow is how far a lookalike of our tag is read: its word with room for
// blanks and for characters one does not see.
const tagWindow = 64

// looksLikeTag reports whether rest, which begins with r, would be read as the
// beginning of a tag of ours, in any case and with letters that only look alike.
func looksLikeTag(r rune, rest string) bool {
	if r != '<' && !strings.ContainsRune("＜﹤‹〈⟨〈❮❬˂ᐸ", r) {
		return false
	}
	want, _, _ := strings.Cut(frameTag, "-")
	seen := 0
	rest = rest[utf8.RuneLen(r):]
	for i := 0; i < len(rest) && i < tagWindow; {
		c, size := utf8.DecodeRuneInString(rest[i:])
		i += size
		if unicode.IsSpace(c) || strings.ContainsRune("/⁄∕／\\", c) || unicode.In(c, unicode.Cc, unicode.Cf, unicode.Mn) {
			continue
		}
		if latin(c) != want[seen] {
			return false
		}
		if seen++; seen == len(want) {
			return true
		}
	}
	return false
}

// lookalikes of the letters in our tag.
var lookalikes = map[rune]byte{
	'г': 'r', 'е': 'e', 'ё': 'e', 'ε': 'e', 'с': 'c', 'ϲ': 'c', 'а': 'a', 'α': 'a',
	'ӏ': 'l', 'ι': 'l', '|': 'l', '1': 'l', 'і': 'l', 'i': 'l', 'ԁ': 'd',
}

// latin is the small Latin letter that c looks like, 0 if it looks like none.
func latin(c rune) byte {
	c, _ = utf8.DecodeRuneInString(norm.NFKC.String(string(c)))
	c = unicode.ToLower(c)
	if like, ok := lookalikes[c]; ok {
		return like
	}
	if c >= 'a' && c <= 'z' {
		return byte(c)
	}
	return 0
}
