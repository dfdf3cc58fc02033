package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

const (
	// startTime is how long a server may take to serve, stopTime to end.
	startTime = 30 * time.Second
	stopTime  = 20 * time.Second
	// saidBytes is how much of what a failing server said is shown.
	saidBytes = 8000
)

// A Server is a recalld that evals started, with a store of its own in a
// temporary folder.
type Server struct {
	folder string
	// arguments of serve beside those that every server gets. One with any keeps
	// the environment that says where models are.
	arguments []string
	command   *exec.Cmd
	ended     chan error
}

// buildServer builds recalld into a temporary folder; start runs it.
func buildServer(ctx context.Context) (*Server, error) {
	folder, err := os.MkdirTemp("", "evals-")
	if err != nil {
		return nil, err
	}
	server := &Server{folder: folder}
	build := exec.CommandContext(ctx, "go", "build", "-o", server.binary(), "recalld/cmd/recalld")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("build recalld: %w\n%s", err, out), server.remove())
	}
	return server, nil
}

func (s *Server) binary() string { return filepath.Join(s.folder, "recalld") }

// log is the file that holds what the server said last.
func (s *Server) log() string { return filepath.Join(s.folder, "log") }

// said gives the end of what the server said.
func (s *Server) said() []byte {
	said, _ := os.ReadFile(s.log())
	return said[max(0, len(said)-saidBytes):]
}

func (s *Server) root() string { return filepath.Join(s.folder, "store") }

// start runs the server and gives a client of it once it serves.
func (s *Server) start(ctx context.Context) (*Client, error) {
	log, err := os.Create(s.log())
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	s.command = exec.Command(s.binary(), append([]string{"serve", "--root", s.root(), "--consolidate", "off"}, s.arguments...)...)
	s.command.Env = withoutModels(os.Environ(), len(s.arguments) > 0)
	s.command.Stderr = log
	if err := s.command.Start(); err != nil {
		s.command = nil
		return nil, fmt.Errorf("start recalld: %w", err)
	}
	s.ended = make(chan error, 1)
	go func() { s.ended <- s.command.Wait() }()
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	client, err := s.awaitServing(ctx)
	if err != nil {
		s.stop()
		return nil, fmt.Errorf("start recalld: %w", err)
	}
	return client, nil
}

// withoutModels leaves out of an environment what would bring a model server
// or another store into the figures; the former stays if models are asked for.
func withoutModels(env []string, models bool) []string {
	kept := make([]string, 0, len(env))
	for _, entry := range env {
		if (models || !strings.HasPrefix(entry, "OLLAMA_")) && !strings.HasPrefix(entry, "RECALLD_") {
			kept = append(kept, entry)
		}
	}
	return kept
}

// awaitServing connects as soon as the health service says SERVING.
func (s *Server) awaitServing(ctx context.Context) (*Client, error) {
	for {
		select {
		case err := <-s.ended:
			s.ended <- err
			return nil, fmt.Errorf("it ended (%v): %s", err, s.said())
		default:
		}
		if client, ok := s.tryConnect(ctx); ok {
			return client, nil
		}
		if err := pause(ctx, time.Millisecond); err != nil {
			return nil, err
		}
	}
}

func (s *Server) tryConnect(ctx context.Context) (*Client, bool) {
	socket := filepath.Join(s.root(), "recalld.sock")
	if _, err := os.Stat(socket); err != nil {
		return nil, false
	}
	client, err := dial(socket, filepath.Join(s.root(), "token"))
	if err != nil {
		return nil, false
	}
	answer, err := healthpb.NewHealthClient(client.conn).Check(ctx, &healthpb.HealthCheckRequest{})
	if err != nil || answer.Status != healthpb.HealthCheckResponse_SERVING {
		_ = client.Close()
		return nil, false
	}
	return client, true
}

// explain adds to an error what the server said last, when the fault is its own.
func (s *Server) explain(err error) error {
	switch status.Code(err) {
	case codes.Internal, codes.Unavailable, codes.DataLoss:
		return fmt.Errorf("%w\nthe server said last: %s", err, s.said())
	}
	return err
}

// stop ends the server: politely, then not.
func (s *Server) stop() {
	if s.command == nil {
		return
	}
	_ = s.command.Process.Signal(syscall.SIGTERM)
	timer := time.NewTimer(stopTime)
	defer timer.Stop()
	select {
	case <-s.ended:
	case <-timer.C:
		_ = s.command.Process.Kill()
		<-s.ended
	}
	s.command = nil
}

// remove ends the server and deletes its folder.
func (s *Server) remove() error {
	s.stop()
	return os.RemoveAll(s.folder)
}
