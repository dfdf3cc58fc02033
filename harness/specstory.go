package harness

import (
	"path"
	"regexp"
	"strings"
	"time"

	recalldv1 "recalld/proto/recalld/v1"
)

// metaTime finds the time in the note beside a message, as in
// "(claude-opus-4-5 2026-01-16 16:48:44Z)" or "(2026-01-16T16:48:44.120Z)".
var metaTime = regexp.MustCompile(`(\d{4}-\d{2}-\d{2})[ T](\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2}))\)`)

// pathTime finds the time in a file's name, as in
// "2026-01-16_16-48-38Z-the-code.md".
var pathTime = regexp.MustCompile(`^(\d{4}-\d{2}-\d{2})_(\d{2})-(\d{2})-(\d{2})Z`)

// parseSpecStory reads a line of a file of SpecStory sessions: session_id,
// agent, path and turns of role, meta and text. A message has no id there, so
// its ordinal and bytes make one.
//
// What a subagent says on a sidechain is another agent's report: kind work.
func parseSpecStory(o object) ([]*recalldv1.NewTurn, error) {
	s, messages, err := parseSession(o)
	if err != nil {
		return nil, err
	}
	name, err := o.text("path")
	if err != nil {
		return nil, err
	}
	s.started = timeOfPath(name)
	for _, m := range messages {
		line, err := parseLine(m)
		if err != nil {
			return nil, err
		}
		meta, err := m.text("meta")
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(meta, "- sidechain") {
			line.kind = recalldv1.Kind_KIND_WORK
		}
		line.at = timeOfMeta(meta)
		line.speaker = s.speakerOf(line.kind)
		s.lines = append(s.lines, line)
	}
	return s.turns(), nil
}

// timeOfMeta gives the zero time when meta holds none.
func timeOfMeta(meta string) time.Time {
	m := metaTime.FindStringSubmatch(meta)
	if m == nil {
		return time.Time{}
	}
	return timeOrZero(m[1] + "T" + m[2])
}

// timeOfPath gives when the session of this file began, or the zero time.
func timeOfPath(name string) time.Time {
	m := pathTime.FindStringSubmatch(path.Base(name))
	if m == nil {
		return time.Time{}
	}
	return timeOrZero(m[1] + "T" + m[2] + ":" + m[3] + ":" + m[4] + "Z")
}
