package consolidate

import (
	"bytes"
	"regexp"
	"unicode"
	"unicode/utf8"
)

// What somebody types into a chat is not all their own words: logs, diffs,
// code, quoted lines and a harness's own envelopes are pasted around them. prose
// blanks those. A blanked byte becomes a line break, so that every offset stays
// what it was and no sentence runs across a gap.

// envelopes are what harnesses wrap around or put into a message.
var envelopes = []*regexp.Regexp{
	regexp.MustCompile(`(?s)<system-reminder[^>]*>.*?(?:</system-reminder>|\z)`),
	regexp.MustCompile(`(?s)<task-notification[^>]*>.*?(?:</task-notification>|\z)`),
	regexp.MustCompile(`(?s)<local-command-[a-z]+[^>]*>.*?(?:</local-command-[a-z]+>|\z)`),
	regexp.MustCompile(`(?s)<command-(?:name|message|contents)[^>]*>.*?(?:</command-(?:name|message|contents)>|\z)`),
	regexp.MustCompile(`(?s)<(?:bash|ide|user-prompt)[-_][a-z_-]+[^>]*>.*?(?:</(?:bash|ide|user-prompt)[-_][a-z_-]+>|\z)`),
	regexp.MustCompile(`</?command-args>`),
	regexp.MustCompile(`\[(?:Request interrupted by user|Image)[^\]\n]*\]`),
	regexp.MustCompile("(?s)```.*?(?:```|\\z)"),
	regexp.MustCompile(`(?s)~~~.*?(?:~~~|\z)`),
}

// summaries begin a message that a harness wrote in the person's name.
var summaries = regexp.MustCompile(`(?i)this session is being continued from|^\s*caveat: the messages below|primary request and intent|^\s*<summary>`)

// plans begin the part of a message that is a document: what was written there
// was written before, often by the agent.
var plans = regexp.MustCompile(`(?i)implement the following plan|here(?:'s| is) the plan:`)

var heading = regexp.MustCompile(`(?m)^#{1,6} \S`)

// prose returns a copy of text in which everything is blanked that is not the
// person's own prose.
func prose(text []byte) []byte {
	if summaries.Match(text) {
		return bytes.Repeat([]byte{'\n'}, len(text))
	}
	out := unwrap(text)
	if at := plans.FindIndex(out); at != nil {
		blank(out[at[0]:])
	}
	// A document with headings is pasted; what precedes it is not.
	if at := heading.FindAllIndex(out, 2); len(at) == 2 {
		blank(out[at[0][0]:])
	}
	blankPastes(out)
	return out
}

// reported returns a copy of what an agent said without code and tables.
func reported(text []byte) []byte {
	if summaries.Match(text) {
		return bytes.Repeat([]byte{'\n'}, len(text))
	}
	out := unwrap(text)
	for start := 0; start < len(out); {
		end := start + bytes.IndexByte(out[start:], '\n')
		if end < start {
			end = len(out)
		}
		if line := bytes.TrimSpace(out[start:end]); len(line) > 0 && (line[0] == '|' || line[0] == '>' || drawing.Match(line)) {
			blank(out[start:end])
		}
		start = end + 1
	}
	return out
}

// unwrap returns a copy of text without envelopes and fenced code.
func unwrap(text []byte) []byte {
	out := bytes.Clone(text)
	for _, envelope := range envelopes {
		for _, at := range envelope.FindAllIndex(out, -1) {
			blank(out[at[0]:at[1]])
		}
	}
	return out
}

func blank(b []byte) {
	for i := range b {
		b[i] = '\n'
	}
}

var (
	// pasteLine begins a line that a program printed or somebody quoted.
	pasteLine = regexp.MustCompile(`^(?:\S+:\d+:(?:\d+:)? \S|//|[>❯|$%✓✗✔✘●⏺⎿]|\[\d|---|\+\+\+|@@|\d+[:|]|\+\S|\(use "git |fatal:|(?i:error:|warning:|traceback|exception|panic:|npm |at \S+\()|File "|ok\s+\S+/|FAIL\b|PASS\b|=== |[A-Z]{4,5}\b.*:|[\w.+-]+@[\w-]+[:~ ].*[$#%] )`)
	// drawing is what tables, trees and colour codes are made of.
	drawing = regexp.MustCompile(`[│├└┌─▾▸⚠╭╰]|\x1b\[|\[[+\d ]+ -\d+\]`)
)

// codeSigns in a short line make it code rather than prose.
const codeSigns = "{}();=<>[]"

// blankPastes blanks the lines that are pasted: those that look it, and the
// indented ones that follow such a line without a gap.
func blankPastes(text []byte) {
	pasting := false
	for start := 0; start < len(text); {
		end := start + bytes.IndexByte(text[start:], '\n')
		if end < start {
			end = len(text)
		}
		line := text[start:end]
		trimmed := bytes.TrimSpace(line)
		indented := bytes.HasPrefix(line, []byte("  ")) || bytes.HasPrefix(line, []byte("\t"))
		switch {
		case len(trimmed) == 0:
			pasting = false
		case pasteLine.Match(trimmed) || drawing.Match(trimmed) || isCode(trimmed):
			pasting = true
			blank(line)
		case pasting && indented && !isBullet(trimmed):
			blank(line)
		}
		start = end + 1
	}
}

// isCode reports whether a line holds so many signs of code that it is none of prose.
func isCode(line []byte) bool {
	signs, letters := 0, 0
	for _, c := range line {
		if bytes.IndexByte([]byte(codeSigns), c) >= 0 {
			signs++
		}
		if c == ' ' {
			letters++
		}
	}
	return signs > 4 && signs > letters
}

func isBullet(line []byte) bool { return bulletSize(line) > 0 }

// bulletSize returns how many bytes of a line are the bullet or number of a list.
func bulletSize(line []byte) int {
	r, size := utf8.DecodeRune(line)
	if r == '-' || r == '*' || r == '•' || r == '+' {
		if n, space := utf8.DecodeRune(line[size:]); unicode.IsSpace(n) {
			return size + space
		}
		return 0
	}
	digits := 0
	for digits < len(line) && digits < 3 && line[digits] >= '0' && line[digits] <= '9' {
		digits++
	}
	if digits > 0 && digits+1 < len(line) && (line[digits] == '.' || line[digits] == ')') && line[digits+1] == ' ' {
		return digits + 2
	}
	return 0
}
