package embed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"recalld/llm"
)

// openai speaks with a server that has the embeddings endpoint of OpenAI. It is
// written by hand because it is one request, and a library would bring retries
// and timeouts that [llm.Client.Do] decides about.
type openai struct {
	base       *url.URL
	model      string
	dimensions int // asked for, 0: the model's
}

// embeddingsRequest and embeddingsAnswer are the bodies of POST /embeddings.
type embeddingsRequest struct {
	Model string   `json:"model"`
	Input []string `json:"input"`
	// EncodingFormat is sent because some servers default to base64.
	EncodingFormat string `json:"encoding_format"`
	Dimensions     int    `json:"dimensions,omitempty"`
}

type embeddingsAnswer struct {
	Data []struct {
		// Index is the text's place in the input; servers that leave it out
		// answer in order.
		Index     *int            `json:"index"`
		Embedding json.RawMessage `json:"embedding"`
	} `json:"data"`
	Usage struct {
		PromptTokens uint64 `json:"prompt_tokens"`
		TotalTokens  uint64 `json:"total_tokens"`
	} `json:"usage"`
}

// describe knows nothing: there is no request for it that all such servers
// answer.
func (o openai) describe(context.Context, *http.Client) (description, error) {
	return description{embeds: true}, nil
}

func (o openai) embed(ctx context.Context, h *http.Client, texts []string) ([][]float32, uint64, error) {
	body, err := json.Marshal(embeddingsRequest{o.model, texts, "float", o.dimensions})
	if err != nil {
		return nil, 0, fmt.Errorf("encode %d texts: %w", len(texts), err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, o.base.JoinPath("embeddings").String(), bytes.NewReader(body))
	if err != nil {
		return nil, 0, fmt.Errorf("make request: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	response, err := h.Do(request)
	if err != nil {
		return nil, 0, err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, 0, err
	}
	switch {
	case blames(response.StatusCode):
		return nil, 0, &suspect{code: response.StatusCode}
	case response.StatusCode != http.StatusOK:
		return nil, 0, status(response.StatusCode, data)
	}
	var answer embeddingsAnswer
	if err := json.Unmarshal(data, &answer); err != nil {
		return nil, 0, suspected(err)
	}
	vectors, err := answer.vectors(len(texts))
	return vectors, max(answer.Usage.PromptTokens, answer.Usage.TotalTokens), err
}

// status is the error of an answer that is none, in the form from which
// [llm.Client.Do] can tell what it was.
func status(code int, body []byte) error {
	if err := llm.Status(code, body); errors.Is(err, llm.ErrMissing) {
		return err
	}
	return fmt.Errorf("%w (HTTP %d)", llm.ErrReply, code)
}

// vectors returns the vectors in the order of the texts.
func (a *embeddingsAnswer) vectors(texts int) ([][]float32, error) {
	found, err := counted(make([][]float32, len(a.Data)), texts)
	if err != nil {
		return nil, err
	}
	if len(a.Data) != texts {
		return found, nil
	}
	seen := make([]bool, texts)
	for i, d := range a.Data {
		if d.Index != nil {
			i = *d.Index
		}
		if i < 0 || i >= texts || seen[i] {
			return nil, &suspect{why: "the places of its vectors are not those of the texts"}
		}
		seen[i] = true
		found[i] = numbers(d.Embedding)
	}
	return found, nil
}

// numbers reads a vector, nil if it is none. A null would be read as 0; it is
// what some servers write for NaN.
func numbers(raw json.RawMessage) []float32 {
	var v []float32
	if bytes.Contains(raw, []byte("null")) || json.Unmarshal(raw, &v) != nil {
		return nil
	}
	return v
}
