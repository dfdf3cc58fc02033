package service_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	recalldv1 "recalld/proto/recalld/v1"
	"recalld/service"
)

// TestOtherUser connects as another user, who even has the token.
func TestOtherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can become another user")
	}
	r := start(t, service.Options{})
	s := service.New(r.store, service.Options{Token: token})
	// A name without a file: no mode of a file keeps the other user out.
	name := fmt.Sprintf("@recalld-test-%d", os.Getpid())
	listener, err := net.Listen("unix", name)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, listener) }()
	defer func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	}()

	for _, tt := range []struct {
		name string
		uid  int
		code codes.Code
	}{
		{"the same user", 0, codes.OK},
		{"another user", 65534, codes.Unauthenticated},
	} {
		t.Run(tt.name, func(t *testing.T) {
			conn := plain(t, "passthrough:///socket", grpc.WithAuthority("localhost"),
				grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return dialAs(tt.uid, name) }))
			ctx := metadata.AppendToOutgoingContext(context.Background(), "authorization", "Bearer "+token)
			_, err := recalldv1.NewAdminServiceClient(conn).Status(ctx, &recalldv1.StatusRequest{})
			wants(t, err, tt.code)
		})
	}
}

// dialAs connects from a thread that belongs to another user, and ends with it.
func dialAs(uid int, name string) (net.Conn, error) {
	type dialled struct {
		conn net.Conn
		err  error
	}
	done := make(chan dialled, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this goroutine
		if uid != 0 {
			if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), uintptr(uid), ^uintptr(0)); errno != 0 {
				done <- dialled{nil, errno}
				return
			}
		}
		conn, err := net.Dial("unix", name)
		done <- dialled{conn, err}
	}()
	d := <-done
	return d.conn, d.err
}
