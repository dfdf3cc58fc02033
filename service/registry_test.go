package service_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	recalldv1 "recalld/proto/recalld/v1"
	"recalld/service"
)

// TestEviction uses ten memories with room for three: every answer is right, and
// no more than three are ever open.
func TestEviction(t *testing.T) {
	r := start(t, service.Options{OpenMemories: 3})
	for round := range 3 {
		for i := range 10 {
			ref := byKey("agent", fmt.Sprint("project", i))
			word := fmt.Sprintf("word%dround%d", i, round)
			r.append(ref, said(fmt.Sprint("s", i), fmt.Sprint(round), "about "+word))
			if got := r.ask(ref, word); len(got.Passages) == 0 || !strings.Contains(got.Passages[0].Text, word) {
				t.Fatalf("memory %d, round %d: %v", i, round, ids(got.Passages))
			}
			if n := len(r.server.OpenMemories()); n > 3 {
				t.Fatalf("%d memories are open, want at most 3", n)
			}
		}
	}
	// A walk over all memories leaves the open ones as they are.
	before := fmt.Sprint(r.server.OpenMemories())
	list, err := r.memories.List(context.Background(), &recalldv1.ListRequest{})
	if err != nil || len(list.Memories) != 10 {
		t.Fatalf("List = %v, %v", list, err)
	}
	if _, last := r.verify(&recalldv1.VerifyRequest{Deep: true}); !last.Ok || last.Memories != 10 {
		t.Errorf("Verify ended with %v", last)
	}
	if n := len(r.server.OpenMemories()); n > 3 {
		t.Errorf("after List %d memories are open, before %s", n, before)
	}
}

// TestConcurrentEviction does the same from many clients at once.
func TestConcurrentEviction(t *testing.T) {
	r := start(t, service.Options{OpenMemories: 3})
	var clients sync.WaitGroup
	for c := range 8 {
		clients.Go(func() {
			for i := range 15 {
				n := (c*7 + i) % 10
				ref := byKey("agent", fmt.Sprint("project", n))
				word := fmt.Sprintf("word%dclient%dround%d", n, c, i)
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				_, err := r.memories.Append(ctx, &recalldv1.AppendRequest{Memory: ref, Turns: []*recalldv1.NewTurn{
					said(fmt.Sprint("s", n), fmt.Sprintf("%d-%d", c, i), "about "+word),
				}})
				if err != nil {
					t.Errorf("Append: %v", err)
				}
				got, err := r.recall.Recall(ctx, &recalldv1.RecallRequest{Memory: ref, Query: word, Relevance: recalldv1.Relevance_RELEVANCE_ALWAYS})
				if err != nil || len(got.Passages) == 0 || !strings.Contains(got.Passages[0].Text, word) {
					t.Errorf("Recall(%s) = %v, %v", word, ids(got.GetPassages()), err)
				}
				cancel()
			}
		})
	}
	clients.Wait()
	if n := len(r.server.OpenMemories()); n > 3 {
		t.Errorf("%d memories are open, want at most 3", n)
	}
}

// TestInUseIsNotEvicted: with all places in use a call waits, and goes on when
// one is given back; it does not close what others use.
func TestInUseIsNotEvicted(t *testing.T) {
	r := start(t, service.Options{OpenMemories: 1})
	one := r.append(byKey("a", "one"), said("s1", "1", "first")).MemoryId
	two := r.append(byKey("a", "two"), said("s2", "1", "second")).MemoryId
	release, err := r.server.Hold(context.Background(), one)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_, err = r.recall.Recall(ctx, &recalldv1.RecallRequest{Memory: byID(two), Query: "second"})
	wants(t, err, codes.DeadlineExceeded)
	if got := r.ask(byID(one), "first"); len(got.Passages) != 1 {
		t.Errorf("the memory in use gives %d passages", len(got.Passages))
	}
	release()
	if got := r.ask(byID(two), "second"); len(got.Passages) != 1 {
		t.Errorf("after the release there are %d passages", len(got.Passages))
	}
}

// TestIsolation plants a canary in each of fifty memories and looks for foreign
// ones in all answers, errors and log lines.
func TestIsolation(t *testing.T) {
	r := start(t, service.Options{OpenMemories: 20})
	const memories = 50
	canary := func(i int) string { return fmt.Sprintf("canary%03dq", i) }
	key := func(i int) *recalldv1.MemoryRef { // keys that look alike
		return byKey(strings.Repeat("u", i%5+1), strings.Repeat("u", i/5))
	}
	foreign := func(t *testing.T, i int, what, text string) {
		t.Helper()
		for j := range memories {
			if j != i && strings.Contains(text, canary(j)) {
				t.Errorf("%s of memory %d holds the canary of memory %d", what, i, j)
			}
		}
	}
	for i := range memories {
		text := fmt.Sprintf("the shared words and %s", canary(i))
		r.append(key(i), said(fmt.Sprint("session of ", i), "t", text))
	}
	ctx := context.Background()
	for i := range memories {
		other := (i*7 + 3) % memories
		for _, query := range []string{"shared words", canary(i), canary(other)} {
			got := r.ask(key(i), query)
			foreign(t, i, "Recall", got.String())
			if query == canary(i) && len(got.Passages) != 1 {
				t.Errorf("memory %d does not find its canary", i)
			}
		}
		for _, query := range []string{"canary", "/canary[0-9]+q/"} {
			hits, err := r.recall.Search(ctx, &recalldv1.SearchRequest{Memory: key(i), Query: query})
			if err != nil || len(hits.Hits) != 1 {
				t.Fatalf("Search = %v, %v", hits, err)
			}
			foreign(t, i, "Search", hits.String())
		}
		page, err := r.memories.History(ctx, &recalldv1.HistoryRequest{Memory: key(i)})
		if err != nil {
			t.Fatal(err)
		}
		foreign(t, i, "History", page.String())
		_, err = r.memories.History(ctx, &recalldv1.HistoryRequest{Memory: key(i), SessionId: fmt.Sprint("session of ", other)})
		wants(t, err, codes.NotFound)
		_, err = r.recall.Recall(ctx, &recalldv1.RecallRequest{Memory: key(i), Query: "x", Sessions: []string{fmt.Sprint("session of ", other)}})
		wants(t, err, codes.NotFound)
		turn := said(fmt.Sprint("session of ", other), "t2", canary(i))
		_, err = r.memories.Append(ctx, &recalldv1.AppendRequest{Memory: key(i), Turns: []*recalldv1.NewTurn{turn}})
		wants(t, err, codes.AlreadyExists)
		foreign(t, i, "an error", err.Error())
	}
	r.stop()
	if strings.Contains(r.log.String(), "canary") {
		t.Error("a log line holds what was said")
	}
}
