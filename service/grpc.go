package service

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"
)

// NewGRPC returns a gRPC server with everything a recalld server has: limits,
// door, interceptors, services, reflection, and health, which is SERVING until
// it is told otherwise; Serve tells it of the journal. It serves nothing yet.
//
// Of the interceptors the log is outermost and recovery innermost, so that a
// panic is logged as the Internal error the client gets. The door comes before
// them all (door.go).
func (s *Server) NewGRPC() (*grpc.Server, *health.Server) {
	g := grpc.NewServer(
		grpc.Creds(newTransport(maxConnections)),
		grpc.InTapHandle(newDoor(s.options, s.log).admit),
		grpc.ChainUnaryInterceptor(s.logUnary, s.admitUnary, deadlineUnary, mapUnary, recoverUnary),
		grpc.ChainStreamInterceptor(s.logStream, s.admitStream, deadlineStream, mapStream, recoverStream),
		grpc.MaxRecvMsgSize(maxRequestBytes),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.WaitForHandlers(true),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionIdle: 30 * time.Minute,
			Time:              time.Minute,
			Timeout:           20 * time.Second,
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{
			MinTime:             10 * time.Second,
			PermitWithoutStream: true,
		}),
	)
	s.Register(g)
	h := health.NewServer()
	healthpb.RegisterHealthServer(g, h)
	reflection.Register(g)
	return g, h
}

// Serve runs the server (see Run) and answers calls that come in on the
// listeners until ctx is done. Health then says NOT_SERVING, calls under way may
// finish within Options.Drain and are cancelled after it. The listeners are
// closed when it returns; the error is that of a listener that failed, or of a
// schedule that cannot be used.
func (s *Server) Serve(ctx context.Context, listeners ...net.Listener) error {
	if s.scheduleErr != nil {
		closeAll(listeners)
		return s.scheduleErr
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	ran := make(chan error, 1)
	go func() { ran <- s.Run(running) }()

	g, h := s.NewGRPC()
	watched := make(chan struct{})
	go func() { defer close(watched); s.keepHealth(running, h) }()
	group, ending := errgroup.WithContext(ctx)
	for _, l := range listeners {
		group.Go(func() error {
			// Stopped before it began is stopped.
			if err := g.Serve(l); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
				return fmt.Errorf("serve %s: %w", l.Addr(), err)
			}
			return nil
		})
	}
	<-ending.Done()
	h.Shutdown()
	drain(g, s.options.Drain)
	err := group.Wait()
	// Memories are closed only now that no call can use one.
	stop()
	<-ran
	<-watched
	return err
}

func closeAll(listeners []net.Listener) {
	for _, l := range listeners {
		_ = l.Close() // nobody was ever answered on it
	}
}

// drain stops g once its calls are answered, or cancels those that are not
// within patience.
func drain(g *grpc.Server, patience time.Duration) {
	done := make(chan struct{})
	go func() {
		g.GracefulStop()
		close(done)
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		g.Stop()
		<-done
	}
}
