package retrieve

import (
	"context"
	"fmt"
	"math"
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
	next, err := x.measureLevels(ctx, since, func(_ int, probe parsedQuery) []float32 { return x.ownLikeness(ctx, probe) })
	if err != nil {
		return fmt.Errorf("measure levels: %w", err)
	}
	if err := x.columns.keepLevels(x.levelsKey(), next, x.identity()); err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.levels = next
	x.signal()
	return nil
}

// levelsKey is where x.levels are kept: those of words alone apart from those
// that the token table's meaning has a part in, so that the table can come back
// to its own.
func (x *Index) levelsKey() []byte {
	if x.tokens != nil && x.meaning == nil {
		return wordLevelsKey
	}
	return levelsKey
}

// keptLevels reads x.levels. The level of coverage does not depend on meaning:
// words alone take it from either place, the later one.
func (x *Index) keptLevels() (levels, error) {
	kept, err := x.columns.keptLevels(x.levelsKey(), x.identity())
	if err != nil || x.tokens == nil || x.meaning != nil {
		return kept, err
	}
	other, err := x.columns.keptLevels(levelsKey, x.identity())
	if other.since > kept.since {
		kept = levels{other.since, other.coverage, math.Log(gateFloor)}
	}
	return kept, err
}

// measureLevels puts every probe to the memory as it was at a refresh point.
// like gives the cosines of a probe, by its number, with all slices, or nil; it
// is called under mu.
func (x *Index) measureLevels(ctx context.Context, since uint64, like func(i int, probe parsedQuery) []float32) (levels, error) {
	coverage := make([]float64, 0, len(probes))
	sense := make([]float64, 0, len(probes))
	for i, probe := range probes {
		parsed := parseQuery(probe, time.Time{})
		if err := x.load(ctx, parsed.lookups(), false); err != nil {
			return levels{}, err
		}
		m := x.measureProbe(ctx, parsed, since)
		if cos := like(i, parsed); cos != nil {
			m.cos = cos[:m.units.n]
		}
		x.mu.RUnlock() // load leaves it held
		u, v := m.best()
		coverage, sense = append(coverage, u), append(sense, v)
	}
	if err := ctx.Err(); err != nil {
		return levels{}, err
	}
	return levels{since, quantile(coverage, levelQuantile), quantile(sense, levelQuantile)}, nil
}

// measureProbe scores the words of one probe. The caller holds mu.
func (x *Index) measureProbe(ctx context.Context, parsed parsedQuery, since uint64) *measure {
	v := x.main.view(parsed.lookups())
	u := v.table.slicesUpTo(since)
	return &measure{units: u, words: v.score(ctx, parsed, u)}
}

// ownLikeness gives the cosines of a probe by the token table's vectors. The
// caller holds mu.
func (x *Index) ownLikeness(ctx context.Context, probe parsedQuery) []float32 {
	if x.meaning == nil {
		return nil
	}
	query := x.meaning.query(probe.text)
	if query == nil {
		return nil
	}
	cos, err := x.meaning.cosines(ctx, query)
	if err != nil {
		return nil // ctx has ended, which is an error of the whole
	}
	return cos.slices
}
