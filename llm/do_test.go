package llm_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"recalld/llm"
	"recalld/llm/llmtest"
)

// post returns a call of some protocol that reports no tokens.
func post(url string) func(context.Context, *http.Client) (uint64, error) {
	return func(ctx context.Context, h *http.Client) (uint64, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(strings.Repeat(secret, 100)))
		if err != nil {
			return 0, err
		}
		resp, err := h.Do(r)
		if err != nil {
			return 0, err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return 0, err
		}
		if resp.StatusCode != http.StatusOK {
			return 0, llm.Status(resp.StatusCode, body)
		}
		return 0, nil
	}
}

func TestDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := llmtest.NewPipe(t, llmtest.Options{})
		meter := &ledger{}
		c := client(t, s, llm.Ollama, llm.Options{Meter: meter}).For("mem")
		embed := c.URL().JoinPath("api/embed").String()
		if err := c.Do(t.Context(), "embed", 1<<20, post(embed)); err != nil {
			t.Fatal(err)
		}
		if want := uint64(len(secret) * 100 / 4); meter.tokens["mem"] != want {
			t.Errorf("charged %d tokens, want a quarter of the bytes: %d", meter.tokens["mem"], want)
		}
		if err := c.Do(t.Context(), "embed", 10, post(embed)); !errors.Is(err, llm.ErrReply) {
			t.Errorf("an answer above the cap: error %v", err)
		}
		err := c.Do(t.Context(), "embed", 10, func(ctx context.Context, h *http.Client) (uint64, error) {
			resp, err := h.Get(c.URL().JoinPath("api/version").String())
			if err != nil {
				return 0, err
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if len(body) != 10 {
				t.Errorf("of an answer above the cap, %d bytes can be read, want 10", len(body))
			}
			return 0, err
		})
		if !errors.Is(err, llm.ErrReply) {
			t.Errorf("an answer above the cap: error %v", err)
		}
		c = client(t, s, llm.Ollama, llm.Options{Meter: meter}) // whose breaker is closed
		own := fmt.Errorf("%w: vector 3 is too short", llm.ErrReply)
		if err := c.Do(t.Context(), "embed", 10, func(context.Context, *http.Client) (uint64, error) { return 7, own }); !errors.Is(err, own) {
			t.Errorf("an error of ours: %v", err)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		calls := s.Count()
		if err := c.Do(gone, "embed", 10, post(embed)); !errors.Is(err, context.Canceled) || s.Count() != calls {
			t.Errorf("the caller has left already: error %v", err)
		}
		theirs := errors.New("cannot parse " + secret)
		err = c.For("x").Do(t.Context(), "embed", 10, func(context.Context, *http.Client) (uint64, error) { return 7, theirs })
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("an error of another kind: %v", err)
		}
		if meter.tokens["x"] != 7 {
			t.Errorf("charged %d tokens, want what was reported", meter.tokens["x"])
		}
	})
}

func TestPost(t *testing.T) {
	tests := []struct {
		name string
		be   llmtest.Behaviour
		want error // nil with a behaviour that is not well: any
	}{
		{"well", llmtest.Well, nil},
		{"refused", llmtest.BadRequest, llm.ErrRefused},
		{"missing", llmtest.NoModel, llm.ErrMissing},
		{"failed", llmtest.ServerError, nil},
		{"not JSON", llmtest.HTML, llm.ErrReply},
		{"another shape", llmtest.WrongTypes, llm.ErrReply},
		{"cut", llmtest.Truncated, llm.ErrReply},
		{"too large", llmtest.Endless, llm.ErrReply},
		{"broken off", llmtest.Disconnect, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := llmtest.NewPipe(t, llmtest.Options{Key: "k-123", Dimension: 3})
				c, err := llm.New(llm.Model{Provider: llm.OpenAI, Name: "m", URL: s.OpenAI(), Key: "k-123"}, llm.Options{Dial: s.Dial})
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				s.Be(tt.be)
				var out struct {
					Data []struct{ Embedding []float32 }
				}
				err = c.Do(t.Context(), "embed", 1<<20, func(ctx context.Context, h *http.Client) (uint64, error) {
					return 1, c.Post(ctx, h, "embeddings", map[string]any{"model": "m", "input": secret}, &out)
				})
				switch {
				case tt.be == llmtest.Well:
					if err != nil || len(out.Data) != 1 || len(out.Data[0].Embedding) != 3 || s.Calls()[0].Path != "/v1/embeddings" {
						t.Errorf("answer %v, error %v", out, err)
					}
				case err == nil || tt.want != nil && !errors.Is(err, tt.want) || strings.Contains(err.Error(), secret):
					t.Errorf("error %v, want %v", err, tt.want)
				}
			})
		})
	}
}

// answer returns a dialler to a server that gives one answer to everything.
func answer(raw string) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close()
			r, err := http.ReadRequest(bufio.NewReader(theirs))
			if err != nil {
				return
			}
			io.Copy(io.Discard, r.Body)
			io.WriteString(theirs, raw)
		}()
		return ours, nil
	}
}

// TestRawAnswers is about answers that the fake server does not give.
func TestRawAnswers(t *testing.T) {
	tests := []struct {
		name, raw string
		want      string               // in the error
		kind      error                // nil: none of the package's
		ask       map[llm.Provider]int // requests that are made, if not 1
	}{
		{"a redirect on the same server", "HTTP/1.1 307 x\r\nLocation: /api/chat\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", "another address", nil, nil},
		{"a failure without a body", "HTTP/1.1 500 x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", "HTTP 500", nil, nil},
		{"too long a text", "HTTP/1.1 400 x\r\nConnection: close\r\n\r\n{\"error\":\"the context length is 512\"}", "HTTP 400", llm.ErrRefused, nil},
		{"another refusal", "HTTP/1.1 400 x\r\nConnection: close\r\n\r\n{\"error\":\"no\"}", "HTTP 400", llm.ErrRefused, map[llm.Provider]int{llm.OpenAI: 3}},
		{"no HTTP", "220 mail.example.org ESMTP\r\n", "broke off", nil, nil},
		{"an endless header", "HTTP/1.1 200 x\r\nX: " + strings.Repeat("x", 1<<20) + "\r\n\r\n", "broke off", nil, nil},
	}
	for _, tt := range tests {
		for _, p := range providers {
			t.Run(tt.name+" "+string(p), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					dials, dial := 0, answer(tt.raw)
					c, err := llm.New(llm.Model{Provider: p, Name: "m", URL: "http://127.0.0.1:1"}, llm.Options{
						Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
							dials++
							return dial(ctx, network, addr)
						},
					})
					if err != nil {
						t.Fatal(err)
					}
					defer c.Close()
					_, err = c.Chat(t.Context(), question)
					if err == nil || !strings.Contains(err.Error(), tt.want) || tt.kind != nil && !errors.Is(err, tt.kind) ||
						tt.kind == nil && (errors.Is(err, llm.ErrReply) || errors.Is(err, llm.ErrRefused)) {
						t.Errorf("error %v, want %q", err, tt.want)
					}
					if want := max(1, tt.ask[p]); dials != want {
						t.Errorf("%d requests, want %d", dials, want)
					}
				})
			})
		}
	}
}

// TestLoopbackNeedsNoProxy is about text that is to stay on this machine. It
// runs in a process of its own, as net/http reads the environment once.
func TestLoopbackNeedsNoProxy(t *testing.T) {
	const inside = "LLM_TEST_LOOPBACK"
	if os.Getenv(inside) == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLoopbackNeedsNoProxy$")
		cmd.Env = append(os.Environ(), inside+"=1", "HTTP_PROXY=http://proxy.invalid:3128", "NO_PROXY=")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	// net/http makes exceptions for "localhost" and addresses, not for the first.
	for host, want := range map[string]string{
		"models.localhost": "models.localhost:80", "localhost": "localhost:80", "127.0.0.1": "127.0.0.1:80", "[::1]": "[::1]:80",
		"models.example.org": "proxy.invalid:3128",
	} {
		var dialled string
		c, err := llm.New(llm.Model{Provider: llm.Ollama, Name: "m", URL: "http://" + host}, llm.Options{
			Dial: func(_ context.Context, _, addr string) (net.Conn, error) {
				dialled = addr
				return nil, errors.New("no network here")
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		c.Chat(t.Context(), question)
		if dialled != want {
			t.Errorf("for %s, %s was dialled, want %s", host, dialled, want)
		}
	}
}

// TestDoPanic checks that a panic of a caller's function does not leave the
// breaker waiting for a probe that has died.
func TestDoPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := llmtest.NewPipe(t, llmtest.Options{})
		c := client(t, s, llm.Ollama, llm.Options{})
		s.Be(llmtest.ServerError)
		for range 3 {
			c.Chat(t.Context(), question)
		}
		time.Sleep(30 * time.Second)
		func() {
			defer func() { recover() }()
			c.Do(t.Context(), "embed", 10, func(context.Context, *http.Client) (uint64, error) { panic("a fault") })
		}()
		s.Be(llmtest.Well)
		if _, err := c.Chat(t.Context(), question); err != nil {
			t.Errorf("after a probe that panicked: %v", err)
		}
	})
}

func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := llmtest.NewPipe(t, llmtest.Options{})
		c := client(t, s, llm.Ollama, llm.Options{})
		s.Be(llmtest.Silent)
		ask := func(after time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), after)
			defer cancel()
			_, err := c.Chat(ctx, question)
			return err
		}
		for range 3 {
			ask(time.Second)
		}
		opened := time.Now()
		state := c.State()
		if state.Failures != 3 || !state.RetryAt.Equal(opened.Add(30*time.Second)) || state.LastError != "no answer in time" {
			t.Errorf("after three deadlines the state is %+v", state)
		}
		want := "the server failed 3 times; asked again at " + state.RetryAt.Format(time.TimeOnly)
		if got := skip(ask(time.Second)); got != want {
			t.Errorf("skipped because %q, want %q", got, want)
		}
		time.Sleep(30*time.Second - time.Nanosecond)
		if got := skip(ask(time.Second)); got != want {
			t.Errorf("a moment too early: skipped because %q", got)
		}
		time.Sleep(time.Nanosecond)

		// Of sixty-four that come at once, one is the probe.
		before := s.Count()
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() { ask(time.Second) })
		}
		wg.Wait()
		if n := s.Count() - before; n != 1 {
			t.Errorf("half open, %d calls were made, want 1", n)
		}
		if at := c.State().RetryAt; !at.Equal(time.Now().Add(30 * time.Second)) {
			t.Errorf("after a failed probe it is asked again in %v", time.Until(at))
		}

		// A probe whose caller leaves says nothing: the next one is a probe.
		time.Sleep(30 * time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err := c.Chat(ctx, question); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		s.Be(llmtest.Well)
		if err := ask(time.Second); err != nil {
			t.Errorf("the next probe: %v", err)
		}
		if state := c.State(); state != (llm.State{}) {
			t.Errorf("after a good probe the state is %+v", state)
		}

		// Failures that are not in a row open nothing.
		for range 5 {
			s.Be(llmtest.ServerError)
			ask(time.Second)
			ask(time.Second)
			s.Be(llmtest.Well)
			if err := ask(time.Second); err != nil {
				t.Fatalf("two failures in a row: %v", err)
			}
		}
	})
}

// TestLateFailures checks that calls which were under way when the breaker
// opened do not keep it open for longer.
func TestLateFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := llmtest.NewPipe(t, llmtest.Options{})
		c := client(t, s, llm.Ollama, llm.Options{})
		s.Be(llmtest.Silent)
		began := time.Now()
		var wg sync.WaitGroup
		for _, after := range []time.Duration{1, 2, 3, 10, 20} {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), after*time.Second)
				defer cancel()
				c.Chat(ctx, question)
			})
		}
		wg.Wait()
		if at := c.State().RetryAt.Sub(began); at != 33*time.Second || c.State().Failures != 5 {
			t.Errorf("asked again after %v, %d failures; want 33s, 5", at, c.State().Failures)
		}
	})
}

// TestSharedCall checks that a call given up because of its callers' deadlines
// counts as a failure, though its context was cancelled.
func TestSharedCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := llmtest.NewPipe(t, llmtest.Options{})
		c := client(t, s, llm.Ollama, llm.Options{})
		s.Be(llmtest.Silent)
		for _, tt := range []struct {
			cause    error
			failures int
		}{{nil, 0}, {errors.New("they left"), 0}, {context.DeadlineExceeded, 1}, {context.DeadlineExceeded, 2}} {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancel(tt.cause) })
			if _, err := c.Chat(ctx, question); !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled because of %v: error %v", tt.cause, err)
			}
			if n := c.State().Failures; n != tt.failures {
				t.Errorf("cancelled because of %v: %d failures, want %d", tt.cause, n, tt.failures)
			}
		}
	})
}

// TestRetryAfter checks that a server's wish is honoured, to a ceiling.
func TestRetryAfter(t *testing.T) {
	tests := []struct {
		name, header string
		status       int
		want         time.Duration // 0: asked again at once
	}{
		{"seconds", "90", 429, 90 * time.Second},
		{"seconds of a server that is down", "90", 503, 90 * time.Second},
		{"less than the breaker's own pause", "2", 429, 2 * time.Second},
		{"another century", "4000000000", 503, 5 * time.Minute},
		{"a date", "Sat, 01 Jan 2000 00:01:00 GMT", 429, time.Minute},
		{"a date that has passed", "Fri, 31 Dec 1999 00:01:00 GMT", 429, 0},
		{"nonsense", "soon", 429, 0},
		{"negative", "-5", 429, 0},
		{"of another status", "90", 500, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // time begins at 2000-01-01
				l := answer(fmt.Sprintf("HTTP/1.1 %d no\r\nRetry-After: %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", tt.status, tt.header))
				c, err := llm.New(llm.Model{Provider: llm.OpenAI, Name: "m", URL: "http://127.0.0.1:1"}, llm.Options{Dial: l})
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				if _, err := c.Chat(t.Context(), question); err == nil {
					t.Fatal("no error")
				}
				var got time.Duration
				if at := c.State().RetryAt; !at.IsZero() {
					got = time.Until(at)
				}
				if got != tt.want {
					t.Errorf("asked again in %v, want %v", got, tt.want)
				}
				if tt.want > 0 {
					time.Sleep(tt.want)
				}
				if _, err := c.Chat(t.Context(), question); skip(err) != "" {
					t.Errorf("after that time: %v", err)
				}
			})
		})
	}
}
