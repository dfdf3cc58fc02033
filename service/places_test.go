package service_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	recalldv1 "recalld/proto/recalld/v1"
	"recalld/service"
)

// wantsCode is wants for other goroutines than the test's: it does not end it.
func wantsCode(t *testing.T, err error, code codes.Code) {
	t.Helper()
	if got := status.Code(err); got != code {
		t.Errorf("error %v has code %v, want %v", err, got, code)
	}
}

// TestDivide: what is kept back is the smaller of 20 ms and a fifth.
func TestDivide(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct{ deadline, catchUp, ranking time.Duration }{
		{50 * time.Millisecond, 25 * time.Millisecond, 40 * time.Millisecond},
		{100 * time.Millisecond, 50 * time.Millisecond, 80 * time.Millisecond},
		{2 * time.Second, time.Second, 1980 * time.Millisecond},
	} {
		ctx, cancel := context.WithDeadline(t.Context(), now.Add(tt.deadline))
		catchUp, ranking := service.Divide(ctx, now)
		cancel()
		if catchUp.Sub(now) != tt.catchUp || ranking.Sub(now) != tt.ranking {
			t.Errorf("of %v: %v and %v, want %v and %v", tt.deadline, catchUp.Sub(now), ranking.Sub(now), tt.catchUp, tt.ranking)
		}
	}
}

// TestPlaces: twenty calls of 10 ms want four places for 45 ms. Sixteen get one
// in time, the others are told when there is none left for them.
func TestPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		places := make(service.Places, 4)
		var calls sync.WaitGroup
		var mu sync.Mutex
		got := map[string]int{}
		for range 20 {
			calls.Go(func() {
				begin := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), 35*time.Millisecond)
				defer cancel()
				leave, err := places.Enter(ctx)
				if err == nil {
					time.Sleep(10 * time.Millisecond)
					leave()
					leave() // once only
				}
				mu.Lock()
				defer mu.Unlock()
				got[fmt.Sprintf("%v after %v", status.Code(service.MapError(err)), time.Since(begin))]++
			})
		}
		calls.Wait()
		want := "map[OK after 10ms:4 OK after 20ms:4 OK after 30ms:4 OK after 40ms:4 ResourceExhausted after 35ms:4]"
		if fmt.Sprint(got) != want {
			t.Errorf("%v, want %s", got, want)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		full := make(service.Places)
		if _, err := full.Enter(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("a call that was cancelled got %v", err)
		}
	})
}

// TestNoPlace: a recall that gets no place says so, and the next one ranks.
func TestNoPlace(t *testing.T) {
	r := start(t, service.Options{})
	ref := byKey("a", "p")
	r.append(ref, said("s", "1", "kiwi"))
	r.ask(ref, "kiwi")
	leave := r.server.TakePlaces()
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	_, err := r.server.RecallDirectly(ctx, &recalldv1.RecallRequest{Memory: ref, Query: "kiwi"})
	wants(t, err, codes.ResourceExhausted, "recalls", "limit")
	leave()
	if got := r.ask(ref, "kiwi"); len(got.Passages) != 1 {
		t.Errorf("%d passages, want 1", len(got.Passages))
	}
}

// TestRefilled: passages that are dropped because their shown text is another's
// are made up for, and what the budget leaves out is counted.
func TestRefilled(t *testing.T) {
	r := start(t, service.Options{})
	ref := byKey("a", "p")
	var turns []*recalldv1.NewTurn
	for i := range 70 {
		// The first five differ only behind what 200 bytes show of them.
		text := fmt.Sprintf("kiwi number%d %s", i, strings.Repeat("and words ", 40))
		if i < 5 {
			text = "kiwi kiwi kiwi. " + strings.Repeat("x", 300) + fmt.Sprint(". ", i)
		}
		turns = append(turns, said("s", fmt.Sprint(i), text))
	}
	r.append(ref, turns...)
	for _, limit := range []uint32{1, 20, 50} {
		got := r.recallAs(&recalldv1.RecallRequest{Memory: ref, Query: "kiwi", Limit: limit, PassageBytes: 200, BudgetBytes: 256_000})
		if len(got.Passages) != int(limit) || got.Omitted != 0 {
			t.Errorf("limit %d: %d passages, %d omitted", limit, len(got.Passages), got.Omitted)
		}
	}
	got := r.recallAs(&recalldv1.RecallRequest{Memory: ref, Query: "kiwi", Limit: 20, PassageBytes: 200, BudgetBytes: 2_000})
	if n := len(got.Passages) + int(got.Omitted); n != 20 || got.Omitted == 0 {
		t.Errorf("%d passages and %d omitted, want 20 together", len(got.Passages), got.Omitted)
	}
}

// TestExcludeMessages: by id, those that are not known do no harm.
func TestExcludeMessages(t *testing.T) {
	r := start(t, service.Options{})
	ref := byKey("a", "p")
	r.append(ref, said("s", "1", "kiwi one"), said("s", "2", "kiwi two"), said("s", "3", "kiwi three"))
	got := r.recallAs(&recalldv1.RecallRequest{Memory: ref, Query: "kiwi", ExcludeMessages: []string{"s/3", "nobody", "s/1"}})
	if len(got.Passages) != 1 || got.Passages[0].MessageId != "s/2" || got.Passages[0].PreviousMessageId != "s/1" || got.Passages[0].NextMessageId != "s/3" {
		t.Errorf("passages %v", got.Passages)
	}
}

// TestRebuildsOfOneMemory: the second waits for the first, and both succeed.
func TestRebuildsOfOneMemory(t *testing.T) {
	r := start(t, service.Options{})
	ref := byKey("a", "p")
	var turns []*recalldv1.NewTurn
	for i := range 500 {
		turns = append(turns, said("s", fmt.Sprint(i), fmt.Sprintf("kiwi number%d", i)))
	}
	r.append(ref, turns...)
	var both sync.WaitGroup
	for range 4 {
		both.Go(func() {
			stream, err := r.admin.Rebuild(context.Background(), &recalldv1.RebuildRequest{Memory: ref})
			var last *recalldv1.RebuildResponse
			for err == nil && !last.GetDone() {
				last, err = stream.Recv()
			}
			if err != nil || last.MessagesDone != 500 {
				t.Errorf("Rebuild ended with %v, %v", last, err)
			}
		})
	}
	both.Wait()
	r.stop()
	if log := r.log.String(); strings.Contains(log, "level=ERROR") {
		t.Errorf("the log has errors:\n%s", log)
	}
}

// TestLastErrorIsCleared: once things go on, but for damage, which stays.
func TestLastErrorIsCleared(t *testing.T) {
	failed, damage := errors.New("failed"), errors.New("damage")
	for _, tt := range []struct {
		name   string
		damage error
		steps  []error
		want   error
	}{
		{"nothing", nil, nil, nil},
		{"failed", nil, []error{nil, failed}, failed},
		{"failed, then went on", nil, []error{failed, nil}, nil},
		{"damage", damage, []error{nil}, damage},
		{"damage, then failed", damage, []error{failed}, failed},
		{"damage, failed, then went on", damage, []error{failed, nil}, damage},
	} {
		if got := service.LastError(tt.damage, tt.steps...); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
