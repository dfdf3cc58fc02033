package llm

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/ollama/ollama/api"
)

// What a caller can act on.
var (
	// ErrReply is an answer that is of no use: not JSON, empty, cut, too large.
	ErrReply = errors.New("unusable answer of the model server")
	// ErrMissing is a server that does not have the model.
	ErrMissing = errors.New("the server does not have the model")
	// ErrRefused is a server that answered, but not to this text (HTTP 400,
	// 413, 422): too long for the model, or of a form it does not take. It says
	// nothing about the next text and does not count as a failure of the server.
	ErrRefused = errors.New("the server refused this text")
	// ErrUnreachable is a server that no connection could be made to.
	ErrUnreachable = errors.New("the server cannot be reached")
	// ErrUnauthorized is a server that does not accept the key (HTTP 401, 403).
	ErrUnauthorized = errors.New("the server does not accept the key")
)

// errBroken is a connection that ended in the middle of an answer, or before it.
var errBroken = errors.New("the connection to the server broke off")

// skipped is the error of a call that was not made.
type skipped struct{ reason string }

func (s *skipped) Error() string { return "model not asked: " + s.reason }

// Skipped returns the reason. Consumers find it with errors.As, so that they
// need not know this package.
func (s *skipped) Skipped() string { return s.reason }

// A statusError is an answer that is not a success.
type statusError struct {
	code int
	kind error // ErrMissing, ErrRefused, ErrUnauthorized or nil
	what string
}

func (e *statusError) Error() string { return fmt.Sprintf("%s (HTTP %d)", e.what, e.code) }
func (e *statusError) Unwrap() error { return e.kind }

// Status describes the answer of a server that is not a success: an error that
// wraps [ErrMissing], [ErrRefused] or [ErrUnauthorized] where the code says so. Of body, which may
// quote the prompt, it keeps nothing; it is looked at to tell a missing model
// from a wrong address.
func Status(code int, body []byte) error {
	e := &statusError{code: code}
	switch code {
	case http.StatusNotFound:
		if strings.Contains(strings.ToLower(string(body)), "model") {
			e.kind, e.what = ErrMissing, ErrMissing.Error()
		} else {
			e.what = "the server knows no such address"
		}
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		e.kind, e.what = ErrRefused, ErrRefused.Error()
	case http.StatusUnauthorized, http.StatusForbidden:
		e.kind, e.what = ErrUnauthorized, ErrUnauthorized.Error()
	case http.StatusTooManyRequests:
		e.what = "the server asks to be called less often"
	default:
		e.what = "the server failed"
	}
	return e
}

// plain returns err without any text that a server wrote: an error of a library
// may quote the answer, and an answer may quote the prompt. Errors of this
// package's kinds are ours and pass as they are.
func plain(err error) error {
	if errors.Is(err, errElsewhere) {
		return errElsewhere
	}
	if errors.Is(err, ErrReply) || errors.Is(err, ErrMissing) || errors.Is(err, ErrRefused) || errors.Is(err, ErrUnreachable) {
		return err
	}
	if status, ok := errors.AsType[*statusError](err); ok {
		return status
	}
	if status, ok := errors.AsType[api.StatusError](err); ok {
		return Status(status.StatusCode, []byte(status.ErrorMessage))
	}
	if denied, ok := errors.AsType[api.AuthorizationError](err); ok {
		return Status(denied.StatusCode, nil)
	}
	for _, done := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, done) {
			return done
		}
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return fmt.Errorf("%w: %w", ErrUnreachable, op.Err)
	} else if ok {
		return fmt.Errorf("%s the server: %w", op.Op, op.Err)
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return errors.New("the certificate of the server is not valid")
	}
	if _, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("%w: it is not JSON", ErrReply)
	}
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("%w: its JSON has another shape", ErrReply)
	}
	if _, ok := errors.AsType[*url.Error](err); ok {
		return errBroken
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return errBroken
	}
	return fmt.Errorf("%w: it is neither JSON nor a success", ErrReply)
}
