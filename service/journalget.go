package service

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"recalld/consolidate"
	"recalld/ledger"
	recalldv1 "recalld/proto/recalld/v1"
)

// Limits of the journal on the wire.
const (
	defaultEntries, maxEntries = 50, 200
	// maxQuotesShown of one entry in an answer that holds many entries; Show has
	// all of them.
	maxQuotesShown = 10
	// maxReaches is how many sessions Get tells the reach of, the latest ones.
	maxReaches = 200
	// maxMessagesShown is how many quoted messages Show has.
	maxMessagesShown = 200
)

// Get renders the live entries within a budget. The block is empty when nothing
// stands that fits.
func (h *journal) Get(ctx context.Context, req *recalldv1.GetRequest) (*recalldv1.GetResponse, error) {
	budget, err := inRange("budget_bytes", req.GetBudgetBytes(), consolidate.DefaultBudget, consolidate.MinBudget, consolidate.MaxBudget)
	if err != nil {
		return nil, err
	}
	if n := len(req.GetMessage()); n > maxQueryBytes {
		return nil, invalid("message", "is too long", sizeOf(maxQueryBytes), sizeOf(n))
	}
	if err := checkName("session_id", req.GetSessionId(), false); err != nil {
		return nil, err
	}
	m, e, release, err := h.enter(ctx, req.GetMemory())
	if err != nil {
		return nil, err
	}
	defer release()
	reach, err := m.ledger.JournalReach(ctx)
	if err != nil {
		return nil, err
	}
	options := consolidate.BlockOptions{
		Budget: budget, Frame: frameBytes, Message: req.GetMessage(), Escape: entryLine, In: zones{}.in,
	}
	if session := req.GetSessionId(); session != "" {
		if err := h.checkSession(ctx, m.id, "session_id", session); err != nil {
			return nil, err
		}
		if options.Reach, err = m.chatReach(ctx, session); err != nil {
			return nil, err
		}
	}
	block := e.journal.Block(options)
	resp := &recalldv1.GetResponse{MemoryId: m.id, Block: h.frame.block(block.Lines), Head: hashOf(e.journal.Head), Policy: policyOf(e.journal.Policy)}
	if resp.Entries, err = m.entriesOf(ctx, block.Entries, maxQuotesShown); err != nil {
		return nil, err
	}
	resp.Reach, err = m.reachOf(ctx, reach)
	return resp, err
}

// entryLine is a text on its way out that stands within a line of the block.
func entryLine(s string) string {
	text, _ := leave([]byte(s)).all()
	var b strings.Builder
	var before rune
	text = strings.Join(strings.Fields(text), " ")
	for i, r := range text {
		if isHidden(before, r, text[i:]) || isMarker(r, text[i:]) {
			writeEscape(&b, r)
		} else {
			b.WriteRune(r)
		}
		before = r
	}
	return b.String()
}

// hashOf is a hash on the wire, nothing for the zero one before the first batch.
func hashOf(h [32]byte) string {
	if h == [32]byte{} {
		return ""
	}
	return hex.EncodeToString(h[:])
}

// reachOf tells how far the journal reaches in the sessions that spoke last.
func (m *memory) reachOf(ctx context.Context, list []ledger.JournalReach) ([]*recalldv1.SessionReach, error) {
	slices.SortStableFunc(list, func(a, b ledger.JournalReach) int { return cmp.Compare(b.LastEnded, a.LastEnded) })
	var out []*recalldv1.SessionReach
	for _, r := range list[:min(len(list), maxReaches)] {
		at, zone, err := m.readTo(ctx, &r)
		if err != nil {
			return nil, err
		}
		out = append(out, &recalldv1.SessionReach{SessionId: name(r.Session), ReadTo: spokenAt(at, zone), TurnsWaiting: r.Waiting})
	}
	return out, nil
}

// readTo tells when the last message was said that the journal of a session
// holds, of those of its last turn that have a time; the zero time if none has.
func (m *memory) readTo(ctx context.Context, r *ledger.JournalReach) (at time.Time, zone string, err error) {
	if r.EndTurn == 0 {
		return at, zone, nil
	}
	turns, err := m.ledger.SpokenTurns(ctx, r.Session, r.EndTurn, r.EndTurn, 1)
	if err != nil || len(turns) == 0 {
		return at, zone, err
	}
	for _, m := range slices.Backward(turns[0].Messages) {
		if !m.Time.IsZero() {
			return m.Time, m.Zone, nil
		}
	}
	return at, zone, nil
}

// chatReach tells how far the journal reaches in the chat that is going on,
// which need not have a turn yet.
func (m *memory) chatReach(ctx context.Context, session string) (*consolidate.Reach, error) {
	r, err := m.ledger.SessionReach(ctx, session)
	if err != nil {
		return nil, err
	}
	at, zone, err := m.readTo(ctx, &r)
	if err != nil {
		return nil, err
	}
	return &consolidate.Reach{Session: session, ReadTo: at, Zone: zone, Read: int(r.Read), Waiting: int(r.Waiting)}, nil
}

// entriesOf are records as they leave, with at most so many quotes each.
func (m *memory) entriesOf(ctx context.Context, records []consolidate.Record, quotes int) ([]*recalldv1.Entry, error) {
	var ids []string
	for i := range records {
		for _, q := range records[i].Quotes[:min(len(records[i].Quotes), quotes)] {
			ids = append(ids, q.Message)
		}
	}
	messages, err := m.ledger.MessagesByID(ctx, ids)
	if err != nil {
		return nil, err
	}
	out := make([]*recalldv1.Entry, len(records))
	for i := range records {
		out[i] = entryOf(&records[i], messages, quotes)
	}
	return out, nil
}

func entryOf(r *consolidate.Record, messages map[string]ledger.Record, quotes int) *recalldv1.Entry {
	text, _ := leave([]byte(r.Text)).all()
	e := &recalldv1.Entry{
		Id:           r.ID,
		Kind:         recalldv1.EntryKind(r.Kind),
		Text:         text,
		Confidence:   float64(r.Confidence) / 1000,
		SaidAt:       spokenAt(r.SaidAt, r.Zone),
		DecidedOn:    dateOf(r.DecidedOn, r.Zone),
		Supersedes:   r.Supersedes,
		MaySupersede: r.MaySupersede,
		State:        recalldv1.EntryState(r.State),
		Pinned:       r.Pinned,
		Speaker:      name(r.Speaker),
		BatchHash:    hashOf(r.Batch),
	}
	for _, q := range r.Quotes[:min(len(r.Quotes), quotes)] {
		out := &recalldv1.Quote{
			MessageId: name(q.Message),
			Range:     &recalldv1.ByteRange{Start: uint64(q.Start), End: uint64(q.End)},
			Role:      recalldv1.QuoteRole(q.Role),
		}
		if m, ok := messages[q.Message]; ok && q.Start >= 0 && q.Start <= q.End && q.End <= len(m.Text) {
			out.Text, _, out.Exact = leave(m.Text).cut(q.Start, q.End, maxPageBytes)
			out.Speaker, out.SessionId = name(m.Speaker), name(m.Session)
		}
		e.Quotes = append(e.Quotes, out)
	}
	return e
}

// dateOf is a date that somebody named, at its beginning in their zone.
func dateOf(date, zone string) *recalldv1.SpokenTime {
	if date == "" {
		return nil
	}
	place, err := locate(zone)
	if err != nil {
		place, zone = time.UTC, ""
	}
	at, err := time.ParseInLocation(time.DateOnly, date, place)
	if err != nil {
		return nil
	}
	return spokenAt(at, zone)
}

// List pages through entries, those that were said last first.
func (h *journal) List(ctx context.Context, req *recalldv1.JournalServiceListRequest) (*recalldv1.JournalServiceListResponse, error) {
	limit, err := inRange("limit", req.GetLimit(), defaultEntries, 1, maxEntries)
	if err != nil {
		return nil, err
	}
	for _, k := range req.GetKinds() {
		if err := checkEnum("kinds", k, recalldv1.EntryKind_name, false); err != nil {
			return nil, err
		}
	}
	for _, s := range req.GetStates() {
		if err := checkEnum("states", s, recalldv1.EntryState_name, false); err != nil {
			return nil, err
		}
	}
	after, err := checkEntryCursor(req.GetCursor())
	if err != nil {
		return nil, err
	}
	m, e, release, err := h.enter(ctx, req.GetMemory())
	if err != nil {
		return nil, err
	}
	defer release()
	var page []consolidate.Record
	cursor := ""
	for _, r := range after.older(e.journal.Records) {
		if len(req.GetKinds()) > 0 && !slices.Contains(req.GetKinds(), recalldv1.EntryKind(r.Kind)) ||
			len(req.GetStates()) > 0 && !slices.Contains(req.GetStates(), recalldv1.EntryState(r.State)) {
			continue
		}
		if len(page) == limit {
			cursor = entryCursorOf(&page[limit-1])
			break
		}
		page = append(page, r)
	}
	resp := &recalldv1.JournalServiceListResponse{Cursor: cursor}
	if resp.Entries, err = m.entriesOf(ctx, page, maxQuotesShown); err != nil {
		return nil, err
	}
	for size := proto.Size(resp); size >= maxPageSize && len(resp.Entries) > 1; {
		last := len(resp.Entries) - 1
		size -= proto.Size(resp.Entries[last])
		resp.Entries, resp.Cursor = resp.Entries[:last], entryCursorOf(&page[last-1])
	}
	return resp, nil
}

// An entryCursor is the entry that a page of a list ended with. Entries may be
// added and merged between two pages, so it holds its place as well.
type entryCursor struct {
	turn uint64
	id   string
}

const entryCursorForm = 'e'

func entryCursorOf(r *consolidate.Record) string {
	return base64.RawURLEncoding.EncodeToString(append(binary.BigEndian.AppendUint64([]byte{entryCursorForm}, r.Turn), r.ID...))
}

func checkEntryCursor(s string) (c entryCursor, err error) {
	if s == "" {
		return c, nil
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(b) < 10 || b[0] != entryCursorForm {
		return c, invalid("cursor", "is not one that an answer held", nil, nil)
	}
	return entryCursor{turn: binary.BigEndian.Uint64(b[1:9]), id: string(b[9:])}, nil
}

// older returns what comes after the cursor, the last said first. records are in
// the order in which they were said.
func (c entryCursor) older(records []consolidate.Record) []consolidate.Record {
	list := slices.Clone(records)
	slices.Reverse(list)
	if c.id == "" {
		return list
	}
	for i := range list {
		if list[i].ID == c.id {
			return list[i+1:]
		}
	}
	for i := range list {
		if list[i].Turn < c.turn {
			return list[i:]
		}
	}
	return nil
}

// Show opens one entry down to the words around its quotes.
func (h *journal) Show(ctx context.Context, req *recalldv1.ShowRequest) (*recalldv1.ShowResponse, error) {
	if err := checkName("entry_id", req.GetEntryId(), true); err != nil {
		return nil, err
	}
	m, e, release, err := h.enter(ctx, req.GetMemory())
	if err != nil {
		return nil, err
	}
	defer release()
	record := e.journal.Find(req.GetEntryId())
	if record == nil {
		return nil, errUnknown("entry_id")
	}
	var ids []string
	for _, q := range record.Quotes {
		if !slices.Contains(ids, q.Message) && len(ids) < maxMessagesShown {
			ids = append(ids, q.Message)
		}
	}
	messages, err := m.ledger.MessagesByID(ctx, ids)
	if err != nil {
		return nil, err
	}
	resp := &recalldv1.ShowResponse{Entry: entryOf(record, messages, len(record.Quotes))}
	size := 0
	for _, id := range ids {
		stored, ok := messages[id]
		if !ok {
			continue
		}
		// One message comes whole, however long; further ones while they fit.
		if size += len(stored.Text); size > maxPageBytes && len(resp.Messages) > 0 {
			break
		}
		out := messageOf(&stored.Message, stored.Session, stored.TurnID)
		out.Text, out.Exact = leave(stored.Text).all()
		resp.Messages = append(resp.Messages, out)
	}
	resp.Related, err = m.entriesOf(ctx, related(&e.journal, record), maxQuotesShown)
	return resp, err
}

// related returns the records that a record superseded or was superseded by.
func related(j *consolidate.Journal, of *consolidate.Record) []consolidate.Record {
	var list []consolidate.Record
	for _, id := range slices.Concat(of.Supersedes, of.Last.Supersedes, of.SupersededBy) {
		r := j.Find(id)
		if r == nil || r.ID == of.ID || slices.ContainsFunc(list, func(o consolidate.Record) bool { return o.ID == r.ID }) {
			continue
		}
		list = append(list, *r)
	}
	return list
}

// Head gives the hash of the last batch, to be pinned elsewhere.
func (h *journal) Head(ctx context.Context, req *recalldv1.HeadRequest) (*recalldv1.HeadResponse, error) {
	id, err := h.resolve(ctx, req.GetMemory())
	if err != nil {
		return nil, err
	}
	m, release, err := h.open.acquire(ctx, id)
	if err != nil {
		return nil, err
	}
	defer release()
	hash, batches, err := m.ledger.JournalHead(ctx)
	if err != nil {
		return nil, err
	}
	return &recalldv1.HeadResponse{Hash: hashOf(hash), Batches: batches}, nil
}
