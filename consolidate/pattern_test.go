package consolidate

import (
	"slices"
	"strings"
	"testing"
)

func TestNeeded(t *testing.T) {
	tests := []struct {
		pattern string
		want    []string
	}{
		{`abc`, []string{"abc"}},
		{`(?:abc|de)f`, []string{"abc", "de"}},
		{`x (?:long|longer)`, []string{"long"}},
		{`a?`, nil},
		{`(?:abc)*`, nil},
		{`(?:abc)+`, []string{"abc"}},
		{`(?:abc){2,3}`, []string{"abc"}},
		{`abc|\d`, nil},
		{`(?i)abc`, nil},
		{`^ (?:so )*stop \S+`, []string{"stop "}},
	}
	for _, tt := range tests {
		p, err := compilePattern(tt.pattern)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(p.any, tt.want) {
			t.Errorf("%s needs %q, want %q", tt.pattern, p.any, tt.want)
		}
	}
	if _, err := compilePattern("("); err == nil {
		t.Error("a bad pattern was taken")
	}
}

// TestPatternsFindWhatTheirExpressionsFind holds the patterns of all languages
// to their regular expressions, on words that make many of them match.
func TestPatternsFindWhatTheirExpressionsFind(t *testing.T) {
	texts := []string{
		"", "Always use tabs, never spaces, from now on.", "let's go with option 2 instead of the first one, please",
		"I don't think we need that; drop it and keep the old name", "Want me to remove it, or would you prefer to keep both?",
		"when you write tests, ask before adding mocks", "Still open: the retry loop is deferred to a follow-up.",
		"wir haben uns entschieden, nie wieder Globale zu nutzen", "nous avons décidé de ne plus utiliser ça", "мы решили больше не использовать",
		"我们决定不再使用这个", "nunca uses globales, prefiero funciones", "हमने तय किया", "우리는 결정했다", "abbiamo deciso di non usare", "decidimos não usar mais",
	}
	matches := 0
	for _, l := range languages() {
		var all []*pattern
		for _, cues := range l.cues {
			for _, c := range cues {
				all = append(all, c.pattern)
				if c.unless != nil {
					all = append(all, c.unless)
				}
			}
		}
		for _, list := range l.each {
			all = append(all, list...)
		}
		for _, p := range all {
			for _, text := range texts {
				for _, form := range []string{text, normalise(text), strings.ToUpper(text)} {
					want := p.re.MatchString(form)
					if got := p.MatchString(form); got != want {
						t.Errorf("%s: pattern %s says %v of %q, its expression %v", l.name, p.re, got, form, want)
					}
					if want {
						matches++
					}
				}
			}
		}
	}
	if matches < 100 {
		t.Errorf("only %d matches: the texts test nothing", matches)
	}
}
