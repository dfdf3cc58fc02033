package retrieve_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"recalld/retrieve"
)

func TestExcerpt(t *testing.T) {
	long := strings.Repeat("One sentence of some words. ", 40) + "The needle is here. " + strings.Repeat("More words follow it. ", 40)
	needle := strings.Index(long, "needle")
	tests := []struct {
		name, text string
		slice      retrieve.Range
		bytes      int
		query      string
		holds      string // must be shown
	}{
		{"short text is shown whole", "a short text", retrieve.Range{Start: 0, End: 12}, 200, "text", "a short text"},
		{"widened around the slice", long, retrieve.Range{Start: needle - 4, End: needle + 15}, 400, "needle", "The needle is here."},
		{"narrowed to the words asked for", long, retrieve.Range{Start: 0, End: len(long)}, 200, "needle", "needle"},
		{"narrowed without any of them", long, retrieve.Range{Start: 0, End: len(long)}, 200, "absent", "One sentence"},
		{"a slice near the end", long, retrieve.Range{Start: len(long) - 300, End: len(long)}, 200, "absent", "follow it."},
		{"a slice beyond the text", "text", retrieve.Range{Start: 2, End: 90}, 200, "text", "text"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := retrieve.Excerpt(tt.text, tt.slice, tt.bytes, tt.query)
			if got := tt.text[r.Start:r.End]; !strings.Contains(got, tt.holds) || len(got) > tt.bytes && len(tt.text) > tt.bytes {
				t.Errorf("Excerpt = %q (%d bytes), want %q in at most %d", got, len(got), tt.holds, tt.bytes)
			}
		})
	}
}

// FuzzExcerpt checks that what is shown lies in the text, is no longer than
// asked for, and cuts no character of valid text.
func FuzzExcerpt(f *testing.F) {
	f.Add("日本語🚀é and more words than fit in here", 0, 20, 9, "words")
	f.Add(strings.Repeat("x", 3000), 100, 2500, 2000, "x")
	f.Add("a\xffb", 0, 3, 1, "b")
	f.Fuzz(func(t *testing.T, text string, start, end, size int, query string) {
		if size < 1 || size > 9000 || len(query) > 200 {
			t.Skip()
		}
		r := retrieve.Excerpt(text, retrieve.Range{Start: start, End: end}, size, query)
		if r.Start < 0 || r.Start > r.End || r.End > len(text) {
			t.Fatalf("Excerpt = %v of %d bytes", r, len(text))
		}
		if shown := text[r.Start:r.End]; len(shown) > size {
			t.Errorf("%d bytes shown, %d asked for", len(shown), size)
		} else if utf8.ValidString(text) && !utf8.ValidString(shown) && r.Start != start && r.End != end {
			t.Errorf("cut a character: %q", shown)
		}
	})
}
