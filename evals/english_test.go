package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEnglish(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{
		{name: "nothing", text: " -- "},
		{name: "case, stop words and stems", text: "The Running of the bulls", want: []string{"run", "bull"}},
		{name: "possessive endings", text: "Crohn's and Crohn\u2019s diseases", want: []string{"crohn", "crohn", "diseas"}},
		{name: "numbers stay whole", text: "1,000 genomes", want: []string{"1,000", "genom"}},
		{name: "hyphens cut", text: "0-dimensional", want: []string{"0", "dimension"}},
		{name: "other scripts", text: "β-cells", want: []string{"β", "cell"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, english(tt.text)); diff != "" {
				t.Errorf("english(%q) (-want +got):\n%s", tt.text, diff)
			}
		})
	}
	if len(luceneStopWords) != 33 {
		t.Errorf("%d stop words, want 33", len(luceneStopWords))
	}
}

// FuzzEnglish checks that no text breaks the analysis.
func FuzzEnglish(f *testing.F) {
	for _, seed := range []string{"", "'s", "sses ies", "\xff\xfe", "ﬁ\u0301 ÄÖ", "yyyy ating bled"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, term := range english(text) {
			if term == "" {
				t.Errorf("english(%q) has an empty term", text)
			}
		}
	})
}
