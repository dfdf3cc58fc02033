package llm

import (
	"context"
	"fmt"
	"net/http"

	"github.com/ollama/ollama/api"
)

const (
	// seed makes a model answer the same question in the same way.
	seed = 1
	// minContext and maxContext bound the window that Ollama is asked for. A
	// window of another size makes it load the model again, so sizes are powers
	// of two; the least is its own default.
	minContext, maxContext = 4096, 131072
	// frameTokens is room for what a chat template adds.
	frameTokens = 256
)

// askOllama puts r to /api/chat. The answer comes in one piece: its connection
// closes with the context all the same, and it is checked as a whole. The
// server is told not to cut the prompt, which it would do silently.
func (c *Client) askOllama(ctx context.Context, h *http.Client, r Request) (reply, error) {
	no := false
	request := api.ChatRequest{
		Model:    c.model.Name,
		Messages: []api.Message{{Role: "user", Content: r.Prompt}},
		Stream:   &no,
		Format:   r.Schema,
		Think:    &api.ThinkValue{Value: false},
		Truncate: &no,
		Shift:    &no,
		Options: map[string]any{
			"temperature": 0,
			"seed":        seed,
			"num_ctx":     window(guess(r.System) + guess(r.Prompt) + r.MaxTokens + frameTokens),
			"num_predict": r.MaxTokens,
		},
	}
	if r.System != "" {
		request.Messages = append([]api.Message{{Role: "system", Content: r.System}}, request.Messages...)
	}
	var (
		got     reply
		thought bool
		last    api.ChatResponse
	)
	err := api.NewClient(c.base, h).Chat(ctx, &request, func(part api.ChatResponse) error {
		got.text += part.Message.Content
		thought = thought || part.Message.Thinking != ""
		last = part
		return nil
	})
	got.tokens = count(last.PromptEvalCount) + count(last.EvalCount)
	switch {
	case err != nil:
		return got, err
	case last.DoneReason == "length":
		return got, fmt.Errorf("%w: it is cut", ErrReply)
	case !last.Done || last.DoneReason != "stop":
		// A model that repeats itself is stopped without a reason, and an
		// answer that breaks off has none.
		return got, fmt.Errorf("%w: it has no proper end", ErrReply)
	case got.text == "" && thought:
		return got, fmt.Errorf("%w: the model thought and did not answer", ErrReply)
	}
	return got, nil
}

// guess returns a number of tokens that text hardly exceeds: three bytes of
// ASCII to a token, and two tokens for any other rune.
func guess(text string) int {
	ascii, other := 0, 0
	for _, r := range text {
		if r < 0x80 {
			ascii++
		} else {
			other++
		}
	}
	return ascii/3 + 2*other
}

// window returns the size of context for a number of tokens.
func window(tokens int) int {
	size := minContext
	for size < tokens && size < maxContext {
		size *= 2
	}
	return size
}

// count turns a number that a server reports into one that can be added up.
func count(n int) uint64 { return uint64(min(max(n, 0), maxTokens)) }
