package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"recalld/ledger"
)

func parse(t testing.TB, q string) ledger.Pattern {
	t.Helper()
	p, err := ledger.ParsePattern(q)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPattern(t *testing.T) {
	tests := []struct {
		query, text string
		want        string // the match, or "-" for none
	}{
		{"Straße", "die STRAßE hier", "STRAßE"},
		{"straẞe", "die Straße hier", "Straße"},
		{"kelvin", "\u212aELVIN", "\u212aELVIN"},
		{"ПРИВЕТ", "ну привет же", "привет"},
		{"σ", "ς", "ς"},
		{"память", "\xd0память", "память"},
		{"a\ufffdb", "a\xffb", "-"},
		{"a\ufffdb", "a\ufffdb", "a\ufffdb"},
		{"日本", "これは日本語", "日本"},
		{"🚀", "to the 🚀!", "🚀"},
		{"aab", "aaab", "aab"},
		{"two  blanks", "two blanks", "-"},
		{"a.b", "axb a.b", "a.b"},
		{"/a.b/", "axb a.b", "axb"},
		{"/A.B/", "axb", "-"},
		{"/A.B/i", "axb", "axb"},
		{"/^b/m", "a\nb", "b"},
		{"/a.b/s", "a\nb", "a\nb"},
		{"/etc/passwd", "cat /etc/passwd", "/etc/passwd"},
		{"/usr/local/", "usr/local", "usr/local"}, // has the form of an expression
		{"/x/ii", "x /x/II", "/x/II"},
		{"//", "a // b", "//"},
		{"/", "a / b", "/"},
		{"", "a", "-"},
		{" \n ", "a \n b", "-"},
		{"a\x00b", "A\x00B", "A\x00B"},
		{"/\\xff/", "\xff", "-"}, // U+00FF, not the byte
		{"/(?:)/", "\xff\xfe", ""},
	}
	for _, tt := range tests {
		p := parse(t, tt.query)
		start, end, ok, err := p.Index(t.Context(), []byte(tt.text))
		got := "-"
		if ok {
			got = tt.text[start:end]
		}
		if err != nil || got != tt.want {
			t.Errorf("%q in %q: %q, %v, want %q", tt.query, tt.text, got, err, tt.want)
		}
	}
}

func TestPatternRefuses(t *testing.T) {
	for _, q := range []string{
		"/[/", "/(/", "/a{1001}/", "/(?:a{100}){100}/", "/(?:.{50}){50}/", `/(?P<x/`, "/" + strings.Repeat("a", 1025) + "/",
		strings.Repeat("a", 64<<10+1), "\xff", `/\8/`, "/a**/",
	} {
		_, err := ledger.ParsePattern(q)
		var field *ledger.FieldError
		if !errors.As(err, &field) || field.Field != "query" {
			t.Errorf("%.40q: error %v, want a FieldError for query", q, err)
		}
	}
}

// FuzzPattern checks the phrase against the expression it stands for, and that
// long texts match as short ones do.
func FuzzPattern(f *testing.F) {
	f.Add("Straße", []byte("die STRAßE"))
	f.Add("ſK", []byte("s\u212a\xff"))
	f.Add("/a.*b/is", []byte("xa\xff\nB"))
	f.Add("/(a|b)*$/", []byte("ab\xe2\x82"))
	f.Add("\ufffd", []byte("\xff\ufffd"))
	f.Fuzz(func(t *testing.T, q string, text []byte) {
		p, err := ledger.ParsePattern(q)
		if err != nil || p.Empty() {
			return
		}
		start, end, ok, err := p.Index(context.Background(), text)
		if err != nil || ok && (start < 0 || start > end || end > len(text)) {
			t.Fatalf("Index = %d, %d, %v, %v for %d bytes", start, end, ok, err, len(text))
		}
		if strings.HasPrefix(q, "/") || !utf8.Valid(text) {
			return // an expression matches U+FFFD with an invalid byte, a phrase does not
		}
		at := regexp.MustCompile("(?i)" + regexp.QuoteMeta(q)).FindIndex(text)
		if ok != (at != nil) || ok && (at[0] != start || at[1] != end) {
			t.Errorf("%q in %q: %d to %d, %v; the expression says %v", q, text, start, end, ok, at)
		}
	})
}

// searched is a memory of numbered messages, of which every third says "needle".
func searched(t *testing.T) *ledger.Memory {
	m := newMemory(t)
	var turns []ledger.Turn
	for n := 1; n <= 300; n++ {
		text := fmt.Sprint("hay \xff ", n)
		if n%3 == 0 {
			text = fmt.Sprint("hay \xff NeEdLe ", n)
		}
		turns = append(turns, ledger.Turn{Session: fmt.Sprint("s", n%2), SessionTitle: "title", ID: fmt.Sprint(n), Messages: []ledger.Message{
			{ID: fmt.Sprint(n), Kind: ledger.Kind(n%6 + 1), Text: []byte(text)},
		}})
	}
	mustAppend(t, m, turns...)
	return m
}

func seqs(r ledger.SearchResult) []uint64 {
	var list []uint64
	for _, h := range r.Hits {
		list = append(list, h.Seq)
	}
	return list
}

func TestSearch(t *testing.T) {
	m := searched(t)
	needle := parse(t, "needle")
	tests := []struct {
		name       string
		q          ledger.SearchQuery
		want       []uint64
		searchedTo uint64
		truncated  bool
	}{
		{"newest first", ledger.SearchQuery{Pattern: needle, Limit: 3}, []uint64{300, 297, 294}, 294, false},
		{"older ones", ledger.SearchQuery{Pattern: needle, Limit: 3, Before: 294}, []uint64{291, 288, 285}, 285, false},
		{"the oldest", ledger.SearchQuery{Pattern: needle, Before: 8}, []uint64{6, 3}, 0, false},
		{"nothing is older", ledger.SearchQuery{Pattern: needle, Before: 1}, nil, 0, false},
		{"kinds", ledger.SearchQuery{Pattern: needle, Kinds: []ledger.Kind{4}, Before: 28}, []uint64{27, 21, 15, 9, 3}, 0, false},
		{"sessions", ledger.SearchQuery{Pattern: needle, Sessions: []string{"s1", "nobody"}, Before: 22}, []uint64{21, 15, 9, 3}, 0, false},
		{"unknown session", ledger.SearchQuery{Pattern: needle, Sessions: []string{"nobody"}}, nil, 0, false},
		{"nothing found", ledger.SearchQuery{Pattern: parse(t, "absent")}, nil, 0, false},
		{"nothing asked", ledger.SearchQuery{}, nil, 0, false},
		{"out of bytes", ledger.SearchQuery{Pattern: needle, MaxBytes: 30}, []uint64{300}, 298, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := m.Search(t.Context(), tt.q)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, seqs(r)); diff != "" || r.Truncated != tt.truncated || r.SearchedTo != tt.searchedTo || r.Damaged != 0 {
				t.Errorf("searched to %d, truncated %v, damaged %d (-want +got):\n%s", r.SearchedTo, r.Truncated, r.Damaged, diff)
			}
			for _, h := range r.Hits {
				if string(h.Text[h.Start:h.End]) != "NeEdLe" || h.SessionTitle != "title" || h.Session != fmt.Sprint("s", h.Seq%2) || h.TurnID != fmt.Sprint(h.Seq) {
					t.Errorf("hit %+v", h)
				}
			}
		})
	}
}

func TestSearchPages(t *testing.T) {
	m := searched(t)
	pattern := parse(t, "/needle/i")
	var all []uint64
	for before := uint64(0); ; {
		r, err := m.Search(t.Context(), ledger.SearchQuery{Pattern: pattern, Limit: 7, Before: before, MaxBytes: 100})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, seqs(r)...)
		if before = r.SearchedTo; before == 0 {
			break
		}
	}
	if len(all) != 100 || all[0] != 300 || all[99] != 3 {
		t.Errorf("paging found %v", all)
	}
}

func TestSearchRefuses(t *testing.T) {
	m := newMemory(t)
	for field, q := range map[string]ledger.SearchQuery{
		"limit":       {Limit: 51},
		"kinds[1]":    {Kinds: []ledger.Kind{1, 9}},
		"sessions[0]": {Sessions: []string{strings.Repeat("x", 513)}},
	} {
		_, err := m.Search(t.Context(), q)
		var wrong *ledger.FieldError
		if !errors.As(err, &wrong) || wrong.Field != field {
			t.Errorf("error %v, want a FieldError for %s", err, field)
		}
	}
}

// TestSearchDeadline gives hostile patterns too little time. Each search must
// end near its deadline and say how far it got, even within one long message.
func TestSearchDeadline(t *testing.T) {
	m := newMemory(t)
	mustAppend(t, m, turn("s", "1", 0, message("small", "x")))
	mustAppend(t, m, turn("s", "2", 0, message("large", strings.Repeat("a", 8<<20))))
	mustAppend(t, m, turn("s", "3", 0, message("last", "x")))
	for _, q := range []string{`/(a+)+\d$/`, `/(.*){50}!/s`, `/.*.*.*x/`, `/(a?){300}a{300}b/`, `/(\pL\pN?)+\d/`} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		begin := time.Now()
		r, err := m.Search(ctx, ledger.SearchQuery{Pattern: parse(t, q)})
		took := time.Since(begin)
		cancel()
		// On a busy machine the time may be over before the first message: 4.
		if err != nil || !r.Truncated && r.SearchedTo != 0 || r.Truncated && r.SearchedTo != 3 && r.SearchedTo != 4 {
			t.Errorf("%s: searched to %d, truncated %v, error %v", q, r.SearchedTo, r.Truncated, err)
		}
		if took > 5*time.Second { // a machine may be busy; without the check it takes minutes
			t.Errorf("%s took %v", q, took)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Search(ctx, ledger.SearchQuery{Pattern: parse(t, "x")}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled search: error %v", err)
	}
}
