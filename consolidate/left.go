package consolidate

import (
	"bytes"
	"strings"
)

// What the agent says is left to do is its word, not the person's: it is stored
// as open work by the agent, and live only where it stands in a list that is
// headed so or in a sentence that says so plainly.
const (
	leftSure   = 0.65
	listSure   = 0.70
	chosenSure = 0.45 // what the agent says that the person chose: a candidate
	// headWords is how long a line may be that ends a list by not being part of it.
	headWords = 25
)

// fromAgent reads a turn's last reply.
func (b Builtin) fromAgent(p Piece) []Draft {
	text := reported(p.Text())
	l := languageOf(string(text))
	if l.lists["left"] == nil {
		return nil
	}
	var drafts []Draft
	listed := false // inside a list of what is left
	for _, s := range short(sentences(text)) {
		raw := string(text[s.start:s.end])
		sentence := normalise(raw)
		firstOfLine := s.start-s.line < 12 && len(bytes.TrimLeft(text[s.line:s.start], " \t*_#-•+0123456789.)")) == 0
		if firstOfLine && !s.bullet {
			if l.isHead(text, s) {
				listed = l.is("lefthead", sentence) && !l.is("done", sentence) && !l.is("settled", sentence)
				continue
			}
			if len(strings.Fields(raw)) > headWords {
				listed = false
			}
		}
		draft := Draft{Kind: OpenWork, Quotes: []Quote{p.quote(s, Says)}}
		switch {
		case strings.HasSuffix(sentence, "? "), l.is("settled", sentence):
			continue
		case listed && s.bullet:
			draft.Confidence = listSure
		case !l.hinted(sentence):
			continue
		case l.is("chosen", sentence) && !l.is("veto", sentence):
			draft.Kind, draft.Confidence = Decision, chosenSure
		case l.is("left", sentence) && !l.is("done", sentence):
			draft.Confidence = leftSure
		default:
			continue
		}
		drafts = append(drafts, draft)
	}
	return drafts
}

// isHead reports whether a sentence is a line by itself that heads what follows.
func (l *language) isHead(text []byte, s sentence) bool {
	line := text[s.line:]
	if end := bytes.IndexByte(line, '\n'); end >= 0 {
		line = line[:end]
	}
	line = bytes.TrimSpace(line)
	return bytes.HasPrefix(line, []byte("#")) || bytes.HasSuffix(line, []byte(":")) || bytes.HasSuffix(line, []byte(":**")) ||
		bytes.HasPrefix(line, []byte("**")) && bytes.HasSuffix(line, []byte("**")) && bytes.Count(line, []byte("**")) == 2
}

// hinted reports whether a sentence holds any of the words without which the
// agent leaves or reports nothing. It is there for speed: replies are long.
func (l *language) hinted(sentence string) bool {
	for _, word := range l.hints {
		if strings.Contains(sentence, word) {
			return true
		}
	}
	return len(l.hints) == 0
}
