package embed_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"recalld/embed"
	"recalld/llm"
	"recalld/llm/llmtest"
)

// secret stands in every text that a sick server gets; no error may hold it.
const secret = "tulip-4711"

// TestOneBadText: what is wrong with one text costs that text alone.
func TestOneBadText(t *testing.T) {
	refusing := func(status int, message string) func(*fake) {
		return func(f *fake) {
			f.refuse = func(text string) (int, string) {
				if strings.Contains(text, secret) {
					return status, message
				}
				return 0, ""
			}
		}
	}
	sending := func(vector string) func(*fake) {
		return func(f *fake) {
			f.vector = func(text string) string {
				if strings.Contains(text, secret) {
					return vector
				}
				return ""
			}
		}
	}
	tests := []struct {
		name string
		make func(*fake)
	}{
		{"refused", refusing(400, "invalid input")},
		{"too large", refusing(413, "Payload Too Large")},
		{"cannot be processed", refusing(422, "input must be less than 512 tokens")},
		{"not a number", refusing(500, "failed to encode response: json: unsupported value: NaN")},
		{"null", sending("null")},
		{"no numbers", sending("[]")},
		{"nulls", sending("[null,null,null,null]")},
		{"one null", func(f *fake) {
			// Ollama is written in Go and cannot send one; its client would read
			// it as 0.
			sending("[null,1,1,1]")(f)
			f.skip = llm.Ollama
		}},
		{"zero", sending("[0,0,0,0]")},
		{"too short", sending("[1,2,3]")},
		{"too long", sending("[1,2,3,4,5]")},
		{"beyond float32", sending("[1e39,1,1,1]")},
		{"beyond float64", sending("[1e999,1,1,1]")},
		{"text for a number", sending(`["a",1,1,1]`)},
		{"a literal NaN, which is no JSON", sending("[NaN,1,1,1]")},
	}
	for _, tt := range tests {
		for _, p := range providers {
			t.Run(fmt.Sprint(p, ": ", tt.name), func(t *testing.T) {
				f := newFake(t)
				tt.make(f)
				if p == f.skip {
					t.Skip("no such server")
				}
				r := f.remote(t, p, "some-model", embed.Options{})
				texts := make([]string, 40)
				want := make([][]float32, len(texts))
				for i := range texts {
					texts[i] = fmt.Sprint("text ", i)
					want[i] = unit(texts[i])
				}
				texts[17], want[17] = "text about "+secret, nil
				got, err := r.EmbedDocuments(t.Context(), texts)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got, near); diff != "" {
					t.Errorf("vectors (-want +got):\n%s", diff)
				}
				v, err := r.EmbedQuery(t.Context(), secret)
				if err != nil || v != nil {
					t.Errorf("EmbedQuery of the bad text = %v, %v; want no opinion", v, err)
				}
				if n := len(f.asks); n > 30 {
					t.Errorf("%d requests for one bad text of 40", n)
				}
			})
		}
	}
}

func wantError(t *testing.T, r *embed.Remote) {
	t.Helper()
	vectors, err := r.EmbedDocuments(t.Context(), []string{"one " + secret, "two " + secret, "three " + secret})
	if err == nil {
		t.Fatalf("vectors %v, want an error", vectors)
	}
	if vectors != nil {
		t.Errorf("vectors beside the error: %v", vectors)
	}
	if strings.Contains(err.Error(), secret) {
		t.Errorf("the error quotes a text: %v", err)
	}
}

// outcome is what a sick server may cost.
type outcome int

const (
	anError outcome = iota
	// late is an error before a near deadline and vectors before a far one.
	late
	allVectors
	// someVectors: all but that of the second text.
	someVectors
)

// outcomes of all behaviours of the test server but those that are errors.
var outcomes = map[llmtest.Behaviour]outcome{
	llmtest.Loading:        late,
	llmtest.Drip:           late,
	llmtest.NotUnit:        allVectors,
	llmtest.OneBad:         someVectors,
	llmtest.MixedDimension: someVectors,
}

// TestSickServer: whatever the server does, there are vectors that are some, or
// there is an error, before the deadline; a server that has a vector for
// nothing is an error, and not a memory full of texts without an opinion.
func TestSickServer(t *testing.T) {
	for _, p := range providers {
		for _, b := range llmtest.ForEmbed() {
			for _, deadline := range []time.Duration{2 * time.Second, 10 * time.Minute} {
				for _, start := range []bool{true, false} {
					name := fmt.Sprintf("%s/%s/%s/from the start %t", p, b, deadline, start)
					want := outcomes[b]
					if want == late {
						want = anError
						if deadline > time.Minute {
							want = allVectors
						}
					}
					if b == llmtest.WrongDimension && p == llm.OpenAI && start {
						want = allVectors // nobody said that it is wrong
					}
					t.Run(name, func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) { askSick(t, p, b, deadline, start, want) })
					})
				}
			}
		}
	}
}

func askSick(t *testing.T, p llm.Provider, b llmtest.Behaviour, deadline time.Duration, start bool, want outcome) {
	s := llmtest.NewPipe(t, llmtest.Options{})
	// newRemote appends /v1, as this server's address for OpenAI has it.
	r := newRemote(t, llm.Model{Provider: p, Name: "some-model", URL: s.URL}, llm.Options{Dial: s.Dial}, embed.Options{})
	if !start {
		if _, err := r.EmbedQuery(t.Context(), "hello"); err != nil {
			t.Fatal(err)
		}
	}
	s.Be(b)
	before := s.Count()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	began := time.Now()
	texts := []string{"one " + secret, "two " + llmtest.Poison, "three " + secret}
	vectors, err := r.EmbedDocuments(ctx, texts)
	if took := time.Since(began); took > deadline {
		t.Errorf("it took %v of %v", took, deadline)
	}
	if want == anError {
		if err == nil || vectors != nil {
			t.Fatalf("EmbedDocuments = %v, %v; want an error and nothing else", vectors, err)
		}
		if strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), llmtest.Poison) {
			t.Errorf("the error quotes a text: %v", err)
		}
		if n := s.Count() - before; n > 2 {
			t.Errorf("%d requests to a sick server in one call", n)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range vectors {
		if v == nil {
			if want != someVectors || i != 1 {
				t.Errorf("no vector for text %d", i)
			}
			continue
		}
		if dimensions := len(vectors[0]); len(v) != dimensions {
			t.Errorf("vectors of %d and %d dimensions", dimensions, len(v))
		}
		if c := cosine(v, v); c < .99999 || c > 1.00001 {
			t.Errorf("vector %d has the length %v", i, c)
		}
	}
}

// TestCancelledClosesTheConnection: nothing goes on after the caller has left.
func TestCancelledClosesTheConnection(t *testing.T) {
	for _, p := range providers {
		s := llmtest.New(t, llmtest.Options{})
		s.Be(llmtest.Silent)
		r := newRemote(t, llm.Model{Provider: p, Name: "some-model", URL: s.URL}, llm.Options{}, embed.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := r.EmbedDocuments(ctx, []string{secret})
			done <- err
		}()
		s.AwaitCalls(t, 1)
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: error %v, want that of the context", p, err)
		}
		s.AwaitClosed(t)
	}
}

// TestTurnsSickAmidACall: a server that begins to fail in the middle of a call
// has not refused the texts that come after. It is not asked for each of them.
func TestTurnsSickAmidACall(t *testing.T) {
	for _, p := range providers {
		for _, count := range []int{33, 32 * 9} { // the last batch is one text, or many
			for healthy := range (count + 31) / 32 {
				f := newFake(t)
				sick := 0
				f.refuse = func(string) (int, string) {
					f.mu.Lock()
					defer f.mu.Unlock()
					if len(f.asks) > healthy+1 { // one word at first
						sick++
						return 500, "out of memory"
					}
					return 0, ""
				}
				texts := make([]string, count)
				for i := range texts {
					texts[i] = fmt.Sprint("text ", i)
				}
				if _, err := f.remote(t, p, "some-model", embed.Options{}).EmbedDocuments(t.Context(), texts); err == nil {
					t.Errorf("%s: a server that failed after %d of %d requests is no error", p, healthy, (count+31)/32)
				}
				if sick > 3 {
					t.Errorf("%s: %d requests to a server that fails", p, sick)
				}
			}
		}
	}
}

func TestIndexes(t *testing.T) {
	tests := []struct {
		name, data string
		ok         bool
	}{
		{"left out", `{"embedding":[1,0,0,0]},{"embedding":[0,1,0,0]}`, true},
		{"twice the same", `{"index":1,"embedding":[1,0,0,0]},{"index":1,"embedding":[0,1,0,0]}`, false},
		{"beyond the end", `{"index":1,"embedding":[1,0,0,0]},{"index":2,"embedding":[0,1,0,0]}`, false},
		{"negative", `{"index":-1,"embedding":[1,0,0,0]},{"index":0,"embedding":[0,1,0,0]}`, false},
		{"one too few", `{"index":0,"embedding":[1,0,0,0]}`, false},
		{"one too many", `{"embedding":[1,0,0,0]},{"embedding":[0,1,0,0]},{"embedding":[0,0,1,0]}`, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake(t)
			r := f.remote(t, llm.OpenAI, "some-model", embed.Options{})
			if _, err := r.EmbedQuery(t.Context(), "hello"); err != nil {
				t.Fatal(err)
			}
			f.answer = func(w http.ResponseWriter, _ *http.Request) {
				if len(f.asks[len(f.asks)-1].Input) == 2 {
					fmt.Fprintf(w, `{"data": [%s]}`, tt.data)
					return
				}
				io.WriteString(w, `{"data": [{"index":0,"embedding":[0,0,0,1]}]}`)
			}
			got, err := r.EmbedDocuments(t.Context(), []string{"a", "b"})
			want := [][]float32{{1, 0, 0, 0}, {0, 1, 0, 0}}
			if !tt.ok { // then each is asked for alone
				want = [][]float32{{0, 0, 0, 1}, {0, 0, 0, 1}}
			}
			if err != nil || !cmp.Equal(want, got) {
				t.Errorf("EmbedDocuments = %v, %v; want %v", got, err, want)
			}
		})
	}
}

func TestMissingModel(t *testing.T) {
	for _, p := range providers {
		f := newFake(t)
		r := f.remote(t, p, "some-model", embed.Options{})
		if _, err := r.EmbedQuery(t.Context(), "there"); err != nil {
			t.Fatal(err)
		}
		f.answer = func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(404)
			io.WriteString(w, `{"error": "model \"some-model\" not found, try pulling it first"}`)
		}
		_, err := r.EmbedQuery(t.Context(), "gone")
		if !errors.Is(err, llm.ErrMissing) {
			t.Errorf("%s: error %v, want one that wraps ErrMissing", p, err)
		}
		if p == llm.Ollama && !strings.HasSuffix(err.Error(), "type: ollama pull some-model") {
			t.Errorf("error %v does not say what to type", err)
		}
	}
}

// TestAnotherModelBehindTheName: after an error its dimensions are learnt anew.
func TestAnotherModelBehindTheName(t *testing.T) {
	for _, p := range providers {
		f := newFake(t)
		r := f.remote(t, p, "some-model", embed.Options{})
		if _, err := r.EmbedQuery(t.Context(), "before"); err != nil {
			t.Fatal(err)
		}
		f.vector = func(string) string { return "[3,4]" }
		f.show = strings.Replace(f.show, `"bert.embedding_length": 4`, `"bert.embedding_length": 2`, 1)
		if _, err := r.EmbedQuery(t.Context(), "between"); err == nil {
			t.Errorf("%s: vectors of another dimension are no error", p)
		}
		for _, text := range []string{"before", "after"} { // nothing is kept of the old one
			if v, err := r.EmbedQuery(t.Context(), text); err != nil || len(v) != 2 {
				t.Errorf("%s: EmbedQuery(%q) = %v, %v; want 2 dimensions", p, text, v, err)
			}
		}
	}
}

func TestDoneBeforeItBegan(t *testing.T) {
	for _, p := range providers {
		f := newFake(t)
		r := f.remote(t, p, "some-model", embed.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := r.EmbedDocuments(ctx, []string{"x"}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: error %v, want that of the context", p, err)
		}
		if n := len(f.asks) + f.shown; n > 0 {
			t.Errorf("%s: %d requests", p, n)
		}
	}
}

// TestBreaker: refused texts are no failures of the server; failures are, and
// then it is not asked.
func TestBreaker(t *testing.T) {
	for _, p := range providers {
		f := newFake(t)
		f.refuse = func(text string) (int, string) {
			if strings.Contains(text, secret) {
				return 400, ""
			}
			return 0, ""
		}
		r := f.remote(t, p, "some-model", embed.Options{})
		for i := range 9 {
			if _, err := r.EmbedQuery(t.Context(), fmt.Sprint(secret, i)); err != nil {
				t.Fatalf("%s: after %d refused texts: %v", p, i, err)
			}
		}
		f.refuse = func(string) (int, string) { return 400, "" }
		for range 3 {
			wantError(t, r)
		}
		before := len(f.asks) + f.shown
		wantError(t, r)
		if n := len(f.asks) + f.shown - before; n > 0 {
			t.Errorf("%s: %d requests to a server that refused everything three times", p, n)
		}
	}
}

// FuzzAnswers: whatever a server answers, there is an error or there are
// vectors of length 1.
func FuzzAnswers(f *testing.F) {
	f.Add(`{"embeddings": [[1,2,3,4],[1,2,3,4]], "data": [{"embedding":[1,2,3,4]}]}`, 200)
	f.Add(`{"data": [{"index":1,"embedding":[1,2,3,4]},{"index":0,"embedding":"AAAA"}]}`, 200)
	f.Add(`{"embeddings": [[1e30,1e38,-1e38,0],[1e-45,0,0,0]]}`, 200)
	f.Add(`{"error": {"message": 1}}`, 400)
	f.Add(``, 599)
	f.Fuzz(func(t *testing.T, body string, status int) {
		if status < 200 || status > 599 {
			return
		}
		for _, p := range providers {
			server := newFake(t)
			r := server.remote(t, p, "some-model", embed.Options{})
			if _, err := r.EmbedQuery(t.Context(), "hello"); err != nil {
				t.Fatal(err)
			}
			server.answer = func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(status)
				io.WriteString(w, body)
			}
			vectors, err := r.EmbedDocuments(t.Context(), []string{"a", "b"})
			if err != nil {
				continue
			}
			for _, v := range vectors {
				var squares float64
				for _, x := range v {
					squares += float64(x) * float64(x)
				}
				if v != nil && (len(v) != 4 || squares < .999 || squares > 1.001) {
					t.Errorf("%s: vector %v", p, v)
				}
			}
		}
	})
}
