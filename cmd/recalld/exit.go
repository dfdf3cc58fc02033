package main

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Exit statuses.
const (
	exitDone    = 0
	exitFailed  = 1
	exitUsage   = 2
	exitNoStore = 10
	exitLocked  = 11
)

// An exitError ends the program with a status of its own.
type exitError struct {
	status int
	err    error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// usageErrorf is the error of a command line that makes no sense.
func usageErrorf(format string, args ...any) error {
	return &exitError{status: exitUsage, err: fmt.Errorf(format, args...)}
}

// report prints err as one sentence and returns the exit status.
func (a *app) report(err error) int {
	if err == nil {
		return exitDone
	}
	fmt.Fprintf(a.err, "recalld: %s\n", oneLine(err.Error()))
	var e *exitError
	if errors.As(err, &e) {
		return e.status
	}
	// cobra's own commands say so only in words.
	if strings.HasPrefix(err.Error(), "unknown command") {
		return exitUsage
	}
	return exitFailed
}

// oneLine keeps a message on one line and free of control characters: parts of
// it may come from a file or from a server.
func oneLine(s string) string {
	return strings.Join(strings.Fields(printable(s)), " ")
}

// failed says what a call was for, what went wrong and what to do about it. An
// argument that the server refuses is wrong usage.
func (a *app) failed(doing string, err error) error {
	s, ok := status.FromError(err)
	if !ok {
		return fmt.Errorf("%s: %w", doing, err)
	}
	message := s.Message()
	code := exitFailed
	switch s.Code() {
	case codes.InvalidArgument:
		code = exitUsage
	case codes.NotFound:
		message += fmt.Sprintf("; recalld memories lists what is in %s", a.root)
	case codes.Unauthenticated, codes.PermissionDenied:
		message = fmt.Sprintf("the server of %s refused the call (%s); end it with the rights it was started with and try again", a.root, message)
	case codes.Unavailable:
		message = fmt.Sprintf("the server of %s went away; try again, and see %s if it does so again", a.root, logPath(a.root))
	case codes.DeadlineExceeded:
		message = "no answer in time; try again, and see recalld status"
	case codes.Canceled:
		message = "interrupted"
	case codes.Unimplemented:
		message = "the running server does not know this yet; recalld stop ends it, so that this build starts its own"
	case codes.DataLoss:
		message += "; recalld verify --deep tells more"
	case codes.Internal:
		message = fmt.Sprintf("%s; see %s", message, logPath(a.root))
	}
	return &exitError{status: code, err: fmt.Errorf("%s: %s", doing, message)}
}
