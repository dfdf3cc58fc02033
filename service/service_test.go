package service_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"recalld/ledger"
	recalldv1 "recalld/proto/recalld/v1"
	"recalld/service"
)

const token = "0123456789abcdef"

// A rig is a server on a Unix socket and a client of it. The ledger and the
// views are real ones.
type rig struct {
	t        testing.TB
	store    *ledger.Store
	server   *service.Server
	root     string
	socket   string
	log      *lines
	memories recalldv1.MemoriesServiceClient
	recall   recalldv1.RecallServiceClient
	admin    recalldv1.AdminServiceClient
	stop     func() // ends the server and waits for it
}

// start runs a server on a fresh store until the test ends.
func start(t testing.TB, o service.Options) *rig {
	t.Helper()
	return startIn(t, t.TempDir(), o)
}

func startIn(t testing.TB, root string, o service.Options) *rig {
	t.Helper()
	store, err := ledger.OpenStore(root, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, store: store, root: root, log: new(lines), socket: filepath.Join(t.TempDir(), "s")}
	if o.Token == "" {
		o.Token = token
	}
	o.Log = slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	o.Root, o.Socket = root, r.socket
	ctx, cancel := context.WithCancel(context.Background())
	if o.Stop == nil {
		o.Stop = cancel
	}
	r.server = service.New(store, o)
	listener, err := net.Listen("unix", r.socket)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- r.server.Serve(ctx, listener) }()
	conn := dial(t, r.socket, token)
	r.memories = recalldv1.NewMemoriesServiceClient(conn)
	r.recall = recalldv1.NewRecallServiceClient(conn)
	r.admin = recalldv1.NewAdminServiceClient(conn)
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
		if err := conn.Close(); err != nil {
			t.Errorf("close connection: %v", err)
		}
		if err := store.Close(); err != nil {
			t.Errorf("close store: %v", err)
		}
	})
	t.Cleanup(r.stop)
	return r
}

// dial connects to a socket with a token in every call.
func dial(t testing.TB, socket, token string) *grpc.ClientConn {
	t.Helper()
	with := func(ctx context.Context) context.Context {
		return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	}
	conn, err := grpc.NewClient("unix:"+socket,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20), grpc.MaxCallSendMsgSize(64<<20)),
		grpc.WithUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			return invoke(with(ctx), method, req, reply, cc, opts...)
		}),
		grpc.WithStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			return streamer(with(ctx), desc, cc, method, opts...)
		}),
	)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// lines collects a log.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func byKey(agent, project string) *recalldv1.MemoryRef {
	return &recalldv1.MemoryRef{Agent: agent, Project: project}
}

func byID(id string) *recalldv1.MemoryRef { return &recalldv1.MemoryRef{Id: id} }

// said is a finished turn of one message of the person.
func said(session, turn, text string) *recalldv1.NewTurn {
	return &recalldv1.NewTurn{
		SessionId: session, TurnId: turn, Status: recalldv1.TurnStatus_TURN_STATUS_FINISHED,
		Messages: []*recalldv1.NewMessage{{
			Id: session + "/" + turn, Kind: recalldv1.Kind_KIND_USER, Speaker: "ada", Text: []byte(text),
		}},
	}
}

// append stores turns or fails the test.
func (r *rig) append(ref *recalldv1.MemoryRef, turns ...*recalldv1.NewTurn) *recalldv1.AppendResponse {
	r.t.Helper()
	resp, err := r.memories.Append(context.Background(), &recalldv1.AppendRequest{Memory: ref, Turns: turns})
	if err != nil {
		r.t.Fatalf("Append: %v", err)
	}
	return resp
}

// ask recalls whatever comes closest or fails the test.
func (r *rig) ask(ref *recalldv1.MemoryRef, query string) *recalldv1.RecallResponse {
	r.t.Helper()
	return r.recallAs(&recalldv1.RecallRequest{Memory: ref, Query: query})
}

func (r *rig) recallAs(req *recalldv1.RecallRequest) *recalldv1.RecallResponse {
	r.t.Helper()
	req.Relevance = recalldv1.Relevance_RELEVANCE_ALWAYS
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	resp, err := r.recall.Recall(ctx, req)
	if err != nil {
		r.t.Fatalf("Recall(%q): %v", req.Query, err)
	}
	return resp
}

// messages is how many messages a memory holds.
func (r *rig) messages(id string) uint64 {
	r.t.Helper()
	list, err := r.memories.List(context.Background(), &recalldv1.ListRequest{})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, m := range list.Memories {
		if m.Id == id {
			return m.Messages
		}
	}
	return 0
}

// wants fails the test unless err has the code and its message holds the words.
func wants(t testing.TB, err error, code codes.Code, words ...string) {
	t.Helper()
	if got := status.Code(err); got != code {
		t.Fatalf("error %v has code %v, want %v", err, got, code)
	}
	for _, w := range words {
		if !bytes.Contains([]byte(status.Convert(err).Message()), []byte(w)) {
			t.Errorf("message %q does not name %q", status.Convert(err).Message(), w)
		}
	}
}

func ids(passages []*recalldv1.Passage) []string {
	var list []string
	for _, p := range passages {
		list = append(list, p.MessageId)
	}
	return list
}

func TestAppendAndRecall(t *testing.T) {
	r := start(t, service.Options{})
	ref := byKey("claude-code", "atlas")
	resp := r.append(ref,
		&recalldv1.NewTurn{
			SessionId: "s1", SessionTitle: "Storage", TurnId: "t1", Status: recalldv1.TurnStatus_TURN_STATUS_FINISHED,
			Messages: []*recalldv1.NewMessage{
				{Id: "m1", Kind: recalldv1.Kind_KIND_USER, Speaker: "ada", Text: []byte("which database shall the importer use?"),
					Time: at("2026-03-02T09:11:12Z", "Europe/Berlin")},
				{Id: "m2", Kind: recalldv1.Kind_KIND_REPLY, Speaker: "agent", Text: []byte("SQLite, since it needs no server")},
			},
		},
		said("s1", "t2", "the weather is nice today"),
	)
	if resp.Stored != 3 || resp.MemoryId != ledger.MemoryID(ledger.MemoryKey{Agent: "claude-code", Project: "atlas"}) {
		t.Fatalf("Append = %v", resp)
	}
	got := r.ask(ref, "database of the importer")
	// The answer to a question comes before the question that holds the words.
	if len(got.Passages) < 2 || got.Passages[0].MessageId != "m2" || got.Passages[1].MessageId != "m1" {
		t.Fatalf("passages %v, want m2 and m1 first", ids(got.Passages))
	}
	p := got.Passages[1]
	if p.Text != "which database shall the importer use?" || !p.Exact || p.SessionTitle != "Storage" ||
		p.TurnId != "t1" || p.SessionId != "s1" || p.Speaker != "ada" || p.Kind != recalldv1.Kind_KIND_USER ||
		p.Time.GetZone() != "Europe/Berlin" || p.NextMessageId != "m2" || p.Range.GetEnd() != uint64(len(p.Text)) || len(p.Parts) == 0 {
		t.Errorf("passage %v", p)
	}
	if got.Snapshot.GetSequence() != 3 || got.Snapshot.GetIndexed() != 3 {
		t.Errorf("snapshot %v, want 3 of 3", got.Snapshot)
	}
	for _, want := range []string{`* user "ada", 2026-03-02T10:11:12+01:00 (Europe/Berlin), in "Storage", message "m1" bytes 0-38`, "| which database"} {
		if !bytes.Contains([]byte(got.Block), []byte(want)) {
			t.Errorf("block lacks %q:\n%s", want, got.Block)
		}
	}
}

// TestFoundByTheNextRecall: an acknowledged turn is there, every time.
func TestFoundByTheNextRecall(t *testing.T) {
	r := start(t, service.Options{})
	ref := byKey("a", "p")
	for i := range 200 {
		word := fmt.Sprintf("canary%04dx", i)
		r.append(ref, said("s", fmt.Sprint(i), "we talked about "+word+" at length"))
		if got := r.ask(ref, word); len(got.Passages) == 0 || got.Passages[0].MessageId != fmt.Sprintf("s/%d", i) {
			t.Fatalf("turn %d is not found by the next recall: %v", i, ids(got.Passages))
		}
	}
}
