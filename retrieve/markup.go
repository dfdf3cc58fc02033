package retrieve

import (
	_ "embed"
	"regexp"
	"strings"
)

//go:embed data/envelopes.txt
var envelopesText string

// envelopes are messages that harnesses write in the person's name.
var envelopes = readSet(envelopesText)

// openingTag is the start of an element: a name and perhaps attributes.
var openingTag = regexp.MustCompile(`<([A-Za-z][A-Za-z0-9_-]{0,63})(?:\s[^<>]{0,256})?>`)

// withoutTags blanks the tags of elements that are closed in the same text:
// harnesses wrap what a person typed in them, and their names are no words of
// the person. What stands between the tags stays; a tag that is not closed
// (a mention of <nav>, a type parameter) stays as well. Bytes keep their
// places.
func withoutTags(text string) string {
	if !strings.Contains(text, "</") {
		return text
	}
	out := []byte(text)
	for _, at := range openingTag.FindAllStringSubmatchIndex(text, -1) {
		closing := "</" + text[at[2]:at[3]] + ">"
		if end := strings.Index(text[at[1]:], closing); end >= 0 {
			blank(out[at[0]:at[1]])
			blank(out[at[1]+end : at[1]+end+len(closing)])
		}
	}
	return string(out)
}

func blank(b []byte) {
	for i := range b {
		b[i] = ' '
	}
}

// maxCommandWords is the longest message that is taken for a command.
const maxCommandWords = 4

// isCommand reports whether a message is an order to the harness itself
// (/clear, /model opus): it is about no earlier words. A path is none.
func isCommand(text string) bool {
	fields := strings.Fields(text)
	if len(fields) == 0 || len(fields) > maxCommandWords {
		return false
	}
	for _, f := range fields {
		if name, ok := strings.CutPrefix(f, "/"); ok && name != "" && !strings.Contains(name, "/") && !strings.Contains(name, ".") {
			return true
		}
	}
	return false
}

func isEnvelope(text string) bool { return envelopes[strings.ToLower(strings.TrimSpace(text))] }
