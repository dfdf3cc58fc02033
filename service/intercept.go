package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	recalldv1 "recalld/proto/recalld/v1"
)

// A note is what a handler tells the line that logs its call.
type note struct {
	mu      sync.Mutex // guards skipped
	skipped []string
}

type noteKey struct{}

// skipped puts into the log line of the call what was left out of its answer:
// names of sources and outcomes, never text.
func skipped(ctx context.Context, what string) {
	if n, ok := ctx.Value(noteKey{}).(*note); ok {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.skipped = append(n.skipped, what)
	}
}

func (s *Server) logUnary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	n := new(note)
	done := s.logCall(info.FullMethod, n)
	resp, err := next(context.WithValue(ctx, noteKey{}, n), req)
	done(ctx, err)
	return resp, err
}

func (s *Server) logStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	n := new(note)
	done := s.logCall(info.FullMethod, n)
	err := next(srv, &streamWith{stream, context.WithValue(stream.Context(), noteKey{}, n)})
	done(stream.Context(), err)
	return err
}

// logCall starts the clock of a call; the function it returns writes its line:
// method, duration, code and what was skipped. A cause that the client does not
// get to see is in it too; errors hold no text.
func (s *Server) logCall(method string, n *note) (done func(context.Context, error)) {
	if isHealth(method) {
		return func(context.Context, error) {}
	}
	end := s.begin()
	began := time.Now()
	return func(ctx context.Context, err error) {
		end()
		code := status.Code(err)
		s.metrics.call(method, code, time.Since(began))
		attrs := []slog.Attr{
			slog.String("method", method),
			slog.Duration("took", time.Since(began)),
			slog.String("code", code.String()),
		}
		n.mu.Lock()
		if len(n.skipped) > 0 {
			attrs = append(attrs, slog.String("skipped", strings.Join(n.skipped, ",")))
		}
		n.mu.Unlock()
		level := slog.LevelInfo
		if code == codes.Internal || code == codes.DataLoss || code == codes.Unavailable {
			level = slog.LevelError
			attrs = append(attrs, causeAttrs(errors.Unwrap(err))...)
		}
		s.log.LogAttrs(ctx, level, "call", attrs...)
	}
}

// causeAttrs are the cause of a failure, if there is one, and the stack if it
// was a panic.
func causeAttrs(cause error) []slog.Attr {
	if cause == nil {
		return nil
	}
	attrs := []slog.Attr{slog.String("cause", cause.Error())}
	var p *panicError
	if errors.As(cause, &p) {
		attrs = append(attrs, slog.String("stack", string(p.stack)))
	}
	return attrs
}

// admit refuses a call when too many are under way.
func (s *Server) admit(method string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running > maxCalls && !isHealth(method) {
		return status.Errorf(codes.ResourceExhausted, "calls: too many at once, limit %d", maxCalls)
	}
	return nil
}

func (s *Server) admitUnary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if err := s.admit(info.FullMethod); err != nil {
		return nil, err
	}
	return next(ctx, req)
}

func (s *Server) admitStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if err := s.admit(info.FullMethod); err != nil {
		return err
	}
	return next(srv, stream)
}

// deadlineUnary gives a call a deadline when its client set none.
func deadlineUnary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	limit := callDeadline
	switch info.FullMethod {
	case recalldv1.RecallService_Recall_FullMethodName, recalldv1.RecallService_Search_FullMethodName,
		recalldv1.ContextService_PreTurn_FullMethodName:
		limit = recallDeadline
	}
	ctx, cancel := orDeadline(ctx, limit)
	defer cancel()
	return next(ctx, req)
}

// deadlineStream leaves the streams of others (health, reflection) alone: they
// last as long as their client.
func deadlineStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if !strings.HasPrefix(info.FullMethod, "/recalld.") {
		return next(srv, stream)
	}
	ctx, cancel := orDeadline(stream.Context(), streamDeadline)
	defer cancel()
	return next(srv, &streamWith{stream, ctx})
}

func orDeadline(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, limit)
}

// mapUnary and mapStream give errors their code.
func mapUnary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	resp, err := next(ctx, req)
	return resp, mapError(err)
}

func mapStream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	return mapError(next(srv, stream))
}

// A panicError is a panic that was caught. What was panicked with may hold
// text, so only its type is kept, and of the program's own errors the message.
type panicError struct {
	what  string
	stack []byte
}

func (e *panicError) Error() string { return "panic: " + e.what }

// recovered is the error of a panic with v, nil if there was none.
func recovered(v any) error {
	if v == nil {
		return nil
	}
	what := fmt.Sprintf("%T", v)
	if e, ok := v.(runtime.Error); ok {
		what = e.Error()
	}
	return &panicError{what: what, stack: debug.Stack()}
}

func recoverUnary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (resp any, err error) {
	defer func() {
		if e := recovered(recover()); e != nil {
			resp, err = nil, e
		}
	}()
	return next(ctx, req)
}

func recoverStream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
	defer func() {
		if e := recovered(recover()); e != nil {
			err = e
		}
	}()
	return next(srv, stream)
}

// A streamWith is a stream with another context.
type streamWith struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *streamWith) Context() context.Context { return s.ctx }
