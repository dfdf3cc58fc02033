// Command recalld is a memory for agents: a server that keeps what was said
// and finds what bears on a new message, and the commands that talk to it.
//
// Every command but serve, demo, version and completion is a client. It finds
// the server by the store's folder (--root), starts one in the background when
// none runs, and prints the answer for people or, with --json, as the wire has
// it. Each command has a file of its own; this package wires the others
// together and decides nothing that they could.
//
// Exit status: 0 done, also when nothing was found; 1 failed; 2 wrong usage.
// verify adds 10, no store, and 11, the store is locked by someone who does not
// answer.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // zones of speakers, where the system has no database of them
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run executes one command line and returns the exit status.
func run(args []string, in io.Reader, out, errs io.Writer) int {
	// Whatever a library creates is private to the user, too.
	setUmask(0o077)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the program at once.
	context.AfterFunc(ctx, stop)

	checked := &checkedWriter{w: out}
	a := &app{in: in, out: checked, err: errs}
	root := a.rootCommand()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(checked)
	root.SetErr(errs)
	err := root.ExecuteContext(ctx)
	if err == nil && checked.err != nil {
		err = fmt.Errorf("print: %w", checked.err)
	}
	return a.report(err)
}
