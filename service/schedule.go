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
	_, err := parseSchedule(spec, defaultSchedule)
	return err
}

// parseSchedule returns nil for "off"; an empty spec is the usual one.
func parseSchedule(spec, usual string) (schedule cron.Schedule, err error) {
	switch spec {
	case noSchedule:
		return nil, nil
	case "":
		spec = usual
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

// onSchedule calls run as a schedule says until ctx is done: once after a pause, for
// the times that were missed, then whenever it is time. One that still runs is
// not started again. No schedule is never.
func (s *Server) onSchedule(ctx context.Context, schedule cron.Schedule, pause time.Duration, run func(context.Context)) {
	if schedule == nil || s.store.ReadOnly() {
		return
	}
	// A job that panics behind the one that skips would never run again.
	job := cron.NewChain(cron.SkipIfStillRunning(cron.DiscardLogger), cron.Recover(cron.DiscardLogger)).
		Then(cron.FuncJob(func() { run(ctx) }))
	clock := cron.New(cron.WithLocation(time.UTC), cron.WithLogger(cron.DiscardLogger))
	clock.Schedule(schedule, job)
	clock.Start()
	if sleep(ctx, pause) == nil {
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

// fairTurn is how long one memory is read while others wait.
const fairTurn = 2 * time.Minute

// runDue reads what waits in all memories, one after the other, and none for so
// long that the others have to wait for all of it. One that failed does not keep
// them waiting.
func (s *Server) runDue(ctx context.Context) {
	for more := true; more && ctx.Err() == nil; {
		more = false
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
			err := guard(func() error {
				left, err := s.runDueIn(ctx, info.ID)
				more = more || left
				return err
			})
			if err != nil && ctx.Err() == nil && !errors.Is(err, errEnding) {
				s.log.LogAttrs(ctx, slog.LevelError, "scheduled consolidation", append(causeAttrs(err), slog.String("memory", info.ID))...)
			}
		}
		s.runs.sweep(s.now())
	}
}

// runDueIn reads what waits in one memory. more says that some of it was left
// for the next round. A memory in which nothing waited and to which nothing was
// added since is not opened for it, nor is one that has just failed.
func (s *Server) runDueIn(ctx context.Context, id string) (more bool, err error) {
	touched, due := s.runs.meet(id, s.started, s.now())
	if !due {
		return false, nil
	}
	extractor, err := s.extractorOf(id, "")
	if err != nil {
		return false, err
	}
	m, release, err := s.open.peek(ctx, id)
	if err != nil {
		return false, err
	}
	defer release()
	_, more, err = s.consolidate(ctx, m, consolidation{extractor: extractor, most: fairTurn})
	if err != nil || more {
		return more, err
	}
	counts, err := m.ledger.JournalCounts(ctx)
	if err != nil {
		return false, err
	}
	if counts.Waiting == 0 {
		s.runs.settle(id, touched)
	}
	return false, nil
}
