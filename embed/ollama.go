package embed

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/ollama/ollama/api"
	"github.com/ollama/ollama/types/model"
)

// ollama speaks with an Ollama server.
type ollama struct {
	base       *url.URL
	model      string
	dimensions int // asked for, 0: the model's
}

func (o ollama) describe(ctx context.Context, h *http.Client) (description, error) {
	shown, err := api.NewClient(o.base, h).Show(ctx, &api.ShowRequest{Model: o.model})
	if err != nil {
		return description{}, err
	}
	d := description{
		dimensions: modelNumber(shown.ModelInfo, "embedding_length"),
		tokens:     modelNumber(shown.ModelInfo, "context_length"),
	}
	if n := parameter(shown.Parameters, "num_ctx"); n > 0 && (d.tokens == 0 || n < d.tokens) {
		d.tokens = n
	}
	for _, c := range shown.Capabilities {
		d.can = append(d.can, string(c))
		d.embeds = d.embeds || c == model.CapabilityEmbedding
	}
	// Servers from before there were capabilities list none.
	d.embeds = d.embeds || len(shown.Capabilities) == 0
	return d, nil
}

func (o ollama) embed(ctx context.Context, h *http.Client, texts []string) ([][]float32, uint64, error) {
	// Cutting is ours: what a server cuts off depends on its version, and one
	// that must cut silently cannot say that it did.
	truncate := false
	answer, err := api.NewClient(o.base, h).Embed(ctx, &api.EmbedRequest{
		Model: o.model, Input: texts, Truncate: &truncate, Dimensions: o.dimensions,
	})
	if err != nil {
		return nil, 0, suspected(err)
	}
	vectors, err := counted(answer.Embeddings, len(texts))
	return vectors, uint64(max(0, answer.PromptEvalCount)), err
}

// suspected makes err a *suspect if it may be the fault of a text.
func suspected(err error) error {
	if status, ok := errors.AsType[api.StatusError](err); ok && blames(status.StatusCode) {
		return &suspect{code: status.StatusCode}
	}
	if _, ok := errors.AsType[*json.SyntaxError](err); ok {
		return &suspect{why: "it is not JSON"}
	}
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return &suspect{why: "its JSON has another shape"} // a number beyond float32, too
	}
	return err
}

// counted makes sure that every vector belongs to a text. Ollama has left out
// those of empty texts; which ones cannot be told but for a text alone.
func counted(vectors [][]float32, texts int) ([][]float32, error) {
	switch {
	case len(vectors) == texts:
		return vectors, nil
	case texts == 1:
		return [][]float32{nil}, nil
	}
	return nil, &suspect{why: "the number of vectors is not that of the texts"}
}

// modelNumber reads a number of the model's own architecture: a model that
// sees has another embedding_length for pictures. 0: there is none.
func modelNumber(info map[string]any, key string) int {
	architecture, _ := info["general.architecture"].(string)
	n, ok := info[architecture+"."+key].(float64)
	if !ok || n < 1 || n > math.MaxInt32 {
		return 0
	}
	return int(n)
}

// parameter reads a number from the parameters of a Modelfile, one a line,
// name and value apart by spaces. 0: there is none.
func parameter(lines, name string) int {
	for line := range strings.Lines(lines) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == name {
			if n, err := strconv.Atoi(f[1]); err == nil && n > 0 {
				return n
			}
		}
	}
	return 0
}
