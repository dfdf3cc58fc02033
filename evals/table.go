package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// A table is a heading and rows of cells, printed in columns or as Markdown.
type table struct {
	heading []string
	rows    [][]string
}

// print writes the table for a terminal.
func (t *table) print(out io.Writer) error {
	columns := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range append([][]string{t.heading}, t.rows...) {
		if _, err := fmt.Fprintln(columns, strings.Join(row, "\t")+"\t"); err != nil {
			return err
		}
	}
	return columns.Flush()
}

// markdown gives the table as Markdown: the first column to the left, numbers
// to the right.
func (t *table) markdown() string {
	var out strings.Builder
	line := func(cells []string) { out.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(t.heading)
	rule := make([]string, len(t.heading))
	for i := range rule {
		rule[i] = "---:"
	}
	rule[0] = "---"
	line(rule)
	for _, row := range t.rows {
		line(row)
	}
	return out.String()
}

// categoryTable has a row for the top-level metrics and one for each category.
func (r *Result) categoryTable() *table {
	t := &table{heading: append([]string{"category", "n"}, r.columns...)}
	row := func(name string, n int, metrics Values) {
		cells := []string{name, strconv.Itoa(n)}
		for _, column := range r.columns {
			cells = append(cells, cell(metrics, column))
		}
		t.rows = append(t.rows, cells)
	}
	row("total", r.N, r.Metrics)
	for _, name := range slices.Sorted(maps.Keys(r.Categories)) {
		row(name, r.Categories[name].N, r.Categories[name].Metrics)
	}
	return t
}

// cell gives a metric to three digits, or a dash where it does not apply.
func cell(metrics Values, name string) string {
	x, ok := metrics[name]
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%.3f", x)
}

// summary is the line about time, size and sources under a table.
func (r *Result) summary() string {
	var sources []string
	for _, source := range slices.Sorted(maps.Keys(r.Sources)) {
		for _, outcome := range slices.Sorted(maps.Keys(r.Sources[source])) {
			sources = append(sources, fmt.Sprintf("%s %s %d", source, outcome, r.Sources[source][outcome]))
		}
	}
	return fmt.Sprintf("recall p50 %.1f ms, p95 %.1f ms, p99 %.1f ms; block p50 %d bytes, p95 %d bytes; sources: %s; parts: %s",
		r.Latency.P50, r.Latency.P95, r.Latency.P99, r.Bytes.P50, r.Bytes.P95,
		orNone(strings.Join(sources, ", ")), orNone(strings.Join(r.Parts, " ")))
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

// ablationTable has a row for each thing left out and a pair of columns for
// each metric.
func ablationTable(list []Ablation) *table {
	t := &table{heading: []string{"left out", "metric", "value", "difference", "95 % interval"}}
	for _, a := range list {
		if a.Refused != "" {
			t.rows = append(t.rows, []string{a.Without, "not measured", "-", "-", "-"})
			continue
		}
		t.rows = append(t.rows, []string{
			a.Without, a.Metric, fmt.Sprintf("%.3f", a.Value), fmt.Sprintf("%+.3f", a.Difference),
			fmt.Sprintf("[%+.3f, %+.3f]", a.Low, a.High),
		})
	}
	return t
}

// print writes a result for a person.
func (r *Result) print(out io.Writer) error {
	if _, err := fmt.Fprintf(out, "%s, split %s\n", r.Set, r.Split); err != nil {
		return err
	}
	if err := r.categoryTable().print(out); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, r.summary()); err != nil {
		return err
	}
	if len(r.Ablation) == 0 {
		return nil
	}
	return ablationTable(r.Ablation).print(out)
}
