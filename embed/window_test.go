package embed_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"recalld/embed"
	"recalld/llm"
)

// TestLongTexts: texts are cut to the window, passages at their end and queries
// at their beginning, and cut again when that was too little.
func TestLongTexts(t *testing.T) {
	var words strings.Builder
	for i := range 9000 {
		fmt.Fprintf(&words, "wörd%d ", i)
	}
	long := strings.TrimSpace(words.String())
	for _, p := range providers {
		for _, limit := range []int{1 << 20, 900, 130} { // bytes that the server takes
			t.Run(fmt.Sprint(p, " ", limit), func(t *testing.T) {
				f := newFake(t)
				f.refuse = func(text string) (int, string) {
					if len(text) > limit {
						return 400, "the input length exceeds the context length"
					}
					return 0, ""
				}
				r := f.remote(t, p, "nomic-embed-text-v2", embed.Options{})
				got, err := r.EmbedDocuments(t.Context(), []string{long})
				if err != nil || got[0] == nil {
					t.Fatalf("EmbedDocuments = %v, %v", got, err)
				}
				sent := f.sent()
				last := sent[len(sent)-1]
				if diff := cmp.Diff([][]float32{unit(last)}, got, near); diff != "" {
					t.Errorf("the vector is not that of the last text sent (-want +got):\n%s", diff)
				}
				body := strings.TrimPrefix(last, "search_document: ")
				if body == last || !strings.HasPrefix(long, body) || len(body) < limit/3 && len(body) < 700 {
					t.Errorf("the passage sent is not the beginning: %d bytes, %.40q", len(last), last)
				}
				if len(sent[0]) > 8*512 {
					t.Errorf("%d bytes were sent for a window of 512 tokens", len(sent[0]))
				}

				if v, err := r.EmbedQuery(t.Context(), long); err != nil || v == nil {
					t.Fatalf("EmbedQuery = %v, %v", v, err)
				}
				sent = f.sent()
				last = sent[len(sent)-1]
				body = strings.TrimPrefix(last, "search_query: ")
				if body == last || !strings.HasSuffix(long, body) {
					t.Errorf("the query sent is not the end: %d bytes, %.40q", len(last), last)
				}
				for _, text := range sent {
					if !utf8.ValidString(text) {
						t.Errorf("a character was cut: %q", text)
					}
				}
			})
		}
	}
}

// TestWindows: the smallest of what the model, its settings and the options
// allow is sent.
func TestWindows(t *testing.T) {
	text := strings.Repeat("word ", 20000)
	send := func(show, model string, o embed.Options) int {
		f := newFake(t)
		f.show = show
		if _, err := f.remote(t, llm.Ollama, model, o).EmbedDocuments(t.Context(), []string{text}); err != nil {
			t.Fatal(err)
		}
		return len(f.sent()[0])
	}
	window := func(tokens string) string {
		return strings.Replace(fakeShow, `"bert.context_length": 512`, `"bert.context_length": `+tokens, 1)
	}
	full := send(fakeShow, "some-model", embed.Options{})
	if full < 1800 || full > 2048 {
		t.Errorf("%d bytes of prose for 512 tokens", full)
	}
	if got := send(strings.Replace(fakeShow, "num_thread 1", `num_ctx    256\nstop \"x\"`, 1), "some-model", embed.Options{}); got > full/2+10 {
		t.Errorf("%d bytes for num_ctx 256 and %d for 512", got, full)
	}
	if got := send(fakeShow, "some-model", embed.Options{MaxTokens: 128}); got > full/4+10 {
		t.Errorf("%d bytes for MaxTokens 128 and %d for 512", got, full)
	}
	if got := send(window("1000000"), "some-model", embed.Options{}); got > 4*8192 {
		t.Errorf("%d bytes for a window of a million tokens", got)
	}
	if got := send(window("0"), "all-minilm", embed.Options{}); got != full {
		t.Errorf("%d bytes of a model known by name, want %d", got, full)
	}
	if got := send(window("0"), "some-model", embed.Options{}); got <= full {
		t.Errorf("%d bytes for an unknown window", got)
	}
	if got := send(window("5"), "some-model", embed.Options{}); got < 16 {
		t.Errorf("%d bytes for a window of 5 tokens; want some", got)
	}
}

// FuzzTexts: whatever a text is, what is sent of it is clean, and sending that
// again changes nothing.
func FuzzTexts(f *testing.F) {
	for _, text := range []string{
		"plain", " \x00\xff\xc3 x ", "e\u0301\u0301 \u212b \u1e9b\u0323", "\u201cx\u201d\u2026", "a<b|c`d~~", "\ufeff\u200d", "\u0301", "日本 각",
		strings.Repeat("🚀", 3000), strings.Repeat("x", 9000),
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, model := range []string{"all-minilm", "some-model"} {
			fake := newFake(t)
			r := fake.remote(t, llm.Ollama, model, embed.Options{})
			vectors, err := r.EmbedDocuments(t.Context(), []string{text})
			if err != nil {
				t.Fatal(err)
			}
			requests := fake.texts()
			if (vectors[0] == nil) != (len(requests) == 0) {
				t.Fatalf("%s: vector %v after requests %q", model, vectors[0], requests)
			}
			if len(requests) == 0 {
				continue
			}
			sent := requests[1][0] // the first embeds a word
			if !utf8.ValidString(sent) || strings.ContainsFunc(sent, unicode.IsControl) || len(sent) > 4*512 {
				t.Errorf("%s: sent %q", model, sent)
			}
			if _, err := r.EmbedDocuments(t.Context(), []string{sent}); err != nil {
				t.Fatal(err)
			}
			if again := fake.texts()[2][0]; again != strings.TrimSpace(sent) {
				t.Errorf("%s: %q was sent, and of that %q", model, sent, again)
			}
		}
	})
}
