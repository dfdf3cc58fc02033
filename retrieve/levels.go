package retrieve

import (
	"context"
	"fmt"
	"time"
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
	due := x.levelsDue() && !x.busy() && (x.meaning == nil || !x.meaning.due(uint64(len(x.where))))
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
		parsed := parseQuery(probe, time.Time{})
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
	u := x.unitsUpTo(since)
	m := &measure{units: u, words: x.main.score(ctx, parsed, u)}
	if x.meaning == nil {
		return m
	}
	if query := x.meaning.query(parsed.text); query != nil {
		if cos, err := x.meaning.cosines(ctx, query); err == nil {
			m.cos = cos.slices[:u.n]
		}
	}
	return m
}

// unitsUpTo gives the slices of the main table up to a sequence number.
func (x *Index) unitsUpTo(seq uint64) units {
	for i := int(min(seq, uint64(len(x.where)))) - 1; i >= 0; i-- {
		if ord := x.where[i]; ord >= 0 {
			m := x.main.table.messages[ord]
			return units{x.main.table, true, int(m.firstSlice + m.slices)}
		}
	}
	return units{x.main.table, true, 0}
}
