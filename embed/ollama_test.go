package embed_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"recalld/embed"
	"recalld/llm"
)

// real returns a model on the server at OLLAMA_HOST, or skips the test: the
// gate needs no server.
func real(t *testing.T, provider llm.Provider, name string, o embed.Options) *embed.Remote {
	t.Helper()
	host := os.Getenv("OLLAMA_HOST")
	if host == "" {
		t.Skip("OLLAMA_HOST is not set: no real Ollama to test with")
	}
	r := newRemote(t, llm.Model{Provider: provider, Name: name, URL: host}, llm.Options{}, o)
	if _, err := r.Check(t.Context()); errors.Is(err, llm.ErrMissing) {
		t.Skip(err)
	}
	return r
}

func cosine(a, b []float32) float64 {
	var sum float64
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

func TestRealOllama(t *testing.T) {
	for _, p := range providers {
		t.Run(string(p), func(t *testing.T) {
			r := real(t, p, "all-minilm", embed.Options{})
			info, err := r.Check(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s: %+v", r.Identity(), info)
			if info.Dimensions != 384 || p == llm.Ollama && info.ContextTokens != 512 {
				t.Errorf("Check = %+v, want 384 dimensions and 512 tokens", info)
			}

			t.Run("order of cosines", func(t *testing.T) {
				texts := []string{
					"We keep the job queue in PostgreSQL.",
					"The backup runs every night at two.",
					"My sister's cat sleeps all day.",
				}
				vectors, err := r.EmbedDocuments(t.Context(), texts)
				if err != nil {
					t.Fatal(err)
				}
				query, err := r.EmbedQuery(t.Context(), "Which database holds the tasks that wait?")
				if err != nil {
					t.Fatal(err)
				}
				var c []float64
				for i, v := range vectors {
					c = append(c, cosine(query, v))
					t.Logf("%.3f %s", c[i], texts[i])
				}
				if c[0] < c[1] || c[1] < c[2] {
					t.Errorf("cosines %.3f are not in falling order", c)
				}
			})

			t.Run("folding", func(t *testing.T) {
				for text, plain := range map[string]string{
					"Ünïcödé naïve café":           "Unicode naive cafe",
					"“Don’t”—she said… ‘no’":       `"Don't"-she said... 'no'`,
					"if x>=10&&y<3 then a|b costs": "if x > = 10 && y < 3 then a | b costs",
				} {
					vectors, err := r.EmbedDocuments(t.Context(), []string{text, plain})
					if err != nil {
						t.Fatal(err)
					}
					c := cosine(vectors[0], vectors[1])
					t.Logf("%.6f %s", c, text)
					if c < .999 {
						t.Errorf("cosine of %q and %q is %.6f", text, plain, c)
					}
				}
			})

			t.Run("lengths and odd texts", func(t *testing.T) {
				var numbers strings.Builder
				for i := range 20000 {
					fmt.Fprint(&numbers, i*7919, "-")
				}
				texts := []string{
					strings.Repeat("a long tale of many words ", 4000), numbers.String(), "", strings.Repeat("日本語", 3000),
					strings.Repeat("QmFzZTY0IGlzIG5vIHdvcmQ", 900), "\x00\xff", "x\x00y", "🚀", strings.Repeat("Größe ", 2000),
				}
				vectors, err := r.EmbedDocuments(t.Context(), texts)
				if err != nil {
					t.Fatal(err)
				}
				for i, v := range vectors {
					if blank := texts[i] == "" || texts[i] == "\x00\xff"; (v == nil) != blank {
						t.Errorf("vector of text %d (%.20q): %d numbers", i, texts[i], len(v))
					}
				}
			})

			t.Run("fewer dimensions", func(t *testing.T) {
				v, err := real(t, p, "all-minilm", embed.Options{Dimensions: 128}).EmbedQuery(t.Context(), "hello")
				if err != nil || len(v) != 128 {
					t.Errorf("EmbedQuery = %d numbers, %v; want 128", len(v), err)
				}
			})
		})
	}
}

// TestRealProtocolsAgree: one model, asked in both ways.
func TestRealProtocolsAgree(t *testing.T) {
	var vectors [][]float32
	for _, p := range providers {
		v, err := real(t, p, "all-minilm", embed.Options{}).EmbedQuery(t.Context(), "which port does the server use?")
		if err != nil {
			t.Fatal(err)
		}
		vectors = append(vectors, v)
	}
	if c := cosine(vectors[0], vectors[1]); c < .99999 {
		t.Errorf("cosine %.6f", c)
	}
}

func TestRealRefusals(t *testing.T) {
	real(t, llm.Ollama, "all-minilm", embed.Options{}) // or skip
	host := os.Getenv("OLLAMA_HOST")
	for _, tt := range []struct{ model, want string }{
		{"no-such-model", "type: ollama pull no-such-model"},
		{"smollm2:135m", "cannot embed"},
	} {
		r := newRemote(t, llm.Model{Provider: llm.Ollama, Name: tt.model, URL: host}, llm.Options{}, embed.Options{})
		_, err := r.Check(t.Context())
		if err == nil || !strings.Contains(err.Error(), tt.want) && !errors.Is(err, llm.ErrMissing) {
			t.Errorf("%s: error %v does not say %q", tt.model, err, tt.want)
		}
		t.Log(err)
	}
}
