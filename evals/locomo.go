package main

import (
	"path/filepath"
	"slices"
	"strings"

	pb "recalld/proto/recalld/v1"
)

// locomoTime is how LoCoMo dates a session.
const locomoTime = "3:04 pm on 2 January, 2006"

// locomoTune are the conversations that choices may be made on.
var locomoTune = []string{"conv-26", "conv-30", "conv-41", "conv-42", "conv-43"}

// adversarial is the category of questions that name the wrong person. The
// published tables leave it out.
const adversarial = "adversarial"

// everything is a category that holds all questions of a LoCoMo set.
const everything = "all"

var rankingColumns = []string{
	"recall@1", "recall@5", "recall@10", "recall@20", "recall@50",
	"any@1", "any@5", "any@10", "all@5", "all@10", "mrr", "mrr@10", "ndcg@10",
}

var sessionColumns = []string{"any@1", "any@5", "any@10", "all@5", "all@10", "mrr", "ndcg@10"}

func locomoSplit(scope string) Split {
	if slices.Contains(locomoTune, scope) {
		return Tune
	}
	return Report
}

func readLocomo(data string) (*retrievalSet, error) {
	return readRetrievalSet(filepath.Join(data, "locomo"))
}

// locomoMemories makes a memory of each conversation, or one of all. Each line
// is a turn of its own; both speakers are people.
func locomoMemories(corpus []corpusLine, merged bool) []Memory {
	var memories memoryList
	for _, line := range corpus {
		project := locomoProject(line.Scope, merged)
		session := locomoSession(project, line)
		message := newMessage(line.ID, pb.Kind_KIND_USER, line.Speaker,
			spoken(locomoTime, line.Time), withCaption(line))
		memories.add(project, newTurn(session, line.ID, message))
	}
	return memories.list
}

func locomoProject(scope string, merged bool) string {
	if merged {
		return "locomo-merged"
	}
	return "locomo/" + scope
}

// locomoSession names a session so that no other memory has it.
func locomoSession(project string, line corpusLine) string {
	if strings.HasSuffix(project, "/"+line.Scope) {
		return project + "/" + line.Session
	}
	return project + "/" + line.Scope + "/" + line.Session
}

// withCaption is the text with what its picture shows.
func withCaption(line corpusLine) string {
	if line.Caption == "" {
		return line.Text
	}
	return line.Text + " [" + line.Caption + "]"
}

// locomoQuestions gives the questions with their answers as messages or as
// sessions. The top-level metrics are those of the four categories that are
// usually published.
func locomoQuestions(set *retrievalSet, merged bool, unit Unit) []Question {
	sessions := make(map[string]string, len(set.corpus))
	for _, line := range set.corpus {
		sessions[line.ID] = locomoSession(locomoProject(line.Scope, merged), line)
	}
	questions := make([]Question, 0, len(set.queries))
	for _, query := range set.queries {
		ids := slices.Clone(set.qrels[query.ID])
		if unit == BySession {
			for i, id := range ids {
				ids[i] = sessions[id]
			}
		}
		questions = append(questions, Question{
			ID:         query.ID,
			Project:    locomoProject(query.Scope, merged),
			Text:       query.Text,
			Categories: []string{query.Category, everything},
			Apart:      query.Category == adversarial,
			Split:      locomoSplit(query.Scope),
			Golds:      []Gold{{Unit: unit, IDs: ids}},
		})
	}
	return questions
}

func loadLocomoTurn(data string) (*Set, error) {
	set, err := readLocomo(data)
	if err != nil {
		return nil, err
	}
	return &Set{
		Name:      "locomo-turn",
		Memories:  locomoMemories(set.corpus, false),
		Questions: locomoQuestions(set, false, ByMessage),
		Columns:   rankingColumns,
		Keys:      []string{"recall@10", "mrr"},
	}, nil
}

func loadLocomoSession(data string) (*Set, error) {
	set, err := readLocomo(data)
	if err != nil {
		return nil, err
	}
	return &Set{
		Name:      "locomo-session",
		Memories:  locomoMemories(set.corpus, false),
		Questions: locomoQuestions(set, false, BySession),
		Columns:   sessionColumns,
		Keys:      []string{"any@1", "all@5"},
	}, nil
}

func loadLocomoMerged(data string) (*Set, error) {
	set, err := readLocomo(data)
	if err != nil {
		return nil, err
	}
	return &Set{
		Name:      "locomo-merged",
		Memories:  locomoMemories(set.corpus, true),
		Questions: locomoQuestions(set, true, ByMessage),
		Columns:   rankingColumns,
		Keys:      []string{"recall@10", "mrr"},
	}, nil
}
