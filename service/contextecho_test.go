package service_test

import (
	"fmt"
	"html"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"recalld/consolidate"
	recalldv1 "recalld/proto/recalld/v1"
	"recalld/service"
)

// ownBlock is a block with an entry and a passage of two lines.
func ownBlock(s *service.Server) string {
	p := passageWith("the launch code is 12345\nand the backup is 67890", "ada", "Title", "m")
	return s.ComposeTurn([]consolidate.Record{record(1, consolidate.Decision, "We decided to paint the fence.")}, nil,
		[]*recalldv1.Passage{p}, "the fence, painted", 44_000, 0).Block
}

func TestWithoutEchoes(t *testing.T) {
	s := start(t, service.Options{}).server
	block := ownBlock(s)
	lines := strings.SplitAfter(block, "\n")
	half := strings.Join(lines[:len(lines)-4], "") // the first part, ending in a passage
	tail := strings.Join(lines[len(lines)-4:], "")
	other := strings.ReplaceAll(block, lines[0][len(`<recalled-evidence boundary="`):][:16], "00000000000000aa")
	for _, tt := range []struct{ name, text, want string }{
		{"nothing", "what is a recalled-evidence boundary?", "what is a recalled-evidence boundary?"},
		{"a whole one", "before\n" + block + "after", "before\n\nafter"},
		{"two", block + "between\n" + block, "\nbetween\n\n"},
		{"of another store", "before\n" + other + "after", "before\n\nafter"},
		{"escaped for HTML", "x " + html.EscapeString(block) + "after", "x \nafter"},
		{"with angles escaped", "x " + strings.NewReplacer("<", "&lt;", ">", "&gt;").Replace(block) + "after", "x \nafter"},
		{"within JSON", fmt.Sprintf(`{"text":%q,"n":1}`, block), `{"text":"\n","n":1}`},
		{"within JSON of Go", strings.NewReplacer("<", `\u003c`, ">", `\u003e`).Replace(fmt.Sprintf("{%q}", block)), `{"\n"}`},
		{"quoted", "> " + strings.ReplaceAll(strings.TrimSpace(block), "\n", "\n> ") + "\nafter", "> \nafter"},
		{"indented", "    " + strings.ReplaceAll(strings.TrimSpace(block), "\n", "\n    ") + "\nafter", "    \nafter"},
		{"with line ends of Windows", strings.ReplaceAll(block, "\n", "\r\n") + "after", "\r\nafter"},
		{"cut off", "before\n" + half + "and now something else", "before\nand now something else"},
		{"cut within a line", "before\n" + block[:len(block)-80], "before\n"},
		{"cut after its tag", lines[0] + "after", "after"},
		{"without its beginning", "before\n" + tail + "after", "before\n\nafter"},
		{"cut in the middle", half + "[…]\n" + tail + "after", "\nafter"},
		{"a tag alone", "see </recalled-evidence boundary=\"0123456789abcdef\"> there", "see  there"},
		{"never closed, in prose", "a <recalled-evidence boundary=\"0123456789abcdef\"> is a tag\nof ours", "a  is a tag\nof ours"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := service.WithoutEchoes([]byte(tt.text))
			if len(got) != len(tt.text) {
				t.Fatalf("%d bytes of %d: the others lose their places", len(got), len(tt.text))
			}
			for i := range got {
				if got[i] != tt.text[i] && got[i] != '\n' {
					t.Fatalf("byte %d is changed", i)
				}
			}
			var kept []byte
			from := 0
			for _, r := range service.Echoes([]byte(tt.text)) {
				kept = append(kept, tt.text[from:r[0]]...)
				from = r[1]
			}
			kept = append(kept, tt.text[from:]...)
			if diff := cmp.Diff(tt.want, string(kept)); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzEchoes(f *testing.F) {
	block := service.Frame(secret, []*recalldv1.Passage{passageWith("text", "ada", "T", "n")})
	f.Add([]byte(block))
	f.Add([]byte(block[len(block)/2:] + block + block[:len(block)/2]))
	f.Add([]byte(strings.Repeat(`<recalled-evidence boundary="0123456789abcdef"`, 3)))
	f.Fuzz(func(t *testing.T, text []byte) {
		end := 0
		for _, r := range service.Echoes(text) {
			if r[0] < end || r[1] <= r[0] || r[1] > len(text) {
				t.Fatalf("echoes %v of %d bytes", service.Echoes(text), len(text))
			}
			end = r[1]
		}
		rest := service.WithoutEchoes(text)
		if len(rest) != len(text) || len(service.Echoes(rest)) > 0 {
			t.Errorf("%d bytes of %d, echoes %v are left", len(rest), len(text), service.Echoes(rest))
		}
	})
}

// TestEchoesAreLinear: a text of nothing but tags or lines is read in a moment.
func TestEchoesAreLinear(t *testing.T) {
	began := time.Now()
	for _, text := range []string{
		strings.Repeat(`<recalled-evidence boundary="0123456789abcdef">`+"\n", 100_000),
		strings.Repeat(`</recalled-evidence boundary="0123456789abcdef">`+"\n", 100_000),
		strings.Repeat("| a line\n", 500_000) + `</recalled-evidence boundary="0123456789abcdef">`,
		strings.Repeat("| a line\n", 5_000) + strings.Repeat(`| </recalled-evidence boundary="0123456789abcdef">`+"\n", 50_000),
	} {
		service.Echoes([]byte(text))
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("took %v", took)
	}
}

// TestEchoIsNoEvidence: what a block holds is not found again, shown again or
// decided again where the block comes back; what is around it is.
func TestEchoIsNoEvidence(t *testing.T) {
	a := askerOf(start(t, service.Options{Consolidate: "off"}))
	block := ownBlock(a.server)
	cut := block[:len(block)-80]
	a.talk("s", 0,
		[2]string{"Here it is again: " + cut, "You were given this:\n" + block + "and the walrus says hello"},
		[2]string{"We decided to feed the walrus daily.\n" + cut, html.EscapeString(block)},
	)
	a.append(a.ref, with("n", &recalldv1.NewTurn{SessionId: "notes", TurnId: "n", Messages: []*recalldv1.NewMessage{
		{Id: "n", Kind: recalldv1.Kind_KIND_NOTE, Text: []byte(block)},
	}}))
	a.mustConsolidate()
	if diff := cmp.Diff([]string{"live decision: We decided to feed the walrus daily."}, states(a.entries())); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	a.verified()
	for _, question := range []string{"launch code 12345", "the fence", "67890"} {
		for _, p := range a.ask(a.ref, question).Passages {
			if strings.Contains(p.Text, "12345") || strings.Contains(p.Text, "fence") {
				t.Errorf("%q finds %q in %s", question, p.Text, p.MessageId)
			}
			for _, part := range p.Parts {
				if part.Name == "dcov" && part.Value > 0 {
					t.Errorf("%q shares words with %s", question, p.MessageId)
				}
			}
		}
	}
	got := a.ask(a.ref, "what does the walrus say?")
	found := false
	for _, p := range got.Passages {
		found = found || p.MessageId == "s/0/reply" && strings.TrimSpace(p.Text) == "and the walrus says hello"
	}
	if !found {
		t.Errorf("what is around an echo is not found alone: %v", got.Block)
	}
	// As a question it asks for nothing either.
	if resp, _ := a.gives(asks("chat", block)); !resp.NothingToSearch {
		t.Errorf("an echo asks for %v", resp)
	}
	// The ledger keeps what came.
	if _, data, err := a.get(a.ref, "s/0/reply"); err != nil || !strings.Contains(string(data), block) {
		t.Errorf("the reply is stored as %q (%v)", data, err)
	}
}
