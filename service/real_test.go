package service_test

import (
	"cmp"
	"context"
	"io"
	"os"
	"testing"
	"time"

	"recalld/consolidate"
	"recalld/embed"
	"recalld/expand"
	"recalld/llm"
	recalldv1 "recalld/proto/recalld/v1"
	"recalld/retrieve"
	"recalld/service"
)

// TestRealOllama goes the whole way with a real server: messages are embedded,
// a query is compared and expanded, a window is read. What small models say is
// not judged; that recalld does what it promises with it is.
func TestRealOllama(t *testing.T) {
	host := os.Getenv("OLLAMA_HOST")
	if host == "" {
		t.Skip("OLLAMA_HOST is not set: no real Ollama to test with")
	}
	client := func(variable, name string) *llm.Client {
		name = cmp.Or(os.Getenv(variable), name)
		c, err := llm.New(llm.Model{Provider: llm.Ollama, Name: name, URL: host}, llm.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	chat := client("RECALLD_CHAT_MODEL", "smollm2:135m")
	remote := embed.NewOllama(client("RECALLD_EMBED_MODEL", "all-minilm"), embed.Options{})
	expander := expand.New(chat, expand.Options{})
	model := consolidate.NewModel(chat, consolidate.ModelOptions{Call: 5 * time.Minute})
	o := service.Options{
		Consolidate: "off", Maintain: "off", EmbeddingModel: remote.Identity(), ExpansionModel: expander.Identity(),
		Embedder:  func(memory string) retrieve.Embedder { return remote.For(memory) },
		Expander:  func(memory string) retrieve.Expander { return expander.For(memory) },
		Extractor: func(memory string) consolidate.Extractor { return model.For(memory) },
	}
	r := start(t, o)
	ref := byKey("agent", "harbour")
	began := time.Now()
	r.fillHarbour(ref)
	r.append(ref, said("s", "decision", "Let's use the eastern quay for grain from now on."))
	r.awaitEmbedded(ref)
	t.Logf("%d messages embedded in %v", len(harbour)+1, time.Since(began).Round(time.Millisecond))

	resp := r.recallAs(&recalldv1.RecallRequest{
		Memory: ref, Query: "vessel that carries passengers in the early hours", Expansion: recalldv1.Expansion_EXPANSION_ALWAYS,
	})
	for _, s := range resp.Sources {
		t.Logf("%s: %v in %.0f ms %s", s.Source, s.Outcome, s.Milliseconds, s.Reason)
		if s.Source == "meaning" && s.Outcome != recalldv1.Outcome_OUTCOME_USED {
			t.Errorf("meaning is %v", s.Outcome)
		}
	}
	t.Logf("expansions %q", resp.Expansions)
	if len(resp.Passages) == 0 || resp.Passages[0].MessageId != "s/3" {
		t.Errorf("the ferry is not first: %v", resp.Passages)
	}

	stream, err := recalldv1.NewJournalServiceClient(dial(t, r.socket, token)).Consolidate(context.Background(),
		&recalldv1.ConsolidateRequest{Memory: ref, Extractor: "model", CloseTail: true})
	if err != nil {
		t.Fatal(err)
	}
	began = time.Now()
	var last *recalldv1.ConsolidateResponse
	for {
		next, err := stream.Recv()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Logf("consolidation with the model: %v after %v", err, time.Since(began).Round(time.Millisecond))
			break
		}
		last = next
	}
	t.Logf("consolidation: %v in %v", last, time.Since(began).Round(time.Millisecond))
	verdict, err := recalldv1.NewJournalServiceClient(dial(t, r.socket, token)).Verify(context.Background(), &recalldv1.JournalServiceVerifyRequest{Memory: ref})
	if err != nil || !verdict.Ok {
		t.Errorf("Verify = %v, %v", verdict, err)
	}
}
