package service_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	recalldv1 "recalld/proto/recalld/v1"
	"recalld/service"
)

// plain connects without a token of its own.
func plain(t *testing.T, target string, o ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(target, append(o, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// TestDoor tries every method of every service with every kind of wrong token:
// the answer is the same for all, whether the memory exists or not.
func TestDoor(t *testing.T) {
	r := start(t, service.Options{})
	r.append(byKey("a", "p"), said("s", "1", "words"))
	conn := plain(t, "unix:"+r.socket)

	tokens := []struct {
		name string
		md   metadata.MD
		code codes.Code
	}{
		{"right", metadata.Pairs("authorization", "Bearer "+token), codes.OK},
		{"right, scheme in lower case", metadata.Pairs("authorization", "bearer "+token), codes.OK},
		{"none", metadata.MD{}, codes.Unauthenticated},
		{"empty", metadata.Pairs("authorization", ""), codes.Unauthenticated},
		{"no scheme", metadata.Pairs("authorization", token), codes.Unauthenticated},
		{"other scheme", metadata.Pairs("authorization", "Basic "+token), codes.Unauthenticated},
		{"prefix", metadata.Pairs("authorization", "Bearer "+token[:15]), codes.Unauthenticated},
		{"longer", metadata.Pairs("authorization", "Bearer "+token+"0"), codes.Unauthenticated},
		{"wrong", metadata.Pairs("authorization", "Bearer "+strings.Repeat("0", 16)), codes.Unauthenticated},
		{"two", metadata.Pairs("authorization", "Bearer "+token, "authorization", "Bearer "+token), codes.Unauthenticated},
		{"in another header", metadata.Pairs("token", token), codes.Unauthenticated},
		{"with an origin", metadata.Pairs("authorization", "Bearer "+token, "origin", "http://localhost"), codes.PermissionDenied},
	}
	client := recalldv1.NewRecallServiceClient(conn)
	for _, tt := range tokens {
		for _, project := range []string{"p", "unknown"} {
			ctx := metadata.NewOutgoingContext(context.Background(), tt.md)
			_, err := client.Recall(ctx, &recalldv1.RecallRequest{Memory: byKey("a", project), Query: "words"})
			want := tt.code
			if want == codes.OK && project == "unknown" {
				want = codes.NotFound
			}
			if got := status.Code(err); got != want {
				t.Errorf("token %s, project %s: code %v, want %v", tt.name, project, got, want)
			}
		}
	}

	// Every method is behind the door, and so is reflection.
	for _, desc := range []grpc.ServiceDesc{
		recalldv1.MemoriesService_ServiceDesc, recalldv1.RecallService_ServiceDesc, recalldv1.AdminService_ServiceDesc,
		recalldv1.ContextService_ServiceDesc, recalldv1.JournalService_ServiceDesc, reflectionpb.ServerReflection_ServiceDesc,
	} {
		methods := []string{}
		for _, m := range desc.Methods {
			methods = append(methods, m.MethodName)
		}
		for _, m := range desc.Streams {
			methods = append(methods, m.StreamName)
		}
		for _, m := range methods {
			err := conn.Invoke(context.Background(), "/"+desc.ServiceName+"/"+m, &recalldv1.StopRequest{}, &recalldv1.StopResponse{})
			if status.Code(err) != codes.Unauthenticated {
				t.Errorf("%s/%s without a token: %v", desc.ServiceName, m, err)
			}
		}
	}

	answer, err := healthpb.NewHealthClient(conn).Check(context.Background(), &healthpb.HealthCheckRequest{})
	if err != nil || answer.Status != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("health without a token = %v, %v", answer, err)
	}
	if strings.Contains(r.log.String(), token) {
		t.Error("the log holds the token")
	}
	if !strings.Contains(r.log.String(), "code=Unauthenticated") {
		t.Error("the log does not tell of those who were refused")
	}
}

// TestDoorWithoutToken: a server that was given no token lets nobody in.
func TestDoorWithoutToken(t *testing.T) {
	r := start(t, service.Options{Token: "x"})
	s := service.New(r.store, service.Options{})
	target := serve(t, s)
	for _, token := range []string{"", "Bearer ", "Bearer"} {
		ctx := metadata.AppendToOutgoingContext(context.Background(), "authorization", token)
		_, err := recalldv1.NewAdminServiceClient(plain(t, target)).Status(ctx, &recalldv1.StatusRequest{})
		wants(t, err, codes.Unauthenticated)
	}
}

// serve runs s on the loopback until the test ends.
func serve(t *testing.T, s *service.Server) (target string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return listener.Addr().String()
}

// TestAuthorities: a web page that made its name point at the loopback is
// refused, with or without the token.
func TestAuthorities(t *testing.T) {
	r := start(t, service.Options{})
	s := service.New(r.store, service.Options{Token: token, Authorities: []string{"memory.example"}, Socket: "/run/recalld.sock"})
	target := serve(t, s)
	_, port, err := net.SplitHostPort(target)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		authority string
		code      codes.Code
	}{
		{"localhost", codes.OK}, {"localhost:" + port, codes.OK}, {"127.0.0.1:" + port, codes.OK}, {"[::1]:" + port, codes.OK}, {"::1", codes.OK},
		{"memory.example", codes.OK}, {"memory.example:443", codes.OK}, {"%2Frun%2Frecalld.sock", codes.OK},
		{"evil.example", codes.PermissionDenied}, {"evil.example:" + port, codes.PermissionDenied}, {"localhost.evil.example", codes.PermissionDenied},
		{"evil.localhost:80", codes.PermissionDenied}, {"127.0.0.1.evil.example", codes.PermissionDenied}, {"192.168.1.1", codes.PermissionDenied},
	}
	for _, tt := range tests {
		conn := plain(t, target, grpc.WithAuthority(tt.authority))
		ctx := metadata.AppendToOutgoingContext(context.Background(), "authorization", "Bearer "+token)
		_, err := recalldv1.NewAdminServiceClient(conn).Status(ctx, &recalldv1.StatusRequest{})
		if got := status.Code(err); got != tt.code {
			t.Errorf("authority %s: %v, want %v", tt.authority, err, tt.code)
		}
		_, err = healthpb.NewHealthClient(conn).Check(context.Background(), &healthpb.HealthCheckRequest{})
		if got := status.Code(err); got != tt.code {
			t.Errorf("health under authority %s: %v, want %v", tt.authority, err, tt.code)
		}
	}
}

// TestConnectionCap: the 257th connection is closed at once, and there is room
// again when another one goes.
func TestConnectionCap(t *testing.T) {
	r := start(t, service.Options{})
	r.append(byKey("a", "p"), said("s", "1", "words")) // its connection is one of them
	var open []net.Conn
	for range 255 {
		c, err := net.Dial("unix", r.socket)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if !greeted(t, c) {
			t.Fatalf("connection %d was refused", len(open)+2)
		}
		open = append(open, c)
	}
	over, err := net.Dial("unix", r.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer over.Close()
	if greeted(t, over) {
		t.Error("a connection over the limit was taken")
	}
	if got := r.ask(byKey("a", "p"), "words"); len(got.Passages) != 1 {
		t.Errorf("a client that was there gets %d passages", len(got.Passages))
	}
	if err := open[0].Close(); err != nil {
		t.Fatal(err)
	}
	for {
		c, err := net.Dial("unix", r.socket)
		if err != nil {
			t.Fatal(err)
		}
		ok := greeted(t, c)
		_ = c.Close()
		if ok {
			return
		}
	}
}

// greeted reports whether the server begins to speak HTTP/2 on a connection.
func greeted(t *testing.T, c net.Conn) bool {
	t.Helper()
	if _, err := fmt.Fprint(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+"\x00\x00\x00\x04\x00\x00\x00\x00\x00"); err != nil {
		return false
	}
	if err := c.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	n, _ := c.Read(make([]byte, 9))
	return n > 0
}

// TestHTTP1IsRefused: nothing but gRPC is spoken on the port.
func TestHTTP1IsRefused(t *testing.T) {
	r := start(t, service.Options{})
	c, err := net.Dial("unix", r.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "POST /recalld.v1.RecallService/Recall HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\nContent-Length: 0\r\n\r\n")
	if err := c.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1000)
	n, _ := c.Read(b)
	if strings.HasPrefix(string(b[:n]), "HTTP/1.1 200") {
		t.Errorf("the server answered %q", b[:n])
	}
}
