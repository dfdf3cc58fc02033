package embed_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"recalld/embed"
)

// pieces returns the tokens of a text as they stand in the vocabulary.
func pieces(t *testing.T, model *embed.Static, vocabulary []string, text string) string {
	t.Helper()
	var found []string
	for _, token := range model.Tokens(text) {
		found = append(found, vocabulary[token])
	}
	return strings.Join(found, " ")
}

func readVocabulary(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("minilm-static-256", "vocab.txt"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(data), "\n")
}

func TestTokens(t *testing.T) {
	tests := []struct {
		name, text, want string
	}{
		{"nothing", "", ""},
		{"case and punctuation", "Hello, World!", "hello , world !"},
		{"repeats stay", "no no no", "no no no"},
		{"longest piece first", "embeddings", "em ##bed ##ding ##s"},
		{"identifiers", "userId user_id", "user ##id user _ id"},
		{"special tokens are text", "[SEP] [PAD]", "[ sep ] [ pad ]"},
		{"marks of the vocabulary are text", "##s a##b", "# # s a # # b"},
		{"a contraction", "don't don’t", "don ' t don ’ t"},
		{"accents fold", "Café CAFE\u0301 naïve", "cafe cafe naive"},
		{"capital i with dot, dotless i", "İs ıs", "is ı ##s"},
		{"final sigma is not special", "ΟΔΟΣ οδος", "ο ##δ ##ο ##σ ο ##δ ##ος"},
		{"NUL and controls vanish", "ba\x00ck\x07up \x7f", "backup"},
		{"ASCII separators part words", "one\x1ctwo\x1fthree\vfour\ffive", "one two three four five"},
		{"line ends and wide spaces part words", "one\r\ntwo\u0085three\u00a0four\u3000five\u2028six", "one two three four five six"},
		{"zero width characters vanish", "back\u200bup\ufeff soft\u00adware", "backup software"},
		{"a vanished character parts no accent", "e\u200b\u0301t", "et"},
		{"invalid UTF-8 vanishes", "\xffback\xc3up\xe2\x82 \xed\xa0\x80 end", "backup end"},
		{"U+FFFD vanishes", "back\ufffdup", "backup"},
		{"private use vanishes", "back\ue000up", "backup"},
		{"ideographs stand alone", "日本人x東", "日 本 人 x 東"},
		{"compatibility ideographs decompose", "\uf963", "北"},
		{"kana do not stand alone", "カタ", "カ ##タ"},
		{"Hangul falls into letters", "한", "ᄒ ##ᅡ ##ᆫ"},
		{"Thai is not in the vocabulary", "สวัสดี", ""},
		{"emoji are dropped, words beside them stay", "go 🎉 on", "go on"},
		{"an emoji takes its word with it", "go🎉 on", "on"},
		{"a piece missing drops the word", "abcᚠ d", "d"},
		{"symbols beyond ASCII are no punctuation", "a©b 5€", "a ##© ##b 5 ##€"},
		{"100 characters", strings.Repeat("é", 100) + " a", "ee" + strings.Repeat(" ##ee", 49) + " a"},
		{"101 characters", strings.Repeat("é", 101) + " a", "a"},
		{"101 and punctuation", strings.Repeat("e", 101) + "." + strings.Repeat("e", 101), "."},
		{"accents do not count", "e" + strings.Repeat("\u0301", 200), "e"},
	}
	model := embed.BuiltIn()
	vocabulary := readVocabulary(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, pieces(t, model, vocabulary, tt.text)); diff != "" {
				t.Errorf("Tokens(%q) (-want +got):\n%s", tt.text, diff)
			}
		})
	}
}

// TestTokensOfVocabulary checks that every piece that can be typed as a word
// is found as that one token.
func TestTokensOfVocabulary(t *testing.T) {
	model := embed.BuiltIn()
	found := 0
	vocabulary := readVocabulary(t)
	for row, piece := range vocabulary {
		if strings.HasPrefix(piece, "##") {
			continue
		}
		if got := model.Tokens(piece); slices.Equal(got, []int32{int32(row)}) {
			found++
		} else if isPlain(piece) {
			t.Errorf("Tokens(%q) = %v, want %d", piece, got, row)
		}
	}
	if found < 23000 {
		t.Errorf("%d pieces found as one token, want at least 23,000", found)
	}
}

func isPlain(s string) bool {
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// FuzzTokens checks that any bytes give tokens of the table, the same each
// time, and that a text's tokens are those of its words.
func FuzzTokens(f *testing.F) {
	for _, seed := range []string{
		"", " ", "plain words, and more.", "[SEP] ##s", "a\x00b\x1fc\u0085d\u2028e", "\xff\xc3\xe2\x82", "é e\u0301 e\u200b\u0301",
		"İΣς ǅ ﬀ ½", "日本語カタ 한국어 ไทย", "👩\u200d👩 ❤\ufe0f", strings.Repeat("x", 101), strings.Repeat("\u0301", 40) + "a",
		"\u1100\u1161\u11a8", "\U0001d165\u302e\u0323", "a\ufffdb \ufeff\u00ad",
	} {
		f.Add(seed)
	}
	model := embed.BuiltIn()
	f.Fuzz(func(t *testing.T, text string) {
		tokens := model.Tokens(text)
		for _, token := range tokens {
			if token < 0 || token >= 29523 {
				t.Fatalf("token %d is no row", token)
			}
		}
		if again := model.Tokens(text); !slices.Equal(tokens, again) {
			t.Fatalf("Tokens = %v, then %v", tokens, again)
		}
		var words []int32
		for _, word := range strings.Fields(text) {
			words = append(words, model.Tokens(word)...)
		}
		if !slices.Equal(tokens, words) {
			t.Fatalf("Tokens = %v, its words' are %v", tokens, words)
		}

		query, err := model.EmbedQuery(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		if represented := model.Represents(text); (query != nil) != represented {
			t.Fatalf("vector: %v, represented: %v", query != nil, represented)
		}
		if query != nil {
			checkUnit(t, query)
		}
	})
}
