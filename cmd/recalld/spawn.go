package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	recalldv1 "recalld/proto/recalld/v1"
)

const (
	// startPatience is how long a server may take until it answers. Memories are
	// opened by the calls that need them, so there is little to do before.
	startPatience = 20 * time.Second
	// pollEvery is how often a change of the server's state is looked for.
	pollEvery = 20 * time.Millisecond
	// maxLogBytes is the length at which a log is put aside before a start.
	maxLogBytes = 8 << 20
)

// start starts a server in the background and waits until it answers. When two
// clients start one at once, one of the servers steps back, and both clients
// use the other.
func (a *app) start(ctx context.Context) (*client, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start a server: %w", err)
	}
	if err := prepareRoot(a.root); err != nil {
		return nil, fmt.Errorf("start a server: %w", err)
	}
	log, err := openLog(logPath(a.root))
	if err != nil {
		return nil, fmt.Errorf("start a server: %w", err)
	}
	defer log.Close()
	from, err := log.Seek(0, 2)
	if err != nil {
		return nil, fmt.Errorf("start a server: %w", err)
	}
	cmd := exec.Command(program, "serve", "--spawned", "--root", a.root)
	cmd.Dir = a.root // not the caller's folder, which could not be unmounted
	cmd.Stdout, cmd.Stderr = log, log
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a server: %w", err)
	}
	exited := make(chan struct{})
	go func() {
		cmd.Wait() // its status is told by the log
		close(exited)
	}()
	c, err := a.await(ctx, exited, from)
	if err != nil {
		return nil, err
	}
	a.recallLoser(ctx, c, cmd.Process, exited)
	return c, nil
}

// recallLoser ends the server started here if another one answers. It would
// step back by itself once it runs; until then it could take the store when the
// other ends, and nobody would know of it.
func (a *app) recallLoser(ctx context.Context, c *client, started *os.Process, exited <-chan struct{}) {
	limited, cancel := context.WithTimeout(ctx, healthPatience)
	defer cancel()
	running, err := c.admin.Status(limited, &recalldv1.StatusRequest{})
	if err != nil || int(running.GetProcessId()) == started.Pid {
		return
	}
	// It cannot hold the store, so there is nothing to lose.
	if started.Kill() == nil {
		<-exited
	}
}

// await waits until a server answers. It gives up when the one started here has
// exited and no other answers.
func (a *app) await(ctx context.Context, exited <-chan struct{}, from int64) (*client, error) {
	limited, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		// Looked at before reaching: whoever made it exit answers by now.
		gone := false
		select {
		case <-exited:
			gone = true
		default:
		}
		c, err := a.reach(limited)
		if err == nil {
			return c, nil
		}
		if gone {
			return nil, fmt.Errorf("the server did not start: %s", logTail(logPath(a.root), from))
		}
		select {
		case <-limited.Done():
			if ctx.Err() != nil {
				return nil, fmt.Errorf("start a server: %w", ctx.Err())
			}
			return nil, fmt.Errorf("the server did not answer within %v of its start (%w); see %s", startPatience, err, logPath(a.root))
		case <-tick.C:
		}
	}
}

// prepareRoot makes the store's folder, so that the log can be in it. As the
// ledger does, it makes only an empty folder or that of a store private. For a
// store that cannot be written to it makes the folder of the server.
func prepareRoot(root string) error {
	if err := os.MkdirAll(root, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(root)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder", root)
	}
	if !isWritable(root) {
		return ensureRunFolder(root)
	}
	if info.Mode().Perm()&0o077 == 0 || !unixRights {
		return nil
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		return err
	}
	_, err = os.Lstat(filepath.Join(root, catalogName))
	if len(entries) > 0 && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s holds other things and is open to other users: name a folder of its own with --root, or make it private with chmod 700 %s", root, root)
	}
	return os.Chmod(root, 0o700)
}

// openLog opens a log for appending. One that has become long is put aside,
// replacing the one put aside before.
func openLog(path string) (*os.File, error) {
	if info, err := os.Lstat(path); err == nil && info.Size() > maxLogBytes {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, fmt.Errorf("put the log aside: %w", err)
		}
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	return f, nil
}

// logTail gives the last line that was written to a log after an offset.
func logTail(path string, from int64) string {
	b, err := os.ReadFile(path)
	if err != nil || int64(len(b)) <= from {
		return "it left no word in " + path
	}
	lines := bytes.Split(bytes.TrimSpace(b[from:]), []byte("\n"))
	last := bytes.TrimPrefix(lines[len(lines)-1], []byte("recalld: "))
	return string(last)
}
