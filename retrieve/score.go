package retrieve

import (
	"slices"
)

// The parts of a score, by the names of the wire, with their weights: fixed
// weights on the present signals, tuned once on half of two public sets
// and flat around where they are (about a third on one moves recall@10 by less
// than .007).
const (
	partSpread   = "spr"
	partCoverage = "dcov"
	partMeaning  = "cspr"
	partSession  = "smax"
	partSpeaker  = "spk"
	partAnswer   = "pqs"
	partDate     = "date"
	partAsks     = "ask"
	partFirst    = "fp"
	partWhen     = "when"
	partChat     = "chat"
)

// numParts is the number of partWeights.
const numParts = 11

// partWeights in the order in which parts are shown.
var partWeights = []Part{
	{Name: partSpread, Weight: 1},
	{Name: partCoverage, Weight: .5},
	{Name: partMeaning, Weight: .8},
	{Name: partSession, Weight: .4},
	{Name: partSpeaker, Weight: .7},
	{Name: partAnswer, Weight: .4},
	{Name: partDate, Weight: 1},
	{Name: partAsks, Weight: -.4},
	{Name: partFirst, Weight: .1},
	{Name: partWhen, Weight: .4},
	{Name: partChat, Weight: .3},
}

// contextParts rest on more than the message's own words and meaning.
var contextParts = []string{partSession, partSpeaker, partAnswer, partDate, partAsks, partFirst, partWhen, partChat, partLater}

// A scorer puts the parts of a score together. All slices are by ordinal and
// as long as the table; nil ones count as 0.
type scorer struct {
	table   *table
	words   wordScore // spread normalised
	meaning []float32 // smoothed and normalised
	session []float32 // by session: its best message
	chats   []float32 // by session: its BM25
	cues    queryCues
	weights [numParts]float64 // of partWeights, 0 for what is left out
}

// newScorer takes the sources as they came. The words' spread is normalised in
// place. For the meaning of messages that no model has read yet their words
// stand in: the newest must not come last because of it.
func newScorer(t *table, words wordScore, like likeness, cues queryCues, without []string) *scorer {
	s := &scorer{table: t, words: words, cues: cues}
	normalise(s.words.spread, s.words.maximum)
	if like.messages != nil {
		var maximum float32
		s.meaning, maximum = smooth(t, like.messages)
		normalise(s.meaning, maximum)
		for i := like.unread; i > 0 && i < len(s.meaning); i++ {
			s.meaning[i] = max(s.meaning[i], s.words.spread[i])
		}
	}
	s.session = sessionBest(t, s.words.spread, s.meaning)
	s.chats = scoreSessions(words.terms, t)
	for i, p := range partWeights {
		if !slices.Contains(without, p.Name) {
			s.weights[i] = p.Weight
		}
	}
	if cues.single {
		// One word is searched for: nothing may come before the message that
		// holds it.
		for i, p := range partWeights {
			switch p.Name {
			case partAsks, partFirst, partWhen:
				s.weights[i] = 0
			case partMeaning:
				s.weights[i] /= 2
			}
		}
	}
	return s
}

// values gives the parts of one message, in the order of partWeights.
func (s *scorer) values(m int32) [numParts]float64 {
	msg := &s.table.messages[m]
	var v [numParts]float64
	v[0] = float64(s.words.spread[m])
	v[1] = float64(s.words.coverage[m])
	if s.meaning != nil {
		v[2] = float64(s.meaning[m])
	}
	v[3] = float64(s.session[msg.session])
	v[4] = s.cues.speaker(msg)
	if p := s.table.prev[m]; p != none {
		before := &s.table.messages[p]
		if before.flags&flagQuestion != 0 && before.speaker != msg.speaker {
			v[5] = float64(s.words.spread[p])
		}
	}
	v[6] = s.cues.near(msg.day)
	if msg.flags&flagAsks != 0 && msg.flags&flagFirst == 0 {
		v[7] = 1
	}
	if msg.flags&flagFirst != 0 {
		v[8] = 1
	}
	if s.cues.when && msg.flags&flagTime != 0 {
		v[9] = 1
	}
	v[10] = float64(s.chats[msg.session])
	return v
}

// score is the weighted sum of a message's parts.
func (s *scorer) score(m int32) float64 {
	v := s.values(m)
	sum := 0.0
	for i, w := range s.weights {
		sum += v[i] * w
	}
	return sum
}

// parts lists a message's parts for the answer.
func (s *scorer) parts(m int32) []Part {
	v := s.values(m)
	parts := make([]Part, len(partWeights))
	for i, p := range partWeights {
		parts[i] = Part{p.Name, v[i], s.weights[i]}
	}
	return parts
}
