package embed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"time"

	"recalld/llm"
)

// showReply bounds what a server tells of a model: licence, template and the
// names of all tensors are in it.
const showReply = 4 << 20

// A description is what a server says of its model.
type description struct {
	dimensions, tokens int      // 0: it does not tell
	embeds             bool     // the model can embed
	can                []string // what else it can do, if the server tells
}

// Info is what a [Remote.Check] saw.
type Info struct {
	// Dimensions of the vectors.
	Dimensions int
	// ContextTokens is the model's window, 0 if the server does not tell.
	ContextTokens int
	// Took is the time of one embedding. The first one loads the model.
	Took time.Duration
}

// Check asks the server about the model anew and embeds one word. The error
// says what to type where that helps; it is as for [Remote.EmbedDocuments].
func (r *Remote) Check(ctx context.Context) (Info, error) {
	r.forget()
	known, err := r.known(ctx)
	if err != nil {
		return Info{}, fmt.Errorf("check %s: %w", r.client.Model(), r.explain(err))
	}
	info := Info{Dimensions: known.dimensions, ContextTokens: known.tokens}
	begin := time.Now()
	c := call{Remote: r, facts: known, prefix: r.kind.query, keep: tail}
	vectors := make([][]float32, 1)
	_, err = c.ask(ctx, []string{probeText}, vectors, true)
	info.Took = time.Since(begin)
	if err == nil && vectors[0] == nil {
		err = fmt.Errorf("%w: it has no vector for a word after the prefix", llm.ErrReply)
	}
	if err != nil {
		return info, fmt.Errorf("check %s: embed a word: %w", r.client.Model(), r.explain(err))
	}
	return info, nil
}

// known returns the facts of the model, asking the server if need be. Two calls
// may both ask; they get the same answer.
//
// A word is embedded in the same [llm.Client.Do] as the model is described: a
// server that describes what it cannot do is then one that fails, and the
// breaker sees no success in between.
func (r *Remote) known(ctx context.Context) (facts, error) {
	r.mu.Lock()
	learnt := r.learnt
	r.mu.Unlock()
	if learnt != nil {
		return *learnt, nil
	}
	var d description
	var word []float32
	err := r.do(ctx, showReply, func(ctx context.Context, h *http.Client) (tokens uint64, err error) {
		if d, err = r.protocol.describe(ctx, h); err == nil && d.embeds {
			word, tokens, err = probe(ctx, h, r.protocol)
		}
		return tokens, err
	})
	if err != nil {
		return facts{}, err
	}
	f, err := r.judge(d, word)
	if err != nil {
		return facts{}, err
	}
	r.mu.Lock()
	r.learnt = &f
	r.mu.Unlock()
	return f, nil
}

// judge draws the facts from a description and the vector of a word, or says
// what is wrong with them.
func (r *Remote) judge(d description, word []float32) (facts, error) {
	const most = 1 << 16 // ten times what the largest models have
	name, asked := r.client.Model().Name, r.options.Dimensions
	native := cmp.Or(d.dimensions, len(word))
	want := cmp.Or(asked, native)
	switch {
	case !d.embeds:
		return facts{}, fmt.Errorf("%s cannot embed texts (it is made for %s); take a model that can: type: ollama pull all-minilm",
			name, strings.Join(d.can, ", "))
	case asked > native:
		return facts{}, fmt.Errorf("vectors of %d dimensions were asked for, those of %s have %d", asked, name, native)
	case unit(word, want) == nil || want > most:
		return facts{}, noVector(word, want)
	}
	return facts{dimensions: want, tokens: d.tokens}, nil
}

// forget makes the next call ask the server about the model again, which may
// not be the one it was.
func (r *Remote) forget() {
	r.mu.Lock()
	r.learnt = nil
	r.mu.Unlock()
	r.queries.Purge()
}

// explain adds what to do about an error.
func (r *Remote) explain(err error) error {
	m := r.client.Model()
	all, _ := errors.AsType[*useless](err)
	switch {
	case m.Provider == llm.Ollama && errors.Is(err, llm.ErrMissing):
		return fmt.Errorf("%w; type: ollama pull %s", err, m.Name)
	case errors.Is(err, llm.ErrMissing):
		return fmt.Errorf("%w; its models are listed at %s/models", err, m.URL)
	case m.Provider == llm.Ollama && errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%w at %s; is Ollama running? type: ollama serve", err, m.URL)
	case errors.Is(err, syscall.ECONNREFUSED), strings.Contains(err.Error(), "HTTP 404"):
		return fmt.Errorf("%w; its address is taken to be %s", err, m.URL)
	case all != nil && r.options.Dimensions > 0:
		return fmt.Errorf("%w; perhaps it cannot be asked for %d dimensions", err, r.options.Dimensions)
	}
	return err
}
