package service

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"recalld/ledger"
	"recalld/retrieve"
)

// A fieldError refuses a request: it names the field, what is wrong with it,
// its limit and the value given. It holds nothing of what was said.
type fieldError struct {
	field string // as on the wire
	what  string
	limit any // nil when there is none
	value any // nil when it must not be repeated
	code  codes.Code
}

func (e *fieldError) Error() string {
	s := e.field + ": " + e.what
	if e.limit != nil {
		s += fmt.Sprintf(", limit %v", e.limit)
	}
	if e.value != nil {
		s += fmt.Sprintf(", got %v", e.value)
	}
	return s
}

// invalid is a field that is wrong, tooLarge one that is too large.
func invalid(field, what string, limit, value any) error {
	return &fieldError{field, what, limit, value, codes.InvalidArgument}
}

func tooLarge(field, what string, limit, value any) error {
	return &fieldError{field, what, limit, value, codes.ResourceExhausted}
}

// errUnknown is a name of something that is not there. It reads the same for
// what does not exist and for what belongs to another memory.
func errUnknown(field string) error {
	return &fieldError{field: field, what: "is not known", code: codes.NotFound}
}

// errEnding says that no memory is opened any more, or not yet.
var errEnding = errors.New("the server is not running")

// A callError is what a call ends with: the status for the client, and for the
// log the cause.
type callError struct {
	status *status.Status
	cause  error
}

func (e *callError) Error() string              { return e.status.Message() }
func (e *callError) GRPCStatus() *status.Status { return e.status }
func (e *callError) Unwrap() error              { return e.cause }

// mapError gives an error its code, in one place, as the table of the contract
// says. Messages name field, limit and value; what is our own fault is told the
// log and not the client.
func mapError(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := err.(interface{ GRPCStatus() *status.Status }); ok {
		return err
	}
	code, message := codeOf(err)
	return &callError{status: status.New(code, message), cause: err}
}

// sentinels are the errors with a code of their own, the first that fits
// counts. An empty message is replaced by the error's own.
var sentinels = []struct {
	is      error
	code    codes.Code
	message string
}{
	{ledger.ErrTooLarge, codes.ResourceExhausted, ""},
	{ledger.ErrNotFound, codes.NotFound, ""},
	{ledger.ErrExists, codes.AlreadyExists, ""},
	{ledger.ErrReadOnly, codes.FailedPrecondition, "the store is on a disk that cannot be written"},
	{ledger.ErrLocked, codes.FailedPrecondition, "another process has the store open"},
	{ledger.ErrPaused, codes.FailedPrecondition, "the memory is paused"},
	{ledger.ErrNewer, codes.FailedPrecondition, ""},
	{ledger.ErrFull, codes.ResourceExhausted, "the disk is full"},
	{errEnding, codes.Unavailable, "the server is stopping"},
	{ledger.ErrClosed, codes.Unavailable, "the server is stopping"},
	{retrieve.ErrClosed, codes.Unavailable, "the server is stopping"},
	{context.Canceled, codes.Canceled, "the call was cancelled"},
	{context.DeadlineExceeded, codes.DeadlineExceeded, "the deadline of the call has passed"},
}

func codeOf(err error) (codes.Code, string) {
	// A panic comes first: whatever else the error wraps, it is ours.
	if p := (*panicError)(nil); errors.As(err, &p) {
		return codes.Internal, "internal error"
	}
	if f := (*fieldError)(nil); errors.As(err, &f) {
		return f.code, f.Error()
	}
	if d := (*ledger.DamageError)(nil); errors.As(err, &d) {
		return codes.DataLoss, d.Error()
	}
	if f := (*ledger.FieldError)(nil); errors.As(err, &f) && !errors.Is(err, ledger.ErrTooLarge) {
		return codes.InvalidArgument, f.Error()
	}
	if f := (*ledger.FullError)(nil); errors.As(err, &f) {
		return codes.ResourceExhausted, fmt.Sprintf("the disk is full: %d bytes are free, at least %d must be", f.Free, f.MinFree)
	}
	for _, s := range sentinels {
		if errors.Is(err, s.is) {
			if s.message == "" {
				return s.code, err.Error()
			}
			return s.code, s.message
		}
	}
	return codes.Internal, "internal error"
}
