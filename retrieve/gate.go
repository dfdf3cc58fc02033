package retrieve

import (
	_ "embed"
	"math"
	"slices"
	"strconv"
	"strings"
)

// The gate asks whether anything in the memory bears on a query. Raw scores do
// not transfer from memory to memory; so each memory's level, what foreign
// prompts reach in it, is measured with a fixed bank of probes, and the gate is
// one bar on the excess over it. Constants were chosen on the tune half of
// LoCoMo, and belong to this bank.
const (
	gateBar    = 3.6 // of the whole query
	passageBar = 2.8 // of one passage
	// gateWords weighs the excess of coverage against that of meaning.
	gateWords = 3.0
	// gateLength rewards a long query for the same coverage.
	gateLength = .45
	// gateTerms is where that ends: about the longest of the probes. Beyond it
	// a text always holds more that matches somewhere.
	gateTerms = 30
	// gateFloor keeps logarithms finite.
	gateFloor = .005
	// shortTerms is the number of distinct terms up to which a query must match
	// something rare in general, and shortBar how rare.
	shortTerms = 2
	shortBar   = .6
	// levelQuantile of what the probes reach is a memory's level.
	levelQuantile = .65
	// gatedPassages is the most passages an unasked-for answer has.
	gatedPassages = 3
)

var (
	//go:embed data/gate-probes.txt
	probesText string
	//go:embed data/rarity-en.txt
	rarityText string

	// probes are prompts of every day and of coding that no memory is about.
	probes = readLines(probesText)
	// wordRanks are the ranks of frequent English stems.
	wordRanks = readRanks(rarityText)
)

func readRanks(text string) map[string]int {
	ranks := map[string]int{}
	for _, line := range readLines(text) {
		stem, rank, _ := strings.Cut(line, " ")
		if n, err := strconv.Atoi(rank); err == nil {
			ranks[stem] = n
		}
	}
	return ranks
}

// rarity says how rare a term is in general, from 0 (everyday) to 1:
// clip((ln(r+1) − 5)/4, 0, 1) for the rank r of the word. A word without a rank
// is rare; of numbers only long ones are.
func rarity(term string) float64 {
	if isDigits(term) {
		if len(term) < 4 {
			return .5
		}
		return 1
	}
	rank, ok := wordRanks[term]
	if !ok {
		return 1
	}
	return min(max((math.Log(float64(rank)+1)-5)/4, 0), 1)
}

// levels are what foreign prompts reach in a memory.
type levels struct {
	// since is the sequence number they were measured at; 0: not yet.
	since           uint64
	coverage, sense float64
}

// A measure is what one query reaches in a memory, by slice.
type measure struct {
	units units
	words wordScore
	cos   []float32 // nil: no meaning
	// unread is the first slice that meaning has not come to yet; 0: all have
	// been read. There words speak for meaning, as they do without any.
	unread int
}

// coverageOf is ln coverage + .45 ln n, n the number of distinct terms.
func (m *measure) coverageOf(coverage float64) float64 {
	terms := min(max(len(m.words.terms), 2), gateTerms)
	return math.Log(max(coverage, gateFloor)) + gateLength*math.Log(float64(terms))
}

// sense is the cosine of a slice times the share of the query's rare idf that
// it and its neighbours hold.
func (m *measure) sense(i int) float64 {
	if m.cos == nil || m.cos[i] <= 0 {
		return 0
	}
	return float64(m.cos[i]*m.words.near[i]) / (m.words.rareMass + .5*m.unseen())
}

// unseen is the idf of a term the memory does not know, ln(2N + 2).
func (m *measure) unseen() float64 { return math.Log(2*float64(m.units.n) + 2) }

// best gives the largest coverage and sense measures of any slice.
func (m *measure) best() (coverage, sense float64) {
	var top, most float32
	for _, c := range m.words.coverage {
		top = max(top, c)
	}
	for i, c := range m.cos {
		most = max(most, c*m.words.near[i])
	}
	share := float64(most) / (m.words.rareMass + .5*m.unseen())
	return m.coverageOf(float64(top)), math.Log(max(share, gateFloor))
}

// bestUnread gives the largest coverage measure of what has not been read.
func (m *measure) bestUnread() float64 {
	var top float32
	for _, c := range m.words.coverage[m.unread:] {
		top = max(top, c)
	}
	return m.coverageOf(float64(top))
}

// excess is the gate's measure: how far words and meaning are above the
// memory's level. Without meaning the words speak for it.
func (m *measure) excess(coverage, sense float64, l levels) float64 {
	u := coverage - l.coverage
	if m.cos == nil {
		return (gateWords + 1) * u
	}
	return gateWords*u + sense - l.sense
}

// A bar is what a passage has to pass by itself. The zero bar lets all through.
type bar struct {
	measure *measure
	// least is the smallest product coverage³·sense that passes: the measure of
	// a slice, 3(ln coverage + .45 ln n − Lu) + ln sense − Lv, without its
	// logarithms, which would be most of the work.
	least float64
	// leastCovered is the same for what passes by its words alone.
	leastCovered float64
}

func (m *measure) bar(l levels) bar {
	lengthen := m.coverageOf(1)
	return bar{
		measure:      m,
		least:        math.Exp(passageBar + gateWords*(l.coverage-lengthen) + l.sense),
		leastCovered: math.Exp(passageBar/(gateWords+1) + l.coverage - lengthen),
	}
}

// admits reports whether any slice of a message passes.
func (b bar) admits(ord int32) bool {
	m := b.measure
	if m == nil {
		return true
	}
	msg := &m.units.table.messages[ord]
	for i := int(msg.firstSlice); i < int(msg.firstSlice+msg.slices); i++ {
		coverage := max(float64(m.words.coverage[i]), gateFloor)
		if m.cos == nil || m.unread > 0 && i >= m.unread {
			if coverage >= b.leastCovered {
				return true
			}
			continue
		}
		if coverage*coverage*coverage*max(m.sense(i), gateFloor) >= b.least {
			return true
		}
	}
	return false
}

// slice gives the slice of a message that bears most on the query, by its
// words and, between equals, by meaning.
func (m *measure) slice(ord int32) int32 {
	msg := m.units.table.messages[ord]
	best := msg.firstSlice
	for i := best + 1; i < msg.firstSlice+msg.slices; i++ {
		if m.bearing(i) > m.bearing(best) {
			best = i
		}
	}
	return best
}

func (m *measure) bearing(i int32) float32 {
	b := m.words.spread[i]
	if m.cos != nil {
		b += max(0, m.cos[i])
	}
	return b
}

// tooCommon reports whether a query of few terms matches nothing rare.
func (m *measure) tooCommon() bool {
	if len(m.words.terms) > shortTerms {
		return false
	}
	most := float32(0)
	for _, near := range m.words.near {
		most = max(most, near)
	}
	return float64(most)/m.unseen() < shortBar
}

// gatePeriod is the reason of a gate that is open because the query asks what
// happened in a period: it names it and little else.
const (
	gatePeriod  = "a period"
	periodTerms = 2
)

// saysNothing gives the reason why a text asks for nothing whatever is
// remembered; empty for one that may.
func saysNothing(text string) (reason string) {
	switch {
	case isChatter(text):
		return "chatter"
	case isCommand(text) || isEnvelope(text):
		return "a command to the harness"
	}
	return ""
}

// judge decides whether a query is answered.
func judge(m *measure, l levels, q parsedQuery, relevance Relevance) Gate {
	coverage, sense := m.best()
	g := Gate{
		Measure: m.excess(coverage, sense, l), Threshold: gateBar, PassageThreshold: passageBar,
		Parts: []Part{
			{"coverage", coverage - l.coverage, gateWords},
			{"meaning", sense - l.sense, 1},
			{"coverage level", l.coverage, 0},
			{"meaning level", l.sense, 0},
		},
	}
	byWords := m.cos == nil
	if m.unread > 0 {
		if unread := m.bestUnread(); (gateWords+1)*(unread-l.coverage) > g.Measure {
			byWords, coverage, g.Measure = true, unread, (gateWords+1)*(unread-l.coverage)
		}
	}
	if byWords {
		g.Parts[0].Value, g.Parts[1].Value, g.Parts[1].Weight = coverage-l.coverage, coverage-l.coverage, 1
	}
	empty := saysNothing(q.text)
	switch {
	case relevance == Always:
		g.Passed, g.Reason = true, "always"
	case empty != "":
		g.Reason = empty
	case q.named && len(q.terms) <= periodTerms:
		g.Passed, g.Reason = true, gatePeriod
	case m.tooCommon():
		g.Reason = "only everyday words"
	case g.Measure < gateBar:
		g.Reason = "nothing remembered stands out"
	default:
		g.Passed = true
	}
	return g
}

// quantile interpolates linearly between order statistics.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.Log(gateFloor)
	}
	slices.Sort(values)
	at := q * float64(len(values)-1)
	low := int(at)
	high := min(low+1, len(values)-1)
	return values[low] + (at-float64(low))*(values[high]-values[low])
}
