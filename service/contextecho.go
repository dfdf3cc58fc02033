package service

import (
	"bytes"
	"regexp"

	"recalld/retrieve"
)

// An echo is a block that came back: quoted by an agent, kept by a harness,
// printed by a tool, imported from another machine. It holds what was said
// before, so it is no evidence of its own. StripFrame takes out those of this
// store that came back unharmed; what harnesses escaped, indented or cut in half
// stays in the ledger, as everything does that is not surely ours. But nothing
// in an echo is found, shown as a passage or read for the journal.

// echoTag is a tag of a block, as it is or escaped for JSON, HTML or XML.
var echoTag = regexp.MustCompile(`(?:<|&lt;|&#60;|\\u003[cC])(/?)` + frameTag + ` boundary=\\*(?:"|&quot;|&#34;|\\u0022)([0-9a-f]{16})` +
	`(?:\\*(?:"|&quot;|&#34;|\\u0022)(?:>|&gt;|&#62;|\\u003[eE])?)?`)

// echoLine is a line of a block, perhaps indented or quoted.
var echoLine = regexp.MustCompile(`^[ \t>]*(?:\||\* [a-z]+(?: ".*")?, .*, in "|- \S+.* \([a-z ]+ [0-9a-f]{20}\): |Words from earlier conversations, dated|` +
	`What was decided[;:]|(?:Rules and preferences|Open work|Decisions|Changes of mind):\s*$)`)

// echoes returns the echoes in a text, in order.
func echoes(text []byte) []retrieve.Range {
	if !bytes.Contains(text, []byte(frameTag)) {
		return nil
	}
	var list []retrieve.Range
	tags := echoTag.FindAllSubmatchIndex(text, -1)
	from := 0 // what is before it is no part of a further echo
	for i := 0; i < len(tags); i++ {
		tag := tags[i]
		r := retrieve.Range{Start: tag[0], End: tag[1]}
		limit := len(text)
		if i+1 < len(tags) {
			limit = tags[i+1][0]
		}
		switch {
		case tag[2] < tag[3]: // closes what was cut off before it
			r.Start = echoBefore(text, from, r.Start)
		case limit < len(text) && closes(text, tag, tags[i+1]):
			i++
			r.End = tags[i][1]
		default: // what would close it was cut off
			r.End = echoAfter(text, r.End, limit)
		}
		list = append(list, r)
		from = r.End
	}
	return list
}

func closes(text []byte, open, tag []int) bool {
	return tag[2] < tag[3] && bytes.Equal(text[open[4]:open[5]], text[tag[4]:tag[5]])
}

// echoAfter returns where the lines of a block end that begin after a tag.
func echoAfter(text []byte, at, limit int) int {
	end := at
	for first := true; at < limit; first = false {
		next := limit
		if n := bytes.IndexByte(text[at:limit], '\n'); n >= 0 {
			next = at + n + 1
		}
		line := bytes.TrimRight(text[at:next], "\r\n")
		if !echoLine.Match(line) && !(first && len(bytes.TrimSpace(line)) == 0) {
			break
		}
		at = next
		end = at
	}
	return end
}

// echoBefore returns where the lines of a block begin that end before a tag.
func echoBefore(text []byte, from, at int) int {
	start := at
	at = max(from, bytes.LastIndexByte(text[:at], '\n')+1)
	if len(bytes.Trim(text[at:start], " \t>")) > 0 {
		return start // the tag does not begin its line
	}
	for at > from {
		line := max(from, bytes.LastIndexByte(text[:at-1], '\n')+1)
		if !echoLine.Match(bytes.TrimRight(text[line:at], "\r\n")) {
			break
		}
		at = line
	}
	return at
}

// withoutEchoes returns text with every byte of an echo as a line break, so that
// the others keep their places; text itself when there is none.
func withoutEchoes(text []byte) []byte {
	list := echoes(text)
	if len(list) == 0 {
		return text
	}
	out := bytes.Clone(text)
	for _, r := range list {
		for i := r.Start; i < r.End; i++ {
			out[i] = '\n'
		}
	}
	return out
}
