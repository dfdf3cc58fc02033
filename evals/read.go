package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	pb "recalld/proto/recalld/v1"
)

// maxLine is the longest line of a data file.
const maxLine = 64 << 20

// A corpusLine is a message or a document of a retrieval set.
type corpusLine struct {
	ID      string `json:"_id"`
	Scope   string `json:"scope"`
	Session string `json:"session"`
	Time    string `json:"time"`
	Speaker string `json:"speaker"`
	Title   string `json:"title"`
	Text    string `json:"text"`
	Caption string `json:"image_caption"`
}

// A queryLine is a question of a retrieval set.
type queryLine struct {
	ID       string `json:"_id"`
	Scope    string `json:"scope"`
	Text     string `json:"text"`
	Category string `json:"category"`
}

// A retrievalSet is the three files that most sets consist of.
type retrievalSet struct {
	corpus  []corpusLine
	queries []queryLine
	// qrels are the ids of the corpus that answer a query, in file order.
	qrels map[string][]string
}

// readRetrievalSet reads corpus.jsonl.gz, queries.jsonl.gz and qrels.tsv.gz.
// The error wraps errAbsent when one is not there.
func readRetrievalSet(folder string) (*retrievalSet, error) {
	var set retrievalSet
	var err error
	if set.corpus, err = readLines[corpusLine](filepath.Join(folder, "corpus.jsonl.gz")); err != nil {
		return nil, err
	}
	if set.queries, err = readLines[queryLine](filepath.Join(folder, "queries.jsonl.gz")); err != nil {
		return nil, err
	}
	set.qrels, err = readQrels(filepath.Join(folder, "qrels.tsv.gz"))
	return &set, err
}

// readLines decodes a JSONL file, gzipped when its name ends so.
func readLines[T any](path string) ([]T, error) {
	var list []T
	err := eachLine(path, func(line []byte) error {
		var v T
		if err := json.Unmarshal(line, &v); err != nil {
			return err
		}
		list = append(list, v)
		return nil
	})
	return list, err
}

// readQrels reads tab-separated query id, corpus id and score, under a
// heading. Scores of 0 are no answers.
func readQrels(path string) (map[string][]string, error) {
	qrels := make(map[string][]string)
	heading := true
	err := eachLine(path, func(line []byte) error {
		if heading {
			heading = false
			return nil
		}
		fields := strings.Split(string(line), "\t")
		if len(fields) != 3 {
			return fmt.Errorf("%d fields, want 3", len(fields))
		}
		if fields[2] != "0" {
			qrels[fields[0]] = append(qrels[fields[0]], fields[1])
		}
		return nil
	})
	return qrels, err
}

// eachLine gives the lines of a file that are not empty.
func eachLine(path string, use func(line []byte) error) error {
	file, err := openData(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	var source io.Reader = file
	if strings.HasSuffix(path, ".gz") {
		if source, err = gzip.NewReader(file); err != nil {
			return fmt.Errorf("read %s: %w", filepath.Base(path), err)
		}
	}
	lines := bufio.NewScanner(source)
	lines.Buffer(make([]byte, 1<<16), maxLine)
	for n := 1; lines.Scan(); n++ {
		line := bytes.TrimRight(lines.Bytes(), "\r")
		if len(line) == 0 {
			continue
		}
		if err := use(line); err != nil {
			return fmt.Errorf("read %s: line %d: %w", filepath.Base(path), n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read %s: %w", filepath.Base(path), err)
	}
	return nil
}

// openData opens a file of a data set. The error wraps errAbsent when it is
// not there.
func openData(path string) (*os.File, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: there is no %s", errAbsent, path)
	}
	return file, err
}

// spoken gives a time in a layout, in UTC; nil when it cannot be read.
func spoken(layout, text string) *pb.SpokenTime {
	at, err := time.Parse(layout, text)
	if err != nil {
		return nil
	}
	return &pb.SpokenTime{At: timestamppb.New(at)}
}

// newMessage is a message on its way in.
func newMessage(id string, kind pb.Kind, speaker string, at *pb.SpokenTime, text string) *pb.NewMessage {
	return &pb.NewMessage{Id: id, Kind: kind, Speaker: speaker, Time: at, Text: []byte(text)}
}

// newTurn is a finished turn.
func newTurn(session, id string, messages ...*pb.NewMessage) *pb.NewTurn {
	return &pb.NewTurn{
		SessionId: session,
		TurnId:    id,
		Status:    pb.TurnStatus_TURN_STATUS_FINISHED,
		Messages:  messages,
	}
}

// roleOf gives kind and speaker of a message of a person or an assistant.
func roleOf(role string) (pb.Kind, string) {
	if role == "user" {
		return pb.Kind_KIND_USER, "user"
	}
	return pb.Kind_KIND_REPLY, "assistant"
}

// A memoryList collects turns by project, in the order of arrival.
type memoryList struct {
	list []Memory
	at   map[string]int
}

func (l *memoryList) add(project string, turn *pb.NewTurn) {
	if l.at == nil {
		l.at = make(map[string]int)
	}
	i, ok := l.at[project]
	if !ok {
		i = len(l.list)
		l.at[project] = i
		l.list = append(l.list, Memory{Project: project})
	}
	l.list[i].Turns = append(l.list[i].Turns, turn)
}
