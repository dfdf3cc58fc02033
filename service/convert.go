package service

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"recalld/ledger"
	recalldv1 "recalld/proto/recalld/v1"
	"recalld/retrieve"
)

// The packages number kinds, states and outcomes as the wire does; if one of
// them changed, these would no longer compile.
var (
	_ = [1]struct{}{}[int(ledger.KindMark)-int(recalldv1.Kind_KIND_MARK)]
	_ = [1]struct{}{}[int(retrieve.Mark)-int(recalldv1.Kind_KIND_MARK)]
	_ = [1]struct{}{}[int(ledger.StatusInterrupted)-int(recalldv1.TurnStatus_TURN_STATUS_INTERRUPTED)]
	_ = [1]struct{}{}[int(ledger.Forgotten)-int(recalldv1.AppendOutcome_APPEND_OUTCOME_FORGOTTEN)]
	_ = [1]struct{}{}[int(retrieve.Rebuilding)-int(recalldv1.Outcome_OUTCOME_REBUILDING)]
	_ = [1]struct{}{}[int(retrieve.Expansion)-int(recalldv1.Source_SOURCE_EXPANSION)]
)

// stampOf is a time on the wire: nothing for the zero time, which is unknown.
func stampOf(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// spokenAt is a time and its zone on the wire, nothing if neither is known.
func spokenAt(t time.Time, zone string) *recalldv1.SpokenTime {
	if t.IsZero() && zone == "" {
		return nil
	}
	return &recalldv1.SpokenTime{At: stampOf(t), Zone: name(zone)}
}

// checkStamp returns the time of a field, the zero time if it is not set. The
// first instant of the year 1 is what programs have for "no time" and cannot be
// told from it here, so it is refused instead of being taken for nothing.
func checkStamp(field string, t *timestamppb.Timestamp) (time.Time, error) {
	if t == nil {
		return time.Time{}, nil
	}
	if err := t.CheckValid(); err != nil {
		return time.Time{}, invalid(field, "is no time between the years 1 and 9999", nil, nil)
	}
	if t.AsTime().IsZero() {
		return time.Time{}, invalid(field, "is the first instant of the year 1, which means no time: leave the field out", nil, nil)
	}
	return t.AsTime(), nil
}

// checkSpoken returns when and where something was said.
func checkSpoken(field string, t *recalldv1.SpokenTime) (at time.Time, zone string, err error) {
	if at, err = checkStamp(field+".at", t.GetAt()); err != nil {
		return time.Time{}, "", err
	}
	if err := checkName(field+".zone", t.GetZone(), false); err != nil {
		return time.Time{}, "", err
	}
	if _, err := locate(t.GetZone()); err != nil {
		return time.Time{}, "", invalid(field+".zone", `is neither an IANA name nor an offset like "+02:00"`, nil, t.GetZone())
	}
	return at, t.GetZone(), nil
}

// checkEnum refuses a value that the wire does not know. Unspecified is 0 and
// refused as well if it has no meaning.
func checkEnum[E ~int32](field string, value E, names map[int32]string, zeroMeans bool) error {
	if _, known := names[int32(value)]; !known || value == 0 && !zeroMeans {
		return invalid(field, "is unknown", nil, int32(value))
	}
	return nil
}

// checkKinds returns kinds as ledger or retrieve number them.
func checkKinds[K ledger.Kind | retrieve.Kind](field string, kinds []recalldv1.Kind) ([]K, error) {
	if len(kinds) > maxListed {
		return nil, invalid(field, "are too many", maxListed, len(kinds))
	}
	var list []K
	for _, k := range kinds {
		if err := checkEnum(field, k, recalldv1.Kind_name, false); err != nil {
			return nil, err
		}
		list = append(list, K(k))
	}
	return list, nil
}

// inRange returns a number, or its default if it is 0.
func inRange(field string, value uint32, byDefault, least, most uint32) (int, error) {
	if value == 0 {
		return int(byDefault), nil
	}
	if value < least || value > most {
		return 0, invalid(field, "is out of range", fmt.Sprintf("%d to %d", least, most), value)
	}
	return int(value), nil
}

// turnOf is a turn as it leaves.
func turnOf(t *ledger.Turn) (*recalldv1.Turn, error) {
	out := &recalldv1.Turn{
		SessionId:    name(t.Session),
		SessionTitle: name(t.SessionTitle),
		TurnId:       name(t.ID),
		Sequence:     t.Seq,
		Status:       recalldv1.TurnStatus(t.Status),
		Appended:     stampOf(t.Appended),
		Messages:     make([]*recalldv1.Message, len(t.Messages)),
	}
	for i := range t.Messages {
		m := &t.Messages[i]
		if m.Damage != nil {
			return nil, m.Damage
		}
		out.Messages[i] = messageOf(m, t.Session, t.ID)
		out.Messages[i].Text, out.Messages[i].Exact = leave(m.Text).all()
	}
	return out, nil
}

// messageOf is a message as it leaves, but for its text.
func messageOf(m *ledger.Message, session, turn string) *recalldv1.Message {
	return &recalldv1.Message{
		Id:        name(m.ID),
		SessionId: name(session),
		TurnId:    name(turn),
		Sequence:  m.Seq,
		Kind:      recalldv1.Kind(m.Kind),
		Speaker:   name(m.Speaker),
		Time:      spokenAt(m.Time, m.Zone),
		Bytes:     uint64(len(m.Text)),
	}
}
