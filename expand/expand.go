// Package expand answers: how else could this be worded?
//
// An [Expander] asks the conversation's own model, in one short call, for other
// wordings and names of what a query is about, so that a search for words finds
// texts that use others. What comes back is a list of variants, best first, of a
// few terms each. A term is a word; a variant never repeats words of the query,
// so that it can only add to it.
//
// A model may be late, wrong, absent or under the influence of what it reads.
// The call ends after six seconds or with its context, whichever is first; an
// answer of another shape is an error; one of the right shape is cut to
// [MaxTerms] short terms, whatever it says ([Parse]). Whether an answer is of
// use is not judged here: that is for whoever ranks with it.
//
// The package does not know what is searched, nor how. Answers are kept in
// memory for a while; failures are not. An Expander is safe for concurrent use,
// and those who ask the same at once share a call.
package expand

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"recalld/llm"
)

// version is part of the identity; it changes with the prompt, the schema and
// the reading of answers.
const version = "expand/v1"

const (
	// maxTimeout is the most that a call may take: a query waits for it.
	maxTimeout = 6 * time.Second
	// maxQuery is how much of a query is sent, in bytes: its end, because after
	// a long text that was pasted stands the question.
	maxQuery = 2048
	// maxAnswer bounds the answer in tokens: six wordings and JSON around them
	// need about a hundred.
	maxAnswer = 256

	defaultTTL   = time.Hour
	defaultCache = 256
)

// Options of an [Expander]. The zero value is usable.
type Options struct {
	// TTL is how long an answer is kept; 0 is an hour, less than 0 keeps none.
	TTL time.Duration
	// CacheSize is how many answers are kept; 0 is 256.
	CacheSize int
	// Timeout of a call; 0, and everything above 6 s, is 6 s.
	Timeout time.Duration
	// Now is the clock of the cache; nil is time.Now.
	Now func() time.Time
}

// An Expander proposes other wordings. It is made by [New]; copies made by
// [Expander.For] share everything but the account.
type Expander struct {
	client  *llm.Client
	account string
	*shared
}

type shared struct {
	timeout time.Duration
	schema  []byte
	cache   *cache
	flights flights
}

// New returns an Expander that asks c. It does not call it yet.
func New(c *llm.Client, o Options) *Expander {
	if o.TTL == 0 {
		o.TTL = defaultTTL
	}
	if o.CacheSize <= 0 {
		o.CacheSize = defaultCache
	}
	if o.Timeout <= 0 || o.Timeout > maxTimeout {
		o.Timeout = maxTimeout
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Expander{client: c, shared: &shared{
		timeout: o.Timeout,
		schema:  schema(c.Model().Provider),
		cache:   newCache(o.CacheSize, o.TTL, o.Now),
	}}
}

// For returns an Expander whose calls are charged to account, a memory's name.
// Answers are not shared between accounts: what one asked is not to be guessed
// from how fast another is answered.
func (e *Expander) For(account string) *Expander {
	return &Expander{client: e.client.For(account), account: account, shared: e.shared}
}

// Identity names the model and the version of the steps from a query to its
// variants.
func (e *Expander) Identity() string { return e.client.Model().String() + "/" + version }

// Expand returns at most [MaxVariants] other wordings of query, best first, as
// [Parse] makes them. None is a valid answer, and the only one to a query
// without words.
//
// It returns when ctx is done, or after the time-out. If nobody else waits for
// the same answer, the call is then broken off and its connection closed. The
// error is as for [llm.Client.Chat]; it never holds text of the query.
func (e *Expander) Expand(ctx context.Context, query string) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	query = strings.ToValidUTF8(query, " ")
	if !hasWord(query) {
		return nil, nil
	}
	k := keyOf(e.account, query)
	if variants, ok := e.cache.get(k); ok {
		return slices.Clone(variants), nil
	}
	ctx, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	variants, err := e.flights.join(ctx, k, e.timeout, func(ctx context.Context) ([]string, error) {
		variants, err := e.ask(ctx, query)
		if err == nil {
			e.cache.put(k, variants)
		}
		return variants, err
	})
	if err != nil {
		return nil, fmt.Errorf("expand the query: %w", err)
	}
	return slices.Clone(variants), nil
}

// ask makes the call.
func (e *Expander) ask(ctx context.Context, query string) (variants []string, err error) {
	_, err = e.client.Chat(ctx, llm.Request{
		Purpose:   "expand",
		System:    system,
		Prompt:    prompt(tail(query, maxQuery)),
		Schema:    e.schema,
		MaxTokens: maxAnswer,
		Check: func(answer string) (err error) {
			variants, err = Parse(answer, query)
			return err
		},
	})
	if err != nil {
		return nil, err
	}
	return variants, nil
}

// tail returns at most the last n bytes of a text, in whole runes.
func tail(text string, n int) string {
	if len(text) <= n {
		return text
	}
	start := len(text) - n
	for !utf8.RuneStart(text[start]) {
		start++
	}
	return text[start:]
}

// A key tells questions apart. It is a hash, because a query may be long and is
// not to lie about in memory for an hour.
type key [sha256.Size]byte

func keyOf(account, query string) key {
	h := sha256.New()
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(account)))
	h.Write(n[:])
	h.Write([]byte(account))
	h.Write([]byte(query))
	return key(h.Sum(nil))
}
