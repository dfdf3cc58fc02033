package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	// maxReply bounds the answer of a chat on the wire.
	maxReply = 1 << 20
	// defaultTokens bounds the answer where a request does not.
	defaultTokens = 512
)

// A reply is what a server made of a request.
type reply struct {
	text   string
	tokens uint64 // as reported, 0: not reported
}

// Chat asks for one answer. With a schema it is one JSON value, without the
// fence that models like to draw around it; that it fits the schema is not
// certain. It is never empty and always valid UTF-8.
//
// The error wraps [ErrReply] if the answer is of no use: empty, cut, too large,
// thought but not said, not JSON where a schema was given. Otherwise it is as
// for [Client.Do]. A server that reports no tokens is charged one for four
// bytes of question and answer.
func (c *Client) Chat(ctx context.Context, r Request) (string, error) {
	if r.Schema != nil && !json.Valid(r.Schema) {
		return "", errors.New("the schema of a request is not JSON")
	}
	if r.MaxTokens <= 0 {
		r.MaxTokens = defaultTokens
	}
	var text string
	err := c.Do(ctx, r.Purpose, maxReply, func(ctx context.Context, h *http.Client) (uint64, error) {
		ask := c.askOllama
		if c.model.Provider == OpenAI {
			ask = c.askOpenAI
		}
		got, err := ask(ctx, h, r)
		if got.tokens == 0 && got.text != "" {
			got.tokens = uint64(len(r.System)+len(r.Prompt)+len(r.Schema)+len(got.text)) / bytesPerToken
		}
		if err != nil {
			return got.tokens, err
		}
		text, err = answer(got.text, r)
		return got.tokens, err
	})
	if err != nil {
		return "", err
	}
	return text, nil
}

// answer cleans what a model said and checks it.
func answer(text string, r Request) (string, error) {
	// Some servers leave what a model thought in the answer.
	text = strings.TrimSpace(text)
	if rest, thinks := strings.CutPrefix(text, "<think>"); thinks {
		_, said, ended := strings.Cut(rest, "</think>")
		if !ended {
			return "", fmt.Errorf("%w: the model thought and did not answer", ErrReply)
		}
		text = strings.TrimSpace(said)
	}
	if r.Schema != nil {
		text = unfence(text)
		if !json.Valid([]byte(text)) {
			return "", fmt.Errorf("%w: it is not JSON", ErrReply)
		}
	}
	if text == "" {
		return "", fmt.Errorf("%w: it is empty", ErrReply)
	}
	if r.Check == nil {
		return text, nil
	}
	if err := r.Check(text); err != nil {
		if !errors.Is(err, ErrReply) {
			err = fmt.Errorf("%w: %w", ErrReply, err)
		}
		return "", err
	}
	return text, nil
}

// unfence removes a Markdown fence around a whole text.
func unfence(text string) string {
	rest, opened := strings.CutPrefix(text, "```")
	if !opened {
		return text
	}
	rest, closed := strings.CutSuffix(rest, "```")
	_, body, lined := strings.Cut(rest, "\n") // the first line names the language
	if !closed || !lined {
		return text
	}
	return strings.TrimSpace(body)
}

// Post sends in as JSON to path under the model's address, with the HTTP client
// that [Client.Do] gave, and reads the answer into out. It is for servers that
// speak the protocol of OpenAI. The errors are those of [Status], or wrap
// [ErrReply] if the answer is not JSON of out's shape.
func (c *Client) Post(ctx context.Context, h *http.Client, path string, in, out any) error {
	status, body, err := c.post(ctx, h, path, in)
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		return Status(status, body)
	}
	return unmarshal(body, out)
}

func unmarshal(body []byte, out any) error {
	if err := json.Unmarshal(body, out); err != nil {
		return plain(err)
	}
	return nil
}

// post returns the whole answer, whatever its status.
func (c *Client) post(ctx context.Context, h *http.Client, path string, in any) (status int, body []byte, err error) {
	data, err := json.Marshal(in)
	if err != nil {
		return 0, nil, fmt.Errorf("write the request: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base.JoinPath(path).String(), bytes.NewReader(data))
	if err != nil {
		return 0, nil, fmt.Errorf("make the request: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")
	resp, err := h.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}

const (
	firstPause = time.Second
	maxPause   = 30 * time.Second
)

// ChatRetry is [Client.Chat], tried again up to attempts times in all after
// failures that may pass: pauses of 1 s, 2 s, 4 s and so on to 30 s lie between.
// It is for work that nobody waits for. A call that was skipped, refused for the
// text or the key, or answered with nonsense is not repeated: the same question
// at temperature 0 gets the same answer. The error is the last one.
func (c *Client) ChatRetry(ctx context.Context, r Request, attempts int) (string, error) {
	pause := firstPause
	for n := 1; ; n++ {
		text, err := c.Chat(ctx, r)
		if err == nil || n >= attempts || ctx.Err() != nil || !passes(err) {
			return text, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return "", ctx.Err()
		case <-timer.C:
		}
		pause = min(2*pause, maxPause)
	}
}

// passes reports whether the same call may succeed a little later.
func passes(err error) bool {
	if _, ok := errors.AsType[*skipped](err); ok {
		return false
	}
	return !errors.Is(err, ErrRefused) && !errors.Is(err, ErrMissing) && !errors.Is(err, ErrReply) && !errors.Is(err, ErrUnauthorized)
}
