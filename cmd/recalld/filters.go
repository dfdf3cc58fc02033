package main

import (
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	recalldv1 "recalld/proto/recalld/v1"
)

// kindNames are the names of the kinds.
var kindNames = []string{"user", "reply", "trace", "work", "note", "mark"}

// parseKinds reads kinds by their names in the contract.
func parseKinds(names []string) ([]recalldv1.Kind, error) {
	var kinds []recalldv1.Kind
	for _, name := range names {
		k, ok := recalldv1.Kind_value["KIND_"+strings.ToUpper(name)]
		if !ok || k == 0 {
			return nil, usageErrorf("--kind: %q is not known; the kinds are user, reply, trace, work, note and mark", name)
		}
		kinds = append(kinds, recalldv1.Kind(k))
	}
	return kinds, nil
}

// dateLayouts are what a person writes for a point in time, in the zone of this
// machine unless it is said.
var dateLayouts = []string{time.RFC3339, "2006-01-02 15:04", "2006-01-02T15:04", time.DateOnly}

// parseDate reads the value of a flag; an empty one is no date.
func parseDate(flag, value string) (*timestamppb.Timestamp, error) {
	if value == "" {
		return nil, nil
	}
	for _, layout := range dateLayouts {
		if t, err := time.ParseInLocation(layout, value, time.Local); err == nil {
			return timestamppb.New(t), nil
		}
	}
	return nil, usageErrorf("--%s: %q is not a date like 2026-03-02 or 2026-03-02T09:14:05+01:00", flag, value)
}

// rightNow is the time of whoever asks, in their zone.
func rightNow() *recalldv1.SpokenTime {
	now := time.Now()
	return &recalldv1.SpokenTime{At: timestamppb.New(now), Zone: now.Format("-07:00")}
}
