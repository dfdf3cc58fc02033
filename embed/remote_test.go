package embed_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"recalld/embed"
	"recalld/llm"
)

// near compares vectors, which are scaled.
var near = cmpopts.EquateApprox(0, 1e-6)

// unit is what a Remote is to return for a text that the fake server got.
func unit(text string) []float32 {
	v := vectorOf(text)
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	for i := range v {
		v[i] = float32(float64(v[i]) / math.Sqrt(sum))
	}
	return v
}

func TestEmbedDocuments(t *testing.T) {
	for _, p := range providers {
		t.Run(string(p), func(t *testing.T) {
			f := newFake(t)
			r := f.remote(t, p, "some-model", embed.Options{})
			texts := []string{"the harbour", "", " \n\x00 ", "a  lamp\x00\n\xff post"}
			got, err := r.EmbedDocuments(t.Context(), texts)
			if err != nil {
				t.Fatal(err)
			}
			want := [][]float32{unit("the harbour"), nil, nil, unit("a lamp post")}
			if diff := cmp.Diff(want, got, near); diff != "" {
				t.Errorf("vectors (-want +got):\n%s", diff)
			}
			last := f.asks[len(f.asks)-1]
			if last.Model != "some-model" || last.key != "Bearer sesame" || last.Dimensions != 0 {
				t.Errorf("asked for model %q with key %q and %d dimensions", last.Model, last.key, last.Dimensions)
			}
			if p == llm.Ollama && (last.Truncate == nil || *last.Truncate) {
				t.Error("the server was not told to leave cutting to us")
			}
			if p == llm.OpenAI && last.Format != "float" {
				t.Errorf("encoding_format = %q, want float", last.Format)
			}
		})
	}
}

func TestNothingToAskAsksNothing(t *testing.T) {
	for _, p := range providers {
		f := newFake(t)
		r := f.remote(t, p, "some-model", embed.Options{})
		vectors, err := r.EmbedDocuments(t.Context(), []string{"", "\t\x00"})
		if err != nil || !cmp.Equal(vectors, [][]float32{nil, nil}) {
			t.Errorf("%s: EmbedDocuments of blank texts = %v, %v", p, vectors, err)
		}
		vector, err := r.EmbedQuery(t.Context(), " ")
		if err != nil || vector != nil {
			t.Errorf("%s: EmbedQuery of a blank text = %v, %v", p, vector, err)
		}
		if n := len(f.asks) + f.shown; n != 0 {
			t.Errorf("%s: %d requests, want none", p, n)
		}
	}
}

func TestBatches(t *testing.T) {
	wide := "[" + strings.Repeat("1,", 4095) + "1]"
	tests := []struct {
		name       string
		show       string
		vector     string
		dimensions int
		want       []int
	}{
		{"at most 32 texts", fakeShow, "", 4, []int{32, 32, 6}},
		{"and answers below 1 MiB", strings.Replace(fakeShow, `"bert.embedding_length": 4`, `"bert.embedding_length": 4096`, 1), wide, 4096,
			[]int{8, 8, 8, 8, 8, 8, 8, 8, 6}},
	}
	for _, tt := range tests {
		for _, p := range providers {
			t.Run(fmt.Sprint(p, ": ", tt.name), func(t *testing.T) {
				f := newFake(t)
				f.show = tt.show
				f.vector = func(string) string { return tt.vector }
				texts := make([]string, 70)
				for i := range texts {
					texts[i] = fmt.Sprint("text ", i)
				}
				vectors, err := f.remote(t, p, "some-model", embed.Options{}).EmbedDocuments(t.Context(), texts)
				if err != nil {
					t.Fatal(err)
				}
				for i, v := range vectors {
					if len(v) != tt.dimensions {
						t.Fatalf("vector %d has %d dimensions, want %d", i, len(v), tt.dimensions)
					}
				}
				var sizes []int
				for _, batch := range f.texts() {
					if batch[0] != "memory" {
						sizes = append(sizes, len(batch))
					}
				}
				if diff := cmp.Diff(tt.want, sizes); diff != "" {
					t.Errorf("texts a request (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestDimensions(t *testing.T) {
	for _, p := range providers {
		f := newFake(t)
		f.vector = func(string) string { return "[3, 4]" }
		v, err := f.remote(t, p, "some-model", embed.Options{Dimensions: 2}).EmbedQuery(t.Context(), "x")
		if err != nil || !cmp.Equal(v, []float32{.6, .8}, near) {
			t.Errorf("%s: EmbedQuery = %v, %v", p, v, err)
		}
		if got := f.asks[len(f.asks)-1].Dimensions; got != 2 {
			t.Errorf("%s: asked for %d dimensions, want 2", p, got)
		}
		// A server that ignores the wish must not be believed.
		f.vector = nil
		if _, err := f.remote(t, p, "some-model", embed.Options{Dimensions: 2}).EmbedQuery(t.Context(), "x"); err == nil {
			t.Errorf("%s: vectors of 4 dimensions were taken for 2", p)
		}
		if _, err := f.remote(t, p, "some-model", embed.Options{Dimensions: 8}).EmbedQuery(t.Context(), "x"); err == nil {
			t.Errorf("%s: 8 dimensions of a model with 4 were taken", p)
		}
	}
}

func TestPrefixes(t *testing.T) {
	const sentence = "Represent this sentence for searching relevant passages: "
	empty, mine := "", "mine: "
	tests := []struct {
		name            string
		options         embed.Options
		query, document string
	}{
		{name: "all-minilm"},
		{name: "unheard-of"},
		{name: "intfloat/e5-base-v2", query: "query: ", document: "passage: "},
		{name: "yxchia/multilingual-e5-base", query: "query: ", document: "passage: "},
		{name: "jeffh/intfloat-multilingual-e5-large-instruct:f16",
			query: "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: "},
		{name: "nomic-embed-text", query: "search_query: ", document: "search_document: "},
		{name: "nomic-embed-text-v2-moe", query: "search_query: ", document: "search_document: "},
		{name: "text-embedding-nomic-embed-text-v1.5", query: "search_query: ", document: "search_document: "},
		{name: "bge-large:335m", query: sentence},
		{name: "hf.co/CompendiumLabs/bge-base-en-v1.5-gguf:Q8_0", query: sentence},
		{name: "bge-m3"},
		{name: "mxbai-embed-large", query: sentence},
		{name: "snowflake-arctic-embed:33m", query: sentence},
		{name: "snowflake-arctic-embed2", query: "query: "},
		{name: "Snowflake/snowflake-arctic-embed-l-v2.0", query: "query: "},
		{name: "embeddinggemma:300m", query: "task: search result | query: ", document: "title: none | text: "},
		{name: "dengcao/Qwen3-Embedding-0.6B:Q8_0",
			query: "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"},
		{name: "text-embedding-3-small"},
		{name: "bge-large", options: embed.Options{QueryPrefix: &empty}},
		{name: "bge-large", options: embed.Options{DocumentPrefix: &mine}, query: sentence, document: mine},
	}
	for _, tt := range tests {
		for _, p := range providers {
			t.Run(fmt.Sprint(p, ":", tt.name), func(t *testing.T) {
				f := newFake(t)
				r := f.remote(t, p, tt.name, tt.options)
				if _, err := r.EmbedQuery(t.Context(), "x"); err != nil {
					t.Fatal(err)
				}
				if _, err := r.EmbedDocuments(t.Context(), []string{"x"}); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff([]string{tt.query + "x", tt.document + "x"}, f.sent()); diff != "" {
					t.Errorf("sent (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestFolding(t *testing.T) {
	const text = "\u00dcn\u00efc\u00f6d\u00e9  na\u0131\u0308ve \u201ccaf\u00e9\u201d\u2026 it\u2019s x>=10 & a|b\u200b\u2013c $5\u00a0~1"
	tests := []struct{ model, want string }{
		{"all-minilm", "Unicode na\u0131ve \"cafe\"... it's x > = 10 & a | b-c $ 5 ~ 1"},
		{"bge-m3", "\u00dcn\u00efc\u00f6d\u00e9 na\u0131\u0308ve \u201ccaf\u00e9\u201d\u2026 it\u2019s x>=10 & a|b\u200b\u2013c $5 ~1"},
	}
	for _, tt := range tests {
		f := newFake(t)
		if _, err := f.remote(t, llm.Ollama, tt.model, embed.Options{}).EmbedDocuments(t.Context(), []string{text}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{tt.want}, f.sent()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.model, diff)
		}
	}
}

// TestRemoteIdentity: whatever changes a vector changes the identity, and
// nothing else does.
func TestRemoteIdentity(t *testing.T) {
	empty, a, b := "", "a", "b"
	seen := map[string]string{}
	for _, tt := range []struct {
		model   string
		options embed.Options
	}{
		{"ollama:all-minilm", embed.Options{}},
		{"ollama:all-minilm:33m", embed.Options{}},
		{"openai:all-minilm", embed.Options{}},
		{"openai:all-minilm:latest", embed.Options{}},
		{"ollama:bge-m3", embed.Options{}},
		{"ollama:all-minilm", embed.Options{Dimensions: 128}},
		{"ollama:all-minilm", embed.Options{MaxTokens: 128}},
		{"ollama:all-minilm", embed.Options{QueryPrefix: &a}},
		{"ollama:all-minilm", embed.Options{QueryPrefix: &b}},
		{"ollama:all-minilm", embed.Options{DocumentPrefix: &a}},
		{"ollama:all-minilm", embed.Options{QueryPrefix: &a, DocumentPrefix: &b}},
		{"ollama:all-minilm", embed.Options{QueryPrefix: &b, DocumentPrefix: &a}},
		{"ollama:nomic-embed-text", embed.Options{}},
		{"ollama:nomic-embed-text", embed.Options{QueryPrefix: &empty}},
		{"ollama:nomic-embed-text", embed.Options{QueryPrefix: &empty, DocumentPrefix: &empty}},
	} {
		name := fmt.Sprintf("%s %+v", tt.model, tt.options)
		identity := identityOf(t, tt.model, tt.options)
		if other, ok := seen[identity]; ok {
			t.Errorf("%s and %s have the same identity %q", name, other, identity)
		}
		seen[identity] = name
	}

	plain := identityOf(t, "ollama:all-minilm", embed.Options{})
	if want := "ollama:all-minilm uncased-v1"; plain != want {
		t.Errorf("Identity() = %q, want %q", plain, want)
	}
	for name, same := range map[string]string{
		"the tag that Ollama adds": identityOf(t, "ollama:all-minilm:latest", embed.Options{}),
		"a prefix that is none":    identityOf(t, "ollama:all-minilm", embed.Options{QueryPrefix: &empty}),
		"a larger cache":           identityOf(t, "ollama:all-minilm", embed.Options{CacheQueries: 9}),
	} {
		if same != plain {
			t.Errorf("%s changes the identity to %q", name, same)
		}
	}
}

func identityOf(t *testing.T, model string, o embed.Options) string {
	t.Helper()
	m, err := llm.Parse(model)
	if err != nil {
		t.Fatal(err)
	}
	m.URL = "http://127.0.0.1:1" // nobody is there, and nobody is asked
	return newRemote(t, m, llm.Options{}, o).Identity()
}

func TestQueriesAreKept(t *testing.T) {
	f := newFake(t)
	r := f.remote(t, llm.Ollama, "some-model", embed.Options{CacheQueries: 2})
	ask := func(r *embed.Remote, text string) []float32 {
		t.Helper()
		v, err := r.EmbedQuery(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(unit(text), v, near); diff != "" {
			t.Errorf("vector of %q (-want +got):\n%s", text, diff)
		}
		return v
	}
	clear(ask(r, "one")) // the caller's to keep
	ask(r, "one")
	ask(r.For(""), "one")
	if diff := cmp.Diff([]string{"one"}, f.sent()); diff != "" {
		t.Fatalf("sent (-want +got):\n%s", diff)
	}
	ask(r.For("another memory"), "one") // pays for itself
	ask(r.For("another memory"), "one")
	ask(r, "two") // drops the oldest
	ask(r, "one")
	if diff := cmp.Diff([]string{"one", "one", "two", "one"}, f.sent()); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}

	f.refuse = func(string) (int, string) { return 503, "" }
	if _, err := r.EmbedQuery(t.Context(), "three"); err == nil {
		t.Error("a server that is busy is no error")
	}
	f.refuse = nil
	ask(r, "three") // errors are not kept
}

// TestConcurrentUse is for the race detector.
func TestConcurrentUse(t *testing.T) {
	f := newFake(t)
	r := f.remote(t, llm.Ollama, "some-model", embed.Options{CacheQueries: 3})
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			mine := r.For(fmt.Sprint(i % 2))
			for j := range 10 {
				text := fmt.Sprint("text ", j%4)
				v, err := mine.EmbedQuery(t.Context(), text)
				if err != nil || !cmp.Equal(v, unit(text), near) {
					t.Errorf("EmbedQuery(%q) = %v, %v", text, v, err)
				}
				if _, err := mine.EmbedDocuments(t.Context(), []string{text}); err != nil {
					t.Error(err)
				}
				if j == 5 {
					if _, err := mine.Check(t.Context()); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	group.Wait()
}

// spending keeps what is charged, by account.
type spending struct {
	mu   sync.Mutex
	uses map[string][]llm.Use
}

func (s *spending) Spent(_ context.Context, account string) (own, all uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, uses := range s.uses {
		for _, u := range uses {
			all += u.Tokens
			if name == account {
				own += u.Tokens
			}
		}
	}
	return own, all, nil
}

func (s *spending) Charge(_ context.Context, account string, u llm.Use) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uses[account] = append(s.uses[account], u)
	return nil
}

func TestSpending(t *testing.T) {
	for _, p := range providers {
		f := newFake(t)
		s := &spending{uses: map[string][]llm.Use{}}
		r := newRemote(t, llm.Model{Provider: p, Name: "some-model", URL: f.URL}, llm.Options{Meter: s, DailyTokens: 100}, embed.Options{})
		if _, err := r.EmbedQuery(t.Context(), "hello"); err != nil { // learns about the model
			t.Fatal(err)
		}
		mine := r.For("mine")
		if _, err := mine.EmbedDocuments(t.Context(), strings.Split("a b c d e f g h i j k l m n o", " ")); err != nil {
			t.Fatal(err)
		}
		if own, _, _ := s.Spent(t.Context(), "mine"); own != 15*7 {
			t.Errorf("%s: %d tokens charged, want %d", p, own, 15*7)
		}
		if got := s.uses["mine"][0].Purpose; got != "embed" {
			t.Errorf("%s: purpose %q, want embed", p, got)
		}
		before := len(f.asks)
		_, err := mine.EmbedDocuments(t.Context(), []string{"d"})
		if skipped, ok := errors.AsType[interface {
			error
			Skipped() string
		}](err); !ok || skipped.Skipped() == "" {
			t.Errorf("%s: error %v does not say that the call was skipped", p, err)
		}
		if len(f.asks) != before {
			t.Errorf("%s: the server was asked beyond the cap", p)
		}
	}
}
