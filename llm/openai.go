package llm

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
)

// Servers that speak OpenAI's protocol speak dialects of it: some know no JSON
// schema, some call the bound of an answer by its old name, models that reason
// take no temperature. A server that answers HTTP 400 and names such a field is
// asked again without it, and what worked is remembered.

// How an answer's form is asked for, from strict to hopeful.
const (
	formSchema = iota // response_format with the schema
	formObject        // response_format for any JSON object, the schema in words
	formWords         // the schema in words
)

// maxAttempts bounds the requests of one call: the first, and one for each
// field that a server may not like.
const maxAttempts = 6

// thinkTokens is added to the bound of an answer for models that think: what
// they think counts, and is not said.
const thinkTokens = 2048

// A dialect is what was learnt about a server. Safe for concurrent use; the
// zero value is the protocol as OpenAI has it.
type dialect struct {
	mu sync.Mutex // guards the rest
	habits
}

type habits struct {
	form        int
	oldBound    bool // max_tokens
	noSampling  bool // neither temperature nor seed
	noReasoning bool // no reasoning_effort
}

func (d *dialect) get() habits {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.habits
}

func (d *dialect) set(h habits) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.habits = h
}

// concede changes h to please a server that refused a request with this body.
// It reports whether there was anything left to change.
func (h *habits) concede(body []byte, hasSchema bool) bool {
	said := strings.ToLower(string(body))
	names := func(words ...string) bool {
		for _, word := range words {
			if strings.Contains(said, word) {
				return true
			}
		}
		return false
	}
	switch {
	case names("max_completion_tokens") && !h.oldBound:
		h.oldBound = true
	case names("temperature", "seed") && !h.noSampling:
		h.noSampling = true
	case names("reasoning_effort") && !h.noReasoning:
		h.noReasoning = true
	case names("context length", "context_length", "too long"):
		return false // it is the text
	case hasSchema && h.form < formWords:
		h.form++ // also when it names nothing, as many servers do
	default:
		return false
	}
	return true
}

type openaiMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type openaiRequest struct {
	Model               string          `json:"model"`
	Messages            []openaiMessage `json:"messages"`
	ResponseFormat      any             `json:"response_format,omitempty"`
	MaxCompletionTokens int             `json:"max_completion_tokens,omitempty"`
	MaxTokens           int             `json:"max_tokens,omitempty"`
	Temperature         *float64        `json:"temperature,omitempty"`
	Seed                *int            `json:"seed,omitempty"`
	ReasoningEffort     string          `json:"reasoning_effort,omitempty"`
}

type openaiResponse struct {
	Choices []struct {
		Message struct {
			Content   string `json:"content"`
			Refusal   string `json:"refusal"`
			Reasoning string `json:"reasoning_content"`
		} `json:"message"`
		FinishReason string `json:"finish_reason"`
	} `json:"choices"`
	Usage struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
	} `json:"usage"`
}

// askOpenAI puts r to /chat/completions.
func (c *Client) askOpenAI(ctx context.Context, h *http.Client, r Request) (reply, error) {
	habits := c.dialect.get()
	for attempt := 1; ; attempt++ {
		status, body, err := c.post(ctx, h, "chat/completions", c.openaiRequest(r, habits))
		if err != nil {
			return reply{}, err
		}
		refused := status == http.StatusBadRequest || status == http.StatusUnprocessableEntity
		if refused && attempt < maxAttempts && habits.concede(body, r.Schema != nil) {
			continue
		}
		if status != http.StatusOK {
			return reply{}, Status(status, body)
		}
		c.dialect.set(habits)
		var got openaiResponse
		if err := unmarshal(body, &got); err != nil {
			return reply{}, err
		}
		return got.reply()
	}
}

func (g *openaiResponse) reply() (reply, error) {
	got := reply{tokens: count(g.Usage.Prompt) + count(g.Usage.Completion)}
	if len(g.Choices) == 0 {
		return got, fmt.Errorf("%w: it is empty", ErrReply)
	}
	choice := &g.Choices[0]
	got.text = choice.Message.Content
	switch {
	case choice.FinishReason == "length":
		return got, fmt.Errorf("%w: it is cut", ErrReply)
	case choice.FinishReason != "stop":
		return got, fmt.Errorf("%w: it has no proper end", ErrReply)
	case got.text == "" && choice.Message.Refusal != "":
		return got, fmt.Errorf("%w: the model declines", ErrReply)
	case got.text == "" && choice.Message.Reasoning != "":
		return got, fmt.Errorf("%w: the model thought and did not answer", ErrReply)
	}
	return got, nil
}

// openaiRequest writes r in a server's dialect.
func (c *Client) openaiRequest(r Request, h habits) *openaiRequest {
	q := &openaiRequest{Model: c.model.Name}
	system, bound := r.System, r.MaxTokens
	if r.Schema != nil {
		switch h.form {
		case formSchema:
			q.ResponseFormat = map[string]any{
				"type": "json_schema",
				"json_schema": map[string]any{
					"name": "answer", "schema": json.RawMessage(r.Schema), "strict": true,
				},
			}
		case formObject:
			q.ResponseFormat = map[string]any{"type": "json_object"}
		}
		if h.form != formSchema {
			system = strings.TrimSpace(system + "\n\nAnswer with JSON alone that fits this schema: " + string(r.Schema))
		}
	}
	if reasons(c.model.Name) {
		bound += thinkTokens
		if !h.noReasoning {
			q.ReasoningEffort = "low"
		}
	} else if !h.noSampling {
		zero, one := 0.0, seed
		q.Temperature, q.Seed = &zero, &one
	}
	if h.oldBound {
		q.MaxTokens = bound
	} else {
		q.MaxCompletionTokens = bound
	}
	if system != "" {
		q.Messages = append(q.Messages, openaiMessage{"system", system})
	}
	q.Messages = append(q.Messages, openaiMessage{"user", r.Prompt})
	return q
}

// reasons reports whether a model of OpenAI thinks before it answers. They
// refuse a temperature, and what they think counts as part of the answer.
func reasons(name string) bool {
	for _, family := range []string{"gpt-5", "o1", "o3", "o4"} {
		if name == family || strings.HasPrefix(name, family+"-") || strings.HasPrefix(name, family+".") {
			return true
		}
	}
	return false
}
