package service_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"recalld/ledger"
	recalldv1 "recalld/proto/recalld/v1"
	"recalld/service"
)

// probe is a service of the tests: its handlers do what the test says.
type probe struct {
	unary  func(ctx context.Context) error
	stream func(stream grpc.ServerStream) error
}

const probeUnary, probeStream = "/recalld.test.Probe/Unary", "/recalld.test.Probe/Stream"

func (p *probe) register(g *grpc.Server) {
	g.RegisterService(&grpc.ServiceDesc{
		ServiceName: "recalld.test.Probe",
		HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{
			MethodName: "Unary",
			Handler: func(_ any, ctx context.Context, dec func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
				in := new(recalldv1.StopRequest)
				if err := dec(in); err != nil {
					return nil, err
				}
				handle := func(ctx context.Context, _ any) (any, error) { return &recalldv1.StopResponse{}, p.unary(ctx) }
				return interceptor(ctx, in, &grpc.UnaryServerInfo{FullMethod: probeUnary}, handle)
			},
		}},
		Streams: []grpc.StreamDesc{{
			StreamName: "Stream", ServerStreams: true,
			Handler: func(_ any, stream grpc.ServerStream) error { return p.stream(stream) },
		}},
	}, p)
}

// startProbe serves p with all that surrounds the real services.
func startProbe(t *testing.T, p *probe) (conn *grpc.ClientConn, log *lines, socket string) {
	t.Helper()
	store, err := ledger.OpenStore(t.TempDir(), ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	log = new(lines)
	s := service.New(store, service.Options{Token: token, Log: slog.New(slog.NewTextHandler(log, nil))})
	g, _ := s.NewGRPC()
	p.register(g)
	socket = filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- g.Serve(listener) }()
	conn = dial(t, socket, token)
	t.Cleanup(func() {
		_ = conn.Close()
		g.Stop()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return conn, log, socket
}

// TestPanic: the client learns nothing of a panic, the log its stack, neither
// what it was about; the next call is answered.
func TestPanic(t *testing.T) {
	what := "the secret words"
	calm := false
	p := &probe{
		unary: func(context.Context) error {
			if calm {
				return nil
			}
			panic(what)
		},
		stream: func(grpc.ServerStream) error { panic(errors.New(what)) },
	}
	conn, log, _ := startProbe(t, p)
	err := conn.Invoke(context.Background(), probeUnary, &recalldv1.StopRequest{}, &recalldv1.StopResponse{})
	wants(t, err, codes.Internal, "internal error")
	stream, err := conn.NewStream(context.Background(), &grpc.StreamDesc{ServerStreams: true}, probeStream)
	if err == nil {
		err = stream.RecvMsg(&recalldv1.StopResponse{})
	}
	wants(t, err, codes.Internal, "internal error")
	calm = true
	if err := conn.Invoke(context.Background(), probeUnary, &recalldv1.StopRequest{}, &recalldv1.StopResponse{}); err != nil {
		t.Errorf("the call after a panic: %v", err)
	}
	for _, want := range []string{"code=Internal", "life_test.go", "method=" + probeStream} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, log)
		}
	}
	if strings.Contains(log.String(), "secret") {
		t.Errorf("the log holds what was panicked with:\n%s", log)
	}
}

// TestOverload: a call beyond the most that may be under way is refused at
// once; when one has ended there is room again.
func TestOverload(t *testing.T) {
	const most = 256
	entered, leave := make(chan bool, most), make(chan bool)
	p := &probe{unary: func(context.Context) error { entered <- true; <-leave; return nil }}
	first, _, socket := startProbe(t, p)
	conns := []*grpc.ClientConn{first, dialOnce(t, socket), dialOnce(t, socket)} // 128 streams each
	done := make(chan error, most)
	for i := range most {
		go func() {
			done <- conns[i%2].Invoke(context.Background(), probeUnary, &recalldv1.StopRequest{}, &recalldv1.StopResponse{})
		}()
	}
	for range most {
		<-entered
	}
	err := conns[2].Invoke(context.Background(), probeUnary, &recalldv1.StopRequest{}, &recalldv1.StopResponse{})
	wants(t, err, codes.ResourceExhausted, "calls", "256")
	close(leave)
	for range most {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if err := conns[2].Invoke(context.Background(), probeUnary, &recalldv1.StopRequest{}, &recalldv1.StopResponse{}); err != nil {
		t.Errorf("after the rush: %v", err)
	}
}

// TestDefaultDeadline: Recall and Search get 2 s when the client set no
// deadline, others more; one that is set stays.
func TestDefaultDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tests := []struct {
			method string
			set    time.Duration
			want   time.Duration
		}{
			{recalldv1.RecallService_Recall_FullMethodName, 0, 2 * time.Second},
			{recalldv1.RecallService_Search_FullMethodName, 0, 2 * time.Second},
			{recalldv1.MemoriesService_Append_FullMethodName, 0, time.Minute},
			{recalldv1.RecallService_Recall_FullMethodName, 50 * time.Millisecond, 50 * time.Millisecond},
			{recalldv1.RecallService_Recall_FullMethodName, time.Hour, time.Hour},
		}
		for _, tt := range tests {
			ctx := t.Context()
			if tt.set > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, tt.set)
				defer cancel()
			}
			_, err := service.DeadlineUnary(ctx, nil, &grpc.UnaryServerInfo{FullMethod: tt.method}, func(ctx context.Context, _ any) (any, error) {
				deadline, ok := ctx.Deadline()
				if left := time.Until(deadline); !ok || left != tt.want {
					t.Errorf("%s with %v has %v left, want %v", tt.method, tt.set, left, tt.want)
				}
				return nil, nil
			})
			if err != nil {
				t.Error(err)
			}
		}
	})
}

// ignored are goroutines of libraries that last as long as the process.
func ignored() []goleak.Option {
	return []goleak.Option{
		goleak.IgnoreCurrent(),
		goleak.IgnoreAnyFunction("github.com/blevesearch/bleve_index_api.AnalysisWorker"),
	}
}

// TestNothingIsLeft stops a server that worked: no goroutine is left, nobody
// else can read a file, and what it held is there for the next one.
func TestNothingIsLeft(t *testing.T) {
	before := ignored()
	root := t.TempDir()
	r := startIn(t, root, service.Options{OpenMemories: 2})
	for _, project := range []string{"a", "b", "c"} {
		r.append(byKey("x", project), said("s"+project, "t", "words of "+project))
		r.ask(byKey("x", project), "words")
	}
	r.stop()
	goleak.VerifyNone(t, before...)

	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		// In a private folder the mode of a view's file lets nobody in.
		mode, view := info.Mode().Perm(), strings.Contains(path, "/views/")
		if path != root && mode&0o077 != 0 && (entry.IsDir() || !view) {
			t.Errorf("%s has mode %v", path, mode)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	r = startIn(t, root, service.Options{})
	if got := r.ask(byKey("x", "b"), "words"); len(got.Passages) != 1 {
		t.Errorf("after a restart there are %d passages, want 1", len(got.Passages))
	}
}

// TestGracefulStop: a call under way is answered, health says NOT_SERVING, and
// Stop is answered too.
func TestGracefulStop(t *testing.T) {
	// Who watches health keeps a stream open; it is cut off after the drain.
	r := start(t, service.Options{Drain: 200 * time.Millisecond})
	r.append(byKey("a", "p"), said("s", "1", "words"))
	watch, err := healthpb.NewHealthClient(dialOnce(t, r.socket)).Watch(context.Background(), &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := watch.Recv(); err != nil || got.Status != healthpb.HealthCheckResponse_SERVING {
		t.Fatalf("health = %v, %v", got, err)
	}
	resp, err := r.admin.Stop(context.Background(), &recalldv1.StopRequest{})
	if err != nil || int(resp.ProcessId) != os.Getpid() {
		t.Errorf("Stop = %v, %v", resp, err)
	}
	if got, err := watch.Recv(); err != nil || got.Status != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Errorf("after Stop health = %v, %v", got, err)
	}
	r.stop()
	if _, err := net.Dial("unix", r.socket); err == nil {
		t.Error("the server still listens")
	}
}

func dialOnce(t *testing.T, socket string) *grpc.ClientConn {
	conn := dial(t, socket, token)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// TestLastActivity: calls count, health and strangers do not.
func TestLastActivity(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	clock := make(chan time.Time, 1)
	clock <- now
	read := func() time.Time { t := <-clock; clock <- t; return t }
	advance := func(d time.Duration) { t := <-clock; clock <- t.Add(d) }
	r := start(t, service.Options{Now: read})
	advance(time.Minute)
	r.append(byKey("a", "p"), said("s", "1", "words"))
	advance(time.Minute)
	conn := plain(t, "unix:"+r.socket)
	if _, err := healthpb.NewHealthClient(conn).Check(context.Background(), &healthpb.HealthCheckRequest{}); err != nil {
		t.Fatal(err)
	}
	_, err := recalldv1.NewAdminServiceClient(conn).Status(context.Background(), &recalldv1.StatusRequest{})
	wants(t, err, codes.Unauthenticated)
	if got := r.server.LastActivity(); !got.Equal(now.Add(time.Minute)) {
		t.Errorf("LastActivity = %v, want %v", got, now.Add(time.Minute))
	}
}

// TestLog: one line per request, with what was skipped and without what was said.
func TestLog(t *testing.T) {
	r := start(t, service.Options{})
	r.append(byKey("a", "p"), said("s", "1", "the canary words"))
	r.ask(byKey("a", "p"), "canary words")
	_, err := r.recall.Recall(context.Background(), &recalldv1.RecallRequest{Memory: byKey("a", "p"), Query: "canary", Limit: 99})
	wants(t, err, codes.InvalidArgument)
	r.stop()
	log := r.log.String()
	if n := strings.Count(log, "msg=call"); n != 3 {
		t.Errorf("%d lines, want one for each of 3 calls:\n%s", n, log)
	}
	for _, want := range []string{"method=/recalld.v1.RecallService/Recall", "code=OK", "code=InvalidArgument", "took="} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %q:\n%s", want, log)
		}
	}
	if strings.Contains(log, "canary") {
		t.Errorf("the log holds what was said:\n%s", log)
	}
}
