package consolidate_test

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"recalld/consolidate"
)

// The golden hashes below were computed by another program, from the description
// of the encoding.

func TestSourceHashGolden(t *testing.T) {
	inner := sha256.Sum256([]byte("salt" + "text"))
	a := consolidate.Source{Message: "m1", Kind: consolidate.User, Inner: inner}
	b := consolidate.Source{Message: "m2", Kind: consolidate.Reply, Inner: inner}
	tests := []struct {
		name            string
		window, context []consolidate.Source
		want            string
	}{
		{"nothing", nil, nil, "cdf8fb1a85936d226651da9860ed1112737bdaa9180e30250db4b5e4707f4e57"},
		{"one message", []consolidate.Source{a}, nil, "13566cae1dac05f9eda9baa9c6ebd7cb3feec55adabbd36f985018b110effa87"},
		{"and its context", []consolidate.Source{a}, []consolidate.Source{b}, "ddbb3a1344fc05a28c8868ecafca9c0390af3ee56f488ede07db831524b6edac"},
	}
	seen := map[[32]byte]bool{}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := consolidate.SourceHash(tt.window, tt.context)
			if hex.EncodeToString(got[:]) != tt.want {
				t.Errorf("SourceHash = %x, want %s", got, tt.want)
			}
			if seen[got] {
				t.Error("two sources have one hash")
			}
			seen[got] = true
		})
	}
	if consolidate.SourceHash([]consolidate.Source{a, b}, nil) == consolidate.SourceHash([]consolidate.Source{a}, []consolidate.Source{b}) {
		t.Error("the hash does not tell context from window")
	}
}

// goldenBatch is a batch that never changes.
func goldenBatch(t *testing.T) consolidate.Batch {
	t.Helper()
	return batches(t, chat("> Always run the linter before you commit.", "< Will do."))[0]
}

func TestBatchHashGolden(t *testing.T) {
	b := goldenBatch(t)
	b.Extractor = "test" // the built-in one's version is not part of the encoding
	if got := b.Sum(); hex.EncodeToString(got[:]) != "b455c036e21b9b9335c21c1f78b1fc0e368700b90a13117fb9405470f453c75a" {
		t.Errorf("Sum = %x", got)
	}
	r := consolidate.ReviewBatch(consolidate.Review{Action: consolidate.Pin, Entries: []string{b.Entries[0].ID}, Author: "Ann"}, b.Hash)
	r.Previous = [32]byte{1}
	if got := r.Sum(); hex.EncodeToString(got[:]) != "246c109ddf4a338a855d6e3004e5a6e38ebc612bd7e80b0272a22c2a1cc20bda" {
		t.Errorf("Sum of a review = %x", got)
	}
}

func TestHashCoversEverythingButTimesAndWords(t *testing.T) {
	want := goldenBatch(t).Hash
	tests := []struct {
		name   string
		change func(*consolidate.Batch)
		same   bool
	}{
		{name: "nothing", change: func(*consolidate.Batch) {}, same: true},
		{name: "when it was stored", change: func(b *consolidate.Batch) { b.At = day }, same: true},
		{name: "when it was said", change: func(b *consolidate.Batch) { b.Entries[0].SaidAt = day.AddDate(1, 0, 0) }, same: true},
		{name: "forgotten words", change: func(b *consolidate.Batch) { b.Entries[0].Text, b.Entries[0].Forgotten = "", true }, same: true},
		{name: "predecessor", change: func(b *consolidate.Batch) { b.Previous[0]++ }},
		{name: "session", change: func(b *consolidate.Batch) { b.Session = "other" }},
		{name: "window", change: func(b *consolidate.Batch) { b.To.Byte++ }},
		{name: "source", change: func(b *consolidate.Batch) { b.Source[31]++ }},
		{name: "extractor", change: func(b *consolidate.Batch) { b.Extractor += "!" }},
		{name: "an entry less", change: func(b *consolidate.Batch) { b.Entries = nil }},
		{name: "kind", change: func(b *consolidate.Batch) { b.Entries[0].Kind = consolidate.Decision }},
		{name: "quote", change: func(b *consolidate.Batch) { b.Entries[0].Quotes[0].End-- }},
		{name: "role", change: func(b *consolidate.Batch) { b.Entries[0].Quotes[0].Role = consolidate.Proposal }},
		{name: "speaker", change: func(b *consolidate.Batch) { b.Entries[0].Speaker = "Bob" }},
		{name: "confidence", change: func(b *consolidate.Batch) { b.Entries[0].Confidence-- }},
		{name: "candidate", change: func(b *consolidate.Batch) { b.Entries[0].Candidate = true }},
		{name: "supersedes", change: func(b *consolidate.Batch) { b.Entries[0].Supersedes = []string{"x"} }},
		{name: "proposals", change: func(b *consolidate.Batch) { b.Entries[0].MaySupersede = []string{"x"} }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := goldenBatch(t)
			tt.change(&b)
			if same := b.Sum() == want; same != tt.same {
				t.Errorf("hash stays: %v, want %v", same, tt.same)
			}
		})
	}
}

func TestVerifyChain(t *testing.T) {
	chain := batches(t, chat("> one", "> two", "> Never force-push.", "> four", "> five", "> six", "> seven", "> Use tabs only."))
	if err := consolidate.VerifyChain(chain, [32]byte{}); err != nil || len(chain) != 2 {
		t.Fatalf("%d batches, %v; want two that verify", len(chain), err)
	}
	if err := consolidate.VerifyChain(chain[1:], chain[0].Hash); err != nil {
		t.Errorf("the end of a chain: %v", err)
	}
	tests := []struct {
		name, want string
		damage     func([]consolidate.Batch) []consolidate.Batch
	}{
		{"cut front", "follow", func(c []consolidate.Batch) []consolidate.Batch { return c[1:] }},
		{"swap", "follow", func(c []consolidate.Batch) []consolidate.Batch { return []consolidate.Batch{c[1], c[0]} }},
		{"repeat", "follow", func(c []consolidate.Batch) []consolidate.Batch { return []consolidate.Batch{c[0], c[0], c[1]} }},
		{"other words", "messages", func(c []consolidate.Batch) []consolidate.Batch { c[0].Window[0].Inner[0]++; return c }},
		{"other entry", "hash", func(c []consolidate.Batch) []consolidate.Batch { c[0].Entries[0].Speaker = "Bob"; return c }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			chain := batches(t, chat("> one", "> two", "> Never force-push.", "> four", "> five", "> six", "> seven", "> Use tabs only."))
			if err := consolidate.VerifyChain(tt.damage(chain), [32]byte{}); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one about %q", err, tt.want)
			}
		})
	}
}
