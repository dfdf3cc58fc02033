package consolidate

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A date in a decision is more often when something is due than when it was
// decided. decidedOn takes it for the latter only where a verb says so in the
// past and the date is not after the day on which it was said.

// decidedVerb is such a verb, in English or German.
var decidedVerb = regexp.MustCompile(`(?i)\b(?:decided|agreed|chose|settled|approved|rejected|signed off|picked|opted|ruled|beschlossen|beschloss|entschieden|entschied|vereinbart|geeinigt|einigten|festgelegt|gewählt|abgemacht|decision|entscheidung|beschluss)(?:[ ,.:;!)]|$)`)

// dueWord before a date makes it one by which something is to be done.
var dueWord = regexp.MustCompile(`(?i)(?:\b(?:by|until|till|before|from|starting|starts?|due|after|since|effective|begins?|bis|ab|vor|seit|nach|zum|ende|end of|for|für|release|deadline)(?: the| dem| den| on| am)?,? *)$`)

const monthNames = `jan(?:uary|uar)?|jän(?:ner)?|feb(?:ruary|ruar)?|mar(?:ch)?|märz|mrz|apr(?:il)?|may|mai|june?|juni|july?|juli|aug(?:ust)?|sept?(?:ember)?|o[ck]t(?:ober)?|nov(?:ember)?|de[cz](?:ember)?`

var (
	isoDate    = regexp.MustCompile(`\b(\d{4})-(\d{2})-(\d{2})\b`)
	dotDate    = regexp.MustCompile(`\b(\d{1,2})\. ?(\d{1,2})\. ?(\d{4})\b`)
	monthFirst = regexp.MustCompile(`(?i)\b(` + monthNames + `)\.? (\d{1,2})(?:st|nd|rd|th)?(?:,? (\d{4}))?(?:[^\d:]|$)`)
	dayFirst   = regexp.MustCompile(`(?i)\b(\d{1,2})(?:st|nd|rd|th|\.)?(?: of)? (` + monthNames + `)(?:[.,]? (\d{4}))?(?:[^\pL\d]|$)`)
	dayBefore  = regexp.MustCompile(`(?i)\b(?:(the day before yesterday|vorgestern)|(yesterday|gestern)|(today|heute))(?:[^\pL]|$)`)
	lastDay    = regexp.MustCompile(`(?i)\b(?:last|on|letzten|vergangenen|am) (monday|tuesday|wednesday|thursday|friday|saturday|sunday|montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag)(?:[^\pL]|$)`)
)

// decidedOn returns the date on which words say that something was decided, as
// 2006-01-02, or nothing. said and zone are when and where they were said.
func decidedOn(words string, said time.Time, zone string) string {
	if said.IsZero() || !decidedVerb.MatchString(words) {
		return ""
	}
	today := dayOf(said, zone)
	for _, read := range []func(string, time.Time) (time.Time, int){readISO, readDots, readMonthFirst, readDayFirst, readDayBefore, readLastDay} {
		day, at := read(words, today)
		if at >= 0 && !day.After(today) && !dueWord.MatchString(words[:at]) {
			return day.Format(time.DateOnly)
		}
	}
	return ""
}

// dayOf is the day of t in zone. An offset is understood here; names of places
// need a database, so t is expected to be in its zone already then.
func dayOf(t time.Time, zone string) time.Time {
	t = inOffset(t, zone)
	return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
}

// inOffset returns t in a zone like +02:00; in another zone, t itself.
func inOffset(t time.Time, zone string) time.Time {
	if at, err := time.Parse("-07:00", zone); err == nil {
		_, seconds := at.Zone()
		return t.In(time.FixedZone("", seconds))
	}
	return t
}

func readISO(s string, _ time.Time) (time.Time, int) { return numbers(isoDate, s, 1, 2, 3) }

func readDots(s string, _ time.Time) (time.Time, int) { return numbers(dotDate, s, 3, 2, 1) }

// numbers reads a date of three numbers, whose groups are given.
func numbers(re *regexp.Regexp, s string, year, month, day int) (time.Time, int) {
	m := re.FindStringSubmatchIndex(s)
	if m == nil {
		return time.Time{}, -1
	}
	group := func(n int) int { v, _ := strconv.Atoi(s[m[2*n]:m[2*n+1]]); return v }
	return valid(group(year), group(month), group(day), m[0])
}

// valid returns the day if there is one of that number.
func valid(year, month, day, at int) (time.Time, int) {
	t := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	if t.Day() != day || int(t.Month()) != month || year < 1 {
		return time.Time{}, -1
	}
	return t, at
}

func readMonthFirst(s string, today time.Time) (time.Time, int) {
	return named(monthFirst, s, 1, 2, today)
}

func readDayFirst(s string, today time.Time) (time.Time, int) {
	return named(dayFirst, s, 2, 1, today)
}

// named reads a date with the name of its month; without a year it is the last
// one before today.
func named(re *regexp.Regexp, s string, month, day int, today time.Time) (time.Time, int) {
	m := re.FindStringSubmatchIndex(s)
	if m == nil {
		return time.Time{}, -1
	}
	number, _ := strconv.Atoi(s[m[2*day]:m[2*day+1]])
	name := monthOf(s[m[2*month]:m[2*month+1]])
	if m[6] >= 0 {
		year, _ := strconv.Atoi(s[m[6]:m[7]])
		return valid(year, name, number, m[0])
	}
	t, at := valid(today.Year(), name, number, m[0])
	if at >= 0 && t.After(today) {
		return valid(today.Year()-1, name, number, m[0])
	}
	return t, at
}

// monthOf is the number of a month by its first letters.
func monthOf(name string) int {
	name = strings.ToLower(name)
	for i, prefixes := range [12][]string{{"jan", "jän"}, {"feb"}, {"mar", "mär", "mrz"}, {"apr"}, {"may", "mai"}, {"jun"}, {"jul"}, {"aug"}, {"sep"}, {"oct", "okt"}, {"nov"}, {"dec", "dez"}} {
		for _, prefix := range prefixes {
			if strings.HasPrefix(name, prefix) {
				return i + 1
			}
		}
	}
	return 0
}

func readDayBefore(s string, today time.Time) (time.Time, int) {
	m := dayBefore.FindStringSubmatchIndex(s)
	if m == nil {
		return time.Time{}, -1
	}
	for i, days := range [...]int{2, 1, 0} {
		if m[2+2*i] >= 0 {
			return today.AddDate(0, 0, -days), m[0]
		}
	}
	return time.Time{}, -1
}

func readLastDay(s string, today time.Time) (time.Time, int) {
	m := lastDay.FindStringSubmatchIndex(s)
	if m == nil {
		return time.Time{}, -1
	}
	day := strings.ToLower(s[m[2]:m[3]])
	for i, prefixes := range [7][]string{{"sun", "son"}, {"mon"}, {"tue", "die"}, {"wed", "mit"}, {"thu", "don"}, {"fri", "fre"}, {"sat", "sam"}} {
		for _, prefix := range prefixes {
			if strings.HasPrefix(day, prefix) {
				back := (int(today.Weekday())-i+6)%7 + 1 // 1 to 7 days ago
				return today.AddDate(0, 0, -back), m[0]
			}
		}
	}
	return time.Time{}, -1
}
