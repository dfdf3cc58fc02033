package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	pb "recalld/proto/recalld/v1"
)

// A labelledTurn is a message of a person in BEAM, and what it is.
type labelledTurn struct {
	Chat  string      `json:"chat"`
	ID    json.Number `json:"id"`
	Label string      `json:"label"`
	Text  string      `json:"text"`
}

// readLabels reads all messages of people, with and without a label.
func readLabels(data string) ([]labelledTurn, error) {
	return readLines[labelledTurn](filepath.Join(data, "journal", "beam-100k-user-turn-labels.jsonl.gz"))
}

const unlabelled = "unlabelled"

// A labelTask asks which of BEAM's labels a kind of entry finds.
type labelTask struct {
	id, group string
	labels    []string // what counts
	ignored   []string // what is left out
	kinds     []string // what finds it
}

var labelTasks = []labelTask{
	{"R", "rules", []string{"rule"}, nil, []string{"rule"}},
	{"S", "rules and preferences", []string{"rule", "preference"}, []string{"decision-silver"}, []string{"rule", "preference"}},
	{"S", "preferences", []string{"preference"}, []string{"decision-silver"}, []string{"preference"}},
	{"D", "decisions", []string{"decision-silver"}, []string{"preference"}, []string{"decision", "reversal"}},
	{"U", "reversals", []string{"update", "contradiction"}, nil, []string{"reversal"}},
}

// labelRows reads every labelled turn by itself and scores the tasks asked for.
func (j *journalRun) labelRows(ctx context.Context, data string) ([]JournalRow, error) {
	turns, err := readLabels(data)
	if err != nil {
		return nil, err
	}
	turns = slices.DeleteFunc(turns, func(t labelledTurn) bool { return t.Label == unlabelled })
	chats := make([]Chat, len(turns))
	for i, t := range turns {
		chats[i] = Chat{ID: fmt.Sprintf("beam/%s/%s", t.Chat, t.ID), Lines: []Line{says(t.Text)}}
	}
	found, err := j.read(ctx, "R, S, D, U", chats)
	if err != nil {
		return nil, err
	}
	var rows []JournalRow
	for _, task := range labelTasks {
		if !j.wants(task.id) {
			continue
		}
		for _, split := range []Split{Report, Tune} {
			rows = append(rows, task.row(split, turns, found))
		}
	}
	return rows, nil
}

func (task *labelTask) row(split Split, turns []labelledTurn, found [][]Found) JournalRow {
	var readings []Reading
	for i, t := range turns {
		if beamSplit(t.Chat) != split || slices.Contains(task.ignored, t.Label) {
			continue
		}
		labelled := slices.Contains(task.labels, t.Label)
		readings = append(readings, Reading{
			Live: binary(holdsKind(live(found[i]), task.kinds), labelled),
			All:  binary(holdsKind(found[i], task.kinds), labelled),
		})
	}
	return newRow(task.id, "beam", split, task.group, readings, "precision", "recall", "f1")
}

func holdsKind(found []Found, kinds []string) bool {
	return slices.ContainsFunc(found, func(f Found) bool { return slices.Contains(kinds, f.Kind) })
}

// A reversalPair is a message that changes what an earlier one said.
type reversalPair struct {
	Chat string `json:"chat"`
	Old  []int  `json:"old"`
	New  []int  `json:"new"`
}

// later gives the message that changes and those that it may change. The order
// in the file is not always that of the chat.
func (p *reversalPair) later() (turn int, earlier []int, ok bool) {
	if len(p.Old) == 0 || len(p.New) == 0 || p.Old[0] == p.New[0] {
		return 0, nil, false
	}
	if p.Old[0] > p.New[0] {
		return p.Old[0], p.New, true
	}
	return p.New[0], p.Old, true
}

// linkRows asks, for each later message, which earlier one of its chat it
// changes. The memory holds the chat up to the later message. "message" is
// Recall's ranking of the person's messages for the later one, by words and by
// words and meaning; "entry" puts first what Recall ranks highest for the words
// of the later message that the journal takes for a change; "may_supersede" is
// what the journal proposes by itself, which it can only among its entries.
func (j *journalRun) linkRows(ctx context.Context, data string) ([]JournalRow, error) {
	chats, err := readRetrievalSet(filepath.Join(data, "beam-100k"))
	if err != nil {
		return nil, err
	}
	pairs, err := readLines[reversalPair](filepath.Join(data, "journal", "beam-100k-reversals-and-rules.jsonl"))
	if err != nil {
		return nil, err
	}
	byChat := map[string][]corpusLine{}
	for _, line := range chats.corpus {
		byChat[line.Scope] = append(byChat[line.Scope], line)
	}
	bar := j.bar("L", len(pairs))
	defer bar.close()
	values := map[Split]map[string][]Values{Report: {}, Tune: {}}
	for i, p := range pairs {
		bar.add(1)
		later, earlier, ok := p.later()
		if !ok || later >= len(byChat[p.Chat]) {
			continue
		}
		link := linkage{journalRun: j, chat: beamChat(i, byChat[p.Chat][:later+1]), later: later}
		ranked, err := link.rank(ctx)
		if err != nil {
			return nil, fmt.Errorf("pair %d: %w", i, err)
		}
		gold := map[string]bool{}
		for _, id := range earlier {
			gold[itoa(id)] = true
		}
		of := values[beamSplit(p.Chat)]
		for name, list := range ranked {
			of[name] = append(of[name], Values{"hit@1": truth(found(list, gold, 1) > 0), "hit@5": truth(found(list, gold, maxLinks) > 0)})
		}
	}
	var rows []JournalRow
	for _, split := range []Split{Report, Tune} {
		for _, name := range linkNames {
			rows = append(rows, meanRow("L", "beam", split, name, values[split][name]))
		}
	}
	return rows, nil
}

const (
	// maxLinks is how many proposals count.
	maxLinks = 5
	// fromEntry is how many of them are for the words of an entry, chosen on the
	// tune half.
	fromEntry = 2
)

// The rankings of L.
const (
	byWords   = "Recall, message, words"
	byMeaning = "Recall, message, words and meaning"
	byEntry   = "Recall, entry then message"
	proposed  = "may_supersede"
)

var linkNames = []string{byEntry, byMeaning, byWords, proposed}

// beamChat is a chat up to the last of lines. A line's number in BEAM is its
// place in the chat.
func beamChat(pair int, lines []corpusLine) Chat {
	c := Chat{ID: "beam-link/" + itoa(pair)}
	for _, line := range lines {
		kind, speaker := roleOf(line.Speaker)
		c.Lines = append(c.Lines, Line{Kind: kind, Speaker: speaker, Text: line.Text})
	}
	return c
}

// A linkage looks for what a chat's last line changes.
type linkage struct {
	*journalRun
	chat  Chat
	later int
}

// rank gives the numbers of earlier lines of the person, best first, by each of
// the rankings.
func (l *linkage) rank(ctx context.Context) (map[string][]string, error) {
	entries, err := l.scribe.read(ctx, &l.chat)
	if err != nil {
		return nil, err
	}
	words, meaning := []pb.Source{pb.Source_SOURCE_WORDS}, []pb.Source{pb.Source_SOURCE_WORDS, pb.Source_SOURCE_MEANING}
	earlier := Chat{ID: l.chat.ID + "/earlier", Lines: l.chat.Lines[:l.later]}
	project := l.scribe.project(&earlier)
	if err := l.runner.client.ingest(ctx, Memory{Project: project, Turns: earlier.turns(project)}, func(int) {}); err != nil {
		return nil, err
	}
	message := l.chat.Lines[l.later].Text
	out := map[string][]string{proposed: l.proposals(entries)}
	if out[byWords], err = l.recall(ctx, project, message, words); err != nil {
		return nil, err
	}
	if out[byMeaning], err = l.recall(ctx, project, message, meaning); err != nil {
		return nil, err
	}
	out[byEntry] = out[byMeaning]
	if changed := l.changes(entries); changed != "" {
		first, err := l.recall(ctx, project, changed, meaning)
		if err != nil {
			return nil, err
		}
		out[byEntry] = slices.Clone(first[:min(fromEntry, len(first))])
		for _, id := range out[byMeaning] {
			if !slices.Contains(out[byEntry], id) {
				out[byEntry] = append(out[byEntry], id)
			}
		}
	}
	return out, l.runner.client.forget(ctx, project)
}

// changes gives the words of the last line that the journal takes for a change.
func (l *linkage) changes(entries []Found) string {
	var words []string
	for _, f := range entries {
		if len(f.Says) > 0 && f.Says[0].Line == l.later && f.Kind == "reversal" {
			words = append(words, f.Says[0].Text)
		}
	}
	return strings.Join(words, "\n")
}

// proposals gives the lines of the entries that those of the last line may
// replace.
func (l *linkage) proposals(entries []Found) []string {
	lineOf := map[string]int{}
	for _, f := range entries {
		if len(f.Says) > 0 {
			lineOf[f.ID] = f.Says[0].Line
		}
	}
	var out []string
	for _, f := range entries {
		if len(f.Says) == 0 || f.Says[0].Line != l.later {
			continue
		}
		for _, id := range f.Earlier {
			if line, ok := lineOf[id]; ok && !slices.Contains(out, itoa(line)) {
				out = append(out, itoa(line))
			}
		}
	}
	return out
}

// recall ranks the person's messages in a memory.
func (l *linkage) recall(ctx context.Context, project, query string, sources []pb.Source) ([]string, error) {
	request := askRequest(&Question{Project: project, Text: query}, Pass{Sources: sources}, false)
	request.Kinds = []pb.Kind{pb.Kind_KIND_USER}
	answer, err := l.runner.askOne(ctx, request)
	if err != nil {
		return nil, err
	}
	return answer.ranked(ByMessage), nil
}
