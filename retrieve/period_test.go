package retrieve_test

import (
	"fmt"
	"testing"
	"time"

	"recalld/retrieve"
)

// diary gives one message a day from 1 March to 31 May 2026, at 23:30 in a
// zone two hours ahead, all of the same words.
func diary() []retrieve.Document {
	zone := time.FixedZone("", 2*3600)
	var list []retrieve.Document
	for day := time.Date(2026, 3, 1, 23, 30, 0, 0, zone); day.Month() < 6; day = day.AddDate(0, 0, 1) {
		d := doc(len(list)+1, "worked on the build")
		d.Text += fmt.Sprint(" step", len(list)+1) // texts differ, so none is a repeat
		d.Time = day
		list = append(list, d)
	}
	return list
}

func TestPeriods(t *testing.T) {
	x := open(t, retrieve.Options{}, diary()...)
	zone := time.FixedZone("", 2*3600)
	now := time.Date(2026, 5, 20, 0, 30, 0, 0, zone) // a Wednesday, just after midnight
	tests := []struct {
		query       string
		first, last string // of the period, days; empty: none
	}{
		{"what did we do yesterday", "2026-05-19", "2026-05-20"},
		{"yesterday", "2026-05-19", "2026-05-20"},
		{"today", "2026-05-20", "2026-05-21"},
		{"what happened the day before yesterday", "2026-05-18", "2026-05-19"},
		{"the build 3 days ago", "2026-05-17", "2026-05-18"},
		{"the build two weeks ago", "2026-05-04", "2026-05-11"},
		{"what did we do last week", "2026-05-11", "2026-05-18"},
		{"last month", "2026-04-01", "2026-05-01"},
		{"last Monday", "2026-05-18", "2026-05-19"},
		{"on Wednesday", "2026-05-13", "2026-05-14"},
		{"between 3 and 5 April", "2026-04-03", "2026-04-06"},
		{"between 30 March and 2 April 2026", "2026-03-30", "2026-04-03"},
		{"since 18 May", "2026-05-18", "2026-05-21"},
		{"was haben wir gestern gemacht", "2026-05-19", "2026-05-20"},
		{"vor drei Tagen", "2026-05-17", "2026-05-18"},
		{"что мы делали вчера", "2026-05-19", "2026-05-20"},
		// Not understood: nothing is filtered, no period is made up.
		{"the build on the 12th", "", ""},
		{"the build 3 hours ago", "", ""},
		{"between session 2 and 3", "", ""},
		{"the build", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.query, func(t *testing.T) {
			r, err := x.Recall(t.Context(), retrieve.Query{Text: tt.query, Now: now, Relevance: retrieve.Always, Limit: 50})
			if err != nil {
				t.Fatal(err)
			}
			if tt.first == "" {
				if !r.PeriodStart.IsZero() {
					t.Errorf("period from %v, want none", r.PeriodStart)
				}
				return
			}
			first, last := r.PeriodStart.Format(time.DateOnly), r.PeriodEnd.Format(time.DateOnly)
			if first != tt.first || last != tt.last {
				t.Fatalf("period %s to %s, want %s to %s", first, last, tt.first, tt.last)
			}
			days := int(min(r.PeriodEnd.Sub(r.PeriodStart).Hours()/24, 50))
			if len(r.Passages) < days {
				t.Fatalf("%d passages, want at least %d", len(r.Passages), days)
			}
			for i, p := range r.Passages[:days] {
				said := time.Date(2026, 3, int(p.Seq), 23, 30, 0, 0, zone)
				if said.Before(r.PeriodStart) || !said.Before(r.PeriodEnd) {
					t.Errorf("passage %d was said on %s, outside %s to %s", i+1, said.Format(time.DateOnly), first, last)
				}
			}
		})
	}
}

// TestDates: a date in the query raises the messages of its day, month or the
// days after, and removes none.
func TestDates(t *testing.T) {
	x := open(t, retrieve.Options{}, diary()...)
	tests := []struct {
		query string
		want  string // day of the first passage
	}{
		{"the build on 21 April", "2026-04-21"},
		{"the build on April 21st, 2026", "2026-04-21"},
		{"the build on 2026-04-21", "2026-04-21"},
		{"the build on 21/4/2026", "2026-04-21"},
		{"what did we do on the 21st of April", "2026-04-21"},
		{"der Build am 21. April", "2026-04-21"},
	}
	for _, tt := range tests {
		t.Run(tt.query, func(t *testing.T) {
			r, err := x.Recall(t.Context(), retrieve.Query{Text: tt.query, Relevance: retrieve.Always, Limit: 50})
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Passages) < 30 {
				t.Fatalf("%d passages, want 30 and more: a date filters nothing", len(r.Passages))
			}
			if got := time.Date(2026, 3, int(r.Passages[0].Seq), 0, 0, 0, 0, time.UTC).Format(time.DateOnly); got != tt.want {
				t.Errorf("first is of %s, want %s", got, tt.want)
			}
		})
	}
}
