package consolidate

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// The budget of a block in bytes: least, most, and if none is asked for.
const (
	MinBudget     = 512
	MaxBudget     = 64_000
	DefaultBudget = 16_000
)

// A Reach says how far the journal got in one session.
type Reach struct {
	Session string
	ReadTo  time.Time // of the last message that was read; zero for none, or an unknown time
	Zone    string
	Read    int // turns that were read
	Waiting int // finished turns that were not read yet
}

// BlockOptions say what a block is for. The zero value is a block of
// [DefaultBudget] bytes that knows of no chat.
type BlockOptions struct {
	Budget  int          // bytes, the frame included
	Frame   int          // bytes that whoever frames the block adds
	Message string       // decides among decisions when the budget is short
	Reach   *Reach       // of the chat that is going on
	Turn    *TurnOptions // the block is for one turn, which needs less

	// Escape makes a text safe to stand within a line; nil takes line breaks away.
	Escape func(string) string
	// In returns a time in a zone; nil knows offsets only and takes UTC for the rest.
	In func(t time.Time, zone string) time.Time
}

// A Block is what was chosen, rendered.
type Block struct {
	Lines   []string // each ends with a line break; none when nothing was chosen
	Entries []Record // in the order of the lines
	Left    int      // live entries that found no room
}

// String is the block without its frame.
func (b Block) String() string { return strings.Join(b.Lines, "") }

// A part is a kind of line: what belongs to it and how it is headed. The order
// of parts is the order in which they take from the budget.
type part struct {
	head  string
	kinds []Kind
}

var parts = [...]part{
	{"Rules and preferences", []Kind{Rule, Preference}},
	{"Open work", []Kind{OpenWork}},
	{"Decisions", []Kind{Decision}},
	{"Changes of mind", []Kind{Reversal}},
}

// Block chooses and renders the live entries of j that fit the budget: rules and
// preferences, open work, decisions, reversals, and of each those that are
// pinned, then those said last; of decisions, where not all fit, the ones that
// have most to do with the message. They are rendered in these parts, in the
// order in which they were said. A budget out of range is taken to its nearer end. For one
// turn see [TurnOptions].
func (j Journal) Block(o BlockOptions) Block {
	room := o.room()
	reach := o.reachLine()
	room.Take(SizeOf(reach))
	all := j.live()
	var bearing map[string]float64
	if o.Turn != nil {
		bearing = o.Turn.bearing(all, o.Message)
	}
	var b Block
	var lines []string
	for _, p := range parts {
		live := ofKinds(all, p.kinds)
		if o.Turn != nil {
			live = o.Turn.wanted(live, bearing)
		}
		chosen, missed := o.choose(live, p, &room)
		b.Left += missed
		if len(chosen) == 0 {
			continue
		}
		lines = append(lines, p.heading())
		for _, r := range chosen {
			lines = append(lines, o.line(r.Record))
			b.Entries = append(b.Entries, *r.Record)
		}
	}
	if len(lines) > 0 {
		b.Lines = append([]string{reach}, lines...)
	}
	return b
}

// room is what the lines of the block may take.
func (o BlockOptions) room() Size {
	if o.Turn != nil {
		return o.Turn.Room
	}
	budget := min(max(cmp.Or(o.Budget, DefaultBudget), MinBudget), MaxBudget)
	return Size{Bytes: budget - o.Frame, Units: math.MaxInt}
}

func (p part) heading() string { return p.head + ":\n" }

// live returns the live records, those said last first, pinned ones before all
// others.
func (j Journal) live() []dated {
	list := slices.DeleteFunc(j.dated(), func(r dated) bool { return r.State != Live })
	slices.SortFunc(list, byLast)
	return list
}

func ofKinds(list []dated, kinds []Kind) []dated {
	var out []dated
	for _, r := range list {
		if slices.Contains(kinds, r.Kind) {
			out = append(out, r)
		}
	}
	return out
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// choose takes records until the room is used up, and returns them in the
// order in which they were said, with the number of those left out. A long one
// does not keep a shorter one out.
func (o BlockOptions) choose(live []dated, p part, room *Size) ([]dated, int) {
	if o.isRanked(p) {
		all := SizeOf(p.heading())
		for _, r := range live {
			all = all.plus(SizeOf(o.line(r.Record)))
		}
		if !all.Within(*room) {
			byRelevance(live, o.Message)
		}
	}
	var chosen []dated
	for _, r := range live {
		cost := SizeOf(o.line(r.Record))
		if len(chosen) == 0 {
			cost = cost.plus(SizeOf(p.heading()))
		}
		if !cost.Within(*room) {
			continue
		}
		room.Take(cost)
		chosen = append(chosen, r)
	}
	slices.SortFunc(chosen, byFirst)
	return chosen, len(live) - len(chosen)
}

// isRanked reports whether the message decides which entries of a part find room.
// For one turn, open work, decisions and reversals are ranked already.
func (o BlockOptions) isRanked(p part) bool {
	ranked := Decision
	if o.Turn != nil {
		ranked = Rule
	}
	return o.Message != "" && slices.Contains(p.kinds, ranked)
}

// byRelevance sorts records by the rare words they share with a message; equal
// ones stay as they are, and pinned ones in front.
func byRelevance(records []dated, message string) {
	asked := wordSet(content(message, true))
	df := map[string]int{}
	sets := map[string]map[string]bool{}
	for _, r := range records {
		set := wordSet(content(r.Text, true))
		sets[r.ID] = set
		for w := range set {
			df[w]++
		}
	}
	scores := map[string]float64{}
	for _, r := range records {
		score := 0.0
		for _, w := range slices.Sorted(maps.Keys(asked)) {
			if sets[r.ID][w] {
				score += math.Log(1 + float64(len(records))/float64(df[w]))
			}
		}
		scores[r.ID] = score
	}
	slices.SortStableFunc(records, func(a, b dated) int {
		return cmp.Or(compareBool(b.Pinned, a.Pinned), cmp.Compare(scores[b.ID], scores[a.ID]))
	})
}

// line renders one record:
//
//   - 2026-03-05 "Ann" (rule 0123456789abcdef0123): Always use tabs.
func (o BlockOptions) line(r *Record) string {
	escape := o.Escape
	if escape == nil {
		escape = func(s string) string { return strings.Join(strings.Fields(s), " ") }
	}
	said := "undated"
	if !r.SaidAt.IsZero() {
		said = o.in(r.SaidAt, r.Zone).Format(time.DateOnly)
	}
	if r.DecidedOn != "" && r.DecidedOn != said {
		said += ", decided " + r.DecidedOn
	}
	if n := len(r.IDs); n > 1 {
		said += fmt.Sprintf(", said %d times", n)
		if !r.Last.SaidAt.IsZero() {
			said += ", last " + o.in(r.Last.SaidAt, r.Last.Zone).Format(time.DateOnly)
		}
	}
	speaker := r.Speaker
	if speaker == "" {
		speaker = r.By.String()
	}
	return fmt.Sprintf("- %s %q (%s %s): %s\n", said, escape(speaker), strings.ReplaceAll(r.Kind.String(), "_", " "), r.ID, escape(r.Text))
}

// reachLine says how far the journal reaches in the chat that is going on.
func (o BlockOptions) reachLine() string {
	r := o.Reach
	if r == nil {
		return "What was decided:\n"
	}
	var said []string
	switch {
	case !r.ReadTo.IsZero():
		said = append(said, "read up to "+o.in(r.ReadTo, r.Zone).Format("2006-01-02 15:04 -07:00"))
	case r.Read > 0:
		said = append(said, turns(r.Read)+" of this chat read")
	case r.Waiting == 0:
		said = append(said, "nothing of this chat yet")
	}
	if r.Waiting > 0 {
		said = append(said, turns(r.Waiting)+" of this chat not yet")
	}
	return "What was decided; " + strings.Join(said, "; ") + ".\n"
}

func turns(n int) string {
	if n == 1 {
		return "1 turn"
	}
	return fmt.Sprintf("%d turns", n)
}

func (o BlockOptions) in(t time.Time, zone string) time.Time {
	if o.In != nil {
		return o.In(t, zone)
	}
	return inOffset(t.UTC(), zone)
}
