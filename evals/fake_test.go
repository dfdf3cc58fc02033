package main

import (
	"cmp"
	"context"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	pb "recalld/proto/recalld/v1"
)

// A fakeServer ranks by the number of shared words. It covers what it holds
// from the second look at its status on.
type fakeServer struct {
	pb.UnimplementedMemoriesServiceServer
	pb.UnimplementedRecallServiceServer
	pb.UnimplementedAdminServiceServer

	mu       sync.Mutex
	memories map[string]*fakeMemory
	requests []*pb.RecallRequest
	appends  int
	forgot   []string
}

type fakeMemory struct {
	passages []*pb.Passage
	known    map[string]bool
	looks    int
}

// startFake serves a fake and gives a client of it.
func startFake(t *testing.T) (*fakeServer, *Client) {
	t.Helper()
	fake := &fakeServer{memories: make(map[string]*fakeMemory)}
	server := grpc.NewServer()
	pb.RegisterMemoriesServiceServer(server, fake)
	pb.RegisterRecallServiceServer(server, fake)
	pb.RegisterAdminServiceServer(server, fake)
	return fake, clientOf(t, server)
}

// clientOf serves until the test ends, and gives a client.
func clientOf(t *testing.T, server *grpc.Server) *Client {
	t.Helper()
	listener := bufconn.Listen(1 << 20)
	go func() { _ = server.Serve(listener) }()
	conn, err := grpc.NewClient("passthrough:fake",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	client := newClient(conn)
	client.poll = time.Microsecond
	t.Cleanup(func() {
		_ = client.Close()
		server.Stop()
	})
	return client
}

func (f *fakeServer) Append(_ context.Context, request *pb.AppendRequest) (*pb.AppendResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.appends++
	memory := f.memories[request.Memory.Project]
	if memory == nil {
		memory = &fakeMemory{known: make(map[string]bool)}
		f.memories[request.Memory.Project] = memory
	}
	answer := new(pb.AppendResponse)
	for _, turn := range request.Turns {
		for _, message := range turn.Messages {
			if memory.known[message.Id] {
				answer.Duplicates++
				continue
			}
			memory.known[message.Id] = true
			answer.Stored++
			memory.passages = append(memory.passages, &pb.Passage{
				MessageId: message.Id, TurnId: turn.TurnId, SessionId: turn.SessionId, Text: string(message.Text),
			})
		}
	}
	return answer, nil
}

func (f *fakeServer) Status(_ context.Context, request *pb.StatusRequest) (*pb.StatusResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	memory := f.memories[request.Memory.Project]
	if memory == nil {
		return nil, status.Error(codes.NotFound, "no such memory")
	}
	memory.looks++
	reach := &pb.Reach{Sequence: uint64(len(memory.passages))}
	if memory.looks > 1 {
		reach.Indexed, reach.Embedded = reach.Sequence, reach.Sequence
	}
	return &pb.StatusResponse{EmbeddingModel: "fake", Memories: []*pb.MemoryStatus{{Reach: reach}}}, nil
}

func (f *fakeServer) Forget(_ context.Context, request *pb.ForgetRequest) (*pb.ForgetResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forgot = append(f.forgot, request.Memory.Project)
	delete(f.memories, request.Memory.Project)
	return new(pb.ForgetResponse), nil
}

func (f *fakeServer) Recall(_ context.Context, request *pb.RecallRequest) (*pb.RecallResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, request)
	if slices.Contains(request.WithoutParts, "when") {
		return nil, status.Error(codes.InvalidArgument, "without_parts: there is no part when")
	}
	memory := f.memories[request.Memory.Project]
	if memory == nil {
		return nil, status.Error(codes.NotFound, "no such memory")
	}
	passages := memory.rank(request)
	answer := &pb.RecallResponse{
		Passages: passages,
		Gate:     &pb.Gate{Passed: len(passages) > 0},
		Sources:  []*pb.SourceOutcome{{Source: "words", Outcome: pb.Outcome_OUTCOME_USED}},
	}
	if len(passages) > 0 {
		answer.Block = "block: " + passages[0].Text
	}
	return answer, nil
}

// rank lists each passage twice, as a server may that shows two slices of one
// message. Without the part spr it ranks the other way round.
func (m *fakeMemory) rank(request *pb.RecallRequest) []*pb.Passage {
	var list []*pb.Passage
	for _, p := range m.passages {
		shared := 0.
		for _, word := range strings.Fields(strings.ToLower(request.Query)) {
			if slices.Contains(strings.Fields(strings.ToLower(p.Text)), word) {
				shared++
			}
		}
		if slices.Contains(request.WithoutParts, "spr") {
			shared = -shared
		}
		if shared != 0 {
			scored := &pb.Passage{
				MessageId: p.MessageId, TurnId: p.TurnId, SessionId: p.SessionId, Text: p.Text, Score: shared,
				Parts: []*pb.Part{{Name: "spr", Value: shared, Weight: 1}, {Name: "extra", Value: 0, Weight: 1}},
			}
			list = append(list, scored, scored)
		}
	}
	slices.SortStableFunc(list, func(a, b *pb.Passage) int { return cmp.Compare(b.Score, a.Score) })
	return list
}
