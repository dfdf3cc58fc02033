package llm

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"
)

// Limits of connections. Those in time are only for servers that are silent
// where a healthy one answers at once; a call's own end is its context's.
const (
	dialTime  = 5 * time.Second
	tlsTime   = 10 * time.Second
	idleTime  = 90 * time.Second
	maxHeader = 64 << 10
	maxIdle   = 4
	keepAlive = 30 * time.Second
)

// newLink returns the connections to one server. Environment variables may name
// a proxy, but never for this machine.
func newLink(dial func(context.Context, string, string) (net.Conn, error)) *http.Transport {
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialTime, KeepAlive: keepAlive}).DialContext
	}
	return &http.Transport{
		Proxy:                  proxy,
		DialContext:            dial,
		TLSHandshakeTimeout:    tlsTime,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		MaxIdleConnsPerHost:    maxIdle,
		IdleConnTimeout:        idleTime,
		MaxResponseHeaderBytes: maxHeader,
		DisableCompression:     true, // a cap on bytes read is then one on bytes sent
		ForceAttemptHTTP2:      true,
	}
}

func proxy(r *http.Request) (*url.URL, error) {
	if loopback(r.URL.Hostname()) {
		return nil, nil
	}
	return http.ProxyFromEnvironment(r)
}

// errElsewhere refuses to send anything to another server than the one that
// was configured: what is sent is private.
var errElsewhere = errors.New("the server points to another address")

// A wire carries the requests of one call and remembers what happened, because
// libraries above it keep only some of that.
type wire struct {
	next     http.RoundTripper
	base     *url.URL
	key      string
	maxBytes int64
	now      func() time.Time

	mu       sync.Mutex // guards everything below
	sent     int64      // bytes of request bodies
	received int64      // bytes of answers
	status   int        // of the last answer, 0: none
	wait     time.Duration
	broken   error // why the last answer ended early, nil: it did not
}

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != w.base.Scheme || r.URL.Host != w.base.Host {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, errElsewhere
	}
	r = r.Clone(r.Context())
	if w.key != "" {
		r.Header.Set("Authorization", "Bearer "+w.key)
	}
	w.mu.Lock()
	w.status, w.wait, w.broken = 0, 0, nil
	w.mu.Unlock()
	if r.Body != nil {
		r.Body = &counted{ReadCloser: r.Body, w: w}
	}
	resp, err := w.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	w.status = resp.StatusCode
	w.wait = retryAfter(resp, w.now())
	w.mu.Unlock()
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		resp.Body.Close()
		return nil, errElsewhere
	}
	resp.Body = &capped{body: resp.Body, left: w.maxBytes, w: w}
	return resp, nil
}

// retryAfter reads the header of that name where it means "not now".
func retryAfter(r *http.Response, now time.Time) time.Duration {
	if r.StatusCode != http.StatusTooManyRequests && r.StatusCode != http.StatusServiceUnavailable {
		return 0
	}
	value := r.Header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 32); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// counted counts what is sent.
type counted struct {
	io.ReadCloser
	w *wire
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.w.mu.Lock()
	c.w.sent += int64(n)
	c.w.mu.Unlock()
	return n, err
}

// capped ends an answer that is longer than it may be.
type capped struct {
	body io.ReadCloser
	left int64
	w    *wire
}

func (c *capped) Read(p []byte) (int, error) {
	if c.left < 0 {
		return 0, c.tooLarge()
	}
	if int64(len(p)) > c.left+1 {
		p = p[:c.left+1] // one more than allowed shows that there is more
	}
	n, err := c.body.Read(p)
	c.left -= int64(n)
	c.w.mu.Lock()
	c.w.received += int64(n)
	c.w.mu.Unlock()
	if c.left < 0 {
		return n - 1, c.tooLarge()
	}
	if err != nil && err != io.EOF {
		c.note(err)
	}
	return n, err
}

func (c *capped) tooLarge() error {
	err := fmt.Errorf("%w: it has more than %d bytes", ErrReply, c.w.maxBytes)
	c.note(err)
	return err
}

func (c *capped) note(err error) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	if c.w.broken == nil {
		c.w.broken = err
	}
}

func (c *capped) Close() error { return c.body.Close() }
