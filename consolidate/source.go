package consolidate

import (
	"crypto/sha256"
	"encoding/binary"
)

// A Source is one message that a batch was read from. When the message is
// forgotten its words and its salt go, and Inner stays: the chain still verifies.
type Source struct {
	Message string
	Kind    MessageKind
	Inner   [32]byte // SHA-256(salt ‖ text)
}

// Sources returns the messages that w was read from and those of its context,
// each once and in order.
func (w Window) Sources() (window, context []Source) {
	return sourcesOf(w.Pieces), sourcesOf(w.Context)
}

func sourcesOf(pieces []Piece) []Source {
	var out []Source
	for i, p := range pieces {
		// The pieces of one message follow each other.
		if i > 0 && pieces[i-1].Message.ID == p.Message.ID {
			continue
		}
		out = append(out, Source{Message: p.Message.ID, Kind: p.Message.Kind, Inner: p.Message.Inner})
	}
	return out
}

// SourceHash is the SHA-256 over the messages of a window and of its context:
// the number of each, then of every message its id, its kind and its inner
// hash, each preceded by its length as 8 bytes, most significant first.
func SourceHash(window, context []Source) [32]byte {
	e := canonical(nil).text("recalld source 1")
	for _, list := range [][]Source{window, context} {
		e = e.number(uint64(len(list)))
		for _, s := range list {
			e = e.text(s.Message).text(s.Kind.String()).bytes(s.Inner[:])
		}
	}
	return sha256.Sum256(e)
}

// SourceHash is the hash of what w reads now. A batch whose source hash is
// another one is stale.
func (w Window) SourceHash() [32]byte { return SourceHash(w.Sources()) }

// A canonical encoding has one form for one content: numbers are 8 bytes, most
// significant first, and everything of variable length is preceded by its length.
type canonical []byte

func (c canonical) number(n uint64) canonical { return binary.BigEndian.AppendUint64(c, n) }

func (c canonical) text(s string) canonical { return append(c.number(uint64(len(s))), s...) }

func (c canonical) bytes(b []byte) canonical { return append(c.number(uint64(len(b))), b...) }

func (c canonical) flag(b bool) canonical {
	if b {
		return append(c, 1)
	}
	return append(c, 0)
}

func (c canonical) texts(list []string) canonical {
	c = c.number(uint64(len(list)))
	for _, s := range list {
		c = c.text(s)
	}
	return c
}

func (c canonical) position(p Position) canonical {
	return c.number(p.Turn).number(p.Message).number(uint64(p.Byte))
}
