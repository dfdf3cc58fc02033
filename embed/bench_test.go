package embed_test

import (
	"strings"
	"testing"

	"recalld/embed"
)

// passage has 40 tokens, as a turn of a chat.
const passage = "We decided to keep the job queue in PostgreSQL, since the nightly import locks the file for " +
	"minutes; Maria will move the retry settings to config.yaml before Friday's release."

func BenchmarkTokens(b *testing.B) {
	model := embed.BuiltIn()
	for _, bb := range []struct{ name, text string }{
		{"passage", passage},
		{"typographic", strings.ReplaceAll(passage, "'", "’") + " “Größe” – naïve…"},
		{"1MB-words", strings.Repeat(passage+" ", 1<<20/(len(passage)+1))},
		{"1MB-one-word", strings.Repeat("x", 1<<20)},
		{"1MB-base64", strings.Repeat("QmFzZTY0IGlzIG5vIHdvcmQ+zq/", 1<<20/27)},
		{"1MB-unknown-words", strings.Repeat(strings.Repeat("q7", 49)+"ж\u0e01 ", 1<<20/105)},
		{"1MB-accents", "e" + strings.Repeat("\u0301", 1<<19)},
		{"1MB-ideographs", strings.Repeat("日本", 1<<20/6)},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.SetBytes(int64(len(bb.text)))
			b.ReportAllocs()
			for b.Loop() {
				model.Tokens(bb.text)
			}
		})
	}
}

func BenchmarkAddRow(b *testing.B) {
	model := embed.BuiltIn()
	sum := make([]float32, model.Dimensions())
	token := model.Tokens("backup")[0]
	for b.Loop() {
		model.AddRow(sum, token, .5)
	}
}

// BenchmarkTokensAndSum is what a memory does when it weights tokens itself.
func BenchmarkTokensAndSum(b *testing.B) {
	model := embed.BuiltIn()
	sum := make([]float32, model.Dimensions())
	b.ReportAllocs()
	for b.Loop() {
		clear(sum)
		for _, token := range model.Tokens(passage) {
			model.AddRow(sum, token, .5)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "passages/s")
}

func BenchmarkEmbedDocuments(b *testing.B) {
	model := embed.BuiltIn()
	texts := make([]string, 256)
	for i := range texts {
		texts[i] = passage
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := model.EmbedDocuments(b.Context(), texts); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N*len(texts))/b.Elapsed().Seconds(), "passages/s")
}

func BenchmarkLoad(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		embed.BuiltIn().Dimensions()
	}
}
