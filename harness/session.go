package harness

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	recalldv1 "recalld/proto/recalld/v1"
)

// person is the speaker of what a person wrote: session files do not say who
// sat there. The other speaker is the agent by its name in the file, as in
// "Claude Code", or assistant where the file gives none.
const (
	person    = "user"
	assistant = "assistant"
)

// A spokenLine is one message of a session file, of any format.
type spokenLine struct {
	id      string // the file's own id; empty derives one
	kind    recalldv1.Kind
	speaker string
	at      time.Time // zero where the file gives none
	text    string
}

// A sessionFile is one session as a file of sessions tells it.
type sessionFile struct {
	id      string
	agent   string
	started time.Time // zero if unknown
	lines   []spokenLine
}

// speakerOf names who says a line of this kind.
func (s sessionFile) speakerOf(kind recalldv1.Kind) string {
	agent := s.agent
	if agent == "" {
		agent = assistant
	}
	switch kind {
	case recalldv1.Kind_KIND_USER:
		return person
	case recalldv1.Kind_KIND_WORK:
		return agent + " subagent"
	}
	return agent
}

// kindOf gives the kind of a line by its role.
func kindOf(role string) (recalldv1.Kind, bool) {
	switch role {
	case "user":
		return recalldv1.Kind_KIND_USER, true
	case "assistant":
		return recalldv1.Kind_KIND_REPLY, true
	case "tool", "system":
		return recalldv1.Kind_KIND_TRACE, true
	}
	return recalldv1.Kind_KIND_UNSPECIFIED, false
}

// turns cuts the session into turns. Each message of the person begins one, and
// what comes before the first such message is a turn of its own. All turns are
// finished: whatever ended them, the session is over. A turn bears the id of
// its first message.
func (s sessionFile) turns() []*recalldv1.NewTurn {
	var turns []*recalldv1.NewTurn
	title := title(s.lines)
	last := s.started
	for ordinal, line := range s.lines {
		// A message without a time is taken to follow the one before at once.
		if line.at.IsZero() {
			line.at = last
		}
		last = line.at
		message := &recalldv1.NewMessage{
			Id:      line.id,
			Kind:    line.kind,
			Speaker: line.speaker,
			Text:    []byte(line.text),
		}
		if message.Id == "" {
			message.Id = derivedID(s.id, ordinal, message.Text)
		}
		if !line.at.IsZero() {
			message.Time = spoken(line.at)
		}
		if ordinal == 0 || line.kind == recalldv1.Kind_KIND_USER {
			turns = append(turns, &recalldv1.NewTurn{
				SessionId:    s.id,
				SessionTitle: title,
				TurnId:       message.Id,
				Status:       recalldv1.TurnStatus_TURN_STATUS_FINISHED,
			})
		}
		turn := turns[len(turns)-1]
		turn.Messages = append(turn.Messages, message)
	}
	return turns
}

// derivedID names a message that has no id of its own by its ordinal in the
// session and 24 hex digits of SHA-256 over the session's id (after its length
// as 8 bytes, big-endian) and the message's bytes. The session is part of it
// because ids are unique in a memory, and "yes" is said in many sessions.
func derivedID(session string, ordinal int, text []byte) string {
	h := sha256.New()
	var length [8]byte
	binary.BigEndian.PutUint64(length[:], uint64(len(session)))
	h.Write(length[:])
	h.Write([]byte(session))
	h.Write(text)
	return fmt.Sprintf("%d-%s", ordinal, hex.EncodeToString(h.Sum(nil)[:12]))
}

// maxTitle is the length of a derived title in characters: one line.
const maxTitle = 80

// markup is what a harness wraps around commands, as in
// "<command-name>/review</command-name>".
var markup = regexp.MustCompile(`</?[a-zA-Z][a-zA-Z0-9_-]*>`)

// title derives the title of a session that has none: the first line the
// person wrote, without markup and with single spaces, cut after a word to at
// most 80 characters. A line that ends in a colon is followed by the next one.
// A message that only tells of an interruption is passed over.
func title(messages []spokenLine) string {
	for _, m := range messages {
		if m.kind != recalldv1.Kind_KIND_USER || strings.HasPrefix(m.text, "[Request interrupted") {
			continue
		}
		var words []string
		for line := range strings.Lines(m.text) {
			line := markup.ReplaceAllString(line, " ")
			words = append(words, strings.Fields(line)...)
			if len(words) > 0 && !strings.HasSuffix(words[len(words)-1], ":") {
				break
			}
		}
		if len(words) > 0 {
			return cutWords(words)
		}
	}
	return ""
}

// cutWords joins words to at most maxTitle characters. What is left out is
// marked by an ellipsis; a first word that is too long is cut inside.
func cutWords(words []string) string {
	var b strings.Builder
	length := 0
	for i, word := range words {
		n := utf8.RuneCountInString(word)
		if i > 0 {
			n++
		}
		room := maxTitle - length
		if i < len(words)-1 || n > room {
			room-- // for the ellipsis
		}
		if n > room {
			if i == 0 {
				b.WriteString(string([]rune(word)[:room]))
			}
			b.WriteString("…")
			break
		}
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(word)
		length += n
	}
	return b.String()
}
