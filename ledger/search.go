package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Limits of a search.
const (
	MaxSearchHits      = 50
	defaultSearchHits  = 20
	defaultSearchBytes = 256 << 20
	// searchPage is how many messages are read in one go; between pages the
	// log can be moved into the file.
	searchPage = 1_000
)

// A SearchQuery asks for messages whose bytes match a pattern.
type SearchQuery struct {
	Pattern  Pattern
	Kinds    []Kind   // empty: all
	Sessions []string // empty: all; unknown ones match nothing
	Limit    int      // hits, to MaxSearchHits; 0 is 20
	Before   uint64   // messages with a smaller Seq; 0 starts at the newest
	MaxBytes int64    // of text to scan; 0 is 256 MiB
}

// A Hit is a message with the first place in it that matches, as byte offsets.
type Hit struct {
	Record
	Start, End int
}

// A SearchResult holds the hits, newest first.
type SearchResult struct {
	Hits []Hit
	// SearchedTo is the lowest number down to which everything was searched;
	// giving it as Before goes on from there. 0: nothing is left.
	SearchedTo uint64
	// Truncated says that time or MaxBytes ended the search, not Limit or the
	// end of the history.
	Truncated    bool
	ScannedBytes int64
	// Damaged counts the messages passed over because they cannot be read.
	Damaged int
}

// Search scans the texts, newest first. When ctx's deadline passes or MaxBytes
// are scanned the result says how far it got, which is no error; ctx cancelled
// is one. Damaged messages are passed over and counted. The error may be a
// *FieldError.
func (m *Memory) Search(ctx context.Context, q SearchQuery) (SearchResult, error) {
	if err := checkSearch(&q); err != nil {
		return SearchResult{}, err
	}
	if err := m.enter(); err != nil {
		return SearchResult{}, err
	}
	defer m.calls.Done()
	if q.Pattern.Empty() {
		return SearchResult{}, nil
	}
	s := scan{m: m, q: q, before: int64(min(q.Before, m.head.Load()+1))}
	s.result.SearchedTo = uint64(s.before)
	err := s.run(ctx)
	// A deadline that passes inside SQLite comes back as an interrupt.
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err, s.result.Truncated = nil, true
	} else if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		return SearchResult{}, fmt.Errorf("search: %w", m.translate(err))
	}
	if err := s.finish(ctx); err != nil {
		return SearchResult{}, fmt.Errorf("search: %w", m.translate(err))
	}
	return s.result, nil
}

func checkSearch(q *SearchQuery) error {
	if q.Limit < 0 || q.Limit > MaxSearchHits {
		return &FieldError{Field: "limit", What: "is out of range", Limit: MaxSearchHits, Value: q.Limit}
	}
	if q.Limit == 0 {
		q.Limit = defaultSearchHits
	}
	if q.MaxBytes <= 0 {
		q.MaxBytes = defaultSearchBytes
	}
	if q.Before == 0 {
		q.Before = math.MaxInt64
	}
	for i, session := range q.Sessions {
		if err := checkName(fmt.Sprintf("sessions[%d]", i), session, true); err != nil {
			return err
		}
	}
	return checkKinds(q.Kinds)
}

// A scan is a search under way.
type scan struct {
	m      *Memory
	q      SearchQuery
	before int64
	hits   []loaded
	at     [][2]int
	result SearchResult
}

// run reads page after page until the search ends.
func (s *scan) run(ctx context.Context) error {
	where, args := "", []any(nil)
	if len(s.q.Kinds) > 0 {
		where, args = where+"AND m.kind IN (SELECT value FROM json_each(?)) ", append(args, kindList(s.q.Kinds))
	}
	if len(s.q.Sessions) > 0 {
		where += "AND t.session IN (SELECT number FROM session WHERE id IN (SELECT value FROM json_each(?))) "
		args = append(args, jsonList(s.q.Sessions))
	}
	for s.before > 1 {
		from := max(1, s.before-searchPage)
		query := selectMessages + "WHERE m.seq >= ? AND m.seq < ? " + where + "ORDER BY m.seq DESC"
		done, err := s.page(ctx, query, append([]any{from, s.before}, args...))
		if isDamage(s.m.translate(err)) {
			done, err = s.pageSingly(ctx, query, from, args)
		}
		if err != nil || done {
			return err
		}
		s.before = from
		s.result.SearchedTo = uint64(from)
	}
	s.result.SearchedTo = 0
	return nil
}

// page searches one page; it reports true when the search ends in it.
func (s *scan) page(ctx context.Context, query string, args []any) (done bool, err error) {
	rows, err := s.m.reads.QueryContext(ctx, query, args...)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	f := newFound()
	for rows.Next() {
		if s.result.ScannedBytes >= s.q.MaxBytes {
			s.result.Truncated = true
			return true, nil
		}
		if err := s.row(ctx, f, rows); err != nil {
			return false, err
		}
		if len(s.hits) == s.q.Limit {
			return true, nil
		}
	}
	return false, rows.Err()
}

// pageSingly goes on in a page of rows where reading them in one go met damage.
func (s *scan) pageSingly(ctx context.Context, query string, from int64, args []any) (done bool, err error) {
	for seq := int64(s.result.SearchedTo) - 1; seq >= from; seq-- {
		done, err := s.page(ctx, query, append([]any{seq, seq + 1}, args...))
		if isDamage(s.m.translate(err)) {
			s.result.Damaged++
			s.result.SearchedTo = uint64(seq)
			err = nil
		}
		if err != nil || done {
			return done, err
		}
	}
	return false, nil
}

// row searches one message; its text is copied only when it matches.
func (s *scan) row(ctx context.Context, f *found, rows *sql.Rows) error {
	if err := f.scan(rows); err != nil {
		return err
	}
	start, end, ok, err := s.q.Pattern.Index(ctx, f.text)
	if err != nil {
		return err
	}
	s.result.ScannedBytes += int64(len(f.text))
	s.result.SearchedTo = uint64(f.seq)
	if f.check() != "" {
		s.result.Damaged++
		return nil
	}
	if ok {
		s.hits = append(s.hits, loaded{s.m.record(f), f.session})
		s.at = append(s.at, [2]int{start, end})
	}
	return nil
}

// finish names the sessions of the hits. It may not be stopped by the deadline
// that ended the scan: what was found is to be answered.
func (s *scan) finish(ctx context.Context) error {
	if s.result.SearchedTo == 1 {
		s.result.SearchedTo = 0
		s.result.Truncated = false
	}
	records, err := s.m.fillSessions(context.WithoutCancel(ctx), s.hits)
	if err != nil {
		return err
	}
	for i, r := range records {
		if r.Damage != nil {
			s.result.Damaged++
			continue
		}
		s.result.Hits = append(s.result.Hits, Hit{r, s.at[i][0], s.at[i][1]})
	}
	s.result.Hits = slices.Clip(s.result.Hits)
	return nil
}
