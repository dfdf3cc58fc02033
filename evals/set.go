package main

import (
	"errors"

	pb "recalld/proto/recalld/v1"
)

// agent is the agent of every memory that evals makes.
const agent = "eval"

// errAbsent says that the data of a set is not there. It is a reason to skip
// the set, not to fail.
var errAbsent = errors.New("data is absent")

// A Split is the part of a set that choices may be made on (tune), the part
// that is reported, or all of it. A question whose split is empty belongs to
// every split: its set is for checking only.
type Split string

// The splits.
const (
	Tune   Split = "tune"
	Report Split = "report"
	All    Split = "all"
)

// A Memory is one memory to be filled: its project, and its turns in order.
// Session ids start with the project, because a session is bound to one
// memory for life.
type Memory struct {
	Project string
	Turns   []*pb.NewTurn
}

// messages counts the messages of the memory.
func (m *Memory) messages() int {
	n := 0
	for _, t := range m.Turns {
		n += len(t.Messages)
	}
	return n
}

// A Unit is what a ranking is a ranking of. A unit stands where its best
// passage stands, and counts once.
type Unit int

// The units. An exchange is a turn: a message and the reply to it.
const (
	ByMessage Unit = iota
	ByExchange
	BySession
)

// A Gold is what a question should bring back.
type Gold struct {
	// Suffix is appended to the names of the metrics.
	Suffix string
	Unit   Unit
	IDs    []string
}

// A Question is put to one memory.
type Question struct {
	ID      string
	Project string
	Text    string
	// Categories the question is reported under.
	Categories []string
	// Apart keeps the question out of the top-level metrics.
	Apart bool
	Split Split
	Golds []Gold
	// Related is read in gated sets: the memory holds something about it.
	Related bool
	// Now is the reference time, if the data gives one.
	Now *pb.SpokenTime
}

// in reports whether the question belongs to a split.
func (q *Question) in(split Split) bool {
	return split == All || q.Split == "" || q.Split == split
}

// A Pass is one way of asking all questions of a set.
type Pass struct {
	// Suffix is appended to the names of the metrics.
	Suffix string
	// Sources to use; none is all.
	Sources []pb.Source
	// WithoutParts are left out of the score.
	WithoutParts []string
	// Expansion asks a model for other wordings; unspecified is off.
	Expansion pb.Expansion
}

// A Set is a data set, loaded.
type Set struct {
	Name      string
	Memories  []Memory
	Questions []Question
	// Passes come in order; none is one default pass. Latency, bytes and parts
	// are those of the first.
	Passes []Pass
	// Gated asks whether anything relevant is there, instead of what.
	Gated bool
	// Extra holds values by question, found without a server.
	Extra []Values
	// Columns are the metrics of the printed table, Keys those of which
	// ablation gives differences.
	Columns, Keys []string
}

// passes gives the passes of the set, of which there is at least one.
func (s *Set) passes() []Pass {
	if len(s.Passes) == 0 {
		return []Pass{{}}
	}
	return s.Passes
}

// only keeps the questions of a split.
func (s *Set) only(split Split) {
	kept, extra := s.Questions[:0:0], s.Extra[:0:0]
	for i := range s.Questions {
		if !s.Questions[i].in(split) {
			continue
		}
		kept = append(kept, s.Questions[i])
		if s.Extra != nil {
			extra = append(extra, s.Extra[i])
		}
	}
	s.Questions = kept
	if s.Extra != nil {
		s.Extra = extra
	}
	s.dropUnasked()
}

// dropUnasked leaves out memories that no question is put to.
func (s *Set) dropUnasked() {
	asked := make(map[string]bool)
	for i := range s.Questions {
		asked[s.Questions[i].Project] = true
	}
	kept := s.Memories[:0:0]
	for _, m := range s.Memories {
		if asked[m.Project] {
			kept = append(kept, m)
		}
	}
	s.Memories = kept
}
