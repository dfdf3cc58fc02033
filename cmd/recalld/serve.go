package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"

	"recalld/ledger"
	"recalld/service"
)

const (
	// spawnedIdle is when a server that a client started ends.
	spawnedIdle = time.Hour
	// lockPatience is how long a lock that is held is waited for: a server that
	// was just stopped lets go of it in milliseconds. A started one waits for
	// the server it replaces, which may have calls to finish.
	lockPatience        = 500 * time.Millisecond
	spawnedLockPatience = 15 * time.Second
	// minFreeBytes is left on the disk when turns are taken on: room for the
	// views of what is stored already.
	minFreeBytes = 64 << 20
)

// serveOptions are the flags of serve.
type serveOptions struct {
	models      modelOptions
	consolidate string
	maintain    string
	metrics     string
	idle        time.Duration
	log         string
	spawned     bool
}

func (a *app) serveCommand() *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the server of a store in the foreground",
		Long: `Serve owns the store and answers its clients on a Unix socket in the store's
folder, which only its user can reach. Clients start it by themselves; running
it by hand is for supervisors and for looking at its log. SIGINT and SIGTERM
end it once the calls under way are answered.

No model server is needed. Where one is named, recalld asks it within the
deadline of each call and does without when it is late, wrong or gone; Ollama is
looked for at OLLAMA_HOST. The file serve.flags in the store's folder holds
flags, one a line, that every server of the store uses, those that clients
start as well; the command line has the last word. recalld doctor checks them.`,
		Example: `  recalld serve --log /var/tmp/recalld.log
  recalld serve --root ~/memory --embed off --idle 8h
  recalld serve --embed ollama:all-minilm --expand ollama:qwen3:4b
  echo "embed ollama:nomic-embed-text" >> ~/.local/share/recalld/serve.flags`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := readFlags(a.root, cmd.Flags(), cmd.Flags()); err != nil {
				return err
			}
			if o.spawned && !cmd.Flags().Changed("idle") {
				o.idle = spawnedIdle
			}
			return a.serve(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	o.models.register(cmd)
	flags.StringVar(&o.consolidate, "consolidate", "*/5 * * * *", "when finished windows are read for the journal: five fields of cron in UTC, or off")
	flags.StringVar(&o.maintain, "maintain", "17 3 * * *", "when memories are looked after (checkpoint, a sample verified): as --consolidate")
	flags.StringVar(&o.metrics, "metrics", "", "where metrics are served for Prometheus: unix:PATH (default: nowhere)")
	flags.DurationVar(&o.idle, "idle", 0, "end after so long without a call; 0 never (1h when a client started it)")
	flags.StringVar(&o.log, "log", "", "file to append the log to (default: standard error)")
	flags.BoolVar(&o.spawned, "spawned", false, "started by a client")
	if err := flags.MarkHidden("spawned"); err != nil {
		panic(err) // the flag is defined above
	}
	return cmd
}

// check refuses flags that cannot be used.
func (o serveOptions) check() error {
	if err := service.CheckSchedule(o.consolidate); err != nil {
		return usageErrorf("--consolidate: %v", err)
	}
	if err := service.CheckSchedule(o.maintain); err != nil {
		return usageErrorf("--maintain: %v", err)
	}
	if err := checkMetrics(o.metrics); err != nil {
		return err
	}
	if o.idle < 0 {
		return usageErrorf("--idle: %v is negative; 0 means never", o.idle)
	}
	return nil
}

// serve runs a server until it is told to end.
func (a *app) serve(ctx context.Context, o serveOptions) (err error) {
	if err := o.check(); err != nil {
		return err
	}
	build := buildID()
	store, err := a.lockStore(ctx, o.spawned, build)
	if err != nil || store == nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	models, err := o.models.open(store, os.Getenv)
	if err != nil {
		return err
	}
	defer models.close()

	log, closeLog, err := a.logger(o.log)
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	defer func() { err = errors.Join(err, closeLog()) }()
	if err := ensureRunFolder(a.root); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	token, err := ensureToken(a.root)
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	if err := recordBuild(a.root, build); err != nil {
		// As on a full disk, where what is stored can still be read.
		log.Warn("clients will have to ask for the build", "error", err)
	}
	defer func() { err = errors.Join(err, forgetBuild(a.root)) }()
	listener, err := listen(ctx, a.root)
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	socket := listener.Addr().String()
	// Removed last, still under the lock: a client that finds no socket may
	// start the next server.
	defer func() { err = errors.Join(err, os.Remove(socket)) }()

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	options := service.Options{
		Token:       token,
		Consolidate: o.consolidate,
		Maintain:    o.maintain,
		Log:         log,
		Stop:        stop,
		Build:       build,
		Root:        a.root,
		Socket:      socket,
	}
	models.options(&options)
	server := service.New(store, options)
	closeMetrics, err := serveMetrics(server, o.metrics)
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	defer func() { err = errors.Join(err, closeMetrics()) }()
	models.warn(log)
	go endWhenIdle(ctx, server.LastActivity, o.idle, stop)
	log.Info("serving", "root", a.root, "socket", socket, "build", build, "process", os.Getpid())
	err = server.Serve(ctx, listener)
	log.Info("ended")
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// lockStore opens the store. A server that a client started gives way, with a
// nil store, to one that answers already.
func (a *app) lockStore(ctx context.Context, spawned bool, build string) (*ledger.Store, error) {
	o := ledger.Options{Build: build, MinFreeBytes: minFreeBytes}
	patience, giveWay := lockPatience, func() bool { return false }
	if spawned {
		patience = spawnedLockPatience
		giveWay = func() bool {
			c, err := a.reach(ctx)
			if err == nil {
				c.close()
			}
			return err == nil
		}
	}
	store, err := openStore(ctx, a.root, o, patience, giveWay)
	if errors.Is(err, ledger.ErrLocked) {
		return nil, fmt.Errorf("serve: %w; recalld stop ends it", err)
	}
	if err != nil {
		return nil, fmt.Errorf("serve: %w", err)
	}
	return store, nil
}

// openStore opens a store, waiting for a while if somebody has it; nil and no
// error is the answer when giveWay says meanwhile that it is not needed.
func openStore(ctx context.Context, root string, o ledger.Options, patience time.Duration, giveWay func() bool) (*ledger.Store, error) {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		store, err := ledger.OpenStore(root, o)
		if !errors.Is(err, ledger.ErrLocked) {
			return store, err
		}
		if giveWay() {
			return nil, nil
		}
		select {
		case <-limited.Done():
			return nil, err
		case <-tick.C:
		}
	}
}

// logger gives the log and what closes it.
func (a *app) logger(path string) (*slog.Logger, func() error, error) {
	var to io.Writer = a.err
	done := func() error { return nil }
	if path != "" {
		f, err := openLog(path)
		if err != nil {
			return nil, nil, err
		}
		to, done = f, f.Close
	}
	return slog.New(slog.NewTextHandler(to, nil)), done, nil
}

// listen opens the store's socket, which only the user can connect to. What a
// dead server left behind is removed: we hold the lock, so it is not alive; it
// is asked anyway, as a stranger may have taken the place.
func listen(ctx context.Context, root string) (*net.UnixListener, error) {
	socket, err := placeSocket(root, os.Getenv)
	if err != nil {
		return nil, err
	}
	switch info, err := os.Lstat(socket); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("look at the socket: %w", err)
	case info.Mode().Type() != fs.ModeSocket && info.Mode().Type() != fs.ModeIrregular:
		return nil, fmt.Errorf("%s is not a socket; move it away", socket)
	default:
		if err := knock(ctx, socket); !errors.Is(err, errNoServer) {
			return nil, fmt.Errorf("somebody who does not hold the store's lock listens at %s; end that process", socket)
		}
		if err := os.Remove(socket); err != nil {
			return nil, fmt.Errorf("remove the socket of a dead server: %w", err)
		}
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("open the socket: %w", err)
	}
	l.SetUnlinkOnClose(false)
	if err := os.Chmod(socket, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("make the socket private: %w", err), l.Close())
	}
	return l, nil
}

// endWhenIdle calls stop when nothing was asked for as long as idle; 0 is never.
func endWhenIdle(ctx context.Context, last func() time.Time, idle time.Duration, stop func()) {
	if idle == 0 {
		return
	}
	for {
		left := time.Until(last().Add(idle))
		if left <= 0 {
			stop()
			return
		}
		timer := time.NewTimer(left)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}
