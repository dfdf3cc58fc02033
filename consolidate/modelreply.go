package consolidate

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"recalld/llm"
)

const (
	// maxReplyBytes is how long a reply may be that is read at all.
	maxReplyBytes = 64 << 10
	// maxEntries of one window are taken.
	maxEntries = 24
	// noConfidence is what an entry has that states none.
	noConfidence = 0.5
)

// errReply: what a model answered is not what it was asked for. Whether the
// window holds anything is not known.
var errReply = fmt.Errorf("%w: it is no list of entries", llm.ErrReply)

// A proposed is one entry of a reply, as the model wrote it.
type proposed struct {
	unreadable        bool // the rest is not set
	kind              Kind // zero for one that is not known
	message, proposal int  // numbers of messages; 0 for none
	quote, accepted   string
	confidence        float64
}

// thoughts are what some models write before they answer.
var thoughts = regexp.MustCompile(`(?s)\A\s*<think(?:ing)?>.*?</think(?:ing)?>`)

// parseReply reads the reply of a model: an object with a list of entries, or
// the list alone, whatever stands around it. What is cut off in the middle is no
// reply: what it lacks is not known.
func parseReply(reply string) ([]proposed, error) {
	if len(reply) > maxReplyBytes {
		return nil, errReply
	}
	reply = reply[len(thoughts.FindString(reply)):]
	begin := strings.IndexAny(reply, "{[")
	if begin < 0 {
		return nil, errReply
	}
	var list []json.RawMessage
	decoder := json.NewDecoder(strings.NewReader(reply[begin:]))
	if reply[begin] == '[' {
		if decoder.Decode(&list) != nil {
			return nil, errReply
		}
	} else {
		var object struct{ Entries []json.RawMessage }
		if decoder.Decode(&object) != nil || object.Entries == nil {
			return nil, errReply
		}
		list = object.Entries
	}
	entries := make([]proposed, len(list))
	for i, raw := range list {
		entries[i] = parseEntry(raw)
	}
	return entries, nil
}

func parseEntry(raw json.RawMessage) proposed {
	var fields map[string]any
	if json.Unmarshal(raw, &fields) != nil || fields == nil {
		return proposed{unreadable: true}
	}
	e := proposed{
		message: numberOf(fields["message"]), proposal: numberOf(fields["proposal_message"]),
		confidence: noConfidence,
	}
	kind, _ := fields["kind"].(string)
	e.kind = kindByName[strings.NewReplacer(" ", "_", "-", "_").Replace(strings.ToLower(strings.TrimSpace(kind)))]
	e.quote, _ = fields["quote"].(string)
	e.accepted, _ = fields["proposal"].(string)
	if c, stated := fields["confidence"]; stated && c != nil {
		e.confidence = realOf(c)
	}
	return e
}

// numberOf is a number of a message, 0 for what is none.
func numberOf(v any) int {
	f := realOf(v)
	if f != math.Trunc(f) || f < 0 || f > math.MaxInt32 { // not of NaN either
		return 0
	}
	return int(f)
}

// realOf is a number, also one that was written as a text; NaN for what is none.
func realOf(v any) float64 {
	switch v := v.(type) {
	case float64:
		return v
	case string:
		if f, err := strconv.ParseFloat(strings.TrimSpace(v), 64); err == nil {
			return f
		}
	}
	return math.NaN()
}
