package service_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"recalld/consolidate"
	recalldv1 "recalld/proto/recalld/v1"
)

// Evidence is what a reader of a whole block gets.
type evidence struct {
	Reach    string
	Entries  []written
	Passages []quoted
}

// A written line is what a reader gets of an entry.
type written struct{ Part, Said, DecidedOn, Times, Last, Speaker, Kind, ID, Text string }

var (
	reachLine = regexp.MustCompile(`^What was decided[;:].*$`)
	partLine  = regexp.MustCompile(`^(Rules and preferences|Open work|Decisions|Changes of mind):$`)
	entryLine = regexp.MustCompile(`^- (undated|\d{4}-\d\d-\d\d)(?:, decided (\S+))?(?:, said (\d+) times(?:, last (\S+))?)? ("(?:[^"\\]|\\.)*") \(([a-z ]+) ([0-9a-f]{20})\): (.*)$`)
)

// parseEvidence reads a block line by line, the way its format is described, and
// knows nothing of how it was made. Nothing is no block.
func parseEvidence(block string, secret []byte) (e evidence, err error) {
	if block == "" {
		return e, nil
	}
	if n := strings.Count(strings.ToLower(block), "<recalled-evidence"); n != 1 {
		return e, fmt.Errorf("%d beginnings", n)
	}
	if n := strings.Count(strings.ToLower(block), "</recalled-evidence"); n != 1 {
		return e, fmt.Errorf("%d ends", n)
	}
	// The journal stands between the head and the first passage.
	lines := strings.SplitAfter(block, "\n")
	end := 2
	part := ""
	for ; end < len(lines) && !strings.HasPrefix(lines[end], "* ") && !strings.HasPrefix(lines[end], "</"); end++ {
		line := strings.TrimSuffix(lines[end], "\n")
		switch {
		case end == 2 && reachLine.MatchString(line):
			e.Reach = line
		case partLine.MatchString(line):
			part = strings.TrimSuffix(line, ":")
		case entryLine.MatchString(line) && part != "":
			m := entryLine.FindStringSubmatch(line)
			speaker, err := strconv.Unquote(m[5])
			if err != nil {
				return e, fmt.Errorf("speaker %s: %w", m[5], err)
			}
			e.Entries = append(e.Entries, written{part, m[1], m[2], m[3], m[4], unescape(speaker), m[6], m[7], unescape(m[8])})
		default:
			return e, fmt.Errorf("line %q in the journal", line)
		}
	}
	if (e.Reach == "") != (len(e.Entries) == 0) {
		return e, fmt.Errorf("a journal of %d entries under %q", len(e.Entries), e.Reach)
	}
	if err := checkBoundary(block, secret); err != nil {
		return e, err
	}
	if end < len(lines) && strings.HasPrefix(lines[end], "</") {
		return e, nil
	}
	// Without the journal it is a block of passages under another boundary.
	rest := strings.Join(slices.Concat(lines[1:2], lines[end:len(lines)-2]), "")
	mark := boundaryOf(rest, secret)
	e.Passages, err = parseBlock(`<recalled-evidence boundary="`+mark+"\">\n"+rest+`</recalled-evidence boundary="`+mark+"\">\n", secret)
	return e, err
}

// checkBoundary holds the boundary of a block against all between its tags.
func checkBoundary(block string, secret []byte) error {
	lines := strings.SplitAfter(block, "\n")
	if len(lines) < 4 || lines[len(lines)-1] != "" {
		return fmt.Errorf("%d lines", len(lines))
	}
	mark := boundaryOf(strings.Join(lines[1:len(lines)-2], ""), secret)
	if lines[0] != `<recalled-evidence boundary="`+mark+"\">\n" || lines[len(lines)-2] != `</recalled-evidence boundary="`+mark+"\">\n" {
		return fmt.Errorf("tags %q and %q, want the boundary %s", lines[0], lines[len(lines)-2], mark)
	}
	return nil
}

// asWritten is what a reader should get of a record that was said once.
func asWritten(part string, r *consolidate.Record) written {
	flat := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	return written{Part: part, Said: "undated", Speaker: flat(r.Speaker), Kind: strings.ReplaceAll(r.Kind.String(), "_", " "), ID: r.ID, Text: flat(r.Text)}
}

// asGiven is what a reader should get of a passage of an answer.
func asGiven(p *recalldv1.Passage) quoted {
	q := asQuoted(p)
	q.Kind = strings.ToLower(strings.TrimPrefix(p.Kind.String(), "KIND_"))
	q.Time = ""
	if q.Title == "" {
		q.Title = p.SessionId
	}
	return q
}
