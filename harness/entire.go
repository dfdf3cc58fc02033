package harness

import (
	"errors"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	recalldv1 "recalld/proto/recalld/v1"
)

// parseEntire reads a line of a file of Entire sessions: session_id, agent,
// created_at and turns of role, time, uuid and text. What else a line holds is
// about files and commits, and is passed over.
//
// created_at is when the session was recorded, which is after it began; it
// stands in where a message has no time.
func parseEntire(o object) ([]*recalldv1.NewTurn, error) {
	s, messages, err := parseSession(o)
	if err != nil {
		return nil, err
	}
	created, err := o.text("created_at")
	if err != nil {
		return nil, err
	}
	s.started = timeOrZero(created)
	for _, m := range messages {
		line, err := parseLine(m)
		if err != nil {
			return nil, err
		}
		at, err := m.text("time")
		if err != nil {
			return nil, err
		}
		if line.id, err = m.text("uuid"); err != nil {
			return nil, err
		}
		line.at = timeOrZero(at)
		line.speaker = s.speakerOf(line.kind)
		s.lines = append(s.lines, line)
	}
	return s.turns(), nil
}

// parseSession reads what all files of sessions have in common.
func parseSession(o object) (s sessionFile, messages []object, err error) {
	if s.id, err = o.need("session_id"); err != nil {
		return s, nil, err
	}
	if s.agent, err = o.text("agent"); err != nil {
		return s, nil, err
	}
	messages, err = o.objects("turns")
	return s, messages, err
}

// parseLine reads role and text of one message.
func parseLine(o object) (line spokenLine, err error) {
	role, err := o.need("role")
	if err != nil {
		return line, err
	}
	kind, ok := kindOf(role)
	if !ok {
		return line, o.fault("role", errors.New("must be user, assistant, tool or system"))
	}
	line.kind = kind
	if !o.has("text") {
		return line, o.fault("text", errMissing)
	}
	line.text, err = o.text("text")
	return line, err
}

// timeOrZero reads a time of RFC 3339. Words are worth more than their date, so
// one that cannot be read counts as not given.
func timeOrZero(s string) time.Time {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil || timestamppb.New(t).CheckValid() != nil {
		return time.Time{}
	}
	return t
}
