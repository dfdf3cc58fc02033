package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const tenQuestions = "testdata/longmemeval.json"

func loadTen(t *testing.T) []*Set {
	t.Helper()
	var sets []*Set
	err := eachLongmem(tenQuestions, func(set *Set) error {
		sets = append(sets, set)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return sets
}

// TestLongmemConventions: of ten questions one is to abstain from, and two of
// the others have no evidence in a turn of the user.
func TestLongmemConventions(t *testing.T) {
	sets := loadTen(t)
	bySuffix := make(map[string]int)
	for _, set := range sets {
		for _, gold := range set.Questions[0].Golds {
			if len(gold.IDs) == 0 {
				t.Errorf("%s: no answers by %q", set.Questions[0].ID, gold.Suffix)
			}
			bySuffix[gold.Suffix]++
		}
	}
	want := map[string]int{"": 9, suffixEvidence: 7, suffixTurn: 7}
	if diff := cmp.Diff(want, bySuffix); diff != "" {
		t.Errorf("questions by convention (-want +got):\n%s", diff)
	}
}

func TestLongmemGold(t *testing.T) {
	set := loadTen(t)[2]
	q := set.Questions[0]
	if q.ID != "multi_03" {
		t.Fatalf("third question is %s", q.ID)
	}
	count := func(suffix string) int {
		for _, gold := range q.Golds {
			if gold.Suffix == suffix {
				return len(gold.IDs)
			}
		}
		return 0
	}
	// Three sessions hold the answer, one of them only in a reply.
	if count("") != 3 || count(suffixEvidence) != 2 || count(suffixTurn) != 2 {
		t.Errorf("gold: %d sessions, %d with evidence, %d turns; want 3, 2, 2", count(""), count(suffixEvidence), count(suffixTurn))
	}
	if q.Now == nil || q.Now.At.AsTime().Format("2006-01-02 15:04") != "2024-06-20 10:00" {
		t.Errorf("reference time is %v", q.Now)
	}
}

// TestLongmemIDsAreOpaque: the published ids say which sessions answer.
func TestLongmemIDsAreOpaque(t *testing.T) {
	known := make(map[string]bool)
	for _, set := range loadTen(t) {
		for _, l := range linesOf(set.Memories[0]) {
			ids := l.Session + l.Turn + l.ID
			if strings.Contains(ids, "answer") || strings.Contains(ids, "noise") {
				t.Fatalf("id %q gives the answer away", ids)
			}
			if known[l.ID] {
				t.Errorf("message id %q twice", l.ID)
			}
			known[l.ID] = true
		}
	}
}

func TestRunLongmemForgetsEachMemory(t *testing.T) {
	fake, client := startFake(t)
	run, err := (&Runner{client: client}).runLongmem(context.Background(), tenQuestions)
	if err != nil {
		t.Fatal(err)
	}
	result := run.result(All)
	if result.N != 9 || result.Categories[userEvidence].N != 7 || len(fake.forgot) != 9 || len(fake.memories) != 0 {
		t.Errorf("n %d, with evidence %d, forgot %d, kept %d; want 9, 7, 9, 0",
			result.N, result.Categories[userEvidence].N, len(fake.forgot), len(fake.memories))
	}
	if got := result.Metrics["any@5"]; got != 1 {
		t.Errorf("any@5 = %v, want 1: the words of each question stand in its answer", got)
	}
}

func TestLongmemRefusesBrokenFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.json")
	if err := os.WriteFile(path, []byte(`[{"question_id":"a","haystack_session_ids":["s"],"haystack_sessions":[]}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	err := eachLongmem(path, func(*Set) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "question 1") {
		t.Errorf("eachLongmem = %v, want an error that names question 1", err)
	}
	if err := eachLongmem(path+".not", nil); !errors.Is(err, errAbsent) {
		t.Errorf("eachLongmem without a file = %v, want errAbsent", err)
	}
}
