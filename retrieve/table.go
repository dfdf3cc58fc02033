package retrieve

import (
	"hash/fnv"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// none marks the absence of an ordinal.
const none = int32(-1)

// Flags say what a message's text looks like.
type flags uint8

const (
	flagAsks     flags = 1 << iota // ends with a question mark
	flagQuestion                   // holds a question mark
	flagFirst                      // holds a first-person word
	flagTime                       // holds a time word
	flagReverses                   // is short and speaks like a statement that takes the place of another
)

// noDay is the day of a message without a time.
const noDay = int32(-1 << 31)

// A row is what ranking needs of one message besides its postings: what is
// kept on disk beside the word index.
type row struct {
	Seq      uint64
	Session  string
	Speaker  string
	Kind     Kind
	TurnSeq  uint64
	Ordinal  int
	Micros   int64 // when it was said, Unix microseconds; 0 unknown
	Day      int32 // days since 1970 in the speaker's zone; noDay unknown
	Length   int32 // content words, header included
	Flags    flags
	TextHash uint64
	Slices   []sliceRow
}

// A sliceRow is what ranking needs of one slice.
type sliceRow struct {
	Range
	Length int32    // content words, in the first slice with those of the header
	Tokens []uint16 // rows of the token table; none where it has no opinion
}

// A message is a row in a table, with names replaced by ordinals.
type message struct {
	seq        uint64
	turnSeq    uint64
	micros     int64
	textHash   uint64
	ordinal    int32
	day        int32
	length     int32
	session    int32
	speaker    int32
	firstSlice int32
	slices     int32
	kind       Kind
	flags      flags
}

// A table holds the messages of one class (default kinds, or the others) in
// the order of their sequence numbers; an ordinal is a place in it. Token
// lists are kept by slice.
//
// Statistics of ranking are over the table of the default kinds.
type table struct {
	// linked tables have neighbours; a table of traces has none.
	linked   bool
	messages []message
	slices   []tableSlice
	// prev and next link the neighbours in a session: the spoken messages and
	// notes by (turn, ordinal).
	prev, next []int32
	tokens     [][]uint16

	sessions     []string
	sessionIndex map[string]int32
	last         []int32 // per session: its last message
	sessionWords []int32 // per session: its content words
	words        int64   // content words in all
	speakers     []string
	speakerIndex map[string]int32
	personally   []bool // per speaker: has said something as the person

	still atomic.Pointer[table] // what frozen gave since the last change
}

type tableSlice struct {
	start, end int32
	length     int32
	message    int32
}

func newTable(linked bool) *table {
	return &table{linked: linked, sessionIndex: map[string]int32{}, speakerIndex: map[string]int32{}}
}

// add appends a row and links it to its neighbours. A message that arrives
// late for its turn is put where it belongs.
func (t *table) add(r row) int32 {
	t.still.Store(nil)
	ord := int32(len(t.messages))
	session := intern(&t.sessions, t.sessionIndex, r.Session)
	speaker := intern(&t.speakers, t.speakerIndex, r.Speaker)
	for len(t.last) < len(t.sessions) {
		t.last, t.sessionWords = append(t.last, none), append(t.sessionWords, 0)
	}
	t.sessionWords[session] += r.Length
	t.words += int64(r.Length)
	for len(t.personally) < len(t.speakers) {
		t.personally = append(t.personally, false)
	}
	if r.Kind == User {
		t.personally[speaker] = true
	}
	t.messages = append(t.messages, message{
		seq: r.Seq, turnSeq: r.TurnSeq, ordinal: int32(r.Ordinal), kind: r.Kind, micros: r.Micros, day: r.Day,
		length: r.Length, flags: r.Flags, textHash: r.TextHash, session: session, speaker: speaker,
		firstSlice: int32(len(t.slices)), slices: int32(len(r.Slices)),
	})
	for _, s := range r.Slices {
		t.slices = append(t.slices, tableSlice{int32(s.Start), int32(s.End), s.Length, ord})
		t.tokens = append(t.tokens, s.Tokens)
	}
	t.link(ord, session)
	return ord
}

func (t *table) link(ord, session int32) {
	if !t.linked {
		t.prev, t.next = append(t.prev, none), append(t.next, none)
		return
	}
	after := t.last[session]
	for after != none && t.before(ord, after) {
		after = t.prev[after]
	}
	before := none
	if after == none {
		before = t.first(session)
	} else {
		before = t.next[after]
	}
	t.prev, t.next = append(t.prev, after), append(t.next, before)
	if after != none {
		t.next[after] = ord
	}
	if before != none {
		t.prev[before] = ord
	} else {
		t.last[session] = ord
	}
}

// first walks to the first message of a session; only a message that arrives
// late before all others needs it.
func (t *table) first(session int32) int32 {
	ord := t.last[session]
	for ord != none && t.prev[ord] != none {
		ord = t.prev[ord]
	}
	return ord
}

// before reports whether message a stands before b in their session.
func (t *table) before(a, b int32) bool {
	x, y := &t.messages[a], &t.messages[b]
	if x.turnSeq != y.turnSeq {
		return x.turnSeq < y.turnSeq
	}
	if x.ordinal != y.ordinal {
		return x.ordinal < y.ordinal
	}
	return x.seq < y.seq
}

func intern(names *[]string, index map[string]int32, name string) int32 {
	if i, ok := index[name]; ok {
		return i
	}
	i := int32(len(*names))
	*names = append(*names, name)
	index[name] = i
	return i
}

// An analysed document: its row, and the tokens of each slice.
type analysed struct {
	row   row
	words [][]Token
}

// analyse does all that is done with a text before it is forgotten.
func analyse(d Document, table TokenTable) analysed {
	a := analysed{row: row{
		Seq: d.Seq, Session: d.Session, Speaker: d.Speaker, Kind: d.Kind, TurnSeq: d.TurnSeq, Ordinal: d.Ordinal, Day: noDay,
	}}
	if !d.Time.IsZero() {
		a.row.Micros, a.row.Day = d.Time.UnixMicro(), dayOf(d.Time)
	}
	represented := table != nil && d.Kind.IsDefault() && table.Represents(head(d.Text))
	for i, s := range cutSlices(d.Text) {
		own := d.Text[s.own:s.End]
		tokens := Analyze(own)
		r := sliceRow{Range: s.Range}
		if i == 0 {
			tokens = append(Analyze(header(d)), tokens...)
			own = d.Speaker + ": " + own // without the date
		}
		if represented {
			r.Tokens = tokenRows(table, own)
		}
		r.Length = int32(contentLength(tokens))
		a.row.Length += r.Length
		a.row.Slices = append(a.row.Slices, r)
		a.words = append(a.words, tokens)
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(d.Text)) // never fails
	a.row.TextHash = h.Sum64()
	a.row.Flags = textFlags(head(d.Text))
	if len(a.row.Slices) == 1 && reverses(d.Text) {
		a.row.Flags |= flagReverses // a long text says "instead of" of something or other
	}
	return a
}

// head is the part of a text that is looked at as a whole.
func head(text string) string {
	if len(text) <= maxIndexedBytes {
		return text
	}
	return text[:charStart(text, maxIndexedBytes, 0)]
}

// header is what a message is indexed with besides its text: the day it was
// said, in words, and who said it.
func header(d Document) string {
	if d.Time.IsZero() {
		return d.Speaker
	}
	return d.Time.Format("2 January 2006 ") + d.Speaker
}

func tokenRows(table TokenTable, text string) []uint16 {
	tokens := table.Tokens(text)
	rows := make([]uint16, len(tokens))
	for i, token := range tokens {
		rows[i] = uint16(token)
	}
	return rows
}

// dayOf numbers the day of t in t's zone.
func dayOf(t time.Time) int32 {
	_, offset := t.Zone()
	seconds := t.Unix() + int64(offset)
	day := seconds / 86400
	if seconds%86400 < 0 {
		day--
	}
	return int32(day)
}

// textFlags looks at the text of a message once.
func textFlags(text string) flags {
	var f flags
	trimmed := strings.TrimRight(text, " \t\r\n)\"'*")
	if last, _ := utf8.DecodeLastRuneInString(trimmed); last == '?' || last == '？' || last == '؟' {
		f |= flagAsks
	}
	if strings.ContainsAny(text, "?？؟") {
		f |= flagQuestion
	}
	first, timed := wordFlags(text)
	if first {
		f |= flagFirst
	}
	if timed {
		f |= flagTime
	}
	return f
}
