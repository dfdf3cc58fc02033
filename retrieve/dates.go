package retrieve

import (
	_ "embed"
	"strconv"
	"strings"
	"time"
)

//go:embed data/months.txt
var monthsText string

// months maps a month's name, in any language there is a line for, to 1 to 12.
var months = readMonths(monthsText)

func readMonths(text string) map[string]time.Month {
	names := map[string]time.Month{}
	for _, line := range readLines(text) {
		for i, name := range strings.Fields(line) {
			for n := range strings.SplitSeq(name, "/") {
				names[n] = time.Month(i + 1)
			}
		}
	}
	return names
}

// A date is a day or a month that a query names; year and day may be 0, not
// said.
type date struct {
	year  int
	month time.Month
	day   int
}

// dates are all dates a query names.
type dates []date

// How much a message's date speaks for it: its nearness to a named one. What
// happened on a day is told then and in the two weeks after.
const (
	dateSame  = 1.0 // within a day
	dateMonth = .7
	dateLater = .5 // two to fourteen days later
)

// near gives the best of the dates for a message said on day.
func (ds dates) near(day int32) float64 {
	if len(ds) == 0 || day == noDay {
		return 0
	}
	said := time.Unix(int64(day)*86400, 0).UTC()
	best := 0.0
	for _, d := range ds {
		best = max(best, d.near(said, day))
	}
	return best
}

func (d date) near(said time.Time, day int32) float64 {
	value := 0.0
	if said.Month() == d.month && (d.year == 0 || d.year == said.Year()) {
		value = dateMonth
	}
	if d.day == 0 {
		return value
	}
	year := d.year
	if year == 0 {
		year = said.Year()
	}
	switch diff := day - dayOf(time.Date(year, d.month, d.day, 0, 0, 0, 0, time.UTC)); {
	case -1 <= diff && diff <= 1:
		return dateSame
	case 2 <= diff && diff <= 14:
		return max(value, dateLater)
	}
	return value
}

// readDates finds the dates in the words of a query: "5 July 2023", "July 5",
// "July 2023", "July", 2023-07-05, 5/7/2023 (day before month where both are
// possible). A day beyond the month is its last.
func readDates(words []string) dates {
	var list dates
	for i := 0; i < len(words); i++ {
		if d, n := numericDate(words[i:]); n > 0 {
			list = append(list, d)
			i += n - 1
			continue
		}
		month, ok := months[words[i]]
		if !ok || len(words[i]) == 3 && !standsAsMonth(words, i) {
			continue
		}
		d := date{month: month}
		if i > 0 {
			d.day = dayNumber(words[i-1])
		}
		if i > 1 && d.day == 0 && words[i-1] == "of" {
			d.day = dayNumber(words[i-2])
		}
		next := i + 1
		if d.day == 0 && next < len(words) {
			if d.day = dayNumber(words[next]); d.day > 0 {
				next++
			}
		}
		if next < len(words) {
			d.year = yearNumber(words[next])
		}
		list = append(list, d.clamped())
	}
	return list
}

// standsAsMonth tells a short month from a verb (may) or a name (DEC-0054): a
// day or year stands beside it, or a word that goes before months.
func standsAsMonth(words []string, i int) bool {
	if i+1 < len(words) && (dayNumber(words[i+1]) > 0 || yearNumber(words[i+1]) > 0) {
		return true
	}
	if i == 0 {
		return false
	}
	switch words[i-1] {
	case "in", "of", "last", "this", "early", "late", "mid", "since", "until", "by":
		return true
	}
	return dayNumber(words[i-1]) > 0
}

// numericDate reads a date in digits at the start of words and says how many
// words it took. queryWords has cut it at its marks.
func numericDate(words []string) (date, int) {
	if len(words) < 3 {
		return date{}, 0
	}
	a, b, c := number(words[0]), number(words[1]), number(words[2])
	switch {
	case len(words[0]) == 4 && yearNumber(words[0]) > 0 && 1 <= b && b <= 12 && len(words[1]) <= 2 && 1 <= c && c <= 31 && len(words[2]) <= 2:
		return date{a, time.Month(b), c}.clamped(), 3
	case len(words[2]) == 4 && yearNumber(words[2]) > 0 && 1 <= a && a <= 31 && 1 <= b && b <= 12:
		return date{c, time.Month(b), a}.clamped(), 3
	case len(words[2]) == 4 && yearNumber(words[2]) > 0 && 1 <= a && a <= 12 && 1 <= b && b <= 31:
		return date{c, time.Month(a), b}.clamped(), 3
	}
	return date{}, 0
}

func (d date) clamped() date {
	if d.day == 0 {
		return d
	}
	year := d.year
	if year == 0 {
		year = 2024 // a leap year: 29 February may be meant
	}
	last := time.Date(year, d.month+1, 0, 0, 0, 0, 0, time.UTC).Day()
	d.day = min(d.day, last)
	return d
}

// number reads a small number; -1 when it is none.
func number(word string) int {
	if len(word) > 4 || !isDigits(word) {
		return -1
	}
	n, err := strconv.Atoi(word)
	if err != nil {
		return -1
	}
	return n
}

// dayNumber reads a day of the month, with an English ending or not; 0 when it
// is none.
func dayNumber(word string) int {
	for _, ending := range []string{"st", "nd", "rd", "th"} {
		if cut, ok := strings.CutSuffix(word, ending); ok && isDigits(cut) {
			word = cut
			break
		}
	}
	if n := number(word); 1 <= n && n <= 31 && len(word) <= 2 {
		return n
	}
	return 0
}

// yearNumber reads a year; 0 when it is none.
func yearNumber(word string) int {
	if n := number(word); len(word) == 4 && 1900 <= n && n <= 2199 {
		return n
	}
	return 0
}
