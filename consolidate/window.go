package consolidate

import (
	"cmp"
	"slices"
	"time"
	"unicode/utf8"
)

const (
	// windowTurns is how many finished turns fill a window.
	windowTurns = 4
	// windowRunes is how many code points of spoken text fill one before that.
	windowRunes = 16000
	// cutBack is how far before the limit a long message may be cut, so that it
	// is cut between lines or words.
	cutBack = 1000
	// contextRunes is how much is kept of what the agent said before a window:
	// proposals stand at the end of a reply.
	contextRunes = 4000
)

// A Position is a place between two pieces of a session: after the turn Turn
// if Message is 0, else after Byte bytes of that message of the turn. The zero
// Position is the session's beginning.
type Position struct {
	Turn, Message uint64
	Byte          int
}

// Compare orders positions. A message that comes late to a turn is before the
// turn's end and after all its older messages.
func (p Position) Compare(q Position) int {
	if c := cmp.Compare(p.Turn, q.Turn); c != 0 {
		return c
	}
	// The end of a turn is after every message of it: 0-1 is the largest number.
	if c := cmp.Compare(p.Message-1, q.Message-1); c != 0 {
		return c
	}
	return cmp.Compare(p.Byte, q.Byte)
}

// A Session is the finished and unfinished turns of one session, in any order,
// and the turns after which its tail was closed early, as they are on record.
type Session struct {
	ID     string
	Turns  []Turn
	Closed []uint64 // sequence numbers of turns
}

// A Piece is a message of a window, or the part of it that the window covers.
type Piece struct {
	Turn       uint64
	Message    Message // Text is the whole text
	Start, End int     // the part of Text, in bytes
}

// Text is the part of the message that the piece covers.
func (p Piece) Text() []byte { return p.Message.Text[p.Start:p.End] }

// A Window is what one batch is read from: the spoken pieces after From up to
// To, in order. Context is the end of what the agent said last before it, to be
// read but not to be extracted from; an acceptance quotes it.
type Window struct {
	Session             string
	From, To            Position
	FirstTurn, LastTurn uint64
	Pieces              []Piece
	Context             []Piece
}

// A Tail is what no window covers yet: finished turns after the last window.
type Tail struct {
	Turns    int
	LastTurn uint64    // 0 for none; closing the tail early records this number
	Appended time.Time // when the newest of them was appended
}

// Windows returns the windows that are closed after from, the position at which
// the session's last batch ends, and the tail that is still open.
//
// A window closes after four finished turns, or before the piece that would
// take it over 16,000 code points, or where the session's record says so. A
// turn that is open counts as interrupted once a later one exists. Turns that
// are added later never move a window that was returned.
func (s Session) Windows(from Position) ([]Window, Tail) {
	turns := s.finished()
	var windows []Window
	var tail Tail
	start, last := from, from // last is the end of what the window holds
	runes, held := 0, 0
	closeAt := func(end Position) {
		windows = append(windows, s.window(turns, start, end))
		start, runes, held, tail = end, 0, 0, Tail{}
	}
	for _, t := range turns {
		if (Position{Turn: t.Seq}).Compare(from) <= 0 {
			continue
		}
		held++
		for _, p := range splitTurn(t, from) {
			size := utf8.RuneCount(p.Text())
			if runes > 0 && runes+size > windowRunes {
				closeAt(last)
				held = 1 // the turn that goes on
			}
			runes += size
			last = Position{Turn: t.Seq, Message: p.Message.Seq, Byte: p.End}
		}
		last = Position{Turn: t.Seq}
		tail.Turns, tail.LastTurn = tail.Turns+1, t.Seq
		if t.Appended.After(tail.Appended) {
			tail.Appended = t.Appended
		}
		if held == windowTurns || slices.Contains(s.Closed, t.Seq) {
			closeAt(last)
		}
	}
	return windows, tail
}

// Window returns the window between two positions as it reads now: with
// messages that came late, and without those that are forgotten.
func (s Session) Window(from, to Position) Window {
	return s.window(s.finished(), from, to)
}

func (s Session) window(turns []Turn, from, to Position) Window {
	w := Window{Session: s.ID, From: from, To: to}
	first, _ := slices.BinarySearchFunc(turns, from.Turn, func(t Turn, seq uint64) int { return cmp.Compare(t.Seq, seq) })
	for _, t := range turns[first:] {
		if t.Seq > to.Turn {
			break
		}
		if (Position{Turn: t.Seq}).Compare(from) <= 0 {
			continue
		}
		if w.FirstTurn == 0 {
			w.FirstTurn = t.Seq
		}
		w.LastTurn = t.Seq
		for _, m := range spoken(t) {
			p := Piece{Turn: t.Seq, Message: m, End: len(m.Text)}
			if from.Turn == t.Seq && from.Message == m.Seq {
				p.Start = min(from.Byte, p.End)
			}
			if to.Turn == t.Seq && to.Message == m.Seq {
				p.End = min(to.Byte, p.End)
			}
			begin := Position{Turn: t.Seq, Message: m.Seq, Byte: p.Start}
			end := Position{Turn: t.Seq, Message: m.Seq, Byte: p.End}
			if end.Compare(from) > 0 && end.Compare(to) <= 0 && begin.Compare(from) >= 0 && p.Start <= p.End {
				w.Pieces = append(w.Pieces, p)
			}
		}
	}
	w.Context = contextOf(turns[:min(first+1, len(turns))], from)
	return w
}

// contextOf returns the end of the last reply in turns that is before from, or nothing.
func contextOf(turns []Turn, from Position) []Piece {
	for i := len(turns) - 1; i >= 0; i-- {
		messages := spoken(turns[i])
		for j := len(messages) - 1; j >= 0; j-- {
			m := messages[j]
			p := Piece{Turn: turns[i].Seq, Message: m, End: len(m.Text)}
			if p.Turn == from.Turn && m.Seq == from.Message {
				p.End = min(from.Byte, p.End)
			}
			if m.Kind != Reply || p.End == 0 || (Position{Turn: p.Turn, Message: m.Seq, Byte: p.End}).Compare(from) > 0 {
				continue
			}
			p.Start = lastRunes(m.Text[:p.End], contextRunes)
			return []Piece{p}
		}
	}
	return nil
}

// finished returns the turns that may enter a window, in order.
func (s Session) finished() []Turn {
	turns := slices.SortedFunc(slices.Values(s.Turns), func(a, b Turn) int { return cmp.Compare(a.Seq, b.Seq) })
	if n := len(turns); n > 0 && turns[n-1].Status == Open {
		turns = turns[:n-1]
	}
	return turns
}

// spoken returns the messages of a turn that a window reads, in order.
func spoken(t Turn) []Message {
	var out []Message
	for _, m := range t.Messages {
		if m.Kind.spoken() && !m.Forgotten {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b Message) int { return cmp.Compare(a.Seq, b.Seq) })
	return out
}

// splitTurn returns what of a turn is after from, in pieces of at most
// windowRunes code points.
func splitTurn(t Turn, from Position) []Piece {
	var pieces []Piece
	for _, m := range spoken(t) {
		p := Piece{Turn: t.Seq, Message: m}
		if from.Turn == t.Seq && from.Message != 0 {
			if m.Seq < from.Message || m.Seq == from.Message && from.Byte >= len(m.Text) {
				continue
			}
			if m.Seq == from.Message {
				p.Start = from.Byte
			}
		}
		for {
			p.End = p.Start + cut(m.Text[p.Start:])
			pieces = append(pieces, p)
			if p.End == len(m.Text) {
				break
			}
			p.Start = p.End
		}
	}
	return pieces
}

// cut returns how many bytes of text make one piece: all if they are at most
// windowRunes code points, else as many as fit, less what lies behind the last
// line break, or the last space, near the end.
func cut(text []byte) int {
	n, space, line := 0, 0, 0
	for at := 0; at < len(text); n++ {
		if n == windowRunes {
			return cmp.Or(line, space, at)
		}
		_, size := utf8.DecodeRune(text[at:])
		at += size
		if n >= windowRunes-cutBack {
			switch text[at-1] {
			case '\n':
				line = at
			case ' ':
				space = at
			}
		}
	}
	return len(text)
}

// lastRunes returns where the last n code points of text begin.
func lastRunes(text []byte, n int) int {
	at := len(text)
	for ; n > 0 && at > 0; n-- {
		_, size := utf8.DecodeLastRune(text[:at])
		at -= size
	}
	return at
}

// InOrder sorts windows of several sessions into the order in which they are
// extracted: that of their last turns.
func InOrder(windows []Window) {
	slices.SortStableFunc(windows, func(a, b Window) int { return cmp.Compare(a.LastTurn, b.LastTurn) })
}
