package main

import (
	"fmt"
	"io"
	"strings"
)

// modelFile holds the latest figures of the model extractor, which the report
// puts beside the built-in one's.
const modelFile = "journal-model.json"

// journalTitles say what a task asks.
var journalTitles = map[string]string{
	"W": "W: windows of coding sessions",
	"R": "R, S, D, U: messages of BEAM",
	"L": "L: which earlier message a change is about",
	"M": "M: snippets worth remembering, by language",
	"A": "A: acts of meetings on which decisions and actions rest, among the 20 surest",
	"E": "E: mail sentences that ask or propose",
}

// journalSections are the tasks that share a table, under the first one's title.
var journalSections = []string{"W", "RSDU", "L", "M", "A", "E"}

// columnsOf are the metrics of a section, precision first.
func columnsOf(section string) []string {
	switch section {
	case "W":
		return []string{"precision", "recall", "f1", "none_hit"}
	case "L":
		return []string{"hit@1", "hit@5"}
	case "A":
		return []string{"precision", "recall"}
	}
	return []string{"precision", "recall", "f1"}
}

// sectionTable has the rows of a section; nil when there are none.
func sectionTable(section string, rows []JournalRow) *table {
	t := &table{heading: []string{"task", "set", "split", "group", "n", "positives"}}
	t.heading = append(t.heading, columnsOf(section)...)
	candidates := section != "L" && section != "A"
	if candidates {
		t.heading = append(t.heading, "with candidates: precision", "recall")
	}
	for _, row := range rows {
		if !strings.Contains(section, row.Task) {
			continue
		}
		cells := []string{row.Task, row.Set, string(row.Split), row.Group, itoa(row.N), itoa(row.Positives)}
		for _, metric := range columnsOf(section) {
			cells = append(cells, row.cell(metric))
		}
		if candidates {
			cells = append(cells, cell(row.WithCandidates, "precision"), cell(row.WithCandidates, "recall"))
		}
		t.rows = append(t.rows, cells)
	}
	if len(t.rows) == 0 {
		return nil
	}
	return t
}

// cell gives a metric and its interval.
func (row *JournalRow) cell(metric string) string {
	x, ok := row.Metrics[metric]
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%.2f [%.2f, %.2f]", x, row.Intervals[metric][0], row.Intervals[metric][1])
}

// line tells what the checks found.
func (c *Checks) line() string {
	return fmt.Sprintf("%d chats, %d entries; quotes that are not in their message: %d; wrong speaker: %d; drafts refused by the checker: %d; chats a model failed on: %d",
		c.Chats, c.Entries, c.Unbound, c.WrongSpeaker, c.Dropped, c.Failed)
}

// print writes the figures for a person.
func (r *JournalReport) print(out io.Writer) error {
	for _, section := range journalSections {
		t := sectionTable(section, r.Rows)
		if t == nil {
			continue
		}
		if _, err := fmt.Fprintf(out, "%s (%s)\n", journalTitles[section[:1]], r.Extractor); err != nil {
			return err
		}
		if err := t.print(out); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(out, r.Checks.line())
	return err
}

// print writes the figures of one file of windows for a person.
func (r *WindowReport) print(out io.Writer) error {
	if _, err := fmt.Fprintf(out, "%s (%s)\n", r.File, r.Extractor); err != nil {
		return err
	}
	if err := sectionTable("W", r.Rows).print(out); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, r.Checks.line())
	return err
}

const journalNotes = `Each text in a memory of its own, consolidated through the service; live entries
count, and beside them what candidates would add. Intervals hold the middle 95 %
of 2,000 bootstrap samples over texts. A window's entry is right when it is of
the kind's group and shares half of the words with a clear mark of the same
turn; what matches only a borderline mark counts neither way, and none_hit is
the share of windows without a clear mark in which something wrong was found.
The labelled windows were read while cues were chosen, but for those of a fifth
of the sessions (SHA-256 of the session's id modulo 100 is 80 or more), which
are the report part: few, so mind the interval. BEAM: even chats are the report
part. U finds only candidates by design; A and E have no goal. L asks Recall for
the person's earlier messages of the chat: for the later message, by words or by
words and meaning, or first, for two places, for the words in it that the journal
takes for a change (two was chosen on the tune part).

`

// write adds the journal's figures to the report.
func (r *JournalReport) write(out *strings.Builder, heading string) {
	fmt.Fprintf(out, "### %s\n\n", heading)
	for _, section := range journalSections {
		if t := sectionTable(section, r.Rows); t != nil {
			fmt.Fprintf(out, "%s:\n\n%s\n", journalTitles[section[:1]], t.markdown())
		}
	}
	fmt.Fprintf(out, "%s.\n\n", r.Checks.line())
}

// writeJournal adds the figures of both extractors.
func (r *report) writeJournal(out *strings.Builder) {
	if r.journal == nil && r.journalModel == nil {
		return
	}
	out.WriteString("## Journal\n\n" + journalNotes)
	if r.journal != nil {
		r.journal.write(out, "Built-in extractor")
	}
	if m := r.journalModel; m != nil {
		m.write(out, fmt.Sprintf("Model extractor, %s (made %s, commit %s, %s)", orNone(m.Model), m.Made.Date, m.Made.Commit, m.Made.Machine))
	}
}
