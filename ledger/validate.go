package ledger

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits of what is taken in.
const (
	MaxNameBytes      = 512      // of an id, a key, a name, a title, a zone
	MaxAppendTurns    = 500      // turns of one Append
	MaxAppendMessages = 50_000   // messages of one Append; a transaction must end some day
	MaxAppendBytes    = 16 << 20 // text of one Append
)

// The years a time on the wire may have.
const minYear, maxYear = 1, 9999

// checkName checks an id or a name. A required one must not be empty.
func checkName(field, s string, required bool) error {
	switch {
	case required && s == "":
		return &FieldError{Field: field, What: "is empty"}
	case len(s) > MaxNameBytes:
		return &FieldError{Field: field, What: "is too long", Limit: fmt.Sprintf("%d bytes", MaxNameBytes), Value: fmt.Sprintf("%d bytes", len(s))}
	case strings.IndexByte(s, 0) >= 0:
		return &FieldError{Field: field, What: "holds a NUL character"}
	case !utf8.ValidString(s):
		return &FieldError{Field: field, What: "is not valid UTF-8"}
	}
	return nil
}

func checkKey(k MemoryKey) error {
	if err := checkName("agent", k.Agent, true); err != nil {
		return err
	}
	return checkName("project", k.Project, false)
}

// checkTurns checks everything about an Append that can be known without
// looking at what is stored. Sizes come first: they bound the rest of the work.
func checkTurns(turns []Turn) error {
	if n := len(turns); n > MaxAppendTurns {
		return &FieldError{Field: "turns", What: "are too many", Limit: MaxAppendTurns, Value: n, kind: ErrTooLarge}
	}
	var messages, size int
	for i := range turns {
		messages += len(turns[i].Messages)
		for j := range turns[i].Messages {
			size += len(turns[i].Messages[j].Text)
		}
	}
	if messages > MaxAppendMessages {
		return &FieldError{Field: "turns.messages", What: "are too many", Limit: MaxAppendMessages, Value: messages, kind: ErrTooLarge}
	}
	if size > MaxAppendBytes {
		return &FieldError{
			Field: "turns.messages.text", What: "are too large together",
			Limit: fmt.Sprintf("%d bytes", MaxAppendBytes), Value: fmt.Sprintf("%d bytes", size), kind: ErrTooLarge,
		}
	}
	for i := range turns {
		if err := checkTurn(fmt.Sprintf("turns[%d]", i), &turns[i]); err != nil {
			return err
		}
	}
	return nil
}

func checkTurn(at string, t *Turn) error {
	if err := checkName(at+".session_id", t.Session, true); err != nil {
		return err
	}
	if err := checkName(at+".session_title", t.SessionTitle, false); err != nil {
		return err
	}
	if err := checkName(at+".turn_id", t.ID, true); err != nil {
		return err
	}
	if t.Status > StatusInterrupted {
		return &FieldError{Field: at + ".status", What: "is unknown", Limit: uint8(StatusInterrupted), Value: uint8(t.Status)}
	}
	for j := range t.Messages {
		m := &t.Messages[j]
		if err := checkMessage(m); err != nil {
			err.Field = fmt.Sprintf("%s.messages[%d].%s", at, j, err.Field)
			return err
		}
	}
	return nil
}

// checkMessage returns an error whose Field is relative to the message.
func checkMessage(m *Message) *FieldError {
	if m.Kind < KindUser || m.Kind > KindMark {
		return &FieldError{Field: "kind", What: "is unknown", Limit: uint8(KindMark), Value: uint8(m.Kind)}
	}
	for _, name := range []struct{ field, value string }{{"id", m.ID}, {"speaker", m.Speaker}, {"time.zone", m.Zone}} {
		if err := checkName(name.field, name.value, false); err != nil {
			return err.(*FieldError)
		}
	}
	if y := m.Time.UTC().Year(); !m.Time.IsZero() && (y < minYear || y > maxYear) {
		return &FieldError{Field: "time.at", What: "is outside the years 1 to 9999", Limit: maxYear, Value: y}
	}
	return nil
}

// A stamp is a time as it is stored: microseconds since 1970 in UTC, or nothing
// for the zero time.
type stamp struct {
	micros int64
	known  bool
}

func stampOf(t time.Time) stamp {
	if t.IsZero() {
		return stamp{}
	}
	return stamp{t.UnixMicro(), true}
}

// stampNow is a time of our own clock, which is stored whatever it says.
func stampNow(t time.Time) stamp { return stamp{t.UnixMicro(), true} }

func (s stamp) time() time.Time {
	if !s.known {
		return time.Time{}
	}
	return time.UnixMicro(s.micros).UTC()
}

// sql returns what is bound to a column: NULL for an unknown time.
func (s stamp) sql() any {
	if !s.known {
		return nil
	}
	return s.micros
}

// widen grows the span from first to last so that it holds t.
func widen(first, last *stamp, t stamp) {
	if !t.known {
		return
	}
	if !first.known || t.micros < first.micros {
		*first = t
	}
	if !last.known || t.micros > last.micros {
		*last = t
	}
}
