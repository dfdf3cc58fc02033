package ledger

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// sealBytes is how much of a SHA-256 is kept as a row's seal. It guards against
// damage, not against someone who can write the file.
const sealBytes = 16

// A sealing collects the columns of a row. Texts are preceded by their length,
// so that no two rows give the same bytes.
type sealing []byte

func newSealing(table string) sealing { return make(sealing, 0, 256).text(table) }

func (s sealing) number(v int64) sealing { return binary.BigEndian.AppendUint64(s, uint64(v)) }

func (s sealing) text(v string) sealing { return append(s.number(int64(len(v))), v...) }

func (s sealing) bytes(v []byte) sealing { return append(s.number(int64(len(v))), v...) }

func (s sealing) stamp(v stamp) sealing {
	if !v.known {
		return append(s, 0)
	}
	return append(s, 1).number(v.micros)
}

func (s sealing) sum() []byte {
	sum := sha256.Sum256(s)
	return sum[:sealBytes]
}

// The rows, as they are sealed.

type memoryRow struct {
	key     MemoryKey
	created stamp
	secret  []byte
}

func (r *memoryRow) seal() []byte {
	return newSealing("memory").text(r.key.Agent).text(r.key.Project).stamp(r.created).bytes(r.secret).sum()
}

type countersRow struct {
	lastMessage, lastTurn, lastSession              int64
	sessions, turns, messages, textBytes, forgotten int64
	first, last                                     stamp
}

func (r *countersRow) seal() []byte {
	return newSealing("counters").number(r.lastMessage).number(r.lastTurn).number(r.lastSession).
		number(r.sessions).number(r.turns).number(r.messages).number(r.textBytes).number(r.forgotten).
		stamp(r.first).stamp(r.last).sum()
}

type sessionRow struct {
	number      int64
	id, title   string
	turns, open int64
	first, last stamp
}

func (r *sessionRow) seal() []byte {
	return newSealing("session").number(r.number).text(r.id).text(r.title).
		number(r.turns).number(r.open).stamp(r.first).stamp(r.last).sum()
}

type turnRow struct {
	seq, session int64
	id           string
	status       Status
	appended     stamp
}

func (r *turnRow) seal() []byte {
	return newSealing("turn").number(r.seq).number(r.session).text(r.id).
		number(int64(r.status)).stamp(r.appended).sum()
}

// A messageRow is everything of a message but its text. Its seal covers where
// it belongs, so that a row cannot drift to another turn or session.
type messageRow struct {
	seq           int64
	id            string
	turn, session int64
	turnID        string
	ordinal       int64
	kind          Kind
	speaker, zone string
	time          stamp
	content       []byte
}

func (r *messageRow) seal() []byte {
	return newSealing("message").number(r.seq).text(r.id).number(r.turn).number(r.session).text(r.turnID).
		number(r.ordinal).number(int64(r.kind)).text(r.speaker).text(r.zone).stamp(r.time).bytes(r.content).sum()
}

// derivedID returns the id of a message that came without one: 32 hex digits
// of SHA-256 over session, turn, position and bytes, each preceded by its
// length as 8 bytes.
func derivedID(session, turn string, position int, text []byte) string {
	h := sha256.New()
	h.Write(sealing(nil).text(session).text(turn).number(8).number(int64(position)).number(int64(len(text))))
	h.Write(text)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// forgottenKey returns what is kept of a message id once it is forgotten.
func forgottenKey(secret []byte, id string) []byte {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte(id))
	return h.Sum(nil)
}
