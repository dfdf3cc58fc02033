package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	pb "recalld/proto/recalld/v1"
)

// longmemTime is how LongMemEval dates a session or a question.
const longmemTime = "2006/01/02 (Mon) 15:04"

// The two conventions of published figures. Questions whose id holds "_abs"
// have no answer and are left out: 470 of 500 remain (the data's README).
// Figures by turn also leave out the 51 questions without evidence in a turn
// of the user, which leaves 419 (the data's run_retrieval script); there only
// sessions with such a turn count as answers.
const (
	abstention     = "_abs"
	userEvidence   = "user-evidence"
	suffixEvidence = "_419"
	suffixTurn     = "_turn_419"
)

// A longmemItem is one question with its own history.
type longmemItem struct {
	ID             string          `json:"question_id"`
	Type           string          `json:"question_type"`
	Question       string          `json:"question"`
	Date           string          `json:"question_date"`
	SessionIDs     []string        `json:"haystack_session_ids"`
	Dates          []string        `json:"haystack_dates"`
	Sessions       [][]longmemTurn `json:"haystack_sessions"`
	AnswerSessions []string        `json:"answer_session_ids"`
}

type longmemTurn struct {
	Role      string `json:"role"`
	Content   string `json:"content"`
	HasAnswer bool   `json:"has_answer"`
}

// eachLongmem gives the questions of a file one by one, as sets of one
// question and one memory: the larger files do not fit in memory. Questions to
// abstain from are left out. The error wraps errAbsent when there is no file.
func eachLongmem(path string, use func(*Set) error) error {
	file, err := openData(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	name := filepath.Base(path)
	items := json.NewDecoder(file)
	if _, err := items.Token(); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	for n := 1; items.More(); n++ {
		var item longmemItem
		if err := items.Decode(&item); err != nil {
			return fmt.Errorf("read %s: question %d: %w", name, n, err)
		}
		if strings.Contains(item.ID, abstention) {
			continue
		}
		if len(item.SessionIDs) != len(item.Sessions) || len(item.Dates) != len(item.Sessions) {
			return fmt.Errorf("read %s: question %d: %d sessions, %d ids, %d dates",
				name, n, len(item.Sessions), len(item.SessionIDs), len(item.Dates))
		}
		if err := use(longmemSet(&item)); err != nil {
			return err
		}
	}
	return nil
}

// longmemSet makes a memory of the history and hides which sessions hold the
// answer: the published ids of those begin with "answer".
func longmemSet(item *longmemItem) *Set {
	memory := Memory{Project: "longmemeval/" + opaque(item.ID)}
	answers := setOf(item.AnswerSessions)
	var sessions, evident, turns []string
	for i, history := range item.Sessions {
		session := memory.Project + "/" + opaque(item.ID, strconv.Itoa(i))
		added, evidence := longmemTurns(session, item.Dates[i], history)
		memory.Turns = append(memory.Turns, added...)
		if answers[item.SessionIDs[i]] {
			sessions = append(sessions, session)
			turns = append(turns, evidence...)
			if len(evidence) > 0 {
				evident = append(evident, session)
			}
		}
	}
	question := Question{
		ID:         item.ID,
		Project:    memory.Project,
		Text:       item.Question,
		Categories: []string{item.Type},
		Now:        spoken(longmemTime, item.Date),
		Golds:      []Gold{{Unit: BySession, IDs: sessions}},
	}
	if len(turns) > 0 {
		question.Categories = append(question.Categories, userEvidence)
		question.Golds = append(question.Golds,
			Gold{Suffix: suffixEvidence, Unit: BySession, IDs: evident},
			Gold{Suffix: suffixTurn, Unit: ByMessage, IDs: turns})
	}
	return longmemShell([]Memory{memory}, []Question{question})
}

// longmemShell is the set without its contents.
func longmemShell(memories []Memory, questions []Question) *Set {
	return &Set{
		Name:      "longmemeval",
		Memories:  memories,
		Questions: questions,
		Columns: []string{
			"any@1", "any@5", "all@5", "any@10", "all@10", "mrr", "ndcg@10",
			"all@5_419", "all@10_419", "all@5_turn_419", "all@10_turn_419",
		},
		Keys: []string{"all@5", "mrr"},
	}
}

// longmemTurns gives the turns of a session, and the ids of the messages of
// the user that hold evidence.
func longmemTurns(session, date string, history []longmemTurn) (turns []*pb.NewTurn, evidence []string) {
	at := spoken(longmemTime, date)
	var open *pb.NewTurn
	for i, line := range history {
		if strings.TrimSpace(line.Content) == "" {
			continue
		}
		kind, speaker := roleOf(line.Role)
		message := newMessage(fmt.Sprintf("%s/%d", session, i), kind, speaker, at, line.Content)
		if open == nil || kind == pb.Kind_KIND_USER {
			open = newTurn(session, "turn-"+message.Id)
			turns = append(turns, open)
		}
		open.Messages = append(open.Messages, message)
		if line.HasAnswer && kind == pb.Kind_KIND_USER {
			evidence = append(evidence, message.Id)
		}
	}
	return turns, evidence
}

// opaque makes an id of which nothing can be read.
func opaque(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:8])
}
