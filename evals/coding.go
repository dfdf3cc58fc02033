package main

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	pb "recalld/proto/recalld/v1"
)

// The memories of real coding sessions.
const (
	entireProject    = "sessions/entire"
	specstoryProject = "sessions/specstory"
)

// verbatimLength is how many characters of a commit's subject must stand in
// its session for the pair to count as verbatim.
const verbatimLength = 60

// A codingTurn is one message of a coding session. Entire gives time and uuid,
// SpecStory one line of meta.
type codingTurn struct {
	Role string `json:"role"`
	Time string `json:"time"`
	UUID string `json:"uuid"`
	Meta string `json:"meta"`
	Text string `json:"text"`
}

type codingSession struct {
	ID    string       `json:"session_id"`
	Turns []codingTurn `json:"turns"`
}

// A commitPair ties a commit to the sessions it came from.
type commitPair struct {
	Commit   string   `json:"commit"`
	Subject  string   `json:"subject"`
	Sessions []string `json:"sessions"`
}

func readEntire(data string) ([]codingSession, error) {
	return readLines[codingSession](filepath.Join(data, "sessions", "entire-sessions.jsonl.gz"))
}

func readSpecstory(data string) ([]codingSession, error) {
	return readLines[codingSession](filepath.Join(data, "sessions", "specstory-sessions.jsonl.gz"))
}

func readPairs(data string) ([]commitPair, error) {
	return readLines[commitPair](filepath.Join(data, "sessions", "entire-commit-session-pairs.jsonl"))
}

// hashSplit puts half of all keys into the report part: those whose SHA-256
// ends in an even hexadecimal digit.
func hashSplit(key string) Split {
	sum := sha256.Sum256([]byte(key))
	if sum[len(sum)-1]%2 == 0 {
		return Report
	}
	return Tune
}

// codingMemory keeps whole messages. A message that a resumed session repeats
// (same uuid) is kept where it came first, as an importer does; empty ones are
// left out.
func codingMemory(project string, sessions []codingSession) Memory {
	memory := Memory{Project: project}
	known := make(map[string]bool)
	for _, session := range sessions {
		id := codingSessionID(project, session.ID)
		var open *pb.NewTurn
		for i, turn := range session.Turns {
			message := codingMessage(session.ID, i, turn)
			if known[message.Id] || strings.TrimSpace(turn.Text) == "" {
				continue
			}
			known[message.Id] = true
			if open == nil || message.Kind == pb.Kind_KIND_USER {
				open = newTurn(id, "turn-"+message.Id)
				memory.Turns = append(memory.Turns, open)
			}
			open.Messages = append(open.Messages, message)
		}
	}
	return memory
}

func codingSessionID(project, session string) string { return project + "/" + session }

func codingMessage(session string, ordinal int, turn codingTurn) *pb.NewMessage {
	id := turn.UUID
	if id == "" {
		id = fmt.Sprintf("%s/%d", session, ordinal)
	}
	kind, speaker := roleOf(turn.Role)
	return newMessage(id, kind, speaker, codingTime(turn), turn.Text)
}

// metaTime finds the time in SpecStory's line of meta.
var metaTime = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ`)

func codingTime(turn codingTurn) *pb.SpokenTime {
	if turn.Time == "" {
		return spoken("2006-01-02 15:04:05Z", metaTime.FindString(turn.Meta))
	}
	at, err := time.Parse(time.RFC3339Nano, turn.Time)
	if err != nil {
		return nil
	}
	return &pb.SpokenTime{At: timestamppb.New(at)}
}

// loadSessions asks which session a commit came from, by its subject.
func loadSessions(data string) (*Set, error) {
	sessions, err := readEntire(data)
	if err != nil {
		return nil, err
	}
	pairs, err := readPairs(data)
	if err != nil {
		return nil, err
	}
	return &Set{
		Name:      "sessions",
		Memories:  []Memory{codingMemory(entireProject, sessions)},
		Questions: commitQuestions(pairs, sessions),
		Columns:   []string{"any@1", "any@5", "any@10", "recall@10", "mrr", "ndcg@10"},
		Keys:      []string{"any@5", "mrr"},
	}, nil
}

func commitQuestions(pairs []commitPair, sessions []codingSession) []Question {
	texts := make(map[string][]codingTurn, len(sessions))
	for _, session := range sessions {
		texts[session.ID] = session.Turns
	}
	questions := make([]Question, 0, len(pairs))
	for i, pair := range pairs {
		var gold []string
		for _, session := range pair.Sessions {
			gold = append(gold, codingSessionID(entireProject, session))
		}
		questions = append(questions, Question{
			ID:         fmt.Sprintf("%s/%d", pair.Commit, i),
			Project:    entireProject,
			Text:       pair.Subject,
			Categories: []string{verbatimCategory(pair, texts)},
			Split:      hashSplit(pair.Commit),
			Golds:      []Gold{{Unit: BySession, IDs: gold}},
		})
	}
	return questions
}

// verbatimCategory tells whether the start of the subject stands in one
// message of a session it belongs to.
func verbatimCategory(pair commitPair, texts map[string][]codingTurn) string {
	start := firstRunes(pair.Subject, verbatimLength)
	for _, session := range pair.Sessions {
		for _, turn := range texts[session] {
			if strings.Contains(turn.Text, start) {
				return "verbatim"
			}
		}
	}
	return "non-verbatim"
}

func firstRunes(text string, n int) string {
	for i := range text {
		if n == 0 {
			return text[:i]
		}
		n--
	}
	return text
}
