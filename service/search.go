package service

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"time"
	"unicode/utf8"

	"recalld/ledger"
	recalldv1 "recalld/proto/recalld/v1"
)

const (
	// hitContext is how much is shown on each side of a match, maxHitBytes the
	// most that is shown of a hit.
	hitContext  = 120
	maxHitBytes = 2_000
	// searchBytes is how much text one Search scans.
	searchBytes = 256 << 20
)

// Search looks for raw words or for a /regular expression/, newest first. It
// scans for 2 s at most, and says how far it got.
func (h *recaller) Search(ctx context.Context, req *recalldv1.SearchRequest) (*recalldv1.SearchResponse, error) {
	q, err := searchQuery(req)
	if err != nil {
		return nil, err
	}
	m, release, err := h.opened(ctx, req.GetMemory(), req.GetSessions())
	if err != nil {
		return nil, err
	}
	defer release()

	_, until := divide(ctx, time.Now())
	scanning, cancel := withDeadline(ctx, until)
	defer cancel()
	scanning, cancelScan := context.WithTimeout(scanning, searchTime)
	defer cancelScan()
	result, err := m.ledger.Search(scanning, q)
	if err != nil {
		return nil, err
	}
	resp := &recalldv1.SearchResponse{
		MemoryId:     m.id,
		Truncated:    result.Truncated,
		SearchedTo:   result.SearchedTo,
		ScannedBytes: uint64(result.ScannedBytes),
		Hits:         make([]*recalldv1.SearchHit, len(result.Hits)),
	}
	for i := range result.Hits {
		resp.Hits[i] = hitOf(&result.Hits[i])
	}
	if result.SearchedTo > 0 {
		resp.Cursor = cursorOf(result.SearchedTo)
	}
	if result.Truncated {
		skipped(ctx, "search=truncated")
	}
	if result.Damaged > 0 {
		skipped(ctx, "search=damaged")
	}
	return resp, nil
}

func searchQuery(req *recalldv1.SearchRequest) (q ledger.SearchQuery, err error) {
	if q.Pattern, err = ledger.ParsePattern(req.GetQuery()); err != nil {
		return q, err
	}
	if q.Limit, err = inRange("limit", req.GetLimit(), defaultHits, 1, maxHits); err != nil {
		return q, err
	}
	if q.Kinds, err = checkKinds[ledger.Kind]("kinds", req.GetKinds()); err != nil {
		return q, err
	}
	if q.Before, err = checkCursor(req.GetCursor()); err != nil {
		return q, err
	}
	q.Sessions = req.GetSessions()
	q.MaxBytes = searchBytes
	return q, nil
}

// A cursor is the number of the message a search goes on below. It holds a
// letter for its form, so that another form can be told from it later.
const cursorForm = 's'

func cursorOf(seq uint64) string {
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint64([]byte{cursorForm}, seq))
}

func checkCursor(s string) (seq uint64, err error) {
	if s == "" {
		return 0, nil
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(b) != 9 || b[0] != cursorForm {
		return 0, invalid("cursor", "is not one that an answer held", nil, nil)
	}
	if seq = binary.BigEndian.Uint64(b[1:]); seq == 0 {
		return 0, invalid("cursor", "is not one that an answer held", nil, nil)
	}
	return seq, nil
}

func hitOf(hit *ledger.Hit) *recalldv1.SearchHit {
	left := leave(hit.Text)
	start, end := around(left.bytes, hit.Start, hit.End)
	text, end, exact := left.cut(start, end, maxHitBytes)
	return &recalldv1.SearchHit{
		MessageId:    name(hit.ID),
		TurnId:       name(hit.TurnID),
		SessionId:    name(hit.Session),
		SessionTitle: name(hit.SessionTitle),
		Speaker:      name(hit.Speaker),
		Kind:         recalldv1.Kind(hit.Kind),
		Time:         spokenAt(hit.Time, hit.Zone),
		Sequence:     hit.Seq,
		Match:        &recalldv1.ByteRange{Start: uint64(hit.Start), End: uint64(hit.End)},
		Text:         text,
		Range:        &recalldv1.ByteRange{Start: uint64(start), End: uint64(end)},
		Exact:        exact,
	}
}

// around widens a match by hitContext on each side, up to the character it falls into.
func around(text []byte, start, end int) (int, int) {
	start, end = max(start-hitContext, 0), min(end+hitContext, len(text))
	for i := 0; i < utf8.UTFMax && start > 0 && !utf8.RuneStart(text[start]); i++ {
		start--
	}
	for i := 0; i < utf8.UTFMax && end < len(text) && !utf8.RuneStart(text[end]); i++ {
		end++
	}
	return start, end
}
