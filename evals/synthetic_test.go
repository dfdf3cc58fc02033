package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
)

func TestWordsAreDistinct(t *testing.T) {
	seen := make(map[string]uint64, vocabularySize)
	for rank := range uint64(vocabularySize) {
		w := word(rank)
		if other, ok := seen[w]; ok || len(w) != 6 {
			t.Fatalf("word %d is %q, as is word %d", rank, w, other)
		}
		seen[w] = rank
	}
}

func TestSyntheticTurns(t *testing.T) {
	turns := newGenerator(0).turns("p", 0, 25)
	again := newGenerator(0).turns("p", 0, 25)
	if diff := cmp.Diff(turns, again, protocmp.Transform()); diff != "" {
		t.Fatalf("the same seed gives other turns:\n%s", diff)
	}
	if turns[19].SessionId != "p/0" || turns[20].SessionId != "p/1" {
		t.Errorf("sessions %s, %s; want a new one after %d turns", turns[19].SessionId, turns[20].SessionId, sessionTurns)
	}
	for _, m := range turns[0].Messages {
		if n := len(strings.Fields(string(m.Text))); n != messageWords {
			t.Errorf("a message has %d words, want %d", n, messageWords)
		}
	}
}

// TestCommonestWord checks what the comment on the law says.
func TestCommonestWord(t *testing.T) {
	held := 0
	for _, turn := range newGenerator(0).turns("p", 0, 1000) {
		for _, m := range turn.Messages {
			if strings.Contains(" "+string(m.Text)+" ", " "+word(0)+" ") {
				held++
			}
		}
	}
	if held < 700 || held > 900 {
		t.Errorf("the commonest word stands in %d of 2000 messages, want about 800", held)
	}
}
