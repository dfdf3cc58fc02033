package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	recalldv1 "recalld/proto/recalld/v1"
)

const (
	// maxResponseBytes is what a response may take: a page of history is 2 MB,
	// the largest block 256 KB, and a turn that fits no page comes whole.
	maxResponseBytes = 64 << 20
	// dialPatience and healthPatience are for a server that is there but busy.
	dialPatience   = 2 * time.Second
	healthPatience = 5 * time.Second
)

// A client talks to one server.
type client struct {
	conn     *grpc.ClientConn
	memories recalldv1.MemoriesServiceClient
	recall   recalldv1.RecallServiceClient
	admin    recalldv1.AdminServiceClient
}

func newClient(conn *grpc.ClientConn) *client {
	return &client{
		conn:     conn,
		memories: recalldv1.NewMemoriesServiceClient(conn),
		recall:   recalldv1.NewRecallServiceClient(conn),
		admin:    recalldv1.NewAdminServiceClient(conn),
	}
}

func (c *client) close() { c.conn.Close() }

// errNoServer says that no server runs for the store; errStopping that one
// runs and is about to end.
var (
	errNoServer = errors.New("no server runs")
	errStopping = errors.New("the server is stopping")
)

// connect gives a client of the store's server, starting one if none runs and
// replacing one that is older than this build, unless starting is not wanted.
func (a *app) connect(ctx context.Context) (*client, error) {
	c, err := a.reach(ctx)
	switch {
	case err == nil && a.noSpawn:
		return c, nil
	case err == nil:
		return a.replaceOlder(ctx, c)
	case !errors.Is(err, errNoServer) && !errors.Is(err, errStopping):
		return nil, err
	case a.noSpawn:
		return nil, fmt.Errorf("%w for the store in %s; recalld serve starts one, and so does this command without --no-spawn", errNoServer, a.root)
	}
	return a.start(ctx)
}

// reach gives a client of the server that runs. The error wraps errNoServer
// when none does.
func (a *app) reach(ctx context.Context) (*client, error) {
	socket, err := socketOf(a.root)
	if err != nil {
		return nil, err
	}
	if err := knock(ctx, socket); err != nil {
		return nil, err
	}
	dial := func(ctx context.Context, _ string) (net.Conn, error) { return dialSocket(ctx, socket) }
	if err := checkHealth(ctx, a.root, dial); err != nil {
		return nil, err
	}
	token, err := readToken(a.root)
	if err != nil {
		return nil, fmt.Errorf("%w; recalld stop and a new start make one", err)
	}
	conn, err := dialGRPC(dial, grpc.WithPerRPCCredentials(bearer{token}))
	if err != nil {
		return nil, err
	}
	return newClient(conn), nil
}

// knock tells whether anybody listens at a socket.
func knock(ctx context.Context, socket string) error {
	if socket == "" {
		return errNoServer
	}
	// Before the rights are looked at: where nobody listens, the start of a
	// server makes the folder private or says why not.
	if _, err := os.Lstat(socket); errors.Is(err, fs.ErrNotExist) {
		return errNoServer
	}
	// A connection to whoever listens in a folder that others can write to
	// would hand them the token.
	if err := checkPrivate(filepath.Dir(socket)); err != nil {
		return fmt.Errorf("look for the server: %w", err)
	}
	conn, err := dialSocket(ctx, socket)
	switch {
	case err == nil:
		conn.Close()
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("look for the server: %w", ctx.Err())
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("connect to %s: the socket belongs to another user", socket)
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("the server at %s has too much to do; try again", socket)
	}
	return errNoServer
}

func dialSocket(ctx context.Context, socket string) (net.Conn, error) {
	d := net.Dialer{Timeout: dialPatience}
	return d.DialContext(ctx, "unix", socket)
}

type dialer = func(context.Context, string) (net.Conn, error)

// dialGRPC makes a connection that is opened by its first call. The target is
// only a name: the dialer knows the way.
func dialGRPC(dial dialer, o ...grpc.DialOption) (*grpc.ClientConn, error) {
	o = append(o,
		grpc.WithContextDialer(dial),
		grpc.WithAuthority("localhost"),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxResponseBytes)),
	)
	conn, err := grpc.NewClient("passthrough:///recalld", o...)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return conn, nil
}

// checkHealth asks, without the token, whether a recalld serves there.
func checkHealth(ctx context.Context, root string, dial dialer) error {
	conn, err := dialGRPC(dial)
	if err != nil {
		return err
	}
	defer conn.Close()
	limited, cancel := context.WithTimeout(ctx, healthPatience)
	defer cancel()
	health, err := healthpb.NewHealthClient(conn).Check(limited, &healthpb.HealthCheckRequest{})
	switch code := status.Code(err); {
	case ctx.Err() != nil:
		return fmt.Errorf("look for the server: %w", ctx.Err())
	case err == nil && health.GetStatus() == healthpb.HealthCheckResponse_SERVING:
		return nil
	case err == nil, code == codes.Unavailable:
		return errStopping
	case code == codes.DeadlineExceeded:
		return fmt.Errorf("the server of %s does not answer within %v; it may be suspended: end it (the process id is in %s) and try again",
			root, healthPatience, filepath.Join(root, lockName))
	}
	return fmt.Errorf("what listens at the socket of %s is no recalld server: %w", root, err)
}

// replaceOlder ends a server of an older build and starts one of this build.
func (a *app) replaceOlder(ctx context.Context, c *client) (*client, error) {
	mine := buildID()
	if recorded, err := readBuild(a.root); err == nil && !isNewer(mine, recorded) {
		return c, nil // as nearly always; Status costs more, the more memories there are
	}
	limited, cancel := context.WithTimeout(ctx, healthPatience)
	defer cancel()
	running, err := c.admin.Status(limited, &recalldv1.StatusRequest{})
	if err != nil || !isNewer(mine, running.GetBuild()) {
		// Whoever cannot tell about itself answers the real question, or says
		// why not.
		return c, nil
	}
	if _, err := c.admin.Stop(ctx, &recalldv1.StopRequest{}); err != nil {
		return c, nil
	}
	c.close()
	return a.start(ctx)
}
