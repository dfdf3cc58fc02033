package service

import (
	"errors"
	"strings"
	"time"
	// Zones are part of what was said; a machine without a table of them must
	// give the same answers. It costs 450 kB of program.
	_ "time/tzdata"
)

var errZone = errors.New("no such zone")

// locate returns the place a zone names: an IANA name, an offset like "+02:00",
// or nothing for UTC. "Local" is no zone: it means something else here than
// where it was said.
func locate(zone string) (*time.Location, error) {
	if !isZoneName(zone) {
		if zone == "" {
			return time.UTC, nil
		}
		t, err := time.Parse("-07:00", zone)
		if err != nil {
			return nil, errZone
		}
		_, seconds := t.Zone()
		return time.FixedZone(zone, seconds), nil
	}
	if zone == "Local" {
		return nil, errZone
	}
	l, err := time.LoadLocation(zone)
	if err != nil {
		return nil, errZone
	}
	return l, nil
}

// isZoneName reports whether a zone is not an offset and not empty.
func isZoneName(zone string) bool { return zone != "" && !strings.ContainsAny(zone[:1], "+-") }

// zones remembers places, since looking one up reads a table.
type zones map[string]*time.Location

// in returns t in its zone; in UTC if there is no such zone. The zero time,
// which is unknown, stays as it is.
func (z zones) in(t time.Time, zone string) time.Time {
	if t.IsZero() {
		return t
	}
	l, ok := z[zone]
	if !ok {
		var err error
		if l, err = locate(zone); err != nil {
			l = time.UTC
		}
		z[zone] = l
	}
	return t.In(l)
}

// zoneOf names the zone of t: an IANA name where it is one, else its offset.
func zoneOf(t time.Time) string {
	if s := t.Location().String(); s != "Local" {
		if _, err := locate(s); err == nil {
			return s
		}
	}
	return t.Format("-07:00")
}
