package service

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/credentials"
)

var errTooManyConnections = errors.New("too many connections")

// A transport is the plain transport of a local server: it encrypts nothing,
// caps how many connections there are, and learns who is at the other end of a
// Unix socket.
type transport struct {
	limit int64
	open  *atomic.Int64 // shared by clones
}

func newTransport(limit int) *transport {
	return &transport{limit: int64(limit), open: new(atomic.Int64)}
}

// A caller is what is known of the other end of a connection.
type caller struct {
	credentials.CommonAuthInfo
	// uid of the process that connected; only if known, which it is on Unix
	// sockets where the system tells.
	uid   int
	known bool
}

// AuthType implements [credentials.AuthInfo].
func (caller) AuthType() string { return "local" }

// ServerHandshake counts the connection and looks at its other end. A
// connection over the limit is closed before anything of it is read.
func (t *transport) ServerHandshake(c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if t.open.Add(1) > t.limit {
		t.open.Add(-1)
		return nil, nil, errTooManyConnections
	}
	info := caller{CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.NoSecurity}}
	if unix, ok := c.(*net.UnixConn); ok {
		info.uid, info.known = peerUID(unix)
	}
	return &countedConn{Conn: c, release: sync.OnceFunc(func() { t.open.Add(-1) })}, info, nil
}

// ClientHandshake implements [credentials.TransportCredentials]; a server has
// no use for it.
func (t *transport) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("the transport of a server dials nobody")
}

// Info implements [credentials.TransportCredentials].
func (t *transport) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "local"}
}

// Clone implements [credentials.TransportCredentials].
func (t *transport) Clone() credentials.TransportCredentials {
	return &transport{limit: t.limit, open: t.open}
}

// OverrideServerName implements [credentials.TransportCredentials].
func (t *transport) OverrideServerName(string) error { return nil }

// A countedConn gives its place back when it is closed.
type countedConn struct {
	net.Conn
	release func()
}

func (c *countedConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}
