package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"recalld/ledger"
	recalldv1 "recalld/proto/recalld/v1"
	"recalld/retrieve"
)

// defaultMaintain is when memories are looked after if nothing else is said: at
// night in most places, and not when everybody's clocks begin something.
const defaultMaintain = "17 3 * * *"

const (
	// maintainPause lies between the start and looking after what was missed: the
	// first windows are read before.
	maintainPause = time.Minute
	// maintainSample is how many messages there are for each that is read and
	// hashed. Which they are changes with the time, so that all have their turn.
	maintainSample = 50
	// healthEvery is how often health is looked at.
	healthEvery = 15 * time.Second
)

// upkeep remembers what became of looking after memories.
type upkeep struct {
	mu       sync.Mutex // guards the following
	swept    time.Time  // when all had last been looked at; zero: not yet
	troubled bool       // something was found in one of them
}

func (u *upkeep) sweep(at time.Time, troubled bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.swept, u.troubled = at, troubled
}

func (u *upkeep) state() (swept time.Time, troubled bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.swept, u.troubled
}

// maintainDue looks after the memories whose time has come since they were last
// looked after, be it while the server was down.
func (s *Server) maintainDue(ctx context.Context) {
	infos, err := s.store.List(ctx)
	troubled := false
	for i := 0; i < len(infos) && err == nil; i++ {
		var trouble string
		trouble, err = s.maintainDueIn(ctx, infos[i])
		troubled = troubled || trouble != ""
	}
	if ctx.Err() != nil || errors.Is(err, errEnding) {
		return
	}
	if err != nil {
		s.log.LogAttrs(ctx, slog.LevelError, "maintenance", causeAttrs(err)...)
		return
	}
	s.upkeep.sweep(s.now(), troubled)
}

// maintainDueIn looks after one memory if its time has come, and returns what was
// found in it, now or the last time. The error is that of the catalog, or of an
// end.
func (s *Server) maintainDueIn(ctx context.Context, info ledger.MemoryInfo) (trouble string, err error) {
	before, err := s.store.Maintained(ctx, info.ID)
	if errors.Is(err, ledger.ErrNotFound) {
		return "", nil // it went meanwhile
	}
	if err != nil {
		return "", err
	}
	last, now := before.At, s.now()
	if last.IsZero() {
		last = info.Created
	}
	// A time that is still to come was told by a clock that went wrong.
	if now.Before(s.maintain.Next(last.UTC())) && !last.After(now) {
		return before.Trouble, nil
	}
	err = guard(func() error { return s.lookAfter(ctx, info.ID) })
	if ctx.Err() != nil || errors.Is(err, errEnding) {
		return "", cmp.Or(ctx.Err(), err)
	}
	done := ledger.Maintenance{At: s.now()}
	level := slog.LevelInfo
	if err != nil {
		done.Trouble, level = name(strings.ReplaceAll(err.Error(), "\n", "; ")), slog.LevelError
	}
	s.log.LogAttrs(ctx, level, "maintenance", append(causeAttrs(err), slog.String("memory", info.ID))...)
	if err := s.store.NoteMaintenance(ctx, info.ID, done); err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return "", err
	}
	return done.Trouble, nil
}

// lookAfter does what is to be done for a memory now and then. The error is what
// is wrong with it: each step goes on where another one found something.
func (s *Server) lookAfter(ctx context.Context, id string) error {
	m, release, err := s.open.peek(ctx, id)
	if err != nil {
		return err
	}
	defer release()
	found := []error{m.ledger.Checkpoint(ctx)}
	if index := m.presentIndex(); index != nil { // closed views are not opened for it
		err := guard(func() error { return index.Compact(ctx) })
		if err != nil && !errors.Is(err, retrieve.ErrClosed) { // views that are replaced begin anew
			found = append(found, fmt.Errorf("compact views: %w", err))
		}
	}
	problems, err := m.ledger.Verify(ctx, ledger.VerifyOptions{Deep: true, Sample: maintainSample}, nil)
	if len(problems) > 0 {
		p := problems[0]
		err = fmt.Errorf("%d problems, the first: %w", len(problems), &ledger.DamageError{File: p.File, Table: p.Table, Row: p.Row, What: p.What})
	}
	found = append(found, err)
	e, err := m.chronicle.read(ctx, m)
	if err == nil {
		var resp *recalldv1.JournalServiceVerifyResponse
		resp, err = m.verifyJournal(ctx, e, nil)
		if wrong := resp.GetProblems(); len(wrong) > 0 {
			err = fmt.Errorf("%d problems of the journal, the first: %s", len(wrong), wrong[0])
		}
	}
	return errors.Join(append(found, err)...)
}

// maintenanceStatus tells when a memory was last looked after.
func (s *Server) maintenanceStatus(ctx context.Context, id string, row *recalldv1.MemoryStatus) error {
	last, err := s.store.Maintained(ctx, id)
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return err
	}
	row.MaintenanceLastRun, row.MaintenanceError = stampOf(last.At), name(last.Trouble)
	return nil
}

// healthService is the name under which health tells whether the journal is
// kept. That of the whole server, the empty one, is none of its business: recall
// goes on.
const healthService = "recalld.v1.JournalService"

// isHealthy reports whether journals are kept as the schedules say: neither is
// two periods late, and what was last verified was sound.
func (s *Server) isHealthy() bool {
	if s.store.ReadOnly() { // nothing is run there
		return true
	}
	now := s.now()
	swept, troubled := s.upkeep.state()
	return !troubled && !s.runs.anyLate(s.schedule, s.started, now) && !isLate(s.maintain, latest(s.started, swept), now)
}

// keepHealth tells h how the journals are until ctx is done.
func (s *Server) keepHealth(ctx context.Context, h *health.Server) {
	for {
		s.tellHealth(h)
		if sleep(ctx, healthEvery) != nil {
			return
		}
	}
}

func (s *Server) tellHealth(h *health.Server) {
	status := healthpb.HealthCheckResponse_SERVING
	if !s.isHealthy() {
		status = healthpb.HealthCheckResponse_NOT_SERVING
	}
	h.SetServingStatus(healthService, status)
}
