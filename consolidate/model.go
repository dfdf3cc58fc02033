package consolidate

import (
	"context"
	"crypto/sha256"
	_ "embed" // for the prompt
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"recalld/llm"
)

// modelVersion names what is made of a model's reply. It changes with it.
const modelVersion = "model/1"

// purpose is the name under which a model's work here is charged.
const purpose = "extract"

// modelPrompt tells a model what to look for, modelSchema how to answer.
var (
	//go:embed data/model.txt
	modelPrompt string
	//go:embed data/model.json
	modelSchema []byte
)

const (
	// defaultCall is how long one call may take: a small model on a busy machine
	// writes a few tokens a second.
	defaultCall = 60 * time.Second
	// maxCalls is how often a window is asked about before its run ends.
	maxCalls = 3
	// firstPause lies between the first call and the second; each further one is
	// pauseGrowth times as long, and none is longer than maxPause.
	firstPause  = time.Second
	pauseGrowth = 4
	maxPause    = 15 * time.Second
	// smallestPart of what a model may be shown is a quarter.
	smallestPart = 4
	// replyTokens is enough for maxEntries entries with a proposal each.
	replyTokens = 4000
)

const (
	// unsure is the most confidence that an entry gets which only a model found:
	// it waits for a person.
	unsure = 0.55
	// trusted is the most that one gets from a model that is trusted.
	trusted = 0.70
)

// ModelOptions of a [Model]. The zero value works.
type ModelOptions struct {
	// Call is how long one call may take; 0 is 60 s.
	Call time.Duration
	// Trust is the least confidence, as the model states it, with which what only
	// the model found in the person's words goes live by itself. 0 is never: a
	// model says that it is sure of anything, until somebody has measured it.
	Trust float64
}

// A Model is the extractor that asks a chat model, one call for each window. It
// finds what [Builtin] finds, as sure as that, and what the model proposes
// besides. Of the reply only words count that stand in the message: who said
// them, when and where is read from there. What only the model found waits for a
// person ([ModelOptions.Trust]), and what the agent said always does, so that no
// model makes the live entries worse.
//
// The model is given no tools and cannot name an entry of another window: it has
// no way to change what was decided before.
type Model struct {
	client *llm.Client
	name   string
	call   time.Duration
	trust  float64
}

var _ Extractor = (*Model)(nil)

// NewModel returns an extractor that asks the model of c.
func NewModel(c *llm.Client, o ModelOptions) *Model {
	m := &Model{client: c, name: c.Model().String(), call: o.Call, trust: o.Trust}
	if m.call <= 0 {
		m.call = defaultCall
	}
	return m
}

// For returns m with its calls charged to an account.
func (m *Model) For(account string) *Model {
	other := *m
	other.client = m.client.For(account)
	return &other
}

// Identity is the version of what is made of replies, the model, and the first
// digits of a hash of everything else that decides what is extracted.
func (m *Model) Identity() string {
	c := canonical(nil).text(modelPrompt).bytes(modelSchema).text(promptHead).text(builtinVersion).text(fmt.Sprint(m.trust))
	sum := sha256.Sum256(c)
	return modelVersion + " " + m.name + " " + hex.EncodeToString(sum[:])[:12]
}

// Extract reads w. A window in which the person says nothing by themselves is
// not asked about. The error is ctx's, or says why the model gave no answer that
// can be used; one that has a method Skipped() string says that the model was
// not asked at all. No error holds anything of prompt or reply.
func (m *Model) Extract(ctx context.Context, w Window) ([]Draft, error) {
	drafts, err := Builtin{}.Extract(ctx, w)
	if err != nil {
		return nil, err
	}
	// A text that is too long for the model is shown in half and in a quarter.
	for part := 1; ; part *= 2 {
		s := show(w, part)
		if !s.personSpeaks() {
			return drafts, nil
		}
		entries, err := m.ask(ctx, s.prompt())
		if errors.Is(err, llm.ErrRefused) && part < smallestPart {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("extract with %s: %w", m.name, err)
		}
		return m.join(drafts, s, entries), nil
	}
}

// ask calls the model until it gives an answer that can be used, at most
// maxCalls times. Why it could not is the error of the last call that was made.
func (m *Model) ask(ctx context.Context, prompt string) ([]proposed, error) {
	var failed error
	pause := firstPause
	for range maxCalls {
		if failed != nil {
			if err := wait(ctx, pause); err != nil {
				return nil, err
			}
			pause = min(pause*pauseGrowth, maxPause)
		}
		entries, err := m.askOnce(ctx, prompt)
		switch {
		case err == nil:
			return entries, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case isSkipped(err) && failed != nil:
			return nil, failed
		case isSkipped(err), errors.Is(err, llm.ErrMissing), errors.Is(err, llm.ErrRefused):
			return nil, err
		}
		failed = err
	}
	return nil, failed
}

func (m *Model) askOnce(ctx context.Context, prompt string) (entries []proposed, err error) {
	ctx, cancel := context.WithTimeout(ctx, m.call)
	defer cancel()
	_, err = m.client.Chat(ctx, llm.Request{
		Purpose: purpose, System: modelPrompt, Prompt: prompt, Schema: modelSchema, MaxTokens: replyTokens,
		Check: func(reply string) (err error) {
			entries, err = parseReply(reply)
			return err
		},
	})
	return entries, err
}

// isSkipped reports whether a call was never made: spending is at its cap, or
// the server failed too often just now.
func isSkipped(err error) bool {
	var skipped interface{ Skipped() string }
	return errors.As(err, &skipped)
}

// wait waits for d, or returns the error of ctx.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// join adds what a model proposes to what the built-in extractor found. A
// sentence that it found too is not told again: cues that were measured know
// better what it is, and how sure.
func (m *Model) join(found []Draft, s shown, entries []proposed) []Draft {
	drafts := slices.Clone(found)
	for i, e := range entries {
		if i >= maxEntries {
			drafts = append(drafts, Draft{Kind: e.kind, Refused: TooMany})
			continue
		}
		d := s.draft(e)
		if d.Refused == "" {
			live := m.trust > 0 && d.Confidence >= m.trust && s.settles(d)
			d.Confidence = min(d.Confidence, unsure)
			if live {
				d.Confidence = trusted
			}
			switch at := overlapping(drafts, d); {
			case at >= len(found):
				d.Refused = Repeated // the model's own
			case at >= 0:
				if live {
					drafts[at].Confidence = max(drafts[at].Confidence, Threshold)
				}
				continue
			}
		}
		drafts = append(drafts, d)
	}
	return drafts
}

// overlapping returns the first of drafts that quotes some of the words of d as
// what is said, or -1.
func overlapping(drafts []Draft, d Draft) int {
	says := d.Quotes[0]
	return slices.IndexFunc(drafts, func(o Draft) bool {
		if o.Refused != "" || len(o.Quotes) == 0 {
			return false
		}
		q := o.Quotes[0]
		return q.Message == says.Message && q.Start < says.End && says.Start < q.End
	})
}
