package main

import (
	"cmp"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
)

// A Tally counts what an extractor found in one text or window.
type Tally struct {
	// TP and FP are predictions that are right and wrong, Hit and Gold what was
	// to be found: found, and in all.
	TP, FP, Hit, Gold int
	// None and NoneHit count windows that hold nothing, and those of them in
	// which something wrong was found.
	None, NoneHit int
}

func (t *Tally) add(o Tally) {
	t.TP += o.TP
	t.FP += o.FP
	t.Hit += o.Hit
	t.Gold += o.Gold
	t.None += o.None
	t.NoneHit += o.NoneHit
}

// binary is the tally of a text that is or is not of a label.
func binary(found, labelled bool) Tally {
	var t Tally
	if labelled {
		t.Gold = 1
	}
	switch {
	case found && labelled:
		t.TP, t.Hit = 1, 1
	case found:
		t.FP = 1
	}
	return t
}

// A Reading is what was found in one text: by live entries alone, and with the
// candidates too.
type Reading struct{ Live, All Tally }

// tallyMetrics are what can be said of a tally. A metric does not apply where
// there is nothing to divide by.
var tallyMetrics = map[string]func(Tally) (float64, bool){
	"precision": func(t Tally) (float64, bool) { return ratio(t.TP, t.TP+t.FP) },
	"recall":    func(t Tally) (float64, bool) { return ratio(t.Hit, t.Gold) },
	"none_hit":  func(t Tally) (float64, bool) { return ratio(t.NoneHit, t.None) },
	"f1": func(t Tally) (float64, bool) {
		p, _ := ratio(t.TP, t.TP+t.FP)
		r, ok := ratio(t.Hit, t.Gold)
		if p+r == 0 {
			return 0, ok
		}
		return 2 * p * r / (p + r), ok
	},
}

func ratio(a, b int) (float64, bool) {
	if b == 0 {
		return 0, false
	}
	return float64(a) / float64(b), true
}

func sum(tallies []Tally) Tally {
	var total Tally
	for _, t := range tallies {
		total.add(t)
	}
	return total
}

// A JournalRow is a line of figures: of one task on one set, one part of it and
// one group of kinds.
type JournalRow struct {
	Task      string                `json:"task"`
	Set       string                `json:"set"`
	Split     Split                 `json:"split"`
	Group     string                `json:"group"`
	N         int                   `json:"n"`
	Positives int                   `json:"positives"`
	Found     int                   `json:"found"`
	Metrics   Values                `json:"metrics"`
	Intervals map[string][2]float64 `json:"intervals"`
	// WithCandidates are the metrics when what waits for a person counts too.
	WithCandidates Values `json:"with_candidates,omitempty"`
}

// newRow sums up readings. The interval of a metric holds the middle 95 % of
// its values when texts are drawn anew with replacement.
func newRow(task, set string, split Split, group string, readings []Reading, metrics ...string) JournalRow {
	live, all := make([]Tally, len(readings)), make([]Tally, len(readings))
	for i, r := range readings {
		live[i], all[i] = r.Live, r.All
	}
	total, more := sum(live), sum(all)
	row := JournalRow{
		Task: task, Set: set, Split: split, Group: group, N: len(readings), Positives: total.Gold, Found: total.TP + total.FP,
		Metrics: Values{}, Intervals: map[string][2]float64{}, WithCandidates: Values{},
	}
	for _, name := range metrics {
		metric := tallyMetrics[name]
		if x, ok := metric(total); ok {
			row.Metrics[name] = round(x)
			row.Intervals[name] = resampled(live, metric)
		}
		if x, ok := metric(more); ok {
			row.WithCandidates[name] = round(x)
		}
	}
	return row
}

// meanRow sums up values of one question each.
func meanRow(task, set string, split Split, group string, values []Values) JournalRow {
	row := JournalRow{
		Task: task, Set: set, Split: split, Group: group, N: len(values), Positives: len(values),
		Metrics: rounded(means(values)), Intervals: map[string][2]float64{},
	}
	for name := range row.Metrics {
		var list []float64
		for _, v := range values {
			list = append(list, v[name])
		}
		i := bootstrap(list)
		row.Intervals[name] = [2]float64{round(i.Low), round(i.High)}
	}
	return row
}

// resampled is the percentile interval of a metric of the sum of tallies, which
// are drawn as bootstrap draws questions.
func resampled(tallies []Tally, metric func(Tally) (float64, bool)) [2]float64 {
	random := rand.New(rand.NewPCG(bootstrapSeed, uint64(len(tallies))))
	drawn := make([]float64, 0, resamples)
	for range resamples {
		var total Tally
		for range tallies {
			total.add(tallies[random.IntN(len(tallies))])
		}
		if x, ok := metric(total); ok {
			drawn = append(drawn, x)
		}
	}
	slices.Sort(drawn)
	return [2]float64{round(quantile(drawn, .025)), round(quantile(drawn, .975))}
}

var wordRuns = regexp.MustCompile(`[\p{L}\p{N}_]+`)

// multiset counts the words of a text, in small letters.
func multiset(text string) (counts map[string]int, size int) {
	counts = map[string]int{}
	for _, word := range wordRuns.FindAllString(strings.ToLower(strings.ReplaceAll(text, "’", "'")), -1) {
		counts[word]++
		size++
	}
	return counts, size
}

const (
	// shortShare and longShare of the shorter and the longer of two quotes must
	// be common to both, and at least minCommon words.
	shortShare, longShare = .5, .3
	minCommon             = 2
)

// sameWords reports whether two quotes are of the same words: their multisets
// overlap in half of the shorter one and two words (or all), and in three
// tenths of the longer one unless one quote contains the other.
func sameWords(a, b string) bool {
	inA, sizeA := multiset(a)
	inB, sizeB := multiset(b)
	common := 0
	for word, n := range inA {
		common += min(n, inB[word])
	}
	short, long := min(sizeA, sizeB), max(sizeA, sizeB)
	return float64(common) >= shortShare*float64(short) && common >= min(minCommon, short) &&
		(float64(common) >= longShare*float64(long) || strings.Contains(a, b) || strings.Contains(b, a))
}

// The groups of kinds that are scored together.
const (
	choice   = "choice"
	standing = "standing"
	openWork = "open"
)

var groups = []string{choice, standing, openWork}

// groupOf gives the group of a kind, "" of none.
func groupOf(kind string) string {
	switch kind {
	case "decision", "reversal":
		return choice
	case "rule", "preference":
		return standing
	case "open_work":
		return openWork
	}
	return ""
}

// surest sorts found entries by confidence; ties stay in their order.
func surest(found []Found) []Found {
	return slices.SortedStableFunc(slices.Values(found), func(a, b Found) int { return cmp.Compare(b.Confidence, a.Confidence) })
}
