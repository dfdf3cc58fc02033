package service_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"

	recalldv1 "recalld/proto/recalld/v1"
	"recalld/service"
)

// refused appends turns and fails the test unless that is refused because
// something is there already.
func (r *rig) refused(ref *recalldv1.MemoryRef, turns ...*recalldv1.NewTurn) {
	r.t.Helper()
	_, err := r.memories.Append(context.Background(), &recalldv1.AppendRequest{Memory: ref, Turns: turns})
	wants(r.t, err, codes.AlreadyExists)
}

// folders fails the test unless there are so many memories in the list and on
// the disk.
func (r *rig) folders(want int) {
	r.t.Helper()
	list, err := r.memories.List(context.Background(), &recalldv1.ListRequest{})
	if err != nil || len(list.Memories) != want {
		r.t.Errorf("List = %v, %v; want %d", list, err, want)
	}
	entries, err := os.ReadDir(filepath.Join(r.root, "memories"))
	if err != nil || len(entries) != want {
		r.t.Errorf("the folders are %v, %v; want %d", entries, err, want)
	}
}

// with gives the message of a turn another id.
func with(id string, turn *recalldv1.NewTurn) *recalldv1.NewTurn {
	turn.Messages[0].Id = id
	return turn
}

// TestRefusedAppendLeavesNothing: no binding, no memory, no folder.
func TestRefusedAppendLeavesNothing(t *testing.T) {
	one, two := byKey("a", "one"), byKey("a", "two")
	tests := []struct {
		name string
		try  func(*rig)
		left int // memories besides the first
	}{
		{"other bytes in a new session", func(r *rig) { r.refused(one, with("k", said("fresh", "1", "other"))) }, 0},
		{"a copy in a new session", func(r *rig) {
			if got := r.append(one, with("k", said("fresh", "1", "words"))); got.Stored != 0 || got.Duplicates != 1 {
				r.t.Errorf("Append of a copy = %v", got)
			}
		}, 0},
		{"other bytes in one request to a new memory", func(r *rig) {
			r.refused(two, with("x", said("fresh", "1", "words")), with("x", said("fresh", "2", "other")))
		}, 0},
		{"a session bound elsewhere, to a new memory", func(r *rig) { r.refused(two, said("fresh", "1", "new"), said("s", "2", "new")) }, 0},
		{"other bytes to a memory that was bound", func(r *rig) {
			_, err := r.memories.Bind(context.Background(), &recalldv1.BindRequest{Agent: "a", Project: "two", DisplayName: "Two"})
			if err != nil {
				r.t.Fatal(err)
			}
			r.refused(two, with("x", said("fresh", "1", "words")), with("x", said("fresh", "2", "other")))
		}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := start(t, service.Options{})
			r.append(one, with("k", said("s", "1", "words")))
			tt.try(r)
			r.folders(1 + tt.left)
			_, err := r.memories.History(context.Background(), &recalldv1.HistoryRequest{Memory: one, SessionId: "fresh"})
			wants(t, err, codes.NotFound, "session_id")
			r.append(byKey("a", "three"), said("fresh", "1", "at last"))
			r.folders(2 + tt.left)
		})
	}
}

// TestRefusedBesideStored: many Appends to one new memory, of which every other
// is refused: none of those that are stored loses the memory under its feet.
func TestRefusedBesideStored(t *testing.T) {
	r := start(t, service.Options{OpenMemories: 2})
	for round := range 5 {
		ref := byKey("a", fmt.Sprint(round))
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				session := fmt.Sprintf("%d-%d", round, i/2)
				turns := []*recalldv1.NewTurn{said(session, fmt.Sprint(i), "words")}
				want := codes.OK
				if i%2 == 1 {
					turns = append(turns, with(turns[0].Messages[0].Id, said(session, "again", "other")))
					want = codes.AlreadyExists
				}
				_, err := r.memories.Append(context.Background(), &recalldv1.AppendRequest{Memory: ref, Turns: turns})
				wantsCode(t, err, want)
			})
		}
		all.Wait()
		page, err := r.memories.History(context.Background(), &recalldv1.HistoryRequest{Memory: ref})
		if err != nil || len(page.Turns) != 4 {
			t.Fatalf("round %d: %d turns are left, want 4 (%v)", round, len(page.GetTurns()), err)
		}
	}
	r.folders(5)
}

// TestUnnamedMemoriesAreNotListed: without turns and without a name.
func TestUnnamedMemoriesAreNotListed(t *testing.T) {
	r := start(t, service.Options{})
	for _, req := range []*recalldv1.BindRequest{
		{Agent: "a", Project: "unnamed", SessionId: "s1"},
		{Agent: "a", Project: "named", DisplayName: "N"},
		{Agent: "a", Project: "other", Aliases: []string{"alias"}},
	} {
		if _, err := r.memories.Bind(context.Background(), req); err != nil {
			t.Fatal(err)
		}
	}
	list, err := r.memories.List(context.Background(), &recalldv1.ListRequest{})
	if err != nil || len(list.Memories) != 2 || list.Memories[0].Project != "named" || list.Memories[1].Project != "other" {
		t.Errorf("List = %v, %v; want those with a name", list, err)
	}
	status, err := r.admin.Status(context.Background(), &recalldv1.StatusRequest{})
	if err != nil || len(status.Memories) != 2 {
		t.Errorf("Status = %v, %v; want those with a name", status, err)
	}
	status, err = r.admin.Status(context.Background(), &recalldv1.StatusRequest{Memory: byKey("a", "unnamed")})
	if err != nil || len(status.Memories) != 1 {
		t.Errorf("Status of the one asked for = %v, %v", status, err)
	}
}

// TestSessionWithoutTurns: a session that is bound is known to all calls alike.
func TestSessionWithoutTurns(t *testing.T) {
	r := start(t, service.Options{})
	ref := byKey("a", "p")
	r.append(ref, said("s", "1", "words"))
	if _, err := r.memories.Bind(context.Background(), &recalldv1.BindRequest{SessionId: "bound", Agent: "a", Project: "p"}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		session string
		want    codes.Code
	}{{"s", codes.OK}, {"bound", codes.OK}, {"notes", codes.OK}, {"nobody's", codes.NotFound}} {
		_, history := r.memories.History(context.Background(), &recalldv1.HistoryRequest{Memory: ref, SessionId: tt.session})
		wantsCode(t, history, tt.want)
		_, recall := r.recall.Recall(context.Background(), &recalldv1.RecallRequest{Memory: ref, Query: "words", Sessions: []string{tt.session}})
		wantsCode(t, recall, tt.want)
		_, search := r.recall.Search(context.Background(), &recalldv1.SearchRequest{Memory: ref, Query: "words", Sessions: []string{tt.session}})
		wantsCode(t, search, tt.want)
	}
}
