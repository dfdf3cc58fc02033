package service

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strings"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
)

// A door decides who may call. It stands before the interceptors, where a
// call's headers are there and its message is not read yet, so that a stranger
// cannot make the server take in 16 MiB only to be refused.
type door struct {
	token       [sha256.Size]byte
	open        bool // whether any token fits
	uid         int
	authorities map[string]bool
	log         *slog.Logger
}

func newDoor(o Options, log *slog.Logger) *door {
	d := &door{
		token: sha256.Sum256([]byte(o.Token)),
		open:  o.Token != "",
		uid:   os.Getuid(),
		log:   log,
		// What clients say when they dialled a socket by its path differs.
		authorities: map[string]bool{"localhost": true, "127.0.0.1": true, "::1": true},
	}
	for _, name := range o.Authorities {
		d.authorities[name] = true
	}
	if o.Socket != "" {
		d.authorities[o.Socket] = true
		d.authorities[url.PathEscape(o.Socket)] = true
	}
	return d
}

// admit lets a call in or says why not: PermissionDenied for a call that a web
// page may have made, Unauthenticated for one without the token or from another
// user. It is a [tap.ServerInHandle].
func (d *door) admit(ctx context.Context, call *tap.Info) (context.Context, error) {
	err := d.check(ctx, call)
	if err != nil {
		d.log.WarnContext(ctx, "refused", "method", call.FullMethodName, "code", status.Code(err).String())
	}
	return ctx, err
}

func (d *door) check(ctx context.Context, call *tap.Info) error {
	if len(call.Header.Get("origin")) > 0 {
		return status.Error(codes.PermissionDenied, "calls from web pages are refused")
	}
	if !d.knows(call.Header.Get(":authority")) {
		return status.Error(codes.PermissionDenied, "the server is not called under this name")
	}
	if !d.sameUser(ctx) {
		return status.Error(codes.Unauthenticated, "the server belongs to another user")
	}
	if isHealth(call.FullMethodName) {
		return nil
	}
	if !d.fits(call.Header) {
		return status.Error(codes.Unauthenticated, "no valid token")
	}
	return nil
}

func isHealth(method string) bool {
	return strings.HasPrefix(method, "/"+healthpb.Health_ServiceDesc.ServiceName+"/")
}

// knows reports whether the server may be called under the name, with whatever
// port. A web page that made its own name point at the loopback is not.
func (d *door) knows(authority []string) bool {
	if len(authority) != 1 {
		return false
	}
	name := authority[0]
	if d.authorities[name] {
		return true
	}
	host, _, err := net.SplitHostPort(name)
	if err != nil {
		host = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	}
	return d.authorities[host]
}

// sameUser reports whether the caller is the user that runs the server, as far
// as the system tells.
func (d *door) sameUser(ctx context.Context) bool {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return false
	}
	c, ok := p.AuthInfo.(caller)
	return ok && (!c.known || c.uid == d.uid)
}

// fits reports whether the call shows the token, exactly once. Hashes are
// compared, so that the time taken tells nothing, not even a length.
func (d *door) fits(header metadata.MD) bool {
	values := header.Get("authorization")
	if len(values) != 1 {
		return false
	}
	scheme, token, found := strings.Cut(values[0], " ")
	sum := sha256.Sum256([]byte(token))
	same := subtle.ConstantTimeCompare(sum[:], d.token[:]) == 1
	return found && strings.EqualFold(scheme, "bearer") && same && d.open
}
