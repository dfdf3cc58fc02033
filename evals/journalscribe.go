package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "recalld/proto/recalld/v1"
)

const (
	// scribes is how many chats are read at a time.
	scribes = 2
	// entriesPage is how many entries are asked for at a time.
	entriesPage = 200
	// modelTries is how often a chat is read until the model fails for good, and
	// modelPause lies between: after that the server asks a model again that it
	// left alone for having failed, and figures are of the model, not of its bad
	// minute.
	modelTries = 3
	modelPause = 35 * time.Second
)

// A Line is a message of a chat.
type Line struct {
	Kind    pb.Kind
	Speaker string
	Text    string
}

// says is a line of the person.
func says(text string) Line {
	return Line{Kind: pb.Kind_KIND_USER, Speaker: "user", Text: text}
}

func (l Line) byPerson() bool { return l.Kind == pb.Kind_KIND_USER }

// A Chat is what one memory is filled with before its journal is read. A line
// of a person begins a turn.
type Chat struct {
	ID    string
	Lines []Line
}

// turns gives the turns of the chat, all of one session.
func (c *Chat) turns(session string) []*pb.NewTurn {
	var turns []*pb.NewTurn
	for i, line := range c.Lines {
		if i == 0 || line.byPerson() {
			turns = append(turns, newTurn(session, "turn-"+strconv.Itoa(i)))
		}
		last := turns[len(turns)-1]
		last.Messages = append(last.Messages, newMessage(strconv.Itoa(i), line.Kind, line.Speaker, nil, line.Text))
	}
	return turns
}

// Words are what an entry quotes of a line.
type Words struct {
	Line int
	Text string
}

// A Found is an entry of a journal. Only live ones and candidates are kept.
type Found struct {
	ID         string
	Kind       string
	Live       bool
	Confidence float64
	// Says are the words of the one who decides, Proposal what they accepted.
	Says, Proposal []Words
	// Earlier are the entries that this one replaces or may replace, best first.
	Earlier []string
}

// Checks count what holds for all entries, whatever they are about.
type Checks struct {
	Chats   int `json:"chats"`
	Entries int `json:"entries"`
	// Unbound entries have a quote that is not in the message it names,
	// WrongSpeaker ones are said to be by somebody else.
	Unbound      int `json:"unbound"`
	WrongSpeaker int `json:"wrong_speaker"`
	// Failed chats could not be read by the model; they count as read without
	// anything found.
	Failed int `json:"failed"`
	// Dropped are drafts that the server's checker refused.
	Dropped int `json:"dropped"`
}

// A Scribe has the server read chats, each in a memory of its own, so that no
// text has a part in what is found in another.
type Scribe struct {
	client    *Client
	journal   pb.JournalServiceClient
	extractor string
	// mark makes the memories new to a server that has run longer.
	mark string
	// pause before a chat is tried again on which a model failed.
	pause time.Duration

	mu     sync.Mutex
	checks Checks
}

func newScribe(client *Client, extractor string) *Scribe {
	return &Scribe{
		client:    client,
		journal:   pb.NewJournalServiceClient(client.conn),
		extractor: extractor,
		mark:      "journal-" + strconv.FormatInt(time.Now().UnixNano(), 36),
		pause:     modelPause,
	}
}

// project is the memory of a chat.
func (s *Scribe) project(c *Chat) string { return s.mark + "/" + c.ID }

// readAll reads chats and gives what was found in each, in their order.
func (s *Scribe) readAll(ctx context.Context, chats []Chat, done func(int)) ([][]Found, error) {
	all := make([][]Found, len(chats))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(scribes)
	if s.extractor == "model" {
		group.SetLimit(1) // a model on this machine answers one question at a time
	}
	for i := range chats {
		group.Go(func() error {
			found, err := s.read(ctx, &chats[i])
			if err != nil {
				return fmt.Errorf("chat %s: %w", chats[i].ID, err)
			}
			all[i] = found
			done(1)
			return nil
		})
	}
	return all, group.Wait()
}

// read fills a fresh memory with a chat, has it consolidated to the end, and
// gives the entries in the order in which they were said.
func (s *Scribe) read(ctx context.Context, c *Chat) ([]Found, error) {
	project := s.project(c)
	memory := Memory{Project: project, Turns: c.turns(project)}
	if len(memory.Turns) == 0 {
		return nil, nil
	}
	if err := s.client.appendAll(ctx, memory, func(int) {}); err != nil {
		return nil, err
	}
	dropped, err := s.consolidate(ctx, project)
	for try := 1; try < modelTries && err != nil && s.excused(ctx, err); try++ {
		if err := sleep(ctx, s.pause); err != nil {
			return nil, err
		}
		dropped, err = s.consolidate(ctx, project)
	}
	failed := err != nil && s.excused(ctx, err)
	if err != nil && !failed {
		return nil, err
	}
	entries, err := s.entries(ctx, project)
	if err != nil {
		return nil, err
	}
	checks := Checks{Chats: 1, Entries: len(entries), Dropped: dropped}
	if failed {
		checks.Failed = 1
	}
	var found []Found
	for _, e := range entries {
		bound, own := c.holds(e)
		if !bound {
			checks.Unbound++
		}
		if !own {
			checks.WrongSpeaker++
		}
		if f, ok := c.found(e); ok {
			found = append(found, f)
		}
	}
	s.note(checks)
	return found, s.client.forget(ctx, project)
}

// excused reports whether an error is the model's: it is counted, and the other
// chats are read all the same.
func (s *Scribe) excused(ctx context.Context, err error) bool {
	switch status.Code(err) {
	case codes.Unimplemented, codes.InvalidArgument, codes.Canceled, codes.Unauthenticated, codes.NotFound:
		return false
	}
	return s.extractor == "model" && ctx.Err() == nil
}

// sleep waits for d, or returns the error of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Scribe) note(c Checks) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checks.Chats += c.Chats
	s.checks.Entries += c.Entries
	s.checks.Unbound += c.Unbound
	s.checks.WrongSpeaker += c.WrongSpeaker
	s.checks.Failed += c.Failed
	s.checks.Dropped += c.Dropped
}

// consolidate reads all windows of a memory and gives the number of drafts that
// were dropped.
func (s *Scribe) consolidate(ctx context.Context, project string) (dropped int, err error) {
	stream, err := s.journal.Consolidate(ctx, &pb.ConsolidateRequest{
		Memory: memoryRef(project), Extractor: s.extractor, CloseTail: true,
	})
	if err != nil {
		return 0, fmt.Errorf("consolidate: %w", err)
	}
	for {
		told, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return dropped, nil
		}
		if err != nil {
			return dropped, fmt.Errorf("consolidate: %w", err)
		}
		dropped = int(told.Rejected)
	}
}

// entries gives all entries of a journal, oldest first.
func (s *Scribe) entries(ctx context.Context, project string) ([]*pb.Entry, error) {
	var all []*pb.Entry
	request := &pb.JournalServiceListRequest{Memory: memoryRef(project), Limit: entriesPage}
	for {
		answer, err := s.journal.List(ctx, request)
		if err != nil {
			return nil, fmt.Errorf("list the journal: %w", err)
		}
		all = append(all, answer.Entries...)
		if answer.Cursor == "" {
			break
		}
		request.Cursor = answer.Cursor
	}
	slices.Reverse(all)
	return all, nil
}

// found gives what is kept of an entry, if it counts. The words are those of the
// chat, since the server masks secrets.
func (c *Chat) found(e *pb.Entry) (Found, bool) {
	f := Found{
		ID:         e.Id,
		Kind:       strings.ToLower(strings.TrimPrefix(e.Kind.String(), "ENTRY_KIND_")),
		Live:       e.State == pb.EntryState_ENTRY_STATE_LIVE,
		Confidence: e.Confidence,
		Earlier:    append(slices.Clone(e.Supersedes), e.MaySupersede...),
	}
	for _, q := range e.Quotes {
		line, text, ok := c.quoted(q)
		if !ok {
			continue
		}
		if words := (Words{line, text}); q.Role == pb.QuoteRole_QUOTE_ROLE_PROPOSAL {
			f.Proposal = append(f.Proposal, words)
		} else {
			f.Says = append(f.Says, words)
		}
	}
	return f, f.Live || e.State == pb.EntryState_ENTRY_STATE_CANDIDATE
}

// quoted gives line and words of a quote, if there are such.
func (c *Chat) quoted(q *pb.Quote) (line int, text string, ok bool) {
	line, err := strconv.Atoi(q.MessageId)
	if err != nil || line < 0 || line >= len(c.Lines) {
		return 0, "", false
	}
	said := c.Lines[line].Text
	start, end := q.GetRange().GetStart(), q.GetRange().GetEnd()
	if start >= end || end > uint64(len(said)) {
		return 0, "", false
	}
	return line, said[start:end], true
}

// holds reports whether all quotes of an entry are bytes of the lines they
// name, and whether it is said to be by the one who said the words.
func (c *Chat) holds(e *pb.Entry) (bound, own bool) {
	bound, own = len(e.Quotes) > 0, true
	for _, q := range e.Quotes {
		line, text, ok := c.quoted(q)
		if !ok || q.Exact && text != q.Text {
			return false, own
		}
		proposal := q.Role == pb.QuoteRole_QUOTE_ROLE_PROPOSAL
		by := c.Lines[line]
		if q.Speaker != by.Speaker || !proposal && e.Speaker != by.Speaker || proposal && by.byPerson() {
			own = false
		}
	}
	return bound, own
}
