package main

import (
	"fmt"
	"path/filepath"
	"strings"

	pb "recalld/proto/recalld/v1"
)

// xquadFolders hold questions against paragraphs, one language each.
var xquadFolders = []string{"xquad-en", "xquad-zh", "xquad-ru", "xquad-th", "jsquad-ja"}

// wordsOnly asks without vectors: what meaning must not make worse.
var wordsOnly = Pass{
	Suffix:  "_words",
	Sources: []pb.Source{pb.Source_SOURCE_WORDS, pb.Source_SOURCE_CONTEXT},
}

// loadXquad loads all languages that are there, each a memory and a category.
func loadXquad(data string) (*Set, error) {
	set := &Set{
		Name:    "xquad",
		Passes:  []Pass{{}, wordsOnly},
		Columns: []string{"mrr@10", "mrr@10_words", "recall@1", "recall@1_words", "recall@10", "recall@10_words", "ndcg@10"},
		Keys:    []string{"mrr@10"},
	}
	for _, folder := range xquadFolders {
		one, err := readRetrievalSet(filepath.Join(data, "tokenisation", folder))
		if err != nil {
			return nil, err
		}
		category := strings.TrimPrefix(folder, "xquad-")
		project := "xquad/" + category
		set.Memories = append(set.Memories, documentMemory(project, one.corpus))
		set.Questions = append(set.Questions, documentQuestions(project, category, one)...)
	}
	return set, nil
}

// documentMemory makes each document a session of one message.
func documentMemory(project string, corpus []corpusLine) Memory {
	memory := Memory{Project: project}
	for _, line := range corpus {
		text := line.Text
		if line.Title != "" {
			text = line.Title + " " + text
		}
		message := newMessage(line.ID, pb.Kind_KIND_USER, "user", nil, text)
		session := fmt.Sprintf("%s/%s", project, line.ID)
		memory.Turns = append(memory.Turns, newTurn(session, "turn-"+line.ID, message))
	}
	return memory
}

func documentQuestions(project, category string, set *retrievalSet) []Question {
	questions := make([]Question, 0, len(set.queries))
	for _, query := range set.queries {
		q := Question{
			ID:      project + "/" + query.ID,
			Project: project,
			Text:    query.Text,
			Golds:   []Gold{{IDs: set.qrels[query.ID]}},
		}
		if category != "" {
			q.Categories = []string{category}
		}
		questions = append(questions, q)
	}
	return questions
}
