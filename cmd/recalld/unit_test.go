package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rivo/uniseg"
	"google.golang.org/protobuf/types/known/timestamppb"

	recalldv1 "recalld/proto/recalld/v1"
)

// wrapped gives the lines of wrap with their indents.
func wrapped(text string, width int) []string {
	var out []string
	for _, l := range wrap(text, width) {
		out = append(out, strings.Repeat(" ", l.indent)+text[l.start:l.end])
	}
	return out
}

func TestWrap(t *testing.T) {
	tests := []struct {
		name, text string
		width      int
		want       []string
	}{
		{"nothing", "", 10, nil},
		{"only blank lines", "\n \n", 10, nil},
		{"fits", "one two", 10, []string{"one two"}},
		{"breaks at spaces", "one two three", 8, []string{"one two", "three"}},
		{"exactly", "one two three", 7, []string{"one two", "three"}},
		{"many spaces at a break", "one     two", 5, []string{"one", "two"}},
		{"a flag stays whole", "put it into --openai-key-file now", 24, []string{"put it into", "--openai-key-file now"}},
		{"own lines", "a\nb", 10, []string{"a", "b"}},
		{"one blank line stays", "a\n\n\n\nb\n\n", 10, []string{"a", "", "b"}},
		{"indent", "if x:\n    return one two", 12, []string{"if x:", "    return", "    one two"}},
		{"long word", "abcdefghij", 4, []string{"abcd", "efgh", "ij"}},
		{"after a long word", "abcdef gh ij", 4, []string{"abcd", "ef", "gh", "ij"}},
		{"wide characters", "決定しました", 6, []string{"決定し", "ました"}},
		{"combined characters stay whole", "e\u0301e\u0301e\u0301", 2, []string{"e\u0301e\u0301", "e\u0301"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, wrapped(tt.text, tt.width)); diff != "" {
				t.Errorf("wrap(%q, %d) (-want +got):\n%s", tt.text, tt.width, diff)
			}
		})
	}
}

// FuzzWrap checks that lines are in order, narrow enough and lose nothing but
// white space.
func FuzzWrap(f *testing.F) {
	for _, s := range []string{"", "a b", "  x\n\n y", "決定 e\u0301 👩‍👩‍👧", strings.Repeat("x", 99), "\xff\xfe"} {
		f.Add(s, 7)
	}
	f.Fuzz(func(t *testing.T, text string, width int) {
		text = printable(text)
		width = 6 + (width%100+100)%100
		var b strings.Builder
		at := 0
		for _, l := range wrap(text, width) {
			if l.start < at || l.end < l.start {
				t.Fatalf("line %v after byte %d", l, at)
			}
			at = l.end
			line := text[l.start:l.end]
			b.WriteString(line)
			// One character may be wider than what an indent leaves.
			if w := uniseg.StringWidth(line); w+l.indent > width && uniseg.GraphemeClusterCount(line) > 1 {
				t.Fatalf("line %q has %d columns after %d, want %d", line, w, l.indent, width)
			}
		}
		squeeze := func(s string) string { return strings.Join(strings.Fields(s), "") }
		if got, want := squeeze(b.String()), squeeze(text); got != want {
			t.Fatalf("wrapped to %q, want %q", got, want)
		}
	})
}

func TestEmphasis(t *testing.T) {
	tests := []struct{ name, query, text, want string }{
		{"words", "which cache", "The cache, the Cache.", "The <cache>, the <Cache>."},
		{"same stem", "decisions", "we decided: a decision", "we decided: a <decision>"},
		{"stop words", "the cache", "the end", "the end"},
		{"nothing asked", "", "the end", "the end"},
		{"parts of names", "session", "see session_store", "see <session>_store"},
		{"bytes stay", "größe", "Die Größe 決定", "Die <Größe> 決定"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			mark := func(s string) string { return "<" + s + ">" }
			got := emphasise(tt.text, span{0, len(tt.text)}, wordsOf(tt.query, tt.text), mark)
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestStyles has bold and dim only where they are wanted.
func TestStyles(t *testing.T) {
	passage := &recalldv1.Passage{MessageId: "m", Text: "drop the cache", Speaker: "Ines", Kind: recalldv1.Kind_KIND_USER}
	for _, styled := range []bool{false, true} {
		var b strings.Builder
		page{w: &b, width: 80, styled: styled}.printPassage(1, "cache", passage)
		if got := strings.Contains(b.String(), "\x1b[1mcache\x1b[0m"); got != styled {
			t.Errorf("styled %v: %q", styled, b.String())
		}
	}
}

func TestWhen(t *testing.T) {
	at := timestamppb.New(time.Date(2026, 7, 1, 10, 0, 0, 0, time.UTC))
	for zone, want := range map[string]string{
		"":              "Wed 1 Jul 2026 10:00 UTC",
		"Europe/Berlin": "Wed 1 Jul 2026 12:00 CEST",
		"-03:30":        "Wed 1 Jul 2026 06:30 -03:30",
		"Mars/Crater":   "Wed 1 Jul 2026 10:00 UTC",
	} {
		if got := when(&recalldv1.SpokenTime{At: at, Zone: zone}); got != want {
			t.Errorf("when(%q) = %q, want %q", zone, got, want)
		}
	}
	if got := when(nil); got != "time unknown" {
		t.Errorf("when(nil) = %q", got)
	}
}

// TestNothingFound has the account of an empty answer never be that something
// was not said.
func TestNothingFound(t *testing.T) {
	words := &recalldv1.SourceOutcome{Source: "words", Outcome: recalldv1.Outcome_OUTCOME_USED}
	late := &recalldv1.SourceOutcome{Source: "meaning", Outcome: recalldv1.Outcome_OUTCOME_LATE}
	got := nothingFound(&recalldv1.RecallResponse{
		Snapshot: &recalldv1.Reach{Sequence: 1200, Indexed: 1000, Embedded: 900},
		Sources:  []*recalldv1.SourceOutcome{words, late},
	})
	want := "Nothing found. Searched by words, in 1,000 of 1,200 messages by words and 900 by meaning. The search by meaning came too late."
	if got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

func TestStoreRoot(t *testing.T) {
	home, err := os.UserHomeDir()
	if err != nil {
		t.Skip(err)
	}
	abs := func(parts ...string) string {
		path, err := filepath.Abs(filepath.Join(parts...))
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	tests := []struct {
		name, flag string
		env        map[string]string
		want       string
	}{
		{"home", "", nil, filepath.Join(home, ".local", "share", "recalld")},
		{"data folder", "", map[string]string{"XDG_DATA_HOME": abs("/data")}, abs("/data", "recalld")},
		{"relative data folder is ignored", "", map[string]string{"XDG_DATA_HOME": "data"}, filepath.Join(home, ".local", "share", "recalld")},
		{"environment", "", map[string]string{"XDG_DATA_HOME": abs("/data"), "RECALLD_ROOT": abs("/root")}, abs("/root")},
		{"flag", "here", map[string]string{"RECALLD_ROOT": abs("/root")}, abs("here")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := storeRoot(tt.flag, func(key string) string { return tt.env[key] })
			if err != nil || got != tt.want {
				t.Errorf("storeRoot = %q, %v; want %q", got, err, tt.want)
			}
		})
	}
}

func TestIsNewer(t *testing.T) {
	tests := []struct {
		a, b string
		want bool
	}{
		{"20260302T101500Z-aaaaaaaaaaaa", "20260301T101500Z-bbbbbbbbbbbb", true},
		{"20260301T101500Z-aaaaaaaaaaaa", "20260302T101500Z-bbbbbbbbbbbb", false},
		{"20260302T101500Z-aaaaaaaaaaaa", "20260301T101500Z-aaaaaaaaaaaa", false}, // a copy
		{"20260302T101500Z-aaaaaaaaaaaa", "20260302T101500Z-bbbbbbbbbbbb", false},
		{"unknown", "20260302T101500Z-bbbbbbbbbbbb", false},
		{"20260302T101500Z-bbbbbbbbbbbb", "unknown", false},
		{"20260302T101500Z-bbbbbbbbbbbb", "", false},
	}
	for _, tt := range tests {
		if got := isNewer(tt.a, tt.b); got != tt.want {
			t.Errorf("isNewer(%q, %q) = %v, want %v", tt.a, tt.b, got, tt.want)
		}
	}
}

// TestFingerprint has a copy of a program keep its fingerprint and another
// program have another one.
func TestFingerprint(t *testing.T) {
	write := func(content string) string {
		path := filepath.Join(t.TempDir(), "program")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		id, err := fingerprint(path)
		if err != nil {
			t.Fatal(err)
		}
		_, hash, _ := strings.Cut(id, "-")
		return hash
	}
	long := strings.Repeat("x", 2*fingerprintBytes)
	if a, b := write(long), write(long); a != b {
		t.Errorf("a copy has fingerprint %q, not %q", b, a)
	}
	if a, b := write(long), write(long+"x"); a == b {
		t.Errorf("a longer program has fingerprint %q, too", b)
	}
	if a, b := write("y"+long), write("z"+long); a == b {
		t.Errorf("another program has fingerprint %q, too", b)
	}
}

// TestGoBuildIDIsFingerprinted checks what fingerprintBytes rests on.
func TestGoBuildIDIsFingerprinted(t *testing.T) {
	program, err := os.ReadFile(builtProgram)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(program[:fingerprintBytes]), "Go build ID") && !strings.Contains(string(program[:fingerprintBytes]), "Go\x00\x00") {
		t.Error("Go's build id is not where the fingerprint looks")
	}
}

func TestEndWhenIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var call, ended atomic.Int64 // since began
		last := func() time.Time { return began.Add(time.Duration(call.Load())) }
		go endWhenIdle(t.Context(), last, time.Hour, func() { ended.Store(int64(time.Since(began))) })
		time.Sleep(50 * time.Minute)
		call.Store(int64(time.Since(began)))
		time.Sleep(59 * time.Minute)
		synctest.Wait()
		if got := time.Duration(ended.Load()); got != 0 {
			t.Fatalf("ended after %v, which is %v after a call", got, time.Since(last()))
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if got := time.Duration(ended.Load()); got != 110*time.Minute {
			t.Errorf("ended after %v, want 1h50m: an hour after the last call", got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			endWhenIdle(ctx, time.Now, time.Hour, func() { t.Error("ended while busy") })
			close(done)
		}()
		time.Sleep(10 * time.Hour)
		cancel()
		<-done
	})
}

func TestSize(t *testing.T) {
	for n, want := range map[uint64]string{0: "0 B", 999: "999 B", 1_500: "1.5 kB", 24_000_000: "24.0 MB", 3_200_000_000: "3.2 GB"} {
		if got := size(n); got != want {
			t.Errorf("size(%d) = %q, want %q", n, got, want)
		}
	}
	if got, want := fmt.Sprint(count(1, "turn", "turns"), ", ", count(1234, "turn", "turns")), "1 turn, 1,234 turns"; got != want {
		t.Errorf("count gives %q, want %q", got, want)
	}
}
