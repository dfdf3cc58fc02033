package consolidate

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sync"
	"unicode"
)

// A Size is how long a text is: in bytes of UTF-8, and in code units of UTF-16,
// which is what harnesses count that are written in JavaScript. Code points are
// never more than these.
type Size struct{ Bytes, Units int }

// SizeOf measures a text.
func SizeOf(s string) Size {
	size := Size{Bytes: len(s)}
	for _, r := range s {
		if size.Units++; r > 0xFFFF {
			size.Units++ // a pair of surrogates
		}
	}
	return size
}

func (s Size) plus(t Size) Size { return Size{s.Bytes + t.Bytes, s.Units + t.Units} }

// Within reports whether there is room for s.
func (s Size) Within(room Size) bool { return s.Bytes <= room.Bytes && s.Units <= room.Units }

// Take makes the room s smaller by t.
func (s *Size) Take(t Size) { s.Bytes, s.Units = s.Bytes-t.Bytes, s.Units-t.Units }

// TurnOptions narrow a block down to what one turn needs: rules, preferences and
// whatever is pinned, and of open work, decisions and reversals what bears on the
// message. An entry bears on it if it quotes a message that was recalled for it,
// or shares words with it that few entries hold. Of rules and preferences, where
// not all find room, those come that have most to do with the message.
type TurnOptions struct {
	// Room is what the lines may take, instead of Budget and Frame.
	Room Size
	// Recalled holds the ids of the messages that were recalled for the message.
	Recalled map[string]bool
	// Quiet says that nothing that is remembered bears on the message: what shares
	// words with it does so by chance.
	Quiet bool
	// Given reports what is left out, since whoever gets the block has it; nil
	// leaves out nothing.
	Given func(*Record) bool
	// Words, if not nil, remembers the words of entries from block to block.
	Words *Words
}

// Words remembers the words of the entries of one journal: to tell them takes
// longer than everything else about a block. The zero value remembers none. It
// is safe for concurrent use.
type Words struct {
	mu     sync.Mutex // guards the following
	byText map[string][]string
}

// of returns the distinct words of each text, sorted. Texts that are no longer
// asked for are forgotten in time.
func (w *Words) of(live []dated) [][]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byText == nil || len(w.byText) > 2*len(live)+maxHolders {
		known := w.byText
		w.byText = make(map[string][]string, len(live))
		for _, r := range live {
			if words, ok := known[r.Text]; ok {
				w.byText[r.Text] = words
			}
		}
	}
	out := make([][]string, len(live))
	for i, r := range live {
		words, ok := w.byText[r.Text]
		if !ok {
			words = slices.Sorted(maps.Keys(wordSet(content(r.Text, true))))
			w.byText[r.Text] = words
		}
		out[i] = words
	}
	return out
}

const (
	// maxBearing is how many entries may come because they bear on the message:
	// of more, the message says too little.
	maxBearing = 10
	// recordShare and messageShare: of an entry's words, weighed by how rare they
	// are, the message must hold this part, or of the message's the entry.
	recordShare  = .3
	messageShare = .5
	// minShared words must be shared, unless one is messageShare of the message
	// and at most maxHolders entries hold it.
	minShared = 2
	// quotedBonus puts entries that quote what was recalled before all others.
	quotedBonus = 1
)

// wanted returns the records of one part that a turn needs: pinned ones first,
// then those that bear most on the message.
func (t *TurnOptions) wanted(live []dated, bearing map[string]float64) []dated {
	list := slices.DeleteFunc(live, func(r dated) bool {
		_, bears := bearing[r.ID]
		standing := r.Kind == Rule || r.Kind == Preference
		return !standing && !r.Pinned && !bears || t.Given != nil && t.Given(r.Record)
	})
	slices.SortStableFunc(list, func(a, b dated) int {
		return cmp.Or(compareBool(b.Pinned, a.Pinned), cmp.Compare(bearing[b.ID], bearing[a.ID]))
	})
	return list
}

// bearing says how much the open work, decisions and reversals that are live
// bear on a message. Those that do not are left out.
func (t *TurnOptions) bearing(live []dated, message string) map[string]float64 {
	if t.Quiet {
		message = ""
	}
	asked := wordSet(content(message, true))
	if len(asked) == 0 && len(t.Recalled) == 0 {
		return nil
	}
	live = ofKinds(live, []Kind{OpenWork, Decision, Reversal})
	known := t.Words
	if known == nil {
		known = new(Words)
	}
	q := asking{words: asked, of: known.of(live), df: map[string]int{}}
	for _, words := range q.of {
		for _, w := range words {
			q.df[w]++
		}
	}
	for _, w := range slices.Sorted(maps.Keys(asked)) {
		q.all += q.weight(w)
	}
	scores := map[string]float64{}
	for i, r := range live {
		score := q.shared(i)
		if slices.ContainsFunc(r.Quotes, func(q Quote) bool { return t.Recalled[q.Message] }) {
			score += quotedBonus
		}
		if score > 0 {
			scores[r.ID] = score
		}
	}
	return best(live, scores)
}

// An asking is a message held against entries.
type asking struct {
	words map[string]bool
	all   float64    // their weight
	of    [][]string // words of the entries
	df    map[string]int
}

// weight says how much a word names: the more, the fewer entries hold it.
func (q *asking) weight(w string) float64 {
	if len(w) <= 2 || !containsLetter(w) {
		return 0
	}
	return math.Log(1 + float64(len(q.of))/float64(max(1, q.df[w])))
}

func containsLetter(w string) bool {
	for _, r := range w {
		if unicode.IsLetter(r) {
			return true
		}
	}
	return false
}

// shared is the larger of the parts that the message has of an entry's words and
// the entry of the message's, below 1; 0 if that is too little to mean anything.
func (q *asking) shared(entry int) float64 {
	both, own, count, rare := 0.0, 0.0, 0, false
	for _, w := range q.of[entry] {
		if !q.words[w] {
			continue
		}
		if of := q.weight(w); of > 0 {
			both += of
			count++
			rare = rare || q.df[w] <= maxHolders
		}
	}
	if count == 0 || !rare {
		return 0
	}
	for _, w := range q.of[entry] {
		own += q.weight(w)
	}
	ofRecord, ofMessage := both/own, both/q.all
	if ofMessage >= messageShare || count >= minShared && ofRecord >= recordShare {
		return min(max(ofRecord, ofMessage), 1-1e-9)
	}
	return 0
}

// best keeps the highest scores. Equal ones stay in the order of the records,
// the newest first.
func best(live []dated, scores map[string]float64) map[string]float64 {
	if len(scores) <= maxBearing {
		return scores
	}
	slices.SortStableFunc(live, func(a, b dated) int { return cmp.Compare(scores[b.ID], scores[a.ID]) })
	kept := map[string]float64{}
	for _, r := range live[:maxBearing] {
		kept[r.ID] = scores[r.ID]
	}
	return kept
}
