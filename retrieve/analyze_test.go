package retrieve_test

import (
	"slices"
	"testing"
	"unicode/utf8"

	"recalld/retrieve"
)

func terms(text string) []string {
	var list []string
	for _, t := range retrieve.Analyze(text) {
		list = append(list, t.Term)
	}
	return list
}

func TestAnalyze(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{
		{"nothing", "", nil},
		{"only marks", "?! -- \x00\xff", nil},
		{"stems and case", "Running shops", []string{"run", "shop"}},
		{"possessive", "Caroline's cat", []string{"carolin", "cat"}},
		{"apostrophe inside", "don’t", []string{"dont"}},
		{"camel case", "getUserName", []string{"getusernam", "get", "user", "getus", "name", "usernam"}},
		{"abbreviation", "HTTPServer", []string{"httpserver", "http", "server"}},
		{"identifier", "DEC-0054", []string{"dec", "0054", "54", "dec0054"}},
		{"thousands", "1,299.50", []string{"1", "299", "50", "1299", "29950", "129950"}},
		{"accents keep both", "café", []string{"cafe", "café"}},
		{"decomposed accents", "cafe\u0301", []string{"cafe", "café"}},
		{"sharp s", "Straße", []string{"strass", "straße"}},
		{"dotted capital I", "İstanbul", []string{"istanbul"}},
		{"full width", "ＦＵＬＬ １２３", []string{"full", "123"}},
		{"marks that are names", "C++ C# .NET", []string{"c", "c++", "c", "c#", "net", ".net"}},
		{"pictographs", "ok 🚀🔥", []string{"ok", "🚀", "🔥"}},
		{"pairs", "会議室", []string{"会議", "議室"}},
		{"one character", "会", []string{"会"}},
		{"kana", "カナー", []string{"カナ", "ナー"}},
		{"mixed scripts", "GitHub备份", []string{"github", "git", "hub", "备份"}},
		{"Thai", "ประชุม", []string{"ปร", "ระ", "ะชุ", "ชุม"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := terms(tt.text); !slices.Equal(got, tt.want) {
				t.Errorf("Analyze(%q) = %q, want %q", tt.text, got, tt.want)
			}
		})
	}
}

// FuzzAnalyze checks that any bytes give valid, bounded terms at bytes of the
// text, in order, and the same ones again.
func FuzzAnalyze(f *testing.F) {
	for _, s := range []string{"", "getUserName in src/auth/store.go:42", "\xff\xfe'\x00", "café 今天 ประชุม 🚀", "'s's's", "a-b-c-d-e-f", "İß"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tokens := retrieve.Analyze(text)
		for _, token := range tokens {
			if token.Term == "" || len(token.Term) > 64 && !utf8.ValidString(token.Term) {
				t.Fatalf("Analyze(%q): bad term %q", text, token.Term)
			}
			if token.Start < 0 || token.End > len(text) || token.Start >= token.End {
				t.Fatalf("Analyze(%q): term %q at [%d,%d)", text, token.Term, token.Start, token.End)
			}
			if !utf8.ValidString(token.Term) {
				t.Fatalf("Analyze(%q): term %q is not UTF-8", text, token.Term)
			}
		}
		if again := retrieve.Analyze(text); !slices.Equal(tokens, again) {
			t.Fatalf("Analyze(%q) differs from call to call", text)
		}
	})
}

func BenchmarkAnalyze(b *testing.B) {
	const text = "Fixed. The call in gauge.go:117 asks readLevel(station) now and no longer carries the number itself; that is what the report of the tide already did, which looks into the station's own settings first."
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		retrieve.Analyze(text)
	}
}
