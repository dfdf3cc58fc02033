package service_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	recalldv1 "recalld/proto/recalld/v1"
	"recalld/service"
)

func TestSearchPages(t *testing.T) {
	r := start(t, service.Options{})
	ref := byKey("a", "p")
	var want []string
	for i := range 45 {
		turn := said("s", fmt.Sprint(i), "Nothing of interest")
		if i%2 == 0 {
			turn.Messages[0].Text = []byte("An Error was seen")
			want = append([]string{fmt.Sprintf("s/%d", i)}, want...)
		}
		r.append(ref, turn)
	}
	for _, query := range []string{"ERROR WAS", `/\berror\b/i`} {
		var got []string
		cursor := ""
		for page := 0; page < 10; page++ {
			resp, err := r.recall.Search(context.Background(), &recalldv1.SearchRequest{Memory: ref, Query: query, Limit: 5, Cursor: cursor})
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range resp.Hits {
				got = append(got, h.MessageId)
			}
			if cursor = resp.Cursor; cursor == "" {
				break
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("hits of %q (-want +got):\n%s", query, diff)
		}
	}
	empty, err := r.recall.Search(context.Background(), &recalldv1.SearchRequest{Memory: ref, Query: " "})
	if err != nil || len(empty.Hits) != 0 {
		t.Errorf("an empty query = %v, %v", empty, err)
	}
}

// TestSearchText: a hit is shown with some words around it, cut at characters,
// and its ranges are those of the stored bytes.
func TestSearchText(t *testing.T) {
	r := start(t, service.Options{})
	ref := byKey("a", "p")
	text := strings.Repeat("日本語🚀é", 100) + "needle" + strings.Repeat("é日本語🚀", 100)
	r.append(ref, said("s", "1", text), said("s", "2", "\xff\xff needle \xff"), said("s", "3", strings.Repeat("needle", 1000)))
	resp, err := r.recall.Search(context.Background(), &recalldv1.SearchRequest{Memory: ref, Query: "/(?:needle)+/"})
	if err != nil || len(resp.Hits) != 3 {
		t.Fatalf("Search = %v, %v", resp, err)
	}
	long, broken, middle := resp.Hits[0], resp.Hits[1], resp.Hits[2]
	if middle.Text != text[middle.Range.Start:middle.Range.End] || !middle.Exact || !utf8.ValidString(middle.Text) {
		t.Errorf("the hit is shown as %q", middle.Text)
	}
	if text[middle.Match.Start:middle.Match.End] != "needle" {
		t.Errorf("the match is %v", middle.Match)
	}
	if before := middle.Match.Start - middle.Range.Start; before < 120 || before > 124 {
		t.Errorf("%d bytes before the match, want about 120", before)
	}
	if broken.Exact || broken.Text != "\uFFFD needle \uFFFD" {
		t.Errorf("broken bytes are shown as %q, exact %v", broken.Text, broken.Exact)
	}
	if len(long.Text) > 2000 || long.Range.End != long.Range.Start+uint64(len(long.Text)) || long.Match.End != 6000 {
		t.Errorf("a long match is shown with %d bytes, range %v, match %v", len(long.Text), long.Range, long.Match)
	}
}

func TestSearchFilters(t *testing.T) {
	r := start(t, service.Options{})
	ref := byKey("a", "p")
	trace := said("s1", "2", "same word")
	trace.Messages[0].Kind = recalldv1.Kind_KIND_TRACE
	r.append(ref, said("s1", "1", "same word"), trace, said("s2", "3", "same word"))
	tests := []struct {
		name string
		req  *recalldv1.SearchRequest
		want []string
	}{
		{"all kinds", &recalldv1.SearchRequest{}, []string{"s2/3", "s1/2", "s1/1"}},
		{"one kind", &recalldv1.SearchRequest{Kinds: []recalldv1.Kind{recalldv1.Kind_KIND_TRACE}}, []string{"s1/2"}},
		{"one session", &recalldv1.SearchRequest{Sessions: []string{"s2"}}, []string{"s2/3"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.req.Memory, tt.req.Query = ref, "SAME"
			resp, err := r.recall.Search(context.Background(), tt.req)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, h := range resp.Hits {
				got = append(got, h.MessageId)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("hits (-want +got):\n%s", diff)
			}
		})
	}
}
