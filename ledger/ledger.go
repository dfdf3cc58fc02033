// Package ledger answers one question: what was said? It keeps every byte that
// matters, and nothing it says can be made again from somewhere else.
//
// A [Store] is a folder. It holds the catalog (which memories there are, which
// session belongs to which memory) and one folder for each memory, named by
// [MemoryID], with one SQLite file in it. A [Memory] is such a file, opened.
// Sessions are made of turns, turns of messages ([Turn], [Message]). Beside them
// lies the chain of what was decided ([JournalBatch]), whose content is known to
// those who add to it.
//
// Promises, each of which a test holds:
//
//   - When Append returns without an error, its turns are on disk: the
//     transaction is committed with synchronous=FULL first. An Append that
//     fails has stored nothing, or, when the error came from the disk, either
//     everything or nothing; sending the same again is always safe.
//   - Messages never change. Turns may grow. A message id is known once in a
//     memory: the same bytes again are a duplicate, other bytes an error.
//   - Messages and turns carry dense sequence numbers from 1, in the order of
//     arrival. Clocks are stored, never used to order anything.
//   - What is read was checked against the checksum in its row. Damage is named
//     by file, table and row ([DamageError]) and never returned as truth; the
//     rows around it stay readable. Nothing is ever deleted to repair.
//   - After a failed commit the file is opened and looked at anew before the
//     next one is tried; a failed fsync is never just called again.
//   - Memories share no file. A key never becomes part of a path; only its
//     SHA-256 does. Links planted inside the store are not followed.
//   - Files have mode 0600 and folders 0700, whatever the umask.
//
// It does not rank, knows no model and no network, logs nothing and starts no
// goroutine: of concurrent Appends, the one that gets hold of the writer
// commits for all that wait. Nothing outside this package writes SQL.
//
// A Store and a Memory are safe for concurrent use.
package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"time"
)

// A Kind says what a message is. The numbers are stored and are those of the
// wire; the zero value is no kind.
type Kind uint8

// The kinds of messages. User and reply are spoken.
const (
	KindUser  Kind = 1 // the person's words
	KindReply Kind = 2 // what the agent says to the person, also between tool calls
	KindTrace Kind = 3 // tool calls and their results
	KindWork  Kind = 4 // another agent's report
	KindNote  Kind = 5 // something someone asked to remember, or a memory file
	KindMark  Kind = 6 // stopped, interrupted, compacted
)

// A Status says whether a turn has ended, and how. The numbers are stored and
// are those of the wire. In an Append the zero value means "open" for a new
// turn and "as it was" for a known one.
type Status uint8

// The states of a turn. It moves from open to one of the others, once.
const (
	StatusOpen        Status = 1
	StatusFinished    Status = 2
	StatusStopped     Status = 3
	StatusInterrupted Status = 4
)

// NotesSession is the session that holds notes. Every memory has its own, so
// it is bound to none.
const NotesSession = "notes"

// A Message is part of a turn. In an Append the caller sets ID to Text; Seq and
// Ordinal are given by the ledger.
type Message struct {
	// ID is the client's id, unique in the memory. If it is empty, it is
	// derived from session, turn, position in the Append and bytes.
	ID      string
	Kind    Kind
	Speaker string
	// Time is when it was said, kept in microseconds; it comes back in UTC.
	// The zero value means that nobody knows.
	Time time.Time
	// Zone is where it was said: an IANA name or an offset, as given.
	Zone string
	// Text is any bytes.
	Text []byte
	// Seq is dense over the messages of the memory, in the order of arrival,
	// from 1.
	Seq uint64
	// Ordinal is the place in the turn in the order of arrival, from 0.
	Ordinal int
	// Damage is set when the row is damaged. Of the fields above only Seq can
	// then be relied on, and Text is nil. It is not read by Append.
	Damage *DamageError
}

// A Turn goes from one message of the person to the agent's final reply. In an
// Append, Seq and Appended are not read.
type Turn struct {
	Session      string
	SessionTitle string // in an Append: empty leaves it as it is
	ID           string // the client's id, unique in the session
	Status       Status
	Seq          uint64 // dense over the turns of the memory, in the order of arrival, from 1
	Appended     time.Time
	Messages     []Message
}

// A Record is a message with the turn and session it belongs to.
type Record struct {
	Message
	Session      string
	SessionTitle string
	TurnID       string
	TurnSeq      uint64
}

// A MemoryKey names a memory. Agent is not empty; Project may be. Keys are
// compared byte for byte: keys that look alike are different memories.
type MemoryKey struct {
	Agent   string
	Project string
}

// MemoryID returns the id of the memory of k: 64 hex digits of SHA-256 over
// the parts of k, each preceded by its length as 8 bytes, big-endian.
func MemoryID(k MemoryKey) string {
	var b []byte
	for _, part := range []string{k.Agent, k.Project} {
		b = binary.BigEndian.AppendUint64(b, uint64(len(part)))
		b = append(b, part...)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// isMemoryID reports whether s has the form of an id, and so may be part of a path.
func isMemoryID(s string) bool {
	if len(s) != 2*sha256.Size {
		return false
	}
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// Options of a [Store]. The zero value works.
type Options struct {
	// Now gives the time for "appended" and "created"; nil is time.Now.
	Now func() time.Time
	// Build is written into the lock file, to tell a second opener who holds it.
	Build string
	// MustExist makes OpenStore fail with ErrNotFound instead of making a
	// store where there is none.
	MustExist bool
	// MinFreeBytes is the room that must be left on the disk for an Append to
	// be taken on; below it, Append fails with ErrFull. 0 does not look.
	MinFreeBytes uint64
}
