package embed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"

	"recalld/llm"
)

const (
	// probeText is embedded to tell a text that a server cannot take from a
	// server that takes none.
	probeText = "memory"
	// minBytes is the least that a refused text is cut down to.
	minBytes = 64
	// maxReply bounds an answer, numberBytes what one number of a vector takes
	// in it: servers indent, and some write twenty digits. Batches are made so
	// small that every answer fits.
	maxReply    = 1 << 20
	numberBytes = 32
	// replyFrame is room for what else is in an answer.
	replyFrame = 16 << 10
)

// A protocol is a way to speak with a server. Its methods are called inside
// [llm.Client.Do]. An error that may be the fault of the texts, or of one of
// them, is a *suspect.
type protocol interface {
	// describe asks what the server knows of the model.
	describe(ctx context.Context, h *http.Client) (description, error)
	// embed returns a vector for each text as the server sent it; nil if it sent
	// none. One text always has one.
	embed(ctx context.Context, h *http.Client, texts []string) (vectors [][]float32, tokens uint64, err error)
}

// A suspect is an error that may be the fault of a text.
type suspect struct {
	code int    // of HTTP, 0 for an answer that is of no use
	why  string // in the latter case
}

func (s *suspect) Error() string {
	return cmp.Or(s.why, fmt.Sprintf("refused (HTTP %d)", s.code))
}

// blames reports whether an HTTP code may be the fault of a text. 500 is among
// them: servers of llama.cpp answer so to a text that is too long, and Ollama
// to one for which the model computes NaN.
func blames(code int) bool {
	switch code {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity,
		http.StatusInternalServerError:
		return true
	}
	return false
}

// batchSize is how many vectors fit into one answer.
func batchSize(dimensions int) int {
	return max(1, min(maxBatch, maxReply/(numberBytes*dimensions)))
}

// A call embeds the texts of one call of a [Remote], which end alike.
type call struct {
	*Remote
	facts  facts
	prefix string
	keep   end
	// sound: the last request got a vector, so the server was well just now.
	sound bool
}

// embed fills in the vectors of bodies. If the server refuses them together
// they are sent in halves, down to the one at fault, and of that less and less.
func (c *call) embed(ctx context.Context, bodies []string, vectors [][]float32) error {
	// Shorter than this, nothing is left to be tried.
	last := len(bodies) == 1 && len(bodies[0]) < 2*minBytes
	refused, err := c.ask(ctx, bodies, vectors, last)
	if err != nil || !refused || last {
		return err
	}
	if half := len(bodies) / 2; half > 0 {
		if err := c.embed(ctx, bodies[:half], vectors[:half]); err != nil {
			return err
		}
		return c.embed(ctx, bodies[half:], vectors[half:])
	}
	shorter := cutBytes(bodies[0], len(bodies[0])/2, c.keep)
	return c.embed(ctx, []string{shorter}, vectors)
}

// ask sends one request. Whether a refusal, or an answer without any vector, is
// the fault of the texts or of the server is seen by a request for a harmless
// word in the same [llm.Client.Do]: if that fails too, its error is returned.
// It is left out if the server was well just now, unless the refusal is final.
func (c *call) ask(ctx context.Context, bodies []string, vectors [][]float32, final bool) (refused bool, err error) {
	texts := make([]string, len(bodies))
	for i, body := range bodies {
		texts[i] = c.prefix + body
	}
	limit := int64(replyFrame + numberBytes*len(texts)*c.facts.dimensions)
	err = c.do(ctx, limit, func(ctx context.Context, h *http.Client) (uint64, error) {
		got, tokens, err := c.protocol.embed(ctx, h, texts)
		if err != nil {
			if _, ok := errors.AsType[*suspect](err); !ok {
				return tokens, err
			}
		}
		useful := false
		for i, v := range got {
			vectors[i] = unit(v, c.facts.dimensions)
			useful = useful || vectors[i] != nil
		}
		if useful {
			c.sound = true
			return tokens, nil
		}
		refused = err != nil
		if c.sound && refused && !final {
			c.sound = false
			return tokens, nil
		}
		v, more, err := probe(ctx, h, c.protocol)
		if err == nil && unit(v, c.facts.dimensions) == nil {
			err = noVector(v, c.facts.dimensions)
			c.forget() // perhaps another model is behind the name
		}
		c.sound = err == nil
		return tokens + more, err
	})
	return refused, err
}

// probe embeds a harmless word. That it is refused is not the word's fault.
func probe(ctx context.Context, h *http.Client, p protocol) ([]float32, uint64, error) {
	vectors, tokens, err := p.embed(ctx, h, []string{probeText})
	if err == nil {
		return vectors[0], tokens, nil
	}
	if s, ok := errors.AsType[*suspect](err); ok {
		switch s.code {
		case 0:
			err = fmt.Errorf("%w: %s", llm.ErrReply, s.why)
		case http.StatusInternalServerError:
			err = status(s.code, nil)
		default:
			err = &useless{s.code}
		}
	}
	return nil, tokens, err
}

// useless is the error of a server that refuses any text.
type useless struct{ code int } // of HTTP

func (u *useless) Error() string { return fmt.Sprintf("it refuses every text (HTTP %d)", u.code) }

// do is [llm.Client.Do], which takes HTTP 400 for the fault of one text.
func (r *Remote) do(ctx context.Context, limit int64, f func(ctx context.Context, h *http.Client) (uint64, error)) error {
	var all *useless
	err := r.client.Do(ctx, purpose, limit, func(ctx context.Context, h *http.Client) (uint64, error) {
		tokens, err := f(ctx, h)
		all, _ = errors.AsType[*useless](err)
		return tokens, err
	})
	if err != nil && all != nil && ctx.Err() == nil {
		return fmt.Errorf("%w: %w", llm.ErrReply, all)
	}
	return err
}

// noVector is the error of a server that sends v for a vector.
func noVector(v []float32, dimensions int) error {
	return fmt.Errorf("%w: a vector of %d numbers that is not one of %d", llm.ErrReply, len(v), dimensions)
}

// unit returns v scaled to length 1, or nil if it is no vector of that many
// dimensions with a direction.
func unit(v []float32, dimensions int) []float32 {
	if len(v) != dimensions || len(v) == 0 {
		return nil
	}
	var squares float64
	for _, x := range v {
		squares += float64(x) * float64(x)
	}
	if squares == 0 || math.IsNaN(squares) || math.IsInf(squares, 0) {
		return nil
	}
	normalise(v)
	return v
}
