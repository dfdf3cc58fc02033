package retrieve_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"recalld/retrieve"
)

// TestDeadlinesWithSilentModels: with models that never answer, recalls of any
// deadline are answered before it with what words find.
func TestDeadlinesWithSilentModels(t *testing.T) {
	all := chats(300, 31)
	model := newBag("m", 16)
	with, off := embedded(t, model, expander(func(ctx context.Context, _ string) ([]string, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}), all)
	model.query = func(ctx context.Context, _ string) ([]float32, error) { <-ctx.Done(); return nil, ctx.Err() }
	for _, deadline := range []time.Duration{0, 5 * time.Millisecond, 50 * time.Millisecond, 300 * time.Millisecond, 2 * time.Second, time.Minute} {
		for _, relevance := range []retrieve.Relevance{retrieve.Gated, retrieve.Always} {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := t.Context(), context.CancelFunc(func() {})
				limit := 6 * time.Second
				if deadline > 0 {
					ctx, cancel = context.WithTimeout(ctx, deadline)
					limit = min(limit, (deadline-min(20*time.Millisecond, deadline/5))*2/3)
				}
				defer cancel()
				q := retrieve.Query{Text: "word40 word500 word77", Relevance: relevance, Expansion: retrieve.ExpandAlways}
				begin := time.Now()
				got, err := with.Recall(ctx, q)
				if took := time.Since(begin); err != nil || took > limit {
					t.Errorf("deadline %v: took %v, want at most %v; error %v", deadline, took, limit, err)
				}
				if diff := cmp.Diff(ownAnswer(ask(t, off, q)), ownAnswer(got)); diff != "" {
					t.Errorf("deadline %v: differs from the answer without models:\n%s", deadline, diff)
				}
			})
		}
	}
}

// TestCancelledRecalls: recalls that are cancelled at any moment leave nothing
// behind, and are told so.
func TestCancelledRecalls(t *testing.T) {
	leakFree(t)
	all := chats(300, 33)
	model := newBag("m", 16)
	with, _ := embedded(t, model, expander(func(ctx context.Context, _ string) ([]string, error) {
		select {
		case <-time.After(20 * time.Millisecond):
			return []string{"word9 word10"}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}), all)
	model.query = func(ctx context.Context, text string) ([]float32, error) {
		select {
		case <-time.After(10 * time.Millisecond):
			return model.embed([]string{text})[0], nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	random := rand.New(rand.NewPCG(1, 1))
	before := runtime.NumGoroutine()
	for range 1000 {
		at := time.Duration(random.IntN(40)) * time.Millisecond
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			time.AfterFunc(at, cancel)
			_, err := with.Recall(ctx, retrieve.Query{Text: "word1 word2 word3", Relevance: retrieve.Always, Expansion: retrieve.ExpandAlways})
			if err != nil && !errors.Is(err, context.Canceled) || err == nil && at < 10*time.Millisecond {
				t.Errorf("cancelled after %v: %v", at, err)
			}
		})
	}
	if after := runtime.NumGoroutine(); after > before+5 {
		t.Errorf("%d goroutines, were %d", after, before)
	}
}

// TestBusyModel: queries that outlive their recalls are bounded; beyond that
// no more are asked.
func TestBusyModel(t *testing.T) {
	leakFree(t)
	all := chats(200, 35)
	model := newBag("m", 16)
	with, _ := embedded(t, model, nil, all)
	model.query = func(context.Context, string) ([]float32, error) { time.Sleep(time.Hour); return nil, nil }
	asked := model.queries.Load()
	synctest.Test(t, func(t *testing.T) {
		busy := 0
		for range 40 {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			r, err := with.Recall(ctx, retrieve.Query{Text: "word1 word2", Relevance: retrieve.Always})
			cancel()
			if err != nil || len(r.Passages) == 0 {
				t.Fatalf("%d passages, error %v", len(r.Passages), err)
			}
			if o := outcome(t, r, retrieve.Meaning); o.Outcome == retrieve.Skipped && strings.HasPrefix(o.Reason, "busy") {
				busy++
			}
		}
		if n := model.queries.Load() - asked; n != 16 || busy != 24 {
			t.Errorf("%d were asked and %d found it busy, want 16 and 24", n, busy)
		}
		time.Sleep(2 * time.Hour)
	})
}

// TestYield: a recall that waits for a model lets others rank meanwhile; one
// that gets no place back in time answers without the model.
func TestYield(t *testing.T) {
	all := chats(300, 37)
	model := newBag("m", 16)
	with, off := embedded(t, model, nil, all)
	wait := time.Duration(0)
	model.query = func(_ context.Context, text string) ([]float32, error) {
		time.Sleep(wait)
		return model.embed([]string{text})[0], nil
	}
	place := errors.New("no place")
	for _, tt := range []struct {
		name   string
		wait   time.Duration
		resume func(ctx context.Context) error
		want   retrieve.Outcome
	}{
		{"free", 50 * time.Millisecond, func(context.Context) error { return nil }, retrieve.Used},
		{"taken", 50 * time.Millisecond, func(ctx context.Context) error { <-ctx.Done(); return place }, retrieve.Late},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wait = tt.wait
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				var yielded, resumed time.Duration
				begin := time.Now()
				q := retrieve.Query{Text: "word1 word2 word3", Relevance: retrieve.Always}
				q.Yield = func() func(context.Context) error {
					yielded = time.Since(begin)
					return func(ctx context.Context) error {
						resumed = time.Since(begin)
						return tt.resume(ctx)
					}
				}
				r, err := with.Recall(ctx, q)
				if took := time.Since(begin); err != nil || took >= time.Second {
					t.Fatalf("took %v, error %v", took, err)
				}
				if o := outcome(t, r, retrieve.Meaning); o.Outcome != tt.want {
					t.Errorf("meaning is %+v, want %v", o, tt.want)
				}
				if yielded != 0 || resumed != tt.wait {
					t.Errorf("yielded after %v, resumed after %v", yielded, resumed)
				}
				if tt.want == retrieve.Late {
					q.Yield = nil
					if diff := cmp.Diff(ownAnswer(ask(t, off, q)), ownAnswer(r)); diff != "" {
						t.Errorf("differs from the answer without a model:\n%s", diff)
					}
				}
			})
		})
	}
}

// TestWakeModel: a query that came too late for a model that was being loaded has
// it loaded for the next.
func TestWakeModel(t *testing.T) {
	leakFree(t)
	all := chats(100, 39)
	model := newBag("m", 16)
	with, _ := embedded(t, model, nil, all)
	loaded, woken := make(chan struct{}), make(chan struct{}, 10)
	model.query = func(ctx context.Context, text string) ([]float32, error) {
		select {
		case <-loaded:
			return model.embed([]string{text})[0], nil
		case <-ctx.Done(): // and nothing is loaded
			return nil, ctx.Err()
		}
	}
	model.documents = func(_ context.Context, texts []string) ([][]float32, error) {
		woken <- struct{}{}
		return model.embed(texts), nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan struct{})
	go func() { defer close(ran); _ = with.Run(ctx) }()
	defer func() { cancel(); <-ran }()
	for _, step := range []struct {
		deadline time.Duration
		want     retrieve.Outcome
	}{{100 * time.Millisecond, retrieve.Late}, {time.Minute, retrieve.Used}} {
		ctx, cancel := context.WithTimeout(t.Context(), step.deadline)
		r, err := with.Recall(ctx, retrieve.Query{Text: "word1 word2 word3", Relevance: retrieve.Always})
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		if o := outcome(t, r, retrieve.Meaning); o.Outcome != step.want {
			t.Errorf("meaning is %+v, want %v", o, step.want)
		}
		if step.want == retrieve.Late {
			<-woken
			close(loaded)
		}
	}
}
