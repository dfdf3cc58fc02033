// Package service answers the calls of clients: it is recalld's gRPC server,
// without its flags and without its terminal.
//
// A [Server] answers for one [ledger.Store]. It names a memory only by what the
// request says (there is no default one), opens memories as they are asked for
// and keeps the least recently used of them closed. An open memory is its
// ledger, the views retrieve makes of it, and one feeder that carries what the
// ledger has to the views: the same code at the start, after an Append and
// when the views are made anew.
//
// Promises:
//
//   - What Append acknowledged is on disk and is found by its words in the next
//     Recall. While views are made anew the answer says "rebuilding" and how far
//     it reaches.
//   - Limits are refused, never cut: the error names field, limit and value.
//   - All text leaves through one function (exit.go), and evidence leaves in one
//     frame (frame.go).
//   - A call without the token, from another user or for another host is
//     refused before its message is read.
//   - What is decided in finished windows is read in the background, one run per
//     memory at a time, and holds up neither an Append nor a Recall. Where a run
//     is stopped the next one goes on; nothing is read twice or left out.
//   - Damage of one memory is the error of that memory only.
//   - No log line and no error holds what was said.
//
// It does not rank, writes no SQL, and reads no flags and no environment.
//
// [Server.Run] owns all goroutines that outlive a call, [Server.Serve] runs it
// together with the gRPC server. A Server is safe for concurrent use.
package service

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/robfig/cron/v3"
	"google.golang.org/grpc"

	"recalld/consolidate"
	"recalld/ledger"
	recalldv1 "recalld/proto/recalld/v1"
	"recalld/retrieve"
)

// Defaults of Options.
const (
	defaultOpenMemories = 64
	defaultDrain        = 5 * time.Second
)

// Options of a [Server]. The zero value ranks by words alone, and refuses every
// call but health for want of a token.
type Options struct {
	// Token is what a client must show as "authorization: Bearer TOKEN". An
	// empty one fits nobody.
	Token string
	// Authorities are host names, besides those of the loopback and of Socket,
	// under which the server may be called.
	Authorities []string

	// Tokens makes the rows of all views, whoever gives them meaning; nil makes
	// views that only a remote model can give any.
	Tokens retrieve.TokenTable
	// Embedder gives a memory what its texts' meaning is made with, Expander what
	// proposes other wordings of its questions; nil, of the function or what it
	// gives, does without.
	Embedder func(memory string) retrieve.Embedder
	Expander func(memory string) retrieve.Expander
	// EmbeddingModel, ExpansionModel and ExtractionModel are what Status says of
	// them; empty is "off", and "builtin" for what extracts.
	EmbeddingModel, ExpansionModel, ExtractionModel string
	// Models tells how the model servers have fared; nil is none. DailyTokens and
	// DailyTokensAll are the caps they are held to, for Status.
	Models                      func() []ModelState
	DailyTokens, DailyTokensAll uint64

	// Consolidate is when finished windows are read for the journal: five fields
	// of cron in UTC, a descriptor like "@hourly", or "off". Empty is every five
	// minutes. CheckSchedule says whether it can be used.
	Consolidate string

	// OpenMemories is how many memories are open at once; 0 is 64. One more is
	// opened by closing the one that was not used for longest.
	OpenMemories int
	// Drain is how long calls under way may take to finish when the server
	// stops; 0 is 5 s.
	Drain time.Duration

	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Log gets one line per request and what goes wrong in the background; nil
	// discards both.
	Log *slog.Logger
	// Stop is called by Admin.Stop and must make the context of Run and Serve
	// end. nil answers Unimplemented.
	Stop func()

	// Build, Root and Socket are what Status says of the process.
	Build, Root, Socket string

	// Extractor gives a memory the model that reads its windows; nil, of the
	// function or what it gives, is the built-in extractor.
	Extractor func(memory string) consolidate.Extractor
	// Maintain is when memories are looked after (log moved into the file, views
	// compacted, a sample verified), written as Consolidate is. Empty is at 03:17.
	Maintain string
}

// A Server answers calls for one store. [Server.Run] must run for it to open
// memories.
type Server struct {
	store   *ledger.Store
	options Options
	now     func() time.Time
	log     *slog.Logger
	started time.Time
	frame   framer
	open    *registry
	runs    runs
	upkeep  upkeep
	// schedule and maintain are nil when nothing is run by itself; scheduleErr says
	// that Options.Consolidate or Options.Maintain cannot be used.
	schedule, maintain cron.Schedule
	scheduleErr        error
	// betweenStore is called between reading a window and storing it; nil but in tests.
	betweenStore func() error
	// rebuilds bounds how many memories are made anew at once on request.
	rebuilds chan struct{}
	places   places
	metrics  metrics

	mu      sync.Mutex // guards the following
	running int        // calls under way
	last    time.Time  // when a call last began or ended
}

// New returns a Server for store. It starts nothing.
func New(store *ledger.Store, o Options) *Server {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.OpenMemories <= 0 {
		o.OpenMemories = defaultOpenMemories
	}
	if o.Drain <= 0 {
		o.Drain = defaultDrain
	}
	now := o.Now()
	when, whenErr := parseSchedule(o.Consolidate, defaultSchedule)
	maintain, maintainErr := parseSchedule(o.Maintain, defaultMaintain)
	return &Server{
		store:    store,
		options:  o,
		now:      o.Now,
		log:      o.Log,
		started:  now,
		frame:    framer{secret: store.Secret()},
		open:     newRegistry(store, o.views, o.OpenMemories, o.Log),
		rebuilds: make(chan struct{}, maxRebuilds),
		places:   newPlaces(),
		metrics:  newMetrics(),
		last:     now,

		schedule:    when,
		maintain:    maintain,
		scheduleErr: cmp.Or(whenErr, maintainErr),
	}
}

// views are the options of one memory's views.
func (o Options) views(memory string) retrieve.Options {
	v := retrieve.Options{Tokens: o.Tokens}
	if o.Embedder != nil {
		v.Embedder = o.Embedder(memory)
	}
	if o.Expander != nil {
		v.Expander = o.Expander(memory)
	}
	return v
}

// Register adds recalld's services to r. What is not built yet answers
// Unimplemented.
func (s *Server) Register(r grpc.ServiceRegistrar) {
	recalldv1.RegisterMemoriesServiceServer(r, &memories{Server: s})
	recalldv1.RegisterRecallServiceServer(r, &recaller{Server: s})
	recalldv1.RegisterAdminServiceServer(r, &admin{Server: s})
	recalldv1.RegisterContextServiceServer(r, newContexts(s))
	recalldv1.RegisterJournalServiceServer(r, &journal{Server: s})
}

// Run keeps memories open until ctx is done, then closes them: it waits for the
// calls that use one. Meanwhile it reads finished windows for the journal as the
// schedule says. The error is that of a schedule that cannot be used. A Server
// can run once.
func (s *Server) Run(ctx context.Context) error {
	if s.scheduleErr != nil {
		return s.scheduleErr
	}
	var scheduled sync.WaitGroup
	scheduled.Go(func() { s.onSchedule(ctx, s.schedule, startPause, s.runDue) })
	scheduled.Go(func() { s.onSchedule(ctx, s.maintain, maintainPause, s.maintainDue) })
	s.open.run(ctx)
	scheduled.Wait()
	return nil
}

// LastActivity is when a call last began or ended, now if one is under way.
// Calls of health do not count, nor do those that were refused at the door.
func (s *Server) LastActivity() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running > 0 {
		return s.now()
	}
	return s.last
}

// begin counts a call; the function it returns ends it.
func (s *Server) begin() (end func()) {
	mark := func(by int) {
		now := s.now()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.running += by
		s.last = now
	}
	mark(1)
	return func() { mark(-1) }
}
