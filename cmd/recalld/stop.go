package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	recalldv1 "recalld/proto/recalld/v1"
)

// stopPatience is how long a server may take to end: calls under way get 5 s.
const stopPatience = 15 * time.Second

func (a *app) stopCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "stop",
		Short: "End the server of the store",
		Long: `Stop ends the server once the calls under way are answered, and returns when it
has let go of the store. The next command starts it again. When no server runs
there is nothing to do, which is no error.`,
		Example: `  recalld stop
  recalld stop --root ~/memory --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.stop(cmd.Context()) },
	}
}

func (a *app) stop(ctx context.Context) error {
	c, err := a.reach(ctx)
	if errors.Is(err, errNoServer) {
		if a.json {
			return a.printJSON(&recalldv1.StopResponse{})
		}
		fmt.Fprintf(a.out, "No server runs for the store in %s.\n", a.root)
		return nil
	}
	answer := &recalldv1.StopResponse{}
	switch {
	case err == nil:
		defer c.close()
		if answer, err = c.admin.Stop(ctx, &recalldv1.StopRequest{}); err != nil {
			return a.failed("stop", err)
		}
	case !errors.Is(err, errStopping):
		return err
	}
	if err := a.awaitEnd(ctx); err != nil {
		return err
	}
	if a.json {
		return a.printJSON(answer)
	}
	fmt.Fprintf(a.out, "The server of %s has ended.\n", a.root)
	return nil
}

// awaitEnd waits until nobody listens any more. The server takes its socket
// away last.
func (a *app) awaitEnd(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, stopPatience)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		c, err := a.reach(limited)
		if err == nil {
			c.close()
		}
		if errors.Is(err, errNoServer) && !a.socketLeft() {
			return nil
		}
		select {
		case <-limited.Done():
			return fmt.Errorf("stop: the server of %s did not end within %v; see %s", a.root, stopPatience, logPath(a.root))
		case <-tick.C:
		}
	}
}

// socketLeft reports whether the socket of a server is still there, of a living
// one or of a dead one.
func (a *app) socketLeft() bool {
	socket, err := socketOf(a.root)
	if err != nil || socket == "" {
		return false
	}
	_, err = os.Lstat(socket)
	return err == nil
}
