package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"recalld/service"
)

// metricsPrefix begins what --metrics takes: metrics are for whoever may reach
// a socket, as everything else of the server is.
const metricsPrefix = "unix:"

// checkMetrics refuses what --metrics does not take.
func checkMetrics(to string) error {
	path, found := strings.CutPrefix(to, metricsPrefix)
	switch {
	case to == "":
		return nil
	case !found || !filepath.IsAbs(path):
		return usageErrorf("--metrics: %q is not unix: and an absolute path, as in unix:/run/user/1000/recalld-metrics.sock", to)
	case len(path) > maxSocketPath:
		return usageErrorf("--metrics: the path is longer than a socket's may be (%d bytes)", maxSocketPath)
	}
	return nil
}

// serveMetrics serves the metrics of a server until end is called.
func serveMetrics(server *service.Server, to string) (end func() error, err error) {
	if to == "" {
		return func() error { return nil }, nil
	}
	path := strings.TrimPrefix(to, metricsPrefix)
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() != fs.ModeSocket {
		return nil, fmt.Errorf("metrics: %s is not a socket; move it away", path)
	}
	// We hold the store's lock: what is there is of a server that died.
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("metrics: %w", err), l.Close())
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(server.Metrics(), promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	h := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- h.Serve(l) }()
	return func() error {
		err := h.Shutdown(context.Background())
		if e := <-served; !errors.Is(e, http.ErrServerClosed) {
			err = errors.Join(err, e)
		}
		return err
	}, nil
}
