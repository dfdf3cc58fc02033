package harness_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	"recalld/harness"
	recalldv1 "recalld/proto/recalld/v1"
)

// read gives the turns and the errors of Read, apart.
func read(r io.Reader, o harness.Options) (turns []*recalldv1.NewTurn, errs []string) {
	for turn, err := range harness.Read(r, o) {
		if err != nil {
			errs = append(errs, err.Error())
			continue
		}
		turns = append(turns, turn)
	}
	return turns, errs
}

func at(t *testing.T, value, zone string) *recalldv1.SpokenTime {
	t.Helper()
	instant, err := time.Parse(time.RFC3339, value)
	if err != nil {
		t.Fatal(err)
	}
	return &recalldv1.SpokenTime{At: timestamppb.New(instant), Zone: zone}
}

func compress(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const turnLine = `{"session_id":"s","session_title":"Title","turn_id":"t","status":"finished","messages":[` +
	`{"id":"m","kind":"user","speaker":"Ines","time":"2026-03-02T09:14:05+01:00","text":"Grüße"},` +
	`{"kind":"reply","speaker":"agent","text":""}]}`

func turnWanted(t *testing.T) *recalldv1.NewTurn {
	t.Helper()
	return &recalldv1.NewTurn{
		SessionId:    "s",
		SessionTitle: "Title",
		TurnId:       "t",
		Status:       recalldv1.TurnStatus_TURN_STATUS_FINISHED,
		Messages: []*recalldv1.NewMessage{
			{
				Id: "m", Kind: recalldv1.Kind_KIND_USER, Speaker: "Ines",
				Time: at(t, "2026-03-02T08:14:05Z", "+01:00"), Text: []byte("Grüße"),
			},
			{Kind: recalldv1.Kind_KIND_REPLY, Speaker: "agent"},
		},
	}
}

func TestReadTurns(t *testing.T) {
	for name, input := range map[string][]byte{
		"plain":           []byte(turnLine + "\n"),
		"no last newline": []byte(turnLine),
		"carriage return": []byte(turnLine + "\r\n\r\n"),
		"byte order mark": []byte("\ufeff" + turnLine),
		"compressed":      compress(t, turnLine+"\n"),
	} {
		t.Run(name, func(t *testing.T) {
			turns, errs := read(bytes.NewReader(input), harness.Options{})
			if len(errs) > 0 {
				t.Fatalf("errors %q, want none", errs)
			}
			want := []*recalldv1.NewTurn{turnWanted(t)}
			if diff := cmp.Diff(want, turns, protocmp.Transform()); diff != "" {
				t.Errorf("turns (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadNothing(t *testing.T) {
	for _, input := range []string{"", "\n", " \r\n\n"} {
		if turns, errs := read(strings.NewReader(input), harness.Options{}); len(turns)+len(errs) > 0 {
			t.Errorf("Read(%q) = %v, %q; want nothing", input, turns, errs)
		}
	}
}

// TestReadFaults gives every fault with its line and field, and everything else
// as if the faulty line were not there.
func TestReadFaults(t *testing.T) {
	message := func(fields string) string {
		return `{"session_id":"s","turn_id":"t","messages":[{"kind":"user","speaker":"a","text":"x"},{` + fields + `}]}`
	}
	tests := []struct{ name, line, want string }{
		{"torn", turnLine[:80], "line 2: not a JSON object: broken off or malformed at byte 80"},
		{"two on one line", turnLine + turnLine, fmt.Sprintf("line 2: not a JSON object: broken off or malformed at byte %d", len(turnLine)+1)},
		{"number", "12", "line 2: not a JSON object: unexpected number"},
		{"null", "null", "line 2: not a JSON object: it is null"},
		{"array", "[]", "line 2: not a JSON object: unexpected array"},
		{"not UTF-8", "{\"session_id\":\"\xff\"}", "line 2: not valid UTF-8"},
		{"unknown field", `{"session_id":"s","turn_id":"t","messages":[],"Titel":1}`, "line 2: Titel: unknown field"},
		{"no session", `{"turn_id":"t","messages":[]}`, "line 2: session_id: missing or empty"},
		{"no turn", `{"session_id":"s","messages":[]}`, "line 2: turn_id: missing or empty"},
		{"no messages", `{"session_id":"s","turn_id":"t"}`, "line 2: messages: missing or empty"},
		{"wrong type", `{"session_id":7,"turn_id":"t","messages":[]}`, "line 2: session_id: unexpected number"},
		{"messages of strings", `{"session_id":"s","turn_id":"t","messages":["a"]}`, "line 2: messages: unexpected string"},
		{"status", `{"session_id":"s","turn_id":"t","status":"done","messages":[]}`, "line 2: status: must be open, finished, stopped or interrupted"},
		{"unknown field of a message", message(`"kind":"user","speaker":"a","text":"x","tiem":"y"`), "line 2: messages[1].tiem: unknown field"},
		{"kind", message(`"kind":"human","speaker":"a","text":"x"`), "line 2: messages[1].kind: must be user, reply, trace, work, note or mark"},
		{"no speaker", message(`"kind":"user","text":"x"`), "line 2: messages[1].speaker: missing or empty"},
		{"no text", message(`"kind":"user","speaker":"a"`), "line 2: messages[1].text: needs text or text_base64, and not both"},
		{"two texts", message(`"kind":"user","speaker":"a","text":"x","text_base64":"eA=="`), "line 2: messages[1].text: needs text or text_base64, and not both"},
		{"not base64", message(`"kind":"user","speaker":"a","text_base64":"?"`), "line 2: messages[1].text_base64: is not base64"},
		{"time", message(`"kind":"user","speaker":"a","text":"x","time":"2026-03-02"`), "line 2: messages[1].time: is not a time like 2026-03-02T09:14:05+01:00 (RFC 3339)"},
		{"year", message(`"kind":"user","speaker":"a","text":"x","time":"0000-03-02T09:14:05Z"`), "line 2: messages[1].time: is outside the years 1 to 9999"},
		{"zone", message(`"kind":"user","speaker":"a","text":"x","time":"2026-03-02T09:14:05Z","zone":"CET+1"`), `line 2: messages[1].zone: "CET+1" is neither an IANA name like Europe/Berlin nor an offset like +02:00`},
		{"zone alone", message(`"kind":"user","speaker":"a","text":"x","zone":"Europe/Berlin"`), "line 2: messages[1].zone: needs a time beside it"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			input := strings.Join([]string{turnLine, tt.line, turnLine}, "\n")
			turns, errs := read(strings.NewReader(input), harness.Options{})
			if diff := cmp.Diff([]string{tt.want}, errs); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			want := []*recalldv1.NewTurn{turnWanted(t), turnWanted(t)}
			if diff := cmp.Diff(want, turns, protocmp.Transform()); diff != "" {
				t.Errorf("the other turns (-want +got):\n%s", diff)
			}
		})
	}
}

// TestReadKeepsWhatATornLineHides is B110: a half-written line makes no other
// line vanish, wherever it is and wherever it is cut.
func TestReadKeepsWhatATornLineHides(t *testing.T) {
	for cut := 1; cut < len(turnLine); cut++ {
		for _, torn := range []int{0, 1, 2} {
			input := []string{turnLine, turnLine, turnLine}
			input[torn] = turnLine[:cut]
			turns, errs := read(strings.NewReader(strings.Join(input, "\n")), harness.Options{})
			if len(turns) != 2 || len(errs) != 1 {
				t.Fatalf("line %d cut at byte %d: %d turns, errors %q; want 2 turns and 1 error", torn+1, cut, len(turns), errs)
			}
		}
	}
}

func TestReadZones(t *testing.T) {
	line := func(fields string) string {
		return `{"session_id":"s","turn_id":"t","messages":[{"kind":"user","speaker":"a","text":"x",` + fields + `}]}`
	}
	tests := []struct{ name, fields, zone string }{
		{"UTC", `"time":"2026-07-01T10:00:00Z"`, ""},
		{"offset", `"time":"2026-07-01T12:00:00+02:00"`, "+02:00"},
		{"half an hour", `"time":"2026-07-01T15:30:00+05:30"`, "+05:30"},
		{"name", `"time":"2026-07-01T12:00:00+02:00","zone":"Europe/Berlin"`, "Europe/Berlin"},
		{"offset as zone", `"time":"2026-07-01T10:00:00Z","zone":"-03:00"`, "-03:00"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			turns, errs := read(strings.NewReader(line(tt.fields)), harness.Options{})
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			want := at(t, "2026-07-01T10:00:00Z", tt.zone)
			if diff := cmp.Diff(want, turns[0].GetMessages()[0].GetTime(), protocmp.Transform()); diff != "" {
				t.Errorf("time (-want +got):\n%s", diff)
			}
		})
	}
}

// TestReadAnyBytes has a text that is not UTF-8 arrive byte for byte.
func TestReadAnyBytes(t *testing.T) {
	const input = `{"session_id":"s","turn_id":"t","messages":[{"kind":"user","speaker":"a","text_base64":"AP/+eA=="}]}`
	turns, errs := read(strings.NewReader(input), harness.Options{})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if got, want := turns[0].GetMessages()[0].GetText(), []byte("\x00\xff\xfex"); !bytes.Equal(got, want) {
		t.Errorf("text = %q, want %q", got, want)
	}
}

func TestReadFormat(t *testing.T) {
	const session = `{"session_id":"s","turns":[]}`
	tests := []struct {
		name, input string
		format      harness.Format
		unknown     bool
	}{
		{name: "recognised", input: turnLine},
		{name: "recognised after a torn line", input: turnLine[:9] + "\n" + turnLine},
		{name: "named", input: session, format: harness.SpecStory},
		{name: "something else", input: `{"type":"user"}`, unknown: true},
		{name: "sessions of nobody knows whom", input: session, unknown: true},
		{name: "a name nobody knows", input: turnLine, format: "claude", unknown: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			unknown := false
			for _, err := range harness.Read(strings.NewReader(tt.input), harness.Options{Format: tt.format}) {
				unknown = unknown || errors.Is(err, harness.ErrFormat)
			}
			if unknown != tt.unknown {
				t.Errorf("format unknown = %v, want %v", unknown, tt.unknown)
			}
		})
	}
}

// TestReadBrokenStream has what could be read before a stream broke come
// first, and the fault of the stream last.
func TestReadBrokenStream(t *testing.T) {
	whole := compress(t, strings.Repeat(turnLine+"\n", 3))
	broken := errors.New("disk gone")
	tests := []struct {
		name  string
		r     io.Reader
		turns int
		want  error
	}{
		{"compressed and cut", bytes.NewReader(whole[:len(whole)-9]), 3, io.ErrUnexpectedEOF},
		{"compressed and damaged", bytes.NewReader(append(whole[:len(whole)-8:len(whole)-8], 1, 2, 3, 4, 5, 6, 7, 8)), 3, gzip.ErrChecksum},
		{"only the magic bytes", bytes.NewReader(whole[:2]), 0, io.ErrUnexpectedEOF},
		{"failing reader", io.MultiReader(strings.NewReader(turnLine+"\n"), iotest.ErrReader(broken)), 1, broken},
		{"failing at once", iotest.ErrReader(broken), 0, broken},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			turns, ends := 0, 0
			for _, err := range harness.Read(tt.r, harness.Options{}) {
				switch {
				case err == nil:
					turns++
				case errors.Is(err, tt.want):
					ends++
				}
			}
			if turns != tt.turns || ends != 1 {
				t.Errorf("%d turns, %d times %v; want %d turns and the error once", turns, ends, tt.want, tt.turns)
			}
		})
	}
}

// TestReadStops has the reader stop when nobody wants more.
func TestReadStops(t *testing.T) {
	for _, input := range []string{turnLine + "\n" + turnLine, "{\n{\n{", `{"a":1}`} {
		for range harness.Read(strings.NewReader(input), harness.Options{}) {
			break
		}
	}
}

// TestReadPassesOverAnEndlessLine has a line beyond the limit cost only itself.
func TestReadPassesOverAnEndlessLine(t *testing.T) {
	endless := io.LimitReader(zeroes{}, 64<<20+1)
	input := io.MultiReader(strings.NewReader(turnLine+"\n"), endless, strings.NewReader("\n"+turnLine+"\n"))
	turns, errs := read(input, harness.Options{})
	if len(turns) != 2 || len(errs) != 1 || errs[0] != "line 2: longer than 67108864 bytes" {
		t.Errorf("%d turns, errors %q; want 2 turns and a word on line 2", len(turns), errs)
	}
}

// zeroes is an endless stream of the digit zero.
type zeroes struct{}

func (zeroes) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}
