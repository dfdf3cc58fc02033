package main

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	pb "recalld/proto/recalld/v1"
)

const (
	// askLimit and askBudget are the server's maxima: a ranking is measured as
	// far down as it goes. askPassage is its minimum, for speed.
	askLimit   = 50
	askBudget  = 256_000
	askPassage = 200
	// askTime keeps a loaded machine from changing the answers.
	askTime = 30 * time.Second
	// bytesSample is how many questions are asked again with the default
	// limits, to measure the block.
	bytesSample = 200
)

// A Hit is a message in an answer.
type Hit struct{ Message, Exchange, Session string }

// An Answer is what is kept of a response.
type Answer struct {
	// Hits are messages, best first, each at its best passage.
	Hits []Hit
	// Fired: the gate let at least one passage through.
	Fired   bool
	Block   int
	Took    time.Duration
	Parts   []string
	Sources map[string]string
}

// A Run is what asking all questions of a set gave.
type Run struct {
	Set *Set
	// Values and Took are those of the questions, in their order. Took is of
	// the first pass.
	Values []Values
	Took   []time.Duration
	// Blocks are the lengths of blocks made with the default limits, of a
	// sample; of gated sets, of all that fired. Sampled tells whose they are.
	Blocks  []int
	Sampled []int
	// Parts are the names of the parts of the scores.
	Parts []string
	// Sources tells what became of each source, by question.
	Sources []map[string]string
}

// A Runner fills memories and asks questions.
type Runner struct {
	client *Client
	// progress shows how far the work is; it may be nil.
	progress func(label string, total int) *bar
}

func (r *Runner) bar(label string, total int) *bar {
	if r.progress == nil {
		return nil
	}
	return r.progress(label, total)
}

// run fills the memories of a set and asks its questions in all passes.
func (r *Runner) run(ctx context.Context, set *Set) (*Run, error) {
	if err := r.fill(ctx, set); err != nil {
		return nil, err
	}
	run := newRun(set)
	for i, pass := range set.passes() {
		// Times are taken with one question under way at a time.
		parallel := 1
		if i > 0 {
			parallel = runtime.NumCPU()
		}
		answers, err := r.ask(ctx, set, pass, parallel)
		if err != nil {
			return nil, err
		}
		run.add(pass, answers, i == 0)
	}
	if !set.Gated {
		if err := r.measureBlocks(ctx, run); err != nil {
			return nil, err
		}
	}
	return run, nil
}

// fill appends the memories of a set.
func (r *Runner) fill(ctx context.Context, set *Set) error {
	total := 0
	for i := range set.Memories {
		total += set.Memories[i].messages()
	}
	bar := r.bar(set.Name+": append", total)
	defer bar.close()
	for _, memory := range set.Memories {
		if err := r.client.ingest(ctx, memory, bar.add); err != nil {
			return err
		}
	}
	return nil
}

// ask puts every question, so many at a time, and gives the answers in order.
func (r *Runner) ask(ctx context.Context, set *Set, pass Pass, parallel int) ([]Answer, error) {
	bar := r.bar(set.Name+": recall", len(set.Questions))
	defer bar.close()
	answers := make([]Answer, len(set.Questions))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i := range set.Questions {
		group.Go(func() error {
			request := askRequest(&set.Questions[i], pass, set.Gated)
			answer, err := r.askOne(ctx, request)
			if err != nil {
				return fmt.Errorf("question %s: %w", set.Questions[i].ID, err)
			}
			answers[i] = answer
			bar.add(1)
			return nil
		})
	}
	return answers, group.Wait()
}

// askRequest asks for a whole ranking, or, where the gate is measured, for
// what a harness would get.
func askRequest(q *Question, pass Pass, gated bool) *pb.RecallRequest {
	request := &pb.RecallRequest{
		Memory:       memoryRef(q.Project),
		Query:        q.Text,
		Limit:        askLimit,
		PassageBytes: askPassage,
		BudgetBytes:  askBudget,
		Relevance:    pb.Relevance_RELEVANCE_ALWAYS,
		Expansion:    cmp.Or(pass.Expansion, pb.Expansion_EXPANSION_OFF),
		Sources:      pass.Sources,
		Now:          q.Now,
		WithoutParts: pass.WithoutParts,
	}
	if gated {
		withDefaults(request)
		request.Relevance = pb.Relevance_RELEVANCE_GATED
	}
	return request
}

// withDefaults asks for as much as a client that names no limits.
func withDefaults(request *pb.RecallRequest) {
	request.Limit, request.PassageBytes, request.BudgetBytes = 0, 0, 0
}

func (r *Runner) askOne(ctx context.Context, request *pb.RecallRequest) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	start := time.Now()
	response, err := r.client.recall.Recall(ctx, request)
	if err != nil {
		return Answer{}, fmt.Errorf("recall: %w", err)
	}
	answer := readAnswer(response)
	answer.Took = time.Since(start)
	return answer, nil
}

func readAnswer(response *pb.RecallResponse) Answer {
	answer := Answer{
		Fired:   len(response.Passages) > 0 && response.GetGate().GetPassed(),
		Block:   len(response.Block),
		Sources: make(map[string]string, len(response.Sources)),
	}
	seen := make(map[string]bool, len(response.Passages))
	for _, passage := range response.Passages {
		for _, part := range passage.Parts {
			if !slices.Contains(answer.Parts, part.Name) {
				answer.Parts = append(answer.Parts, part.Name)
			}
		}
		if !seen[passage.MessageId] {
			seen[passage.MessageId] = true
			answer.Hits = append(answer.Hits, Hit{passage.MessageId, passage.TurnId, passage.SessionId})
		}
	}
	for _, source := range response.Sources {
		answer.Sources[source.Source] = outcomeName(source.Outcome)
	}
	return answer
}

// ranked gives the units of an answer, best first, none twice.
func (a *Answer) ranked(unit Unit) []string {
	var list []string
	seen := make(map[string]bool, len(a.Hits))
	for _, hit := range a.Hits {
		id := hit.Message
		switch unit {
		case ByExchange:
			id = hit.Exchange
		case BySession:
			id = hit.Session
		}
		if !seen[id] {
			seen[id] = true
			list = append(list, id)
		}
	}
	return list
}

// score gives the values of an answer to a question.
func score(q *Question, a *Answer, gated bool) Values {
	switch {
	case gated && q.Related:
		return Values{"kept_related": truth(a.Fired)}
	case gated:
		return Values{"fired_unrelated": truth(a.Fired)}
	}
	values := make(Values)
	for _, gold := range q.Golds {
		values.addSuffixed(rankingValues(a.ranked(gold.Unit), setOf(gold.IDs)), gold.Suffix)
	}
	return values
}

func newRun(set *Set) *Run {
	run := &Run{Set: set, Values: make([]Values, len(set.Questions))}
	for i := range run.Values {
		run.Values[i] = make(Values)
		if set.Extra != nil {
			run.Values[i].addSuffixed(set.Extra[i], "")
		}
	}
	return run
}

// add takes in the answers of a pass; times, parts and sources of the first.
func (run *Run) add(pass Pass, answers []Answer, first bool) {
	for i := range answers {
		answer := &answers[i]
		values := score(&run.Set.Questions[i], answer, run.Set.Gated)
		run.Values[i].addSuffixed(values, pass.Suffix)
		if !first {
			continue
		}
		run.Took = append(run.Took, answer.Took)
		run.Sources = append(run.Sources, answer.Sources)
		run.addParts(answer.Parts)
		if run.Set.Gated && answer.Fired {
			run.Blocks, run.Sampled = append(run.Blocks, answer.Block), append(run.Sampled, i)
		}
	}
	slices.Sort(run.Parts)
}

func (run *Run) addParts(parts []string) {
	for _, part := range parts {
		if !slices.Contains(run.Parts, part) {
			run.Parts = append(run.Parts, part)
		}
	}
}

// measureBlocks asks an even sample again with the default limits.
func (r *Runner) measureBlocks(ctx context.Context, run *Run) error {
	questions := run.Set.Questions
	n := min(len(questions), bytesSample)
	for k := range n {
		i := k * len(questions) / n
		request := askRequest(&questions[i], Pass{}, false)
		withDefaults(request)
		answer, err := r.askOne(ctx, request)
		if err != nil {
			return fmt.Errorf("question %s: %w", questions[i].ID, err)
		}
		run.Blocks, run.Sampled = append(run.Blocks, answer.Block), append(run.Sampled, i)
	}
	return nil
}

// join appends the results of another run over other questions.
func (run *Run) join(other *Run) {
	offset := len(run.Set.Questions)
	run.Set.Questions = append(run.Set.Questions, other.Set.Questions...)
	run.Values = append(run.Values, other.Values...)
	run.Took = append(run.Took, other.Took...)
	run.Blocks = append(run.Blocks, other.Blocks...)
	for _, i := range other.Sampled {
		run.Sampled = append(run.Sampled, i+offset)
	}
	run.Sources = append(run.Sources, other.Sources...)
	run.addParts(other.Parts)
	slices.Sort(run.Parts)
}

// of gives the part of a run that belongs to a split.
func (run *Run) of(split Split) *Run {
	set := *run.Set
	// What was found without a server is in the values already.
	set.Questions, set.Extra = nil, nil
	part := &Run{Set: &set, Parts: run.Parts}
	place := make(map[int]int)
	for i := range run.Set.Questions {
		if !run.Set.Questions[i].in(split) {
			continue
		}
		place[i] = len(set.Questions)
		set.Questions = append(set.Questions, run.Set.Questions[i])
		part.Values = append(part.Values, run.Values[i])
		part.Took = append(part.Took, run.Took[i])
		part.Sources = append(part.Sources, run.Sources[i])
	}
	for k, i := range run.Sampled {
		if at, ok := place[i]; ok {
			part.Blocks, part.Sampled = append(part.Blocks, run.Blocks[k]), append(part.Sampled, at)
		}
	}
	return part
}

// top gives the values of the questions that count at the top level.
func (run *Run) top() []Values {
	var top []Values
	for i := range run.Set.Questions {
		if !run.Set.Questions[i].Apart {
			top = append(top, run.Values[i])
		}
	}
	return top
}
