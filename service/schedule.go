package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// defaultSchedule is when windows are read if nothing else is said, and
// noSchedule says that they are not.
const (
	defaultSchedule = "*/5 * * * *"
	noSchedule      = "off"
)

// startPause lies between the start and the run that makes up for those that
// were missed: the first calls go first.
const startPause = 15 * time.Second

// CheckSchedule refuses a text that is neither "off" nor empty nor a schedule
// that comes to pass: five fields of cron in UTC, or a descriptor like "@hourly".
func CheckSchedule(spec string) error {
	_, err := parseSchedule(spec)
	return err
}

// parseSchedule returns nil for "off".
func parseSchedule(spec string) (schedule cron.Schedule, err error) {
	switch spec {
	case noSchedule:
		return nil, nil
	case "":
		spec = defaultSchedule
	}
	wrong := fmt.Errorf("schedule %q: is not five fields of cron, a descriptor like @hourly, or off", spec)
	if every, found := strings.CutPrefix(spec, "@every "); found {
		if d, err := time.ParseDuration(every); err != nil || d < time.Second {
			return nil, fmt.Errorf("schedule %q: is no duration of at least a second", spec)
		}
	}
	// The parser panics over some texts.
	if guard(func() (err error) { schedule, err = cron.ParseStandard(spec); return err }) != nil || schedule == nil {
		return nil, wrong
	}
	if schedule.Next(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, fmt.Errorf("schedule %q: never comes", spec)
	}
	return schedule, nil
}

// keepSchedule runs consolidation as the schedule says until ctx is done: once
// after the start, for the runs that were missed, then whenever it is time. One
// that still runs is not started again.
func (s *Server) keepSchedule(ctx context.Context) {
	if s.schedule == nil || s.store.ReadOnly() {
		return
	}
	// A job that panics behind the one that skips would never run again.
	job := cron.NewChain(cron.SkipIfStillRunning(cron.DiscardLogger), cron.Recover(cron.DiscardLogger)).
		Then(cron.FuncJob(func() { s.runDue(ctx) }))
	clock := cron.New(cron.WithLocation(time.UTC), cron.WithLogger(cron.DiscardLogger))
	clock.Schedule(s.schedule, job)
	clock.Start()
	if sleep(ctx, startPause) == nil {
		job.Run()
	}
	<-ctx.Done()
	<-clock.Stop().Done()
}

// nextRun is when the schedule comes next, the zero time if there is none.
func (s *Server) nextRun() time.Time {
	if s.schedule == nil || s.store.ReadOnly() {
		return time.Time{}
	}
	return s.schedule.Next(s.now().UTC())
}

// runDue reads what waits in all memories, one after the other. One that failed
// does not keep the others waiting.
func (s *Server) runDue(ctx context.Context) {
	infos, err := s.store.List(ctx)
	if err != nil {
		if ctx.Err() == nil {
			s.log.LogAttrs(ctx, slog.LevelError, "scheduled consolidation", causeAttrs(err)...)
		}
		return
	}
	for _, info := range infos {
		if ctx.Err() != nil {
			return
		}
		err := guard(func() error { return s.runDueIn(ctx, info.ID) })
		if err != nil && ctx.Err() == nil && !errors.Is(err, errEnding) {
			s.log.LogAttrs(ctx, slog.LevelError, "scheduled consolidation", append(causeAttrs(err), slog.String("memory", info.ID))...)
		}
	}
}

// runDueIn reads what waits in one memory. A memory in which nothing waited and
// to which nothing was added since is not opened for it.
func (s *Server) runDueIn(ctx context.Context, id string) error {
	state := s.runs.state(id)
	if state.settled == state.touched+1 {
		return nil
	}
	m, release, err := s.open.peek(ctx, id)
	if err != nil {
		return err
	}
	defer release()
	if _, err := s.consolidate(ctx, m, false, nil); err != nil {
		return err
	}
	counts, err := m.ledger.JournalCounts(ctx)
	if err != nil {
		return err
	}
	if counts.Waiting == 0 {
		s.runs.settle(id, state.touched)
	}
	return nil
}
