package llm_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"recalld/llm"
	"recalld/llm/llmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// secret stands for the text of a memory: no error may hold it.
const secret = "Marigold-7731"

var schema = json.RawMessage(`{"type":"object","properties":{"terms":{"type":"array","items":{"type":"string"}}},"required":["terms"],"additionalProperties":false}`)

var question = llm.Request{Purpose: "expand", System: "Find other words.", Prompt: "What is " + secret + "?", Schema: schema}

// A ledger is a meter in memory.
type ledger struct {
	mu     sync.Mutex
	tokens map[string]uint64
	uses   []llm.Use
	down   error // what both methods return, nil: they work
}

func (l *ledger) Spent(_ context.Context, account string) (own, all uint64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n := range maps.Values(l.tokens) {
		all += n
	}
	return l.tokens[account], all, l.down
}

func (l *ledger) Charge(ctx context.Context, account string, u llm.Use) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down != nil {
		return l.down
	}
	if l.tokens == nil {
		l.tokens = make(map[string]uint64)
	}
	l.tokens[account] += u.Tokens
	l.uses = append(l.uses, u)
	return nil
}

func (l *ledger) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = err
}

// client returns a client of s in a protocol.
func client(t *testing.T, s *llmtest.Server, p llm.Provider, o llm.Options) *llm.Client {
	t.Helper()
	m := llm.Model{Provider: p, Name: "small", URL: s.URL}
	if p == llm.OpenAI {
		m.URL = s.OpenAI()
	}
	o.Dial = s.Dial
	c, err := llm.New(m, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// skip returns the reason of an error for not calling, "" if it is another.
func skip(err error) string {
	if s, ok := errors.AsType[interface {
		error
		Skipped() string
	}](err); ok {
		return s.Skipped()
	}
	return ""
}

var providers = []llm.Provider{llm.Ollama, llm.OpenAI}

// TestSickServer asks a server that is sick in every way, in both protocols.
func TestSickServer(t *testing.T) {
	for _, p := range providers {
		for _, b := range append(llmtest.ForChat(), llmtest.Well) {
			t.Run(string(p)+" "+string(b), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { sick(t, p, b) })
			})
		}
	}
}

func sick(t *testing.T, p llm.Provider, b llmtest.Behaviour) {
	s := llmtest.NewPipe(t, llmtest.Options{})
	meter := &ledger{}
	c := client(t, s, p, llm.Options{Meter: meter}).For("mem")
	s.Be(b)

	const deadline = 6 * time.Second
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	began := time.Now()
	got, err := c.Chat(ctx, question)
	if took := time.Since(began); took > deadline {
		t.Errorf("it took %v, the deadline was after %v", took, deadline)
	}
	slow := b == llmtest.Drip || b == llmtest.Loading
	if want := llmtest.Usable(b) && !slow; (err == nil) != want {
		t.Fatalf("answer %q, error %v; want an answer: %v", got, err, want)
	}
	if len(meter.uses) != 1 || meter.uses[0].Calls != 1 || meter.uses[0].Purpose != "expand" || meter.uses[0].Model != c.Model().String() {
		t.Errorf("charged %+v, want one call", meter.uses)
	}
	if err == nil {
		if !json.Valid([]byte(got)) || !utf8.ValidString(got) {
			t.Errorf("the answer is not JSON in UTF-8: %q", got)
		}
		if n := meter.tokens["mem"]; n == 0 || n > 1<<41 {
			t.Errorf("charged %d tokens", n)
		}
		if state := c.State(); state.Failures != 0 || state.LastError != "" {
			t.Errorf("after a success the state is %+v", state)
		}
	} else {
		failure(t, c, s, b, got, err)
	}
	c.Close()
	synctest.Wait()
	if n := s.Open(); n != 0 {
		t.Errorf("%d connections are left open", n)
	}
}

// failure checks what follows a failed call.
func failure(t *testing.T, c *llm.Client, s *llmtest.Server, b llmtest.Behaviour, got string, err error) {
	if got != "" {
		t.Errorf("there is an answer beside the error: %q", got)
	}
	for _, private := range []string{secret, "other words", "alternative", "Sign in", "and so on"} {
		if strings.Contains(err.Error(), private) || strings.Contains(c.State().LastError, private) {
			t.Errorf("the error holds %q: %v", private, err)
		}
	}
	if state := c.State(); errors.Is(err, llm.ErrRefused) && (state.Failures != 0 || state.LastError == "") {
		t.Errorf("after a refusal the state is %+v; want no failure, and its words", state)
	}
	kinds := map[llmtest.Behaviour]error{
		llmtest.NoModel: llm.ErrMissing, llmtest.BadRequest: llm.ErrRefused,
		llmtest.Silent: context.DeadlineExceeded, llmtest.BlackHole: context.DeadlineExceeded,
		llmtest.SlowHeaders: context.DeadlineExceeded, llmtest.Drip: context.DeadlineExceeded, llmtest.Loading: context.DeadlineExceeded,
	}
	for _, b := range []llmtest.Behaviour{
		llmtest.Endless, llmtest.HTML, llmtest.EmptyBody, llmtest.Truncated, llmtest.Null, llmtest.WrongFields, llmtest.WrongTypes,
		llmtest.ErrorIn200, llmtest.EmptyString, llmtest.OnlyThinking, llmtest.NoReason, llmtest.Cut, llmtest.BrokenJSON,
		llmtest.Prose, llmtest.Trailing,
	} {
		kinds[b] = llm.ErrReply
	}
	if want := kinds[b]; want != nil && !errors.Is(err, want) {
		t.Errorf("the error is %v, want %v", err, want)
	}
	if want := kinds[b]; want == nil && (errors.Is(err, llm.ErrReply) || errors.Is(err, llm.ErrMissing) || errors.Is(err, llm.ErrRefused)) {
		t.Errorf("the error is %v, which is not what went wrong", err)
	}
	if b == llmtest.BadRequest {
		if n := c.State().Failures; n != 0 {
			t.Errorf("a text that was refused counts as %d failures", n)
		}
		return
	}
	if b == llmtest.TooMany || b == llmtest.Unavailable {
		calls := s.Count()
		if _, err := c.Chat(t.Context(), question); skip(err) == "" || s.Count() != calls {
			t.Errorf("a server that wants to be left alone was asked again: %v", err)
		}
		if at := c.State().RetryAt; time.Until(at) > 90*time.Second || time.Until(at) < 80*time.Second {
			t.Errorf("it is asked again in %v, it said 90 s", time.Until(at))
		}
		return
	}
	for range 2 {
		if skip(err) != "" {
			t.Fatalf("skipped after %d failures", c.State().Failures)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		_, err = c.Chat(short, question)
		cancel()
	}
	calls := s.Count()
	if _, err = c.For("other").Chat(t.Context(), question); skip(err) == "" || s.Count() != calls {
		t.Errorf("after three failures the server was asked again: %v", err)
	}
	time.Sleep(30 * time.Second)
	s.Be(llmtest.Well)
	if _, err = c.Chat(t.Context(), question); err != nil {
		t.Errorf("the server is well again after 30 s: %v", err)
	}
	if state := c.State(); state != (llm.State{}) {
		t.Errorf("after the recovery the state is %+v", state)
	}
}

// TestTheRequestOnTheWire checks what servers are told.
func TestTheRequestOnTheWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := llmtest.NewPipe(t, llmtest.Options{})
		long := question
		long.Prompt = strings.Repeat("word ", 8000)
		long.MaxTokens = 1000
		longer := question
		longer.Prompt = strings.Repeat("语", 3000)
		for _, r := range []llm.Request{question, long, longer} {
			if _, err := client(t, s, llm.Ollama, llm.Options{}).Chat(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		calls := s.Calls()
		for i, want := range []map[string]any{
			{"num_ctx": 4096., "num_predict": 512., "temperature": 0., "seed": 1.},
			{"num_ctx": 16384., "num_predict": 1000., "temperature": 0., "seed": 1.},
			{"num_ctx": 8192., "num_predict": 512., "temperature": 0., "seed": 1.},
		} {
			f := calls[i].Fields
			if got, _ := f["options"].(map[string]any); !maps.Equal(got, want) {
				t.Errorf("options %v, want %v", got, want)
			}
			if f["think"] != false || f["truncate"] != false || f["shift"] != false || f["stream"] != false || f["model"] != "small" {
				t.Errorf("the request is %v", f)
			}
			if string(calls[i].Schema) != string(schema) || calls[i].System != question.System {
				t.Errorf("schema %s, system prompt %q", calls[i].Schema, calls[i].System)
			}
		}
	})
}

// TestDialects checks that a server of few words is found out once.
func TestDialects(t *testing.T) {
	tests := []struct {
		name    string
		model   string
		refuses []string
		first   int // requests of the first call
		has     []string
		hasNot  []string
	}{
		{"all of it", "small", nil, 1, []string{"max_completion_tokens", "temperature", "seed", "response_format"}, []string{"max_tokens"}},
		{"no schema", "small", []string{"json_schema"}, 2, []string{"response_format"}, nil},
		{"no response_format", "small", []string{"json_schema", "json_object"}, 3, nil, []string{"response_format"}},
		{"the old bound", "small", []string{"max_completion_tokens"}, 2, []string{"max_tokens", "response_format"}, []string{"max_completion_tokens"}},
		{"no sampling", "small", []string{"temperature"}, 2, nil, []string{"temperature", "seed"}},
		{"a model that reasons", "gpt-5-mini", []string{"temperature", "seed"}, 1, []string{"reasoning_effort"}, []string{"temperature"}},
		{"nothing at all", "o3", []string{"reasoning_effort", "max_completion_tokens", "json_schema", "json_object"}, 5, []string{"max_tokens"}, []string{"reasoning_effort"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := llmtest.NewPipe(t, llmtest.Options{Refuses: tt.refuses, Key: "k-123", Answer: func(llmtest.Call) string { return `{"terms":[]}` }})
				c, err := llm.New(llm.Model{Provider: llm.OpenAI, Name: tt.model, URL: s.OpenAI(), Key: "k-123"}, llm.Options{Dial: s.Dial})
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				for n, want := range []int{tt.first, tt.first + 1} {
					if _, err := c.Chat(t.Context(), question); err != nil || s.Count() != want {
						t.Fatalf("call %d: %d requests so far, want %d; error %v", n+1, s.Count(), want, err)
					}
				}
				last := s.Calls()[s.Count()-1]
				for _, field := range tt.has {
					if _, ok := last.Fields[field]; !ok {
						t.Errorf("there is no %s", field)
					}
				}
				for _, field := range tt.hasNot {
					if _, ok := last.Fields[field]; ok {
						t.Errorf("there is a %s", field)
					}
				}
				form, _ := last.Fields["response_format"].(map[string]any)
				if inWords := strings.Contains(last.System, string(schema)); inWords == (form["type"] == "json_schema") {
					t.Errorf("the schema is in words: %v, and the form is %v", inWords, form["type"])
				}
			})
		})
	}
}

// TestCancel checks that a call whose caller leaves ends, closes its connection,
// is charged, and is not held against the server.
func TestCancel(t *testing.T) {
	for _, p := range providers {
		for _, b := range []llmtest.Behaviour{llmtest.Silent, llmtest.BlackHole, llmtest.SlowHeaders, llmtest.Drip, llmtest.Loading} {
			t.Run(string(p)+" "+string(b), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := llmtest.NewPipe(t, llmtest.Options{})
					meter := &ledger{}
					c := client(t, s, p, llm.Options{Meter: meter}).For("mem")
					s.Be(b)
					for range 5 {
						ctx, cancel := context.WithCancel(t.Context())
						time.AfterFunc(100*time.Millisecond, cancel)
						if _, err := c.Chat(ctx, question); !errors.Is(err, context.Canceled) {
							t.Errorf("error %v, want %v", err, context.Canceled)
						}
						synctest.Wait()
						if n := s.Open(); n != 0 {
							t.Errorf("%d connections are open", n)
						}
					}
					if n := c.State().Failures; n != 0 {
						t.Errorf("the server is said to have failed %d times", n)
					}
					if len(meter.uses) != 5 || meter.uses[0].Took != 100*time.Millisecond {
						t.Errorf("charged %+v", meter.uses)
					}
					if sent := b != llmtest.BlackHole; sent != (meter.tokens["mem"] > 0) {
						t.Errorf("charged %d tokens; the prompt was sent: %v", meter.tokens["mem"], sent)
					}
				})
			})
		}
	}
}

// TestCancelOnTCP checks on real sockets that cancelling closes the connection.
func TestCancelOnTCP(t *testing.T) {
	for _, p := range providers {
		t.Run(string(p), func(t *testing.T) {
			s := llmtest.New(t, llmtest.Options{})
			c := client(t, s, p, llm.Options{})
			s.Be(llmtest.Silent)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				_, err := c.Chat(ctx, question)
				done <- err
			}()
			s.AwaitCalls(t, 1)
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("error %v", err)
			}
			s.AwaitClosed(t)
		})
	}
}

// TestGoneServer asks where nothing listens, over TCP.
func TestGoneServer(t *testing.T) {
	s := llmtest.New(t, llmtest.Options{})
	s.Be(llmtest.Refused)
	c, err := llm.New(llm.Model{Provider: llm.Ollama, Name: "m", URL: s.URL}, llm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Chat(t.Context(), question)
	if err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("error %v", err)
	}
}

// TestNothingWanders checks that a redirect does not carry text to another
// server, nor do addresses of a caller's own making.
func TestNothingWanders(t *testing.T) {
	for _, p := range providers {
		other := llmtest.New(t, llmtest.Options{})
		s := llmtest.New(t, llmtest.Options{Elsewhere: other.URL})
		m := llm.Model{Provider: p, Name: "m", URL: s.URL, Key: "k-123"}
		c, err := llm.New(m, llm.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		s.Be(llmtest.Redirect)
		if _, err := c.Chat(t.Context(), question); err == nil || strings.Contains(err.Error(), "http") {
			t.Errorf("error %v", err)
		}
		if other.Count() != 0 || s.Count() != 1 {
			t.Errorf("%d calls came elsewhere", other.Count())
		}
		err = c.Do(t.Context(), "embed", 100, post(other.URL))
		if err == nil || other.Count() != 0 {
			t.Errorf("error %v, %d calls came elsewhere", err, other.Count())
		}
	}
}

func TestRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tests := []struct {
			name     string
			be       llmtest.Behaviour
			attempts int
			calls    int
			took     time.Duration
		}{
			{"well", llmtest.Well, 5, 1, 0},
			{"a failure that may pass", llmtest.ServerError, 2, 2, time.Second},
			{"until the breaker opens", llmtest.ServerError, 9, 3, 7 * time.Second},
			{"one attempt", llmtest.ServerError, 1, 1, 0},
			{"none means one", llmtest.ServerError, 0, 1, 0},
			{"nonsense is not asked for twice", llmtest.Cut, 5, 1, 0},
			{"nor is a model that is not there", llmtest.NoModel, 5, 1, 0},
			{"nor a text that is refused", llmtest.BadRequest, 5, 1, 0},
			{"nor with a key that is not accepted", llmtest.NoKey, 5, 1, 0},
		}
		for _, tt := range tests {
			s := llmtest.NewPipe(t, llmtest.Options{})
			c := client(t, s, llm.Ollama, llm.Options{})
			s.Be(tt.be)
			began := time.Now()
			_, err := c.ChatRetry(t.Context(), question, tt.attempts)
			if took := time.Since(began); s.Count() != tt.calls || took != tt.took || (err == nil) != (tt.be == llmtest.Well) {
				t.Errorf("%s: %d calls in %v, error %v; want %d in %v", tt.name, s.Count(), took, err, tt.calls, tt.took)
			}
		}
		s := llmtest.NewPipe(t, llmtest.Options{})
		c := client(t, s, llm.Ollama, llm.Options{})
		s.Be(llmtest.ServerError)
		time.AfterFunc(500*time.Millisecond, func() { s.Be(llmtest.Well) })
		if got, err := c.ChatRetry(t.Context(), question, 3); err != nil || got == "" || s.Count() != 2 {
			t.Errorf("a server that recovers: answer %q, error %v, %d calls", got, err, s.Count())
		}
		s.Be(llmtest.ServerError)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(300*time.Millisecond, cancel)
		if _, err := c.ChatRetry(ctx, question, 3); !errors.Is(err, context.Canceled) {
			t.Errorf("left during the pause: error %v", err)
		}
	})
}

// TestCheck checks that answers which the caller finds useless count as
// failures.
func TestCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := llmtest.NewPipe(t, llmtest.Options{})
		c := client(t, s, llm.Ollama, llm.Options{})
		r := question
		r.Check = func(string) error { return errors.New("too few terms") }
		for range 3 {
			got, err := c.Chat(t.Context(), r)
			if got != "" || !errors.Is(err, llm.ErrReply) || !strings.Contains(err.Error(), "too few terms") {
				t.Errorf("answer %q, error %v", got, err)
			}
		}
		if _, err := c.Chat(t.Context(), r); skip(err) == "" {
			t.Errorf("error %v, want it skipped", err)
		}
		r.Schema = json.RawMessage(`{`)
		if _, err := c.Chat(t.Context(), r); err == nil || skip(err) != "" {
			t.Errorf("a schema that is not JSON: error %v", err)
		}
	})
}

func FuzzAnswer(f *testing.F) {
	for _, text := range []string{``, `{}`, "```json\n{}\n```", "<think>x</think>{}", "<think>", "```", "``````", `{"{"`, "null"} {
		f.Add(text, true)
		f.Add(text, false)
	}
	f.Fuzz(func(t *testing.T, said string, asJSON bool) {
		s := llmtest.New(t, llmtest.Options{Answer: func(llmtest.Call) string { return said }})
		c := client(t, s, slices.Concat(providers)[len(said)%2], llm.Options{})
		r := question
		if !asJSON {
			r.Schema = nil
		}
		got, err := c.Chat(t.Context(), r)
		c.Close()
		if err != nil {
			if got != "" || !errors.Is(err, llm.ErrReply) {
				t.Fatalf("answer %q, error %v", got, err)
			}
			return
		}
		if got == "" || !utf8.ValidString(got) || asJSON && !json.Valid([]byte(got)) {
			t.Errorf("%q was accepted as %q", said, got)
		}
	})
}
