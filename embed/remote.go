package embed

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"

	"recalld/llm"
)

const (
	// purpose is the name under which spending is kept.
	purpose = "embed"
	// maxBatch is the most texts of one request. More save no round trips worth
	// having, and a server on a CPU would take seconds for one answer.
	maxBatch = 32
	// cacheQueries is how many queries' vectors are kept if nothing else is said.
	cacheQueries = 256
	// maxWindow is the most tokens of a text that are sent, whatever the model
	// can take: one vector says little about more, and servers load models with
	// smaller windows than they were trained for.
	maxWindow = 8192
	// unknownWindow is taken when neither the server nor [kinds] knows.
	unknownWindow = 2048
	// maxTextBytes is as much of a text as is looked at.
	maxTextBytes = 64 * maxWindow
	// minWindow stays for the text however long the prefix is.
	minWindow = 16
	// specialTokens are those that a tokeniser adds around a text.
	specialTokens = 4
)

// Options of a [Remote]. The zero value is right for every model that the
// package knows by name.
type Options struct {
	// Dimensions shortens the vectors, for models that were trained for it; 0
	// leaves them as they are.
	Dimensions int
	// QueryPrefix and DocumentPrefix stand before each text; nil is what the
	// model was trained with, by its name.
	QueryPrefix, DocumentPrefix *string
	// MaxTokens bounds the text sent, in tokens (estimated), below the model's
	// own window; 0 is that window.
	MaxTokens int
	// CacheQueries is how many queries' vectors are kept; 0 is 256.
	CacheQueries int
}

// A Remote is a model on a server. It is made by [NewOllama] or [NewOpenAI];
// copies made by [Remote.For] share what was learnt of the model and the
// queries' vectors. Its methods may be called at the same time.
//
// When the server is first needed, it is first asked about the model: Ollama
// whether it can embed, for its dimensions and its window, and any server for
// the vector of one word. What fails then is an error of that call and tried
// again at the next.
//
// Vectors have length 1 and all the same dimensions. A text has none (nil) if
// nothing is left of it without white space and control characters, if the
// server refuses it however short it is cut, or if what comes back for it is no
// vector: of another dimension, zero, null, not finite. That costs this text
// only, as long as the server has a vector for anything: one that has none,
// fails, or is not there is an error of the whole call, which then returns no
// vectors. Errors hold nothing of any text.
type Remote struct {
	client   *llm.Client
	account  string
	protocol protocol
	kind     kind
	options  Options
	*state
}

// state is what the copies of a Remote share.
type state struct {
	queries *lru.Cache[[sha256.Size]byte, []float32]

	mu     sync.Mutex // guards learnt
	learnt *facts     // nil: not known yet
}

// facts are what a server says of its model.
type facts struct {
	dimensions int
	tokens     int // its window; 0: the server does not tell
}

// NewOllama returns the model of c on an Ollama server. It touches nothing.
func NewOllama(c *llm.Client, o Options) *Remote {
	return newRemote(c, o, ollama{base: c.URL(), model: c.Model().Name, dimensions: o.Dimensions})
}

// NewOpenAI returns the model of c on a server with the embeddings endpoint of
// OpenAI. It touches nothing.
func NewOpenAI(c *llm.Client, o Options) *Remote {
	return newRemote(c, o, openai{base: c.URL(), model: c.Model().Name, dimensions: o.Dimensions})
}

func newRemote(c *llm.Client, o Options, p protocol) *Remote {
	k := kindOf(c.Model().Name)
	if o.QueryPrefix != nil {
		k.query = *o.QueryPrefix
	}
	if o.DocumentPrefix != nil {
		k.document = *o.DocumentPrefix
	}
	size := o.CacheQueries
	if size <= 0 {
		size = cacheQueries
	}
	queries, err := lru.New[[sha256.Size]byte, []float32](size)
	if err != nil {
		panic(fmt.Sprintf("embed: cache of %d queries: %v", size, err)) // only for a size below 1
	}
	return &Remote{client: c, protocol: p, kind: k, options: o, state: &state{queries: queries}}
}

// For returns a Remote that charges account, a memory's name, and has cached
// queries of its own; all else is shared.
func (r *Remote) For(account string) *Remote {
	c := *r
	c.client, c.account = r.client.For(account), account
	return &c
}

// Identity names all that vectors depend on as far as it is known without the
// server: provider and model, the dimensions asked for, the version of the
// preprocessing, a bound on tokens, and a hash of the prefixes if there are
// any, as in "ollama:nomic-embed-text uncased-v1 prefix:0123456789abcdef".
//
// It does not change when the server puts another model behind the same name;
// only another dimension shows that. Give such a model a name of its own.
func (r *Remote) Identity() string {
	m := r.client.Model()
	name := m.Name
	if m.Provider == llm.Ollama {
		name = strings.TrimSuffix(name, ":latest") // what Ollama adds to a name without a tag
	}
	parts := []string{string(m.Provider) + ":" + name} // names hold no spaces
	if r.options.Dimensions > 0 {
		parts = append(parts, "dimensions:"+strconv.Itoa(r.options.Dimensions))
	}
	if r.options.MaxTokens > 0 {
		parts = append(parts, "tokens:"+strconv.Itoa(r.options.MaxTokens))
	}
	if r.kind.uncased {
		parts = append(parts, uncasedVersion)
	} else {
		parts = append(parts, plainVersion)
	}
	if r.kind.query != "" || r.kind.document != "" {
		sum := digest(r.kind.query, r.kind.document)
		parts = append(parts, "prefix:"+hex.EncodeToString(sum[:8]))
	}
	return strings.Join(parts, " ")
}

// EmbedDocuments returns the vector of each text, in the order given, or nil
// where a text has none. Texts longer than the model's window are cut at their
// end. They are sent in batches, at most 32 a request, one after the other; an
// error of one batch is that of the call. The error wraps ctx's,
// [llm.ErrMissing], [llm.ErrReply] or what [llm.Client.Do] says.
func (r *Remote) EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	if err := r.embed(ctx, r.kind.document, head, texts, vectors); err != nil {
		return nil, fmt.Errorf("embed %d texts with %s: %w", len(texts), r.client.Model(), err)
	}
	return vectors, nil
}

// EmbedQuery returns the vector of a query, which is the caller's to keep, or
// nil. A query longer than the model's window is cut at its beginning, as the
// question is usually at the end. The vectors of the last queries are kept, by
// account; errors are not. The error is as for [Remote.EmbedDocuments].
func (r *Remote) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	key := digest(r.account, text)
	if vector, ok := r.queries.Get(key); ok {
		return slices.Clone(vector), nil
	}
	vectors := make([][]float32, 1)
	if err := r.embed(ctx, r.kind.query, tail, []string{text}, vectors); err != nil {
		return nil, fmt.Errorf("embed query with %s: %w", r.client.Model(), err)
	}
	r.queries.Add(key, slices.Clone(vectors[0]))
	return vectors[0], nil
}

// embed fills in the vectors of texts. The server is not asked if there is
// nothing to ask.
func (r *Remote) embed(ctx context.Context, prefix string, keep end, texts []string, vectors [][]float32) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var bodies []string
	var places []int // of each body in texts
	for i, text := range texts {
		body := prepare(cutBytes(text, maxTextBytes, keep), r.kind.uncased)
		if body != "" {
			bodies, places = append(bodies, body), append(places, i)
		}
	}
	if len(bodies) == 0 {
		return nil
	}
	known, err := r.known(ctx)
	if err != nil {
		return r.explain(err)
	}
	window := r.window(prefix, known)
	for i, body := range bodies {
		bodies[i] = cut(body, window, keep, r.kind.uncased)
	}
	c := call{Remote: r, facts: known, prefix: prefix, keep: keep}
	found := make([][]float32, len(bodies))
	size := batchSize(known.dimensions)
	for from := 0; from < len(bodies); from += size {
		to := min(from+size, len(bodies))
		if err := c.embed(ctx, bodies[from:to], found[from:to]); err != nil {
			return r.explain(err)
		}
	}
	for i, place := range places {
		vectors[place] = found[i]
	}
	return nil
}

// window is the number of tokens that a text may have after its prefix.
func (r *Remote) window(prefix string, known facts) int {
	window := min(cmp.Or(known.tokens, r.kind.tokens, unknownWindow), maxWindow)
	if r.options.MaxTokens > 0 {
		window = min(window, r.options.MaxTokens)
	}
	quarters := 0
	for _, c := range prefix {
		quarters += tokenQuarters(c, r.kind.uncased)
	}
	return max(window-specialTokens-quarters/4, minWindow)
}

// digest is one hash of two strings.
func digest(a, b string) [sha256.Size]byte {
	h := sha256.New()
	var length [8]byte
	binary.LittleEndian.PutUint64(length[:], uint64(len(a)))
	h.Write(length[:])
	h.Write([]byte(a))
	h.Write([]byte(b))
	return [sha256.Size]byte(h.Sum(nil))
}
