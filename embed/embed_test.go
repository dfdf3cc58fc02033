package embed_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"recalld/embed"
)

// TestIdentity ties the identity to the files: other files need another name,
// or vectors of two models would be compared.
func TestIdentity(t *testing.T) {
	model := embed.BuiltIn()
	if got, want := model.Identity(), "minilm-static-256/plain/v1"; got != want {
		t.Errorf("Identity() = %q, want %q", got, want)
	}
	if got := model.Dimensions(); got != 256 {
		t.Errorf("Dimensions() = %d, want 256", got)
	}
	for name, want := range map[string]string{
		"table.bin": "4e2f11e9e9876f13d5b6e32e9af7eaed9fde3605b8ab109c5ba94c85f2d9afbf",
		"vocab.txt": "efa5da3d114f3ed85a23cb138a37efafbe439877814abd7f84a9a318eb80152b",
		"LICENSE":   "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30",
	} {
		data, err := os.ReadFile(filepath.Join("minilm-static-256", name))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(data)
		if got := hex.EncodeToString(sum[:]); got != want {
			t.Errorf("sha256 of %s = %s, want %s: a changed table needs a new identity", name, got, want)
		}
	}
}

func TestRepresents(t *testing.T) {
	tests := []struct {
		name string
		text string
		want bool
	}{
		{"English", "which port does the server use", true},
		{"German with umlauts", "Größere Änderungen übermorgen", true},
		{"Vietnamese", "Chúng ta dùng cổng nào", true},
		{"one letter", "I", true},
		{"code", `if err != nil { return fmt.Errorf("x: %w", err) }`, true},
		{"letters among numbers", "v1.2.3 404 500 17", true},
		{"an English word and emoji", "ship 🚀🚀🚀", true},
		{"Latin with a foreign name", "the name on the badge is Дмитрий, spelled so", true},
		{"as many Latin letters as others", "db: бд", true},
		{"invalid bytes around a word", "\xff\xfe backup \xc3", true},

		{"one Latin letter fewer than others", "db и бд", false},
		{"Greek", "Πού είναι το αρχείο;", false},
		{"Cyrillic", "Где лежит резервная копия?", false},
		{"Chinese", "备份在哪里？", false},
		{"Chinese with a Latin word", "我们决定以后一直使用SQLite作为数据库", false},
		{"kana", "バックアップはどこ", false},
		{"Hangul", "백업은 어디에 있나요", false},
		{"Thai", "ไฟล์สำรองอยู่ที่ไหน", false},
		{"Arabic", "أين النسخة الاحتياطية", false},
		{"Hebrew", "איפה הגיבוי", false},
		{"Devanagari", "बैकअप कहाँ है", false},
		{"Georgian", "სად არის ფაილი", false},

		{"empty", "", false},
		{"white space", " \t\n\u00a0\u3000", false},
		{"digits", "404", false},
		{"a date", "2026-03-14", false},
		{"punctuation", "?!...", false},
		{"emoji", "🎉", false},
		{"NUL and controls", "\x00\x01\x1b", false},
		{"invalid bytes", "\xff\xfe\xc3", false},
		{"letters in dropped words only", strings.Repeat("x", 101) + " ?", false},
		{"a letter that no piece holds, and a number", "Ꟈ 42", false},
	}
	model := embed.BuiltIn()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := model.Represents(tt.text); got != tt.want {
				t.Errorf("Represents(%q) = %v, want %v", tt.text, got, tt.want)
			}
			query, err := model.EmbedQuery(t.Context(), tt.text)
			if err != nil {
				t.Fatal(err)
			}
			// A text with an opinion before it, so that nothing is left over from that.
			documents, err := model.EmbedDocuments(t.Context(), []string{"yes", tt.text})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(query, documents[1]); diff != "" {
				t.Errorf("document and query differ (-query +document):\n%s", diff)
			}
			if (query != nil) != tt.want {
				t.Errorf("EmbedQuery(%q) has a vector: %v, want %v", tt.text, query != nil, tt.want)
			}
			if query != nil {
				checkUnit(t, query)
			}
		})
	}
}

func checkUnit(t *testing.T, v []float32) {
	t.Helper()
	squares := 0.0
	for _, x := range v {
		squares += float64(x) * float64(x)
	}
	if !(math.Abs(squares-1) < 1e-5) {
		t.Errorf("squared length %v, want 1", squares)
	}
}

// TestMeaning checks that the vectors do what they are for.
func TestMeaning(t *testing.T) {
	model := embed.BuiltIn()
	vectors, err := model.EmbedDocuments(t.Context(), []string{
		"the car would not start this morning",
		"my vehicle's engine is broken",
		"she baked bread and cake for the party",
	})
	if err != nil {
		t.Fatal(err)
	}
	near, far := dot(vectors[0], vectors[1]), dot(vectors[0], vectors[2])
	if near <= far+.1 {
		t.Errorf("cosine to a related text %.3f, to an unrelated one %.3f; want a clear lead", near, far)
	}
}

func dot(a, b []float32) float64 {
	sum := 0.0
	for d := range a {
		sum += float64(a[d]) * float64(b[d])
	}
	return sum
}

func TestAddRowIsWeightedRow(t *testing.T) {
	model := embed.BuiltIn()
	token := model.Tokens("backup")[0]
	got := make([]float32, model.Dimensions()+1)
	got[3] = 1
	got[256] = 7
	model.AddRow(got, token, 2)
	for d, x := range model.Row(token) {
		want := 2 * x
		if d == 3 {
			want++
		}
		if math.Abs(float64(got[d]-want)) > 1e-6 {
			t.Fatalf("number %d is %v, want %v", d, got[d], want)
		}
	}
	if got[256] != 7 {
		t.Error("AddRow wrote behind the row")
	}
	if allocs := testing.AllocsPerRun(100, func() { model.AddRow(got, token, .5) }); allocs != 0 {
		t.Errorf("AddRow allocates %v times", allocs)
	}
}

func TestRowOfNoToken(t *testing.T) {
	model := embed.BuiltIn()
	for _, token := range []int32{-1, 29523, math.MaxInt32, math.MinInt32} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("Row(%d) did not panic", token)
				}
			}()
			model.Row(token)
		}()
	}
	if row := model.Row(29522); len(row) != 256 {
		t.Errorf("the last row has %d numbers, want 256", len(row))
	}
}

// countdown is a context that is cancelled after being asked a few times.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

func TestCancel(t *testing.T) {
	model := embed.BuiltIn()
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if v, err := model.EmbedQuery(cancelled, "word"); v != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("EmbedQuery = %v, %v; want the context's error alone", v, err)
	}
	texts := []string{"one", "two", "private words", "four"}
	v, err := model.EmbedDocuments(&countdown{t.Context(), 2}, texts)
	if v != nil || !errors.Is(err, context.Canceled) {
		t.Fatalf("EmbedDocuments = %v, %v; want the context's error alone", v, err)
	}
	if !strings.Contains(err.Error(), "text 3 of 4") || strings.Contains(err.Error(), "private") {
		t.Errorf("error %q; want it to name the third text by number, not by its words", err)
	}
	if v, err := model.EmbedDocuments(cancelled, nil); len(v) != 0 || err != nil {
		t.Errorf("EmbedDocuments of nothing = %v, %v; want nothing", v, err)
	}
}

// TestConcurrentFirstUse starts many users of a fresh model at once; run with
// the race detector it checks the lazy load too.
func TestConcurrentFirstUse(t *testing.T) {
	texts := []string{"where is the backup", "Größe der Datenbank", "", "日本", "retry 3 times"}
	want, err := embed.BuiltIn().EmbedDocuments(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	model := embed.BuiltIn()
	begin := make(chan struct{})
	var users sync.WaitGroup
	for range 8 {
		users.Go(func() {
			<-begin
			for range 20 {
				got, err := model.EmbedDocuments(t.Context(), texts)
				if err != nil {
					t.Error(err)
					return
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("vectors differ (-want +got):\n%s", diff)
					return
				}
			}
		})
	}
	close(begin)
	users.Wait()
}
