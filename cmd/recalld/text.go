package main

import (
	"strings"
	"unicode"

	"github.com/rivo/uniseg"

	"recalld/retrieve"
)

// A span is the bytes [start, end) of a text.
type span struct{ start, end int }

// A textLine is one line of wrapped text: bytes of the text behind an indent.
type textLine struct {
	span
	indent int // in columns
}

// printable makes a text safe to print: what was said may hold sequences that
// command a terminal, or that reorder what is seen. Tabs become spaces, which
// have a known width.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return r
		case r == '\t':
			return ' '
		case r == '\r':
			return -1
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// wrap breaks a text into lines of at most width columns, where Unicode allows
// a break (UAX #14), and inside a word only if that is wider than a line. The
// text's own lines stay lines, with their indent; of blank lines one stays, and
// none at either end.
func wrap(text string, width int) []textLine {
	var lines []textLine
	blank := false
	at := 0
	for line := range strings.Lines(text) {
		start := at
		at += len(line)
		line = strings.TrimRight(line, "\n ")
		if strings.TrimSpace(line) == "" {
			blank = len(lines) > 0
			continue
		}
		if blank {
			lines = append(lines, textLine{span: span{start, start}})
			blank = false
		}
		inner := strings.TrimLeft(line, " ")
		skipped := len(line) - len(inner)
		// Text that is indented deeply still gets room.
		indent := min(skipped, width/3)
		for _, s := range wrapLine(inner, width-indent) {
			from := start + skipped
			lines = append(lines, textLine{span{from + s.start, from + s.end}, indent})
		}
	}
	return lines
}

// wrapLine breaks one line. Spaces at a break belong to no line.
func wrapLine(line string, width int) []span {
	var out []span
	start, end, used := 0, 0, 0 // of the line being filled; end is without trailing spaces
	flush := func(next int) {
		if end > start {
			out = append(out, span{start, end})
		}
		start, end, used = next, next, 0
	}
	state := -1
	rest := line
	for at := 0; rest != ""; {
		var piece string
		piece, rest, _, state = uniseg.FirstLineSegmentInString(rest, state)
		for strings.HasPrefix(piece, "-") && strings.HasSuffix(piece, "-") && rest != "" {
			var more string // of a flag, which somebody will copy
			more, rest, _, state = uniseg.FirstLineSegmentInString(rest, state)
			piece += more
		}
		word := strings.TrimRight(piece, " ")
		columns := uniseg.StringWidth(word)
		if used+columns > width {
			flush(at)
		}
		if columns > width {
			at = breakWord(word, at, width, func(s span) { start, end = s.start, s.end }, flush)
			used = uniseg.StringWidth(line[start:end])
			gap := len(piece) - len(word)
			at += gap
			used += gap
			continue
		}
		if word != "" {
			end = at + len(word)
		}
		used += columns + len(piece) - len(word)
		at += len(piece)
	}
	flush(len(line))
	return out
}

// breakWord breaks a word that is wider than a line at its characters. The last
// part is set, not flushed: what follows may stand beside it.
func breakWord(word string, at, width int, set func(span), flush func(next int)) int {
	from, used := at, 0
	graphemes := uniseg.NewGraphemes(word)
	for graphemes.Next() {
		if used > 0 && used+graphemes.Width() > width {
			set(span{from, at})
			flush(at)
			from, used = at, 0
		}
		used += graphemes.Width()
		at += len(graphemes.Str())
	}
	set(span{from, at})
	return at
}

// emphasise gives a line of the text with its marked parts in a style. Marks
// are sorted and do not overlap.
func emphasise(text string, line span, marks []span, style func(string) string) string {
	var b strings.Builder
	at := line.start
	for _, m := range marks {
		from, to := max(m.start, at), min(m.end, line.end)
		if from >= to {
			continue
		}
		b.WriteString(text[at:from])
		b.WriteString(style(text[from:to]))
		at = to
	}
	b.WriteString(text[at:line.end])
	return b.String()
}

// wordsOf marks where a text has words of the query, by the analysis the ranking
// uses: "decided" is marked for "decision" exactly if it counts as the same word.
func wordsOf(query, text string) []span {
	asked := make(map[string]bool)
	for _, t := range retrieve.Analyze(query) {
		if !t.Stop {
			asked[t.Term] = true
		}
	}
	var marks []span
	for _, t := range retrieve.Analyze(text) {
		if !asked[t.Term] || t.Stop {
			continue
		}
		// Tokens come in order; of one word there may be several.
		if n := len(marks); n > 0 && t.Start < marks[n-1].end {
			marks[n-1].end = max(marks[n-1].end, t.End)
			continue
		}
		marks = append(marks, span{t.Start, t.End})
	}
	return marks
}
