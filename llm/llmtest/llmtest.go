// Package llmtest is a model server that can be sick in nearly sixty ways, for
// the tests of everything that calls models.
//
// A [Server] speaks the protocols of Ollama (/api/chat, /api/embed, /api/show,
// /api/tags, /api/version) and of OpenAI (/v1/chat/completions, /v1/embeddings,
// /v1/models; the base address for them is [Server.OpenAI]). Well, it answers at
// once: a chat that brings a JSON schema gets an object that fits it, made of
// the strings "alternative 1", "alternative 2" and so on or of what
// [Options.Answer] says, and a text to embed gets [Vector], in which texts that
// share words are near each other. [Server.Be] makes it sick: [ForChat] and
// [ForEmbed] list the ways, by names that make good subtests:
//
//	for _, b := range llmtest.ForChat() {
//		t.Run(string(b), func(t *testing.T) {
//			s := llmtest.New(t, llmtest.Options{})
//			s.Be(b)
//			…
//		})
//	}
//
// [New] listens on TCP. [NewPipe] has connections in memory, which
// [Server.Dial] opens: with it (as llm.Options.Dial) a test runs in a bubble of
// testing/synctest, where the thirty seconds of a model that loads pass at once.
// Make the server inside the bubble.
//
// The server records every call ([Server.Calls]) and counts open connections
// ([Server.Open]). It ends with the test. All methods are safe for concurrent
// use.
package llmtest

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Options of a [Server]. The zero value has every model, which chats and embeds.
type Options struct {
	// Models the server has; none means all.
	Models []string
	// Capabilities that /api/show tells; none means completion and embedding.
	Capabilities []string
	// Dimension of vectors; 0 is 16. A request for fewer gets fewer.
	Dimension int
	// Window is the length in bytes from which a text to embed is refused with
	// HTTP 400; 0 is no bound.
	Window int
	// Refuses names fields of a chat in OpenAI's protocol that are refused with
	// HTTP 400: "json_schema" and "json_object" (forms of response_format),
	// "max_completion_tokens", "temperature", "seed", "reasoning_effort".
	Refuses []string
	// Key, if set, must come as a bearer token; without it the answer is 401.
	Key string
	// Answer makes the text of chats; nil makes one that fits the schema.
	Answer func(Call) string
	// Elsewhere is where [Redirect] points to; empty is a host that does not
	// exist.
	Elsewhere string
	// Latency is how long a good answer takes.
	Latency time.Duration
	// Vector makes the vector of a text with a model; nil is [Vector]. It may be
	// called at the same time.
	Vector func(model, text string) []float32
}

// A Call is what the server was asked.
type Call struct {
	Path  string // "/api/chat"
	Model string
	Key   string // the bearer token
	// Of a chat.
	System, Prompt string
	Schema         []byte
	// Of an embedding.
	Texts []string
	// Fields are those of the whole request, as encoding/json reads them.
	Fields map[string]any
}

// A Server is a fake model server, made by [New] or [NewPipe].
type Server struct {
	// URL is the base address for Ollama's protocol.
	URL string

	options Options
	pipe    bool
	addr    string
	done    chan struct{} // closed at the end: lets go of those who wait

	mu     sync.Mutex // guards everything below
	be     Behaviour
	calls  []Call
	open   map[*conn]bool
	change chan struct{} // closed and replaced when a call comes or a connection closes
	http   *http.Server
	queue  *pipeListener // of a pipe
	listen net.Listener  // of TCP
}

// New starts a server on a free port of 127.0.0.1.
func New(t testing.TB, o Options) *Server {
	t.Helper()
	s := newServer(o)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("start the fake model server: %v", err)
	}
	s.addr = l.Addr().String()
	s.URL = "http://" + s.addr
	s.serve(l)
	t.Cleanup(s.end)
	return s
}

// NewPipe starts a server whose connections are in memory; see [Server.Dial].
func NewPipe(t testing.TB, o Options) *Server {
	s := newServer(o)
	s.pipe = true
	s.URL = "http://127.0.0.1:11434" // nothing is opened there
	s.serve(nil)
	t.Cleanup(s.end)
	return s
}

func newServer(o Options) *Server {
	if o.Dimension == 0 {
		o.Dimension = 16
	}
	if len(o.Capabilities) == 0 {
		o.Capabilities = []string{"completion", "embedding"}
	}
	if o.Elsewhere == "" {
		o.Elsewhere = "http://elsewhere.invalid"
	}
	return &Server{options: o, done: make(chan struct{}), open: make(map[*conn]bool), change: make(chan struct{})}
}

// OpenAI is the base address for OpenAI's protocol.
func (s *Server) OpenAI() string { return s.URL + "/v1" }

// Dial opens a connection in memory to a server of [NewPipe], and one over TCP
// to a server of [New], whatever the address.
func (s *Server) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if !s.pipe {
		return new(net.Dialer).DialContext(ctx, "tcp", s.addr)
	}
	s.mu.Lock()
	be, queue := s.be, s.queue
	s.mu.Unlock()
	switch be {
	case Refused:
		return nil, &net.OpError{Op: "dial", Net: "pipe", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	case BlackHole:
		<-ctx.Done()
		return nil, &net.OpError{Op: "dial", Net: "pipe", Err: ctx.Err()}
	}
	return queue.dial(ctx)
}

// Be makes the server behave in some way from now on; [Well] makes it well.
// Connections that are open are closed when it turns away from the network or
// back to it.
func (s *Server) Be(b Behaviour) {
	s.mu.Lock()
	was := s.be
	s.be = b
	s.mu.Unlock()
	if offline(was) == offline(b) && !offline(b) {
		return
	}
	s.stop()
	switch {
	case b == Refused:
	case b == BlackHole && s.pipe:
	case b == BlackHole: // the system accepts, and nobody reads
		s.mu.Lock()
		s.listen = s.again()
		s.mu.Unlock()
	case s.pipe:
		s.serve(nil)
	default:
		s.serve(s.again())
	}
}

// offline reports whether a behaviour is one of the network.
func offline(b Behaviour) bool { return b == Refused || b == BlackHole }

// again listens on the port that the server had. Another process may have taken
// it in between; that is rare enough for tests.
func (s *Server) again() net.Listener {
	l, err := net.Listen("tcp", s.addr)
	if err != nil {
		panic("llmtest: listen again: " + err.Error())
	}
	return l
}

// serve starts answering, on a new pipe if l is nil.
func (s *Server) serve(l net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l == nil {
		s.queue = &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
		l = s.queue
	}
	s.listen = l
	s.http = &http.Server{Handler: s, ErrorLog: log.New(io.Discard, "", 0)}
	go s.http.Serve(&listener{l, s})
}

// stop closes the listener and every connection.
func (s *Server) stop() {
	s.mu.Lock()
	h, l := s.http, s.listen
	s.http, s.listen = nil, nil
	var open []*conn
	for c := range s.open {
		open = append(open, c)
	}
	s.mu.Unlock()
	if h != nil {
		h.Close()
	}
	if l != nil {
		l.Close()
	}
	for _, c := range open {
		c.Close()
	}
}

func (s *Server) end() {
	close(s.done)
	s.stop()
}

// Calls returns what was asked so far, in the order in which it came.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// Count returns the number of calls so far.
func (s *Server) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.calls)
}

// Open returns the number of open connections.
func (s *Server) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// AwaitClosed waits until no connection is open. It fails the test if that
// takes ten seconds.
func (s *Server) AwaitClosed(t testing.TB) {
	t.Helper()
	s.await(t, "connections are still open", func() bool { return len(s.open) == 0 })
}

// AwaitCalls waits until n calls have come. It fails the test if that takes ten
// seconds.
func (s *Server) AwaitCalls(t testing.TB, n int) {
	t.Helper()
	s.await(t, "calls have not come", func() bool { return len(s.calls) >= n })
}

// await waits for a condition that is looked at under the mutex.
func (s *Server) await(t testing.TB, not string, done func() bool) {
	t.Helper()
	late := time.NewTimer(10 * time.Second)
	defer late.Stop()
	for {
		s.mu.Lock()
		is, change := done(), s.change
		s.mu.Unlock()
		if is {
			return
		}
		select {
		case <-change:
		case <-late.C:
			t.Fatal("after ten seconds, " + not)
		}
	}
}

// changed wakes those who wait. The mutex is held.
func (s *Server) changed() {
	close(s.change)
	s.change = make(chan struct{})
}

// A listener counts the connections it accepts.
type listener struct {
	net.Listener
	s *Server
}

func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	counted := &conn{Conn: c, s: l.s}
	l.s.mu.Lock()
	l.s.open[counted] = true
	l.s.mu.Unlock()
	return counted, nil
}

type conn struct {
	net.Conn
	s *Server
}

func (c *conn) Close() error {
	c.s.mu.Lock()
	if c.s.open[c] {
		delete(c.s.open, c)
		c.s.changed()
	}
	c.s.mu.Unlock()
	return c.Conn.Close()
}

// A pipeListener hands out one end of each pipe that is dialled.
type pipeListener struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func (l *pipeListener) dial(ctx context.Context) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return ours, nil
	case <-l.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }
