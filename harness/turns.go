package harness

import (
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	recalldv1 "recalld/proto/recalld/v1"
)

// kinds and statuses are the words of recalld's own format.
var (
	kinds = map[string]recalldv1.Kind{
		"user":  recalldv1.Kind_KIND_USER,
		"reply": recalldv1.Kind_KIND_REPLY,
		"trace": recalldv1.Kind_KIND_TRACE,
		"work":  recalldv1.Kind_KIND_WORK,
		"note":  recalldv1.Kind_KIND_NOTE,
		"mark":  recalldv1.Kind_KIND_MARK,
	}
	statuses = map[string]recalldv1.TurnStatus{
		"":            recalldv1.TurnStatus_TURN_STATUS_UNSPECIFIED,
		"open":        recalldv1.TurnStatus_TURN_STATUS_OPEN,
		"finished":    recalldv1.TurnStatus_TURN_STATUS_FINISHED,
		"stopped":     recalldv1.TurnStatus_TURN_STATUS_STOPPED,
		"interrupted": recalldv1.TurnStatus_TURN_STATUS_INTERRUPTED,
	}
)

// parseTurn reads a line of recalld's own format, one turn:
//
//	{"session_id": "s1", "session_title": "Release 2", "turn_id": "t1",
//	 "status": "finished", "messages": [{"id": "m1", "kind": "user",
//	 "speaker": "Ines", "time": "2026-03-02T09:14:05+01:00", "text": "…"}]}
//
// session_title, status, id and time may be left out. The status is one of
// open, finished, stopped and interrupted; without one a new turn is open and
// a known turn keeps its status. The time is that of RFC 3339 and its offset is
// the speaker's zone, unless "zone" gives an IANA name. Bytes that are not
// UTF-8 come as "text_base64" (RFC 4648, section 4) in the place of "text". A
// field of any other name is an error: it would be lost without a word.
func parseTurn(o object) ([]*recalldv1.NewTurn, error) {
	if err := o.only("session_id", "session_title", "turn_id", "status", "messages"); err != nil {
		return nil, err
	}
	turn := &recalldv1.NewTurn{}
	var err error
	if turn.SessionId, err = o.need("session_id"); err != nil {
		return nil, err
	}
	if turn.SessionTitle, err = o.text("session_title"); err != nil {
		return nil, err
	}
	if turn.TurnId, err = o.need("turn_id"); err != nil {
		return nil, err
	}
	word, err := o.text("status")
	if err != nil {
		return nil, err
	}
	status, ok := statuses[word]
	if !ok {
		return nil, o.fault("status", errors.New("must be open, finished, stopped or interrupted"))
	}
	turn.Status = status
	messages, err := o.objects("messages")
	if err != nil {
		return nil, err
	}
	for _, m := range messages {
		message, err := parseMessage(m)
		if err != nil {
			return nil, err
		}
		turn.Messages = append(turn.Messages, message)
	}
	return []*recalldv1.NewTurn{turn}, nil
}

// parseMessage reads one message of recalld's own format.
func parseMessage(o object) (*recalldv1.NewMessage, error) {
	if err := o.only("id", "kind", "speaker", "time", "zone", "text", "text_base64"); err != nil {
		return nil, err
	}
	m := &recalldv1.NewMessage{}
	var err error
	if m.Id, err = o.text("id"); err != nil {
		return nil, err
	}
	kind, err := o.text("kind")
	if err != nil {
		return nil, err
	}
	if m.Kind = kinds[kind]; m.Kind == recalldv1.Kind_KIND_UNSPECIFIED {
		return nil, o.fault("kind", errors.New("must be user, reply, trace, work, note or mark"))
	}
	if m.Speaker, err = o.need("speaker"); err != nil {
		return nil, err
	}
	if m.Time, err = parseTime(o); err != nil {
		return nil, err
	}
	m.Text, err = parseText(o)
	return m, err
}

// parseText reads the words of a message, which come in one of two fields.
func parseText(o object) ([]byte, error) {
	if o.has("text") == o.has("text_base64") {
		return nil, o.fault("text", errors.New("needs text or text_base64, and not both"))
	}
	if o.has("text") {
		s, err := o.text("text")
		return []byte(s), err
	}
	s, err := o.text("text_base64")
	if err != nil {
		return nil, err
	}
	raw, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return nil, o.fault("text_base64", errors.New("is not base64"))
	}
	return raw, nil
}

// parseTime reads "time" and "zone". No time at all gives nil.
func parseTime(o object) (*recalldv1.SpokenTime, error) {
	word, err := o.text("time")
	if err != nil {
		return nil, err
	}
	zone, err := o.text("zone")
	if err != nil {
		return nil, err
	}
	if word == "" {
		if zone != "" {
			return nil, o.fault("zone", errors.New("needs a time beside it"))
		}
		return nil, nil
	}
	at, err := time.Parse(time.RFC3339, word)
	if err != nil {
		return nil, o.fault("time", errors.New("is not a time like 2026-03-02T09:14:05+01:00 (RFC 3339)"))
	}
	if timestamppb.New(at).CheckValid() != nil {
		return nil, o.fault("time", errors.New("is outside the years 1 to 9999"))
	}
	if zone == "" {
		return spoken(at), nil
	}
	if err := checkZone(zone); err != nil {
		return nil, o.fault("zone", err)
	}
	return &recalldv1.SpokenTime{At: timestamppb.New(at), Zone: zone}, nil
}

// checkZone accepts an offset like +02:00 and the names of the IANA time zone
// database.
func checkZone(zone string) error {
	if _, err := time.Parse("-07:00", zone); err == nil {
		return nil
	}
	if _, err := time.LoadLocation(zone); err != nil || zone == "Local" {
		return fmt.Errorf("%q is neither an IANA name like Europe/Berlin nor an offset like +02:00", zone)
	}
	return nil
}

// spoken gives t with its own offset as the speaker's zone; UTC is the empty
// zone.
func spoken(t time.Time) *recalldv1.SpokenTime {
	zone := ""
	if _, seconds := t.Zone(); seconds != 0 {
		zone = t.Format("-07:00")
	}
	return &recalldv1.SpokenTime{At: timestamppb.New(t), Zone: zone}
}
