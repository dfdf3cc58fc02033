package harness_test

import (
	"bytes"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"recalld/harness"
	recalldv1 "recalld/proto/recalld/v1"
)

// FuzzRead checks that no input breaks the readers, and that what they yield is
// whole: named, spoken by someone, of a known kind, with a valid time, and the
// same when it is read again.
func FuzzRead(f *testing.F) {
	f.Add([]byte(turnLine), "")
	f.Add([]byte(turnLine[:len(turnLine)-30]), "turns")               // torn
	f.Add([]byte(turnLine+"\n"+turnLine[:50]+"\n"+turnLine), "turns") // torn inside
	f.Add([]byte(`{"session_id":"s","created_at":"2026-02-11T15:52:15Z","turns":[{"role":"user","time":"2026-02-11T15:31:21Z","uuid":"u","text":"a"}]}`), "entire")
	f.Add([]byte(`{"session_id":"s","path":"x/2026-01-16_16-48-38Z-a.md","turns":[{"role":"user","meta":"(2026-01-16 16:48:38Z)","text":"a"},null]}`), "specstory")
	f.Add([]byte("\x1f\x8b\x08\x00\x00\x00\x00\x00"), "")
	f.Add([]byte("\x1f\x8b"), "entire")
	f.Add([]byte("null\n[]\n{}\n"), "entire")
	f.Fuzz(func(t *testing.T, data []byte, format string) {
		o := harness.Options{Format: harness.Format(format)}
		turns, errs := read(bytes.NewReader(data), o)
		for _, turn := range turns {
			if turn.GetSessionId() == "" || turn.GetTurnId() == "" || !utf8.ValidString(turn.GetSessionTitle()) {
				t.Fatalf("turn without identity: %v", turn)
			}
			for _, m := range turn.GetMessages() {
				if m.GetSpeaker() == "" || m.GetKind() == recalldv1.Kind_KIND_UNSPECIFIED {
					t.Fatalf("message without speaker or kind: %v", m)
				}
				if m.GetTime() != nil && m.GetTime().GetAt().CheckValid() != nil {
					t.Fatalf("message with an invalid time: %v", m)
				}
			}
		}
		again, errsAgain := read(bytes.NewReader(data), o)
		if diff := cmp.Diff(turns, again, protocmp.Transform()); diff != "" || !slices.Equal(errs, errsAgain) {
			t.Fatalf("another result the second time: %s", diff)
		}
	})
}
