package main

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
)

// snippetLanguages are the files of snippets: the original and its translations.
var snippetLanguages = []struct{ name, file string }{
	{"en", "dataset.jsonl"}, {"de", "dataset.de.jsonl"}, {"es", "dataset.es.jsonl"}, {"fr", "dataset.fr.jsonl"}, {"hi", "dataset.hi.jsonl"},
	{"it", "dataset.it.jsonl"}, {"ko", "dataset.ko.jsonl"}, {"pt", "dataset.pt-BR.jsonl"}, {"ru", "dataset.ru.jsonl"}, {"zh", "dataset.zh.jsonl"},
}

// worthy are the labels of what is worth remembering in a journal.
var worthy = []string{"decision", "commitment", "preference"}

// snippetRows asks, in ten languages, which snippets hold anything worthy.
func (j *journalRun) snippetRows(ctx context.Context, data string) ([]JournalRow, error) {
	folder := filepath.Join(data, "journal", "mempalace-memory-extraction")
	labels, err := readLines[struct {
		ID       string `json:"id"`
		Memories []struct {
			Type string `json:"type"`
		} `json:"memories"`
	}](filepath.Join(folder, "labels.jsonl"))
	if err != nil {
		return nil, err
	}
	labelled := map[string]bool{}
	for _, l := range labels {
		for _, m := range l.Memories {
			labelled[l.ID] = labelled[l.ID] || slices.Contains(worthy, m.Type)
		}
	}
	var rows []JournalRow
	for _, language := range snippetLanguages {
		snippets, err := readLines[struct {
			ID   string `json:"id"`
			Text string `json:"text"`
		}](filepath.Join(folder, language.file))
		if errors.Is(err, errAbsent) {
			continue
		}
		if err != nil {
			return nil, err
		}
		chats := make([]Chat, len(snippets))
		for i, s := range snippets {
			chats[i] = Chat{ID: "snippets/" + language.name + "/" + s.ID, Lines: []Line{says(s.Text)}}
		}
		found, err := j.read(ctx, "M "+language.name, chats)
		if err != nil {
			return nil, err
		}
		readings := make([]Reading, len(snippets))
		for i, s := range snippets {
			readings[i] = Reading{Live: binary(len(live(found[i])) > 0, labelled[s.ID]), All: binary(len(found[i]) > 0, labelled[s.ID])}
		}
		rows = append(rows, newRow("M", "snippets", All, language.name, readings, "precision", "recall", "f1"))
	}
	return rows, nil
}

// mailRows asks which sentences of mails ask for something or propose it. They
// label requests rather than commitments, so this is a poor measure of open
// work, and no goal.
func (j *journalRun) mailRows(ctx context.Context, data string) ([]JournalRow, error) {
	type sentence struct {
		Split  string `json:"split"`
		Intent string `json:"intent"`
		Text   string `json:"text"`
	}
	all, err := readLines[sentence](filepath.Join(data, "journal", "email-intent.jsonl"))
	if err != nil {
		return nil, err
	}
	sentences := slices.DeleteFunc(all, func(s sentence) bool { return s.Split != "test" })
	chats := make([]Chat, len(sentences))
	for i, s := range sentences {
		chats[i] = Chat{ID: "mail/" + itoa(i), Lines: []Line{says(s.Text)}}
	}
	found, err := j.read(ctx, "E", chats)
	if err != nil {
		return nil, err
	}
	row := func(name string, kinds ...string) JournalRow {
		readings := make([]Reading, len(sentences))
		for i, s := range sentences {
			yes := s.Intent == "Yes"
			readings[i] = Reading{Live: binary(holdsKind(live(found[i]), kinds), yes), All: binary(holdsKind(found[i], kinds), yes)}
		}
		return newRow("E", "email-intent", Report, name, readings, "precision", "recall", "f1")
	}
	return []JournalRow{
		row("open work", "open_work"),
		row("any entry", "decision", "reversal", "rule", "preference", "open_work"),
	}, nil
}
