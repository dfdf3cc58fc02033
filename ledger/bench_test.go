package ledger_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"recalld/ledger"
)

// sized is exchange with texts of a usual length.
func sized(session string, n int) ledger.Turn {
	t := exchange(session, n)
	t.Messages[0].Text = fmt.Appendf(nil, "question %d: %s", n, strings.Repeat("why does it do that ", 10))
	t.Messages[1].Text = fmt.Appendf(nil, "answer %d: %s", n, strings.Repeat("because of the way it is built ", 30))
	return t
}

// BenchmarkAppendSingle appends one turn of two messages at a time.
func BenchmarkAppendSingle(b *testing.B) {
	m := newMemory(b)
	var took []time.Duration
	for n := 0; b.Loop(); n++ {
		begin := time.Now()
		mustAppend(b, m, sized("s", n))
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

// BenchmarkAppendBatch appends 500 turns of two messages at a time.
func BenchmarkAppendBatch(b *testing.B) {
	m := newMemory(b)
	n := 0
	for b.Loop() {
		turns := make([]ledger.Turn, ledger.MaxAppendTurns)
		for i := range turns {
			turns[i] = sized("s", n)
			n++
		}
		mustAppend(b, m, turns...)
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "turns/s")
}

// BenchmarkAppendConcurrent appends one turn at a time from 32 writers.
func BenchmarkAppendConcurrent(b *testing.B) {
	m := newMemory(b)
	b.SetParallelism(16)
	sessions := make(chan string, 1000)
	for i := range 1000 {
		sessions <- fmt.Sprint("s", i)
	}
	b.RunParallel(func(pb *testing.PB) {
		session := <-sessions
		for n := 0; pb.Next(); n++ {
			if _, err := m.Append(context.Background(), []ledger.Turn{sized(session, n)}); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "turns/s")
}

// BenchmarkRead reads 20,000 messages as the views do.
func BenchmarkRead(b *testing.B) {
	m := filled(b, 10_000)
	for b.Loop() {
		for after := uint64(0); ; {
			records, err := m.Read(b.Context(), after, 1000, 0)
			if err != nil {
				b.Fatal(err)
			}
			if len(records) == 0 {
				break
			}
			after = records[len(records)-1].Seq
		}
	}
	b.ReportMetric(float64(b.N)*20_000/b.Elapsed().Seconds(), "messages/s")
}

// BenchmarkSearch looks for what is not there in 20,000 messages.
func BenchmarkSearch(b *testing.B) {
	m := filled(b, 10_000)
	for _, query := range []string{"nowhere to be found", `/because\s+of .* was/`, `/(a+)+$/`} {
		pattern, err := ledger.ParsePattern(query)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(query, func(b *testing.B) {
			for b.Loop() {
				r, err := m.Search(b.Context(), ledger.SearchQuery{Pattern: pattern})
				if err != nil || len(r.Hits) > 0 {
					b.Fatal(r.Hits, err)
				}
				b.SetBytes(r.ScannedBytes)
			}
		})
	}
}

// BenchmarkPhrase looks for a phrase in a long text.
func BenchmarkPhrase(b *testing.B) {
	text := bytes.Repeat([]byte("The quick brown fox jumps over the lazy dog. "), 1<<14)
	pattern, err := ledger.ParsePattern("the lazy cat")
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, _, ok, _ := pattern.Index(b.Context(), text); ok {
			b.Fatal("found")
		}
	}
}

// BenchmarkHistory reads the newest page.
func BenchmarkHistory(b *testing.B) {
	m := filled(b, 10_000)
	for b.Loop() {
		if _, _, err := m.History(b.Context(), ledger.HistoryQuery{Limit: ledger.MaxHistoryTurns}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkVerifyDeep checks 20,000 messages.
func BenchmarkVerifyDeep(b *testing.B) {
	m := filled(b, 10_000)
	for b.Loop() {
		verify(b, m)
	}
}

// filled is a memory of n turns.
func filled(b *testing.B, n int) *ledger.Memory {
	b.Helper()
	m := newMemory(b)
	for i := 0; i < n; {
		var turns []ledger.Turn
		for len(turns) < ledger.MaxAppendTurns && i < n {
			turns = append(turns, sized("s", i))
			i++
		}
		mustAppend(b, m, turns...)
	}
	return m
}
