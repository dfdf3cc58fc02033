package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	"recalld/embed"
	"recalld/ledger"
	"recalld/retrieve"
	"recalld/service"
)

// pipeBytes is the buffer between client and server in one process.
const pipeBytes = 256 << 10

// inside serves a store in this process and gives a client of it, for commands
// that need no server that outlives them. The client speaks as every other
// does, through a pipe in memory instead of a socket. end must be called; it
// closes client, server and store.
func inside(ctx context.Context, root string, o ledger.Options) (c *client, end func() error, err error) {
	o.Build = buildID()
	store, err := openStore(ctx, root, o, lockPatience, func() bool { return false })
	if err != nil {
		return nil, nil, err
	}
	token := rand.Text()
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	table := embed.BuiltIn()
	server := service.New(store, service.Options{
		Consolidate: "off", // what is looked at from inside is not changed
		Token:       token,
		Tokens:      table,
		Embedder:    func(string) retrieve.Embedder { return table },
		Log:         slog.New(slog.DiscardHandler),
		Stop:        stop,
		Build:       o.Build,
		Root:        root,
	})
	pipe := bufconn.Listen(pipeBytes)
	served := make(chan error, 1)
	go func() { served <- server.Serve(running, pipe) }()
	halt := func() error {
		stop()
		return errors.Join(<-served, store.Close())
	}
	dial := func(ctx context.Context, _ string) (net.Conn, error) { return pipe.DialContext(ctx) }
	conn, err := dialGRPC(dial, grpc.WithPerRPCCredentials(bearer{token}))
	if err != nil {
		return nil, nil, errors.Join(err, halt())
	}
	return newClient(conn), func() error {
		conn.Close()
		if err := halt(); err != nil {
			return fmt.Errorf("close the store: %w", err)
		}
		return nil
	}, nil
}
