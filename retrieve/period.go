package retrieve

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"
	"time"
)

//go:embed data/periods.txt
var periodsText string

// periodPhrases are ways to name a period by its distance from today.
var periodPhrases = readPeriods(periodsText)

// A periodPhrase names a unit of time and how many units back it lies. An N in
// the phrase stands for a number, which is then the distance.
type periodPhrase struct {
	words []string
	unit  string
	back  int
}

func readPeriods(text string) []periodPhrase {
	var list []periodPhrase
	for _, line := range readLines(text) {
		phrase, meaning, _ := strings.Cut(line, " = ")
		unit, back, _ := strings.Cut(meaning, " ")
		n, err := strconv.Atoi(back)
		if back != "N" && err != nil {
			continue
		}
		list = append(list, periodPhrase{strings.Fields(phrase), unit, n})
	}
	// The longest phrase says most: "the day before yesterday".
	slices.SortStableFunc(list, func(a, b periodPhrase) int { return len(b.words) - len(a.words) })
	return list
}

// A period is a span of days, both included, in the zone of whoever asks.
type period struct {
	first, last int32
	// from and to are the places in the query of the words that named it.
	from, to int
}

// near gives 1 for a day of the period.
func (p period) near(day int32) float64 {
	if day != noDay && p.first <= day && day <= p.last {
		return dateSame
	}
	return 0
}

// span gives the instants of a named period in the zone of now.
func (q parsedQuery) span(now time.Time) (start, end time.Time) {
	if !q.named {
		return time.Time{}, time.Time{}
	}
	day := func(n int32) time.Time {
		return time.Date(1970, 1, 1+int(n), 0, 0, 0, 0, now.Location())
	}
	return day(q.period.first), day(q.period.last + 1)
}

// readPeriod finds the first period that the words of a query name: relative
// to now ("yesterday", "3 days ago", "last week"), between two dates, or since
// a date. Without now only dates count. A phrase that is not understood is no
// period: it filters nothing.
func readPeriod(words []string, now time.Time) (period, bool) {
	if p, ok := betweenDates(words, now); ok {
		return p, true
	}
	if now.IsZero() {
		return period{}, false
	}
	for i := range words {
		for _, phrase := range periodPhrases {
			if back, ok := phrase.match(words[i:]); ok {
				first, last := unitSpan(phrase.unit, back, now)
				return period{first, last, i, i + len(phrase.words)}, true
			}
		}
	}
	return period{}, false
}

// match reports whether words begin with the phrase, and how far back it lies.
func (p periodPhrase) match(words []string) (back int, ok bool) {
	if len(words) < len(p.words) {
		return 0, false
	}
	back = p.back
	for i, w := range p.words {
		switch {
		case w == "N":
			n := smallNumber(words[i])
			if n < 0 {
				return 0, false
			}
			back = n
		case w != words[i]:
			return 0, false
		}
	}
	return back, true
}

// smallNumber reads a number in digits or as an English or German word.
func smallNumber(word string) int {
	if n := number(word); n >= 0 {
		return n
	}
	for n, names := range [][]string{1: {"a", "an", "one", "einem", "einer"}, 2: {"two", "zwei"}, 3: {"three", "drei"}, 4: {"four", "vier"}, 5: {"five", "fünf"}, 6: {"six", "sechs"}, 7: {"seven", "sieben"}} {
		if slices.Contains(names, word) {
			return n
		}
	}
	return -1
}

// unitSpan gives the days of the unit that lies back units before now. Weeks
// begin on Monday. A weekday is its last occurrence before today.
func unitSpan(unit string, back int, now time.Time) (first, last int32) {
	today := dayOf(now)
	year, month, _ := now.Date()
	switch unit {
	case "day":
		return today - int32(back), today - int32(back)
	case "days": // a stretch up to today
		return today - int32(back), today
	case "week":
		monday := today - int32((now.Weekday()+6)%7) - int32(7*back)
		return monday, monday + 6
	case "weekend":
		saturday := today - int32((now.Weekday()+6)%7) + 5 - int32(7*back)
		return saturday, saturday + 1
	case "month":
		return dayOf(time.Date(year, month-time.Month(back), 1, 0, 0, 0, 0, time.UTC)),
			dayOf(time.Date(year, month-time.Month(back)+1, 0, 0, 0, 0, 0, time.UTC))
	case "year":
		return dayOf(time.Date(year-back, 1, 1, 0, 0, 0, 0, time.UTC)), dayOf(time.Date(year-back, 12, 31, 0, 0, 0, 0, time.UTC))
	case "weekday": // back is the weekday, Sunday 0
		days := (int(now.Weekday()) - back + 7) % 7
		if days == 0 {
			days = 7
		}
		return today - int32(days), today - int32(days)
	}
	return noDay, noDay
}

// betweenDates reads "between 3 and 12 April", "from 3 April to 5 May" and
// "since 3 April".
func betweenDates(words []string, now time.Time) (period, bool) {
	for i, w := range words {
		switch w {
		case "between", "from", "zwischen", "vom", "von":
			if p, ok := twoDates(words, i, now); ok {
				return p, true
			}
		case "since", "seit", "after", "nach":
			if d, end, ok := dateAt(words, i+1); ok && !now.IsZero() && d.day > 0 {
				return period{d.dayNumber(now), dayOf(now), i, end}, true
			}
		}
	}
	return period{}, false
}

// twoDates reads two dates joined by a word after place i. The first may lack
// a month and year, which are then those of the second.
func twoDates(words []string, i int, now time.Time) (period, bool) {
	for k := i + 1; k < len(words) && k < i+6; k++ {
		switch words[k] {
		case "and", "to", "until", "till", "und", "bis":
		default:
			continue
		}
		until, end, ok := dateAt(words, k+1)
		if !ok || until.day == 0 {
			return period{}, false
		}
		since, _, ok := dateAt(words[:k], i+1)
		if !ok && k == i+2 {
			since, ok = until, true
			since.day = dayNumber(words[i+1])
		}
		if !ok || since.day == 0 {
			return period{}, false
		}
		if since.year == 0 {
			since.year = until.year
		}
		p := period{since.dayNumber(now), until.dayNumber(now), i, end}
		return p, p.first != noDay && p.last != noDay && p.first <= p.last
	}
	return period{}, false
}

// dateAt reads a date that begins at place i and says where it ends.
func dateAt(words []string, i int) (date, int, bool) {
	for end := i + 1; end <= min(i+3, len(words)); end++ {
		if i >= 0 && i < len(words) {
			if list := readDates(words[i:end]); len(list) == 1 && (list[0].day > 0 || end == min(i+3, len(words))) {
				if end < len(words) && list[0].year == 0 && yearNumber(words[end]) > 0 {
					list[0].year = yearNumber(words[end])
					end++
				}
				return list[0], end, true
			}
		}
	}
	return date{}, 0, false
}

// dayNumber numbers the day of a date. Without a year it is the last such day
// up to now; without now there is none.
func (d date) dayNumber(now time.Time) int32 {
	year := d.year
	if year == 0 {
		if now.IsZero() {
			return noDay
		}
		year = now.Year()
		if dayOf(time.Date(year, d.month, d.day, 0, 0, 0, 0, time.UTC)) > dayOf(now) {
			year--
		}
	}
	return dayOf(time.Date(year, d.month, d.day, 0, 0, 0, 0, time.UTC))
}
