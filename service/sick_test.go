package service_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"recalld/embed"
	"recalld/expand"
	"recalld/llm"
	"recalld/llm/llmtest"
	recalldv1 "recalld/proto/recalld/v1"
	"recalld/retrieve"
	"recalld/service"
)

// harbour is a memory in which some words are found and some only meant.
var harbour = []string{
	"the harbour is north of the old bridge", "ships unload grain at the eastern quay",
	"we painted the lighthouse white last spring", "the ferry leaves at seven in the morning",
	"nobody repaired the crane after the storm", "salt is stored behind the customs house",
}

func (r *rig) fillHarbour(ref *recalldv1.MemoryRef) {
	r.t.Helper()
	var turns []*recalldv1.NewTurn
	for i, text := range harbour {
		turns = append(turns, said("s", strconv.Itoa(i), text))
	}
	r.append(ref, turns...)
}

// modelled is a server's options with an embedding and a chat model at s, asked
// in the protocol of p, and what closes the connections that are kept for the
// next call.
func modelled(t *testing.T, s *llmtest.Server, p llm.Provider) (o service.Options, closeIdle func()) {
	t.Helper()
	var clients []*llm.Client
	closeIdle = func() {
		for _, c := range clients {
			c.Close()
		}
	}
	t.Cleanup(closeIdle) // before the server's end
	url, newRemote := s.URL, embed.NewOllama
	if p == llm.OpenAI {
		url, newRemote = s.OpenAI(), embed.NewOpenAI
	}
	client := func(name string) *llm.Client {
		c, err := llm.New(llm.Model{Provider: p, Name: name, URL: url}, llm.Options{})
		if err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
		return c
	}
	remote, expander := newRemote(client("embedder"), embed.Options{}), expand.New(client("chat"), expand.Options{})
	return service.Options{
		Consolidate: "off", Maintain: "off",
		EmbeddingModel: remote.Identity(), ExpansionModel: expander.Identity(),
		Embedder: func(memory string) retrieve.Embedder { return remote.For(memory) },
		Expander: func(memory string) retrieve.Expander { return expander.For(memory) },
	}, closeIdle
}

// sickDeadline is what each recall has; an answer that comes later is an error.
const sickDeadline = time.Second

// sickAnswer asks with a deadline, for expansion in any case, and gives the
// passages with their scores.
func (r *rig) sickAnswer(ref *recalldv1.MemoryRef, query string) []string {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), sickDeadline)
	defer cancel()
	resp, err := r.recall.Recall(ctx, &recalldv1.RecallRequest{
		Memory: ref, Query: query, Relevance: recalldv1.Relevance_RELEVANCE_ALWAYS, Expansion: recalldv1.Expansion_EXPANSION_ALWAYS,
	})
	if err != nil {
		r.t.Fatalf("Recall(%q): %v", query, err)
	}
	var list []string
	for _, p := range resp.Passages {
		list = append(list, fmt.Sprintf("%s %.6f", p.MessageId, p.Score))
	}
	return list
}

var harbourQueries = []string{"where is the harbour", "when does the ferry leave", "who fixed the crane"}

// sound are the behaviours under which there are vectors as they should be, if
// not of all texts: they are made use of.
var sound = []llmtest.Behaviour{llmtest.NotUnit, llmtest.OneBad, llmtest.MixedDimension}

// TestSickModels: whatever the model servers do, the passages are those of a
// server without models, in time, and nothing is left behind.
func TestSickModels(t *testing.T) {
	leavesNothing(t)
	ref := byKey("agent", "harbour")
	plain := start(t, service.Options{Consolidate: "off"})
	plain.fillHarbour(ref)
	var want [][]string
	for _, q := range harbourQueries {
		want = append(want, plain.sickAnswer(ref, q))
	}
	plain.stop()
	all := llmtest.ForEmbed()
	for _, b := range llmtest.ForChat() {
		if !slices.Contains(all, b) {
			all = append(all, b)
		}
	}
	providers := []llm.Provider{llm.Ollama, llm.OpenAI}
	if testing.Short() {
		providers = providers[:1]
	}
	files := openFiles()
	t.Run("all", func(t *testing.T) { // returns when all of them have ended
		for _, p := range providers {
			for _, later := range []bool{false, true} {
				for _, b := range all {
					if slices.Contains(sound, b) || b == llmtest.WrongDimension && p == llm.OpenAI && !later {
						continue // nobody said what the right dimension is
					}
					t.Run(fmt.Sprintf("%s/%s/sick later %t", p, b, later), func(t *testing.T) {
						t.Parallel()
						askSickModels(t, ref, p, b, later, want)
					})
				}
			}
		}
	})
	if now := openFiles(); now > files+5 {
		t.Errorf("%d files are open, %d before", now, files)
	}
}

func askSickModels(t *testing.T, ref *recalldv1.MemoryRef, p llm.Provider, b llmtest.Behaviour, later bool, want [][]string) {
	s := llmtest.New(t, llmtest.Options{})
	// A behaviour of chats alone leaves embeddings well, which would help.
	o, closeIdle := modelled(t, s, p)
	if !slices.Contains(llmtest.ForEmbed(), b) {
		o.Embedder = nil
	}
	if !later {
		s.Be(b)
	}
	r := start(t, o)
	r.fillHarbour(ref)
	if later {
		if o.Embedder != nil {
			r.awaitEmbedded(ref)
		}
		s.Be(b)
	}
	for i, q := range harbourQueries {
		if diff := cmp.Diff(want[i], r.sickAnswer(ref, q)); diff != "" {
			t.Errorf("%q: passages (-without models +with):\n%s", q, diff)
		}
	}
	r.stop()
	closeIdle()
	s.AwaitClosed(t)
}

// awaitEmbedded waits until all of a memory has its vectors.
func (r *rig) awaitEmbedded(ref *recalldv1.MemoryRef) {
	r.t.Helper()
	for range 1000 {
		resp, err := r.admin.Status(context.Background(), &recalldv1.StatusRequest{Memory: ref})
		if err != nil {
			r.t.Fatal(err)
		}
		if m := resp.Memories[0]; m.Open && m.EmbeddingTotal > 0 && m.EmbeddingDone == m.EmbeddingTotal && m.EmbeddingNextModel == "" {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	r.t.Fatal("the memory is not embedded after ten seconds")
}

// cancelling is how many callers cancel at once.
const cancelling = 8

// cancels is how many recalls are cancelled; RECALLD_CANCELS sets another number.
func cancels() int {
	if n, err := strconv.Atoi(os.Getenv("RECALLD_CANCELS")); err == nil {
		return n
	}
	return 500
}

// openFiles counts the files the process has open, where that can be told.
func openFiles() int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(list)
}

// TestCancelledRecalls: calls that are cancelled at random moments, while words
// are ranked, a query is embedded or a model is asked, leave nothing.
func TestCancelledRecalls(t *testing.T) {
	leavesNothing(t)
	s := llmtest.New(t, llmtest.Options{})
	o, closeIdle := modelled(t, s, llm.Ollama)
	r := start(t, o)
	ref := byKey("agent", "harbour")
	r.fillHarbour(ref)
	r.awaitEmbedded(ref)
	// So many connections of the ledger are kept as there were readers at once.
	var warm sync.WaitGroup
	for range cancelling {
		warm.Go(func() {
			for range 20 {
				r.sickAnswer(ref, harbourQueries[0])
			}
		})
	}
	warm.Wait()
	closeIdle()
	goroutines, files := runtime.NumGoroutine(), openFiles()

	random := rand.New(rand.NewPCG(1, 2))
	waits := make([]time.Duration, cancels())
	for i := range waits {
		waits[i] = time.Duration(random.Int64N(int64(4 * time.Millisecond)))
	}
	var next atomic.Int64
	var group sync.WaitGroup
	for range cancelling {
		group.Go(func() {
			for {
				i := next.Add(1) - 1
				if i >= int64(len(waits)) {
					return
				}
				ctx, cancel := context.WithCancel(context.Background())
				timer := time.AfterFunc(waits[i], cancel)
				_, err := r.recall.Recall(ctx, &recalldv1.RecallRequest{
					// Each asks something new, so that no answer is kept.
					Memory: ref, Query: fmt.Sprintf("crane %d", i), Expansion: recalldv1.Expansion_EXPANSION_ALWAYS,
					Relevance: recalldv1.Relevance_RELEVANCE_ALWAYS,
				})
				if c := status.Code(err); c != codes.OK && c != codes.Canceled {
					t.Errorf("Recall: %v", err)
				}
				timer.Stop()
				cancel()
			}
		})
	}
	group.Wait()
	settled := func() bool {
		closeIdle() // a call that ends late gives its connection back late
		return runtime.NumGoroutine() <= goroutines+5 && openFiles() <= files+5
	}
	for i := 0; i < 500 && !settled(); i++ {
		time.Sleep(10 * time.Millisecond)
	}
	if !settled() {
		t.Errorf("%d goroutines and %d files, before the calls %d and %d", runtime.NumGoroutine(), openFiles(), goroutines, files)
	}
}

// leavesNothing has the test fail if goroutines are left after everything that
// it makes from now on is cleaned up.
func leavesNothing(t *testing.T) {
	before := ignored()
	t.Cleanup(func() { goleak.VerifyNone(t, before...) })
}

// A mute model takes every question and never answers.
type mute struct{}

func (mute) Identity() string { return "mute" }

func (mute) EmbedDocuments(_ context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		vectors[i] = llmtest.Vector(text, 16)
	}
	return vectors, nil
}

func (mute) EmbedQuery(ctx context.Context, _ string) ([]float32, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (mute) Expand(ctx context.Context, _ string) ([]string, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// BenchmarkMuteModel asks a memory of 2,000 messages, eight calls at a time, with
// models that never answer. late/op is the share of calls that were not answered
// before the client's deadline, empty/op of answers without passages.
func BenchmarkMuteModel(b *testing.B) {
	for _, deadline := range []time.Duration{50 * time.Millisecond, 300 * time.Millisecond, 2 * time.Second} {
		b.Run(deadline.String(), func(b *testing.B) { askMute(b, deadline) })
	}
}

func askMute(b *testing.B, deadline time.Duration) {
	r := start(b, service.Options{
		Consolidate: "off", Maintain: "off",
		Embedder: func(string) retrieve.Embedder { return mute{} },
		Expander: func(string) retrieve.Expander { return mute{} },
	})
	ref := byKey("agent", "harbour")
	var turns []*recalldv1.NewTurn
	for i := range 2000 {
		turns = append(turns, said("s", strconv.Itoa(i), fmt.Sprintf("%s, number %d", harbour[i%len(harbour)], i)))
		if len(turns) == 500 {
			if _, err := r.memories.Append(context.Background(), &recalldv1.AppendRequest{Memory: ref, Turns: turns}); err != nil {
				b.Fatal(err)
			}
			turns = nil
		}
	}
	var late, empty, asked atomic.Int64
	b.SetParallelism(max(1, 8/runtime.GOMAXPROCS(0)))
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			ctx, cancel := context.WithTimeout(context.Background(), deadline)
			resp, err := r.recall.Recall(ctx, &recalldv1.RecallRequest{
				Memory: ref, Query: "who repaired the crane", Relevance: recalldv1.Relevance_RELEVANCE_ALWAYS,
				Expansion: recalldv1.Expansion_EXPANSION_ALWAYS,
			})
			cancel()
			asked.Add(1)
			switch {
			case err != nil:
				late.Add(1)
			case len(resp.Passages) == 0:
				empty.Add(1)
			}
		}
	})
	b.ReportMetric(float64(late.Load())/float64(asked.Load()), "late/op")
	b.ReportMetric(float64(empty.Load())/float64(asked.Load()), "empty/op")
}
