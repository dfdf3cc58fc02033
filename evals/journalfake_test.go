package main

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "recalld/proto/recalld/v1"
)

// A fakeJournal finds an entry in each message that begins with the name of a
// kind and a colon; one with a question mark waits for a person. It gives two
// entries a page, newest first.
type fakeJournal struct {
	pb.UnimplementedJournalServiceServer
	server *fakeServer

	mu           sync.Mutex // guards the following
	consolidated map[string]string
	fails        int // so many calls
	lie          bool
}

// startFakeJournal serves a fake of all services and gives a client of it.
func startFakeJournal(t *testing.T) (*fakeJournal, *Client) {
	t.Helper()
	fake := &fakeServer{memories: make(map[string]*fakeMemory)}
	journal := &fakeJournal{server: fake, consolidated: map[string]string{}}
	server := grpc.NewServer()
	pb.RegisterMemoriesServiceServer(server, fake)
	pb.RegisterRecallServiceServer(server, fake)
	pb.RegisterAdminServiceServer(server, fake)
	pb.RegisterJournalServiceServer(server, journal)
	return journal, clientOf(t, server)
}

func (f *fakeJournal) Consolidate(request *pb.ConsolidateRequest, stream pb.JournalService_ConsolidateServer) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fails > 0 {
		f.fails--
		return status.Error(codes.FailedPrecondition, "the model is away")
	}
	if !request.CloseTail {
		return status.Error(codes.InvalidArgument, "the tail is not read")
	}
	f.consolidated[request.Memory.Project] = request.Extractor
	if err := stream.Send(&pb.ConsolidateResponse{WindowsTotal: 1}); err != nil {
		return err
	}
	return stream.Send(&pb.ConsolidateResponse{WindowsDone: 1, WindowsTotal: 1, Rejected: 1})
}

func (f *fakeJournal) List(_ context.Context, request *pb.JournalServiceListRequest) (*pb.JournalServiceListResponse, error) {
	f.mu.Lock()
	_, done := f.consolidated[request.Memory.Project]
	lie := f.lie
	f.mu.Unlock()
	answer := new(pb.JournalServiceListResponse)
	if !done {
		return answer, nil
	}
	f.server.mu.Lock()
	defer f.server.mu.Unlock()
	passages := f.server.memories[request.Memory.Project].passages
	from := len(passages) - 1
	if request.Cursor != "" {
		from, _ = strconv.Atoi(request.Cursor)
	}
	for i := from; i >= 0; i-- {
		if len(answer.Entries) == 2 {
			answer.Cursor = strconv.Itoa(i)
			break
		}
		if e := fakeEntry(passages[i], lie); e != nil {
			answer.Entries = append(answer.Entries, e)
		}
	}
	return answer, nil
}

var fakeKinds = map[string]pb.EntryKind{
	"decision": pb.EntryKind_ENTRY_KIND_DECISION, "rule": pb.EntryKind_ENTRY_KIND_RULE, "preference": pb.EntryKind_ENTRY_KIND_PREFERENCE,
	"reversal": pb.EntryKind_ENTRY_KIND_REVERSAL, "open": pb.EntryKind_ENTRY_KIND_OPEN_WORK,
}

func fakeEntry(p *pb.Passage, lie bool) *pb.Entry {
	name, rest, ok := strings.Cut(p.Text, ": ")
	kind := fakeKinds[name]
	if !ok || kind == 0 {
		return nil
	}
	speaker := "user"
	if strings.HasSuffix(rest, "!") {
		speaker = "assistant"
	}
	e := &pb.Entry{Id: "e" + p.MessageId, Kind: kind, State: pb.EntryState_ENTRY_STATE_LIVE, Confidence: 0.7, Speaker: speaker}
	if strings.HasSuffix(rest, "?") {
		e.State = pb.EntryState_ENTRY_STATE_CANDIDATE
	}
	start := uint64(len(name) + 2)
	e.Quotes = []*pb.Quote{{
		MessageId: p.MessageId, Range: &pb.ByteRange{Start: start, End: uint64(len(p.Text))},
		Role: pb.QuoteRole_QUOTE_ROLE_SAYS, Text: rest, Exact: true, Speaker: speaker,
	}}
	if lie {
		e.Quotes[0].Text, e.Speaker = "never said", "nobody"
	}
	return e
}
