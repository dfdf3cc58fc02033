// Package llm answers: how is a model server called safely?
//
// A [Client] calls one model, on an Ollama server or on any that speaks the
// protocol of OpenAI, and stands between recalld and everything such a server
// may do: it ends every call with its context, reads bounded answers, follows
// no redirect, asks no server that has just failed three times, and spends no
// more tokens a day than it is allowed to.
//
// It does not know what it is called for: a purpose is a name under which
// spending is kept.
//
// A Client is safe for concurrent use. It starts no goroutine that outlives a
// call.
package llm

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"time"
)

// A Provider is a protocol.
type Provider string

// The providers.
const (
	Ollama Provider = "ollama"
	OpenAI Provider = "openai"
)

// A Model names a model on a server.
type Model struct {
	Provider Provider
	// Name as the server knows it: "all-minilm", "qwen3:4b", "gpt-5-mini".
	Name string
	// URL is the server's base; empty is http://127.0.0.1:11434 for Ollama and
	// https://api.openai.com/v1 for OpenAI.
	URL string
	// Key is sent as a bearer token; empty sends none.
	Key string
}

// A Use is what calls have cost.
type Use struct {
	// Purpose is "embed", "expand" or "extract", Model the model's String.
	Purpose, Model string
	Calls, Tokens  uint64
	Took           time.Duration
}

// A Meter keeps what was spent, by day (UTC) and account, over restarts. It is
// safe for concurrent use.
type Meter interface {
	// Spent gives the tokens charged today to an account, and to all.
	Spent(ctx context.Context, account string) (own, all uint64, err error)
	Charge(ctx context.Context, account string, u Use) error
}

// Options of a [Client]. The zero value has no caps and keeps no account.
type Options struct {
	// Meter keeps spending; nil keeps none, and then there are no caps.
	Meter Meter
	// DailyTokens is what one account may spend a day for all purposes,
	// DailyTokensAll what all may together; 0 is no cap.
	DailyTokens, DailyTokensAll uint64
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Dial opens connections; nil dials TCP. It is for servers behind something
	// else, such as the pipe of a test.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// A Request asks a chat model for one answer.
type Request struct {
	Purpose string
	System  string
	Prompt  string
	// Schema is a JSON schema that the answer is to fit; nil asks for text. It
	// is a wish: what comes back must be checked.
	Schema json.RawMessage
	// MaxTokens bounds the answer; 0 is 512.
	MaxTokens int
	// Check looks at an answer that fits nothing but JSON's own rules; its error
	// makes the call a failed one, so that a model that answers nonsense is soon
	// left alone. It must quote nothing of the answer. nil accepts all.
	Check func(answer string) error
}

// A State is how a model has fared.
type State struct {
	// Failures in a row; from three on, or sooner when the server said itself
	// when to come back, the model is not asked until RetryAt.
	Failures int
	RetryAt  time.Time
	// LastError says what the last failure or refusal was, without text of any
	// prompt or answer; empty after a success. A model that refuses everything,
	// as one for embeddings that is to chat, has no failures and is known by it.
	LastError string
}

// A Client calls one model. It is made by [New]; copies made by [Client.For]
// share everything but the account.
type Client struct {
	account string
	*shared
}

// shared is what all clients of one model have in common.
type shared struct {
	model   Model // with its URL filled in
	base    *url.URL
	options Options
	link    *http.Transport
	breaker breaker
	purse   purse
	dialect dialect
}

// New returns a client of m. It opens no connection: whether the server is
// there shows at the first call. The error says what is wrong with m, and does
// not repeat a password or key.
func New(m Model, o Options) (*Client, error) {
	base, err := m.check()
	if err != nil {
		return nil, err
	}
	m.URL = base.String()
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &shared{model: m, base: base, options: o, link: newLink(o.Dial)}
	s.breaker.now = o.Now
	s.purse = purse{meter: o.Meter, own: o.DailyTokens, all: o.DailyTokensAll, model: m.String()}
	return &Client{shared: s}, nil
}

// For returns a client that charges account, a memory's name, and is the same
// otherwise: connections, breaker, caps and what was learnt about the server
// are shared.
func (c *Client) For(account string) *Client {
	return &Client{account: account, shared: c.shared}
}

// Model returns the model, its URL filled in. Do not print it: it holds the key.
func (c *Client) Model() Model { return c.model }

// URL returns a copy of the server's base address.
func (c *Client) URL() *url.URL {
	u := *c.base
	return &u
}

// State tells how the model has fared.
func (c *Client) State() State { return c.breaker.state() }

// Close ends the connections that are idle. Calls under way go on, and the
// client may still be used.
func (c *Client) Close() { c.link.CloseIdleConnections() }
