package main

import (
	"path/filepath"
	"slices"
	"strconv"

	pb "recalld/proto/recalld/v1"
)

// beamTime is how BEAM anchors a stretch of a chat.
const beamTime = "January-02-2006"

// beamSplit: odd chats are for tuning.
func beamSplit(chat string) Split {
	if n, err := strconv.Atoi(chat); err == nil && n%2 == 1 {
		return Tune
	}
	return Report
}

func beamProject(chat string) string { return "beam/" + chat }

// beamMemories makes a memory of each chat. A message of the user and the
// answers to it are one turn. turnOf tells the turn of each message.
func beamMemories(corpus []corpusLine) (memories []Memory, turnOf map[string]string) {
	var list memoryList
	turnOf = make(map[string]string, len(corpus))
	var open *pb.NewTurn
	for _, line := range corpus {
		project := beamProject(line.Scope)
		session := project + "/" + line.Session
		kind, speaker := roleOf(line.Speaker)
		message := newMessage(line.ID, kind, speaker, spoken(beamTime, line.Time), line.Text)
		if open == nil || kind == pb.Kind_KIND_USER || open.SessionId != session {
			open = newTurn(session, "turn-"+line.ID)
			list.add(project, open)
		}
		open.Messages = append(open.Messages, message)
		turnOf[line.ID] = open.TurnId
	}
	return list.list, turnOf
}

func loadBeam(data string) (*Set, error) {
	set, err := readRetrievalSet(filepath.Join(data, "beam-100k"))
	if err != nil {
		return nil, err
	}
	memories, turnOf := beamMemories(set.corpus)
	return &Set{
		Name:      "beam",
		Memories:  memories,
		Questions: beamQuestions(set, turnOf),
		Columns:   slices.Concat(rankingColumns, []string{"recall@10_exchange"}),
		Keys:      []string{"recall@10", "recall@10_exchange"},
	}, nil
}

func beamQuestions(set *retrievalSet, turnOf map[string]string) []Question {
	questions := make([]Question, 0, len(set.queries))
	for _, query := range set.queries {
		messages := set.qrels[query.ID]
		exchanges := make([]string, len(messages))
		for i, id := range messages {
			exchanges[i] = turnOf[id]
		}
		questions = append(questions, Question{
			ID:         query.ID,
			Project:    beamProject(query.Scope),
			Text:       query.Text,
			Categories: []string{query.Category},
			Split:      beamSplit(query.Scope),
			Golds: []Gold{
				{Unit: ByMessage, IDs: messages},
				{Suffix: "_exchange", Unit: ByExchange, IDs: exchanges},
			},
		})
	}
	return questions
}
