package retrieve

import (
	"context"
	"fmt"
)

// levelsDue reports whether the levels are older than the last refresh point,
// or, with meaning, than its weights. The caller holds mu.
func (x *Index) levelsDue() bool {
	return refreshPoint(uint64(len(x.where))) > x.levels.since
}

// refreshLevels measures what the probes reach, among the messages up to the
// last refresh point, so that the same ledger gives the same levels however it
// was filled.
func (x *Index) refreshLevels(ctx context.Context) error {
	x.mu.RLock()
	due := x.levelsDue() && (x.meaning == nil || !x.meaning.due(uint64(len(x.where))))
	since := refreshPoint(uint64(len(x.where)))
	x.mu.RUnlock()
	if !due {
		return nil
	}
	next, err := x.measureLevels(ctx, since)
	if err != nil {
		return fmt.Errorf("measure levels: %w", err)
	}
	if err := x.columns.keepLevels(next, x.identity()); err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.levels = next
	x.signal()
	return nil
}

// measureLevels puts every probe to the memory as it was at a refresh point.
func (x *Index) measureLevels(ctx context.Context, since uint64) (levels, error) {
	coverage := make([]float64, 0, len(probes))
	sense := make([]float64, 0, len(probes))
	for _, probe := range probes {
		parsed := parseQuery(probe)
		if err := x.load(ctx, parsed.lookups(), false); err != nil {
			return levels{}, err
		}
		m := x.measureProbe(ctx, parsed, since)
		x.mu.RUnlock() // load leaves it held
		u, v := m.best()
		coverage, sense = append(coverage, u), append(sense, v)
	}
	if err := ctx.Err(); err != nil {
		return levels{}, err
	}
	return levels{since, quantile(coverage, levelQuantile), quantile(sense, levelQuantile)}, nil
}

// measureProbe scores one probe. The caller holds mu.
func (x *Index) measureProbe(ctx context.Context, parsed parsedQuery, since uint64) *measure {
	n := x.messagesUpTo(since)
	m := &measure{words: x.main.scoreWords(x.main.resolve(parsed, n), n), messages: n}
	if x.meaning == nil {
		return m
	}
	if query := x.meaning.query(parsed.text); query != nil {
		dst := make([]float32, x.meaning.vectors.len())
		if scan(ctx, x.meaning.vectors, query, dst) == nil {
			m.cos = dst[:n]
		}
	}
	return m
}

// messagesUpTo counts the messages of the main table up to a sequence number.
func (x *Index) messagesUpTo(seq uint64) int {
	for i := int(min(seq, uint64(len(x.where)))) - 1; i >= 0; i-- {
		if x.where[i] >= 0 {
			return int(x.where[i]) + 1
		}
	}
	return 0
}
