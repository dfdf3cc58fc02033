package service_test

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"recalld/consolidate"
	"recalld/ledger"
	recalldv1 "recalld/proto/recalld/v1"
	"recalld/service"
)

// steady is a clock that stands where the test puts it.
type steady struct{ at time.Time }

func (s *steady) now() time.Time { return s.at }

// upTo moves the clock to a time of the day, the same or the next.
func (s *steady) upTo(hour, minute int) {
	day := time.Date(s.at.Year(), s.at.Month(), s.at.Day(), hour, minute, 0, 0, time.UTC)
	if !day.After(s.at) {
		day = day.AddDate(0, 0, 1)
	}
	s.at = day
}

// maintained is when the memory at root was last looked after, and what was found.
func maintained(t *testing.T, ctx context.Context, store *ledger.Store) ledger.Maintenance {
	t.Helper()
	m, err := store.Maintained(ctx, ledger.MemoryID(journalKey))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestMaintenanceComesOnce: at its time, once, however often the server starts;
// what was missed is made up for; off is never.
func TestMaintenanceComesOnce(t *testing.T) {
	clock := &steady{at: time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC)}
	root := t.TempDir()
	visit := func(o service.Options) ledger.Maintenance {
		store, err := ledger.OpenStore(root, ledger.Options{Now: clock.now})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		if _, err := store.Ensure(t.Context(), journalKey); err != nil {
			t.Fatal(err)
		}
		o.Now, o.Consolidate = clock.now, "off"
		server := service.New(store, o)
		ctx, stop := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- server.Run(ctx) }()
		if o.Maintain != "off" {
			server.MaintainDue(ctx)
		}
		stop()
		if err := <-ran; err != nil {
			t.Error(err)
		}
		return maintained(t, t.Context(), store)
	}
	if got := visit(service.Options{}); !got.At.IsZero() {
		t.Errorf("a memory made at noon was looked after at %v", got.At)
	}
	clock.upTo(3, 16)
	if got := visit(service.Options{}); !got.At.IsZero() {
		t.Errorf("looked after before its time: %v", got.At)
	}
	clock.upTo(3, 17)
	first := clock.at
	for range 20 { // starts after one due time
		if got := visit(service.Options{}); !got.At.Equal(first) || got.Trouble != "" {
			t.Fatalf("%+v, want %v", got, first)
		}
		clock.at = clock.at.Add(time.Minute)
	}
	clock.upTo(3, 17)
	if got := visit(service.Options{Maintain: "off"}); !got.At.Equal(first) {
		t.Errorf("off, and looked after at %v", got.At)
	}
	clock.at = clock.at.AddDate(0, 0, 5).Add(7 * time.Hour) // five nights were missed
	if got := visit(service.Options{}); !got.At.Equal(clock.at) {
		t.Errorf("missed, and last looked after at %v", got.At)
	}
	clock.at = clock.at.AddDate(-1, 0, 0) // the clock had been wrong
	if got := visit(service.Options{}); !got.At.Equal(clock.at) {
		t.Errorf("last looked after in the future: %v", got.At)
	}
}

// TestMaintenanceRuns by itself, at night and after a start.
func TestMaintenanceRuns(t *testing.T) {
	root := t.TempDir()
	synctest.Test(t, func(t *testing.T) { // it is midnight
		store, err := ledger.OpenStore(root, ledger.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		if _, err := store.Ensure(t.Context(), journalKey); err != nil {
			t.Fatal(err)
		}
		run := func(d time.Duration) {
			ctx, stop := context.WithCancel(t.Context())
			ran := make(chan error, 1)
			go func() { ran <- service.New(store, service.Options{Consolidate: "off"}).Run(ctx) }()
			time.Sleep(d)
			stop()
			if err := <-ran; err != nil {
				t.Error(err)
			}
			time.Sleep(time.Minute)
		}
		begin := time.Now()
		run(3 * time.Hour)
		if got := maintained(t, t.Context(), store); !got.At.IsZero() {
			t.Errorf("looked after at %v", got.At)
		}
		run(time.Hour)
		if got := maintained(t, t.Context(), store); got.At.Sub(begin) != 3*time.Hour+17*time.Minute {
			t.Errorf("looked after %v after midnight", got.At.Sub(begin))
		}
		time.Sleep(48 * time.Hour)
		again := time.Now()
		run(2 * time.Minute)
		if got := maintained(t, t.Context(), store); got.At.Sub(again) != time.Minute {
			t.Errorf("looked after %v after the start", got.At.Sub(again))
		}
	})
}

// journalHealth is what the server's health says of the journal, and of all.
func journalHealth(t *testing.T, r *rig) (journal, all healthpb.HealthCheckResponse_ServingStatus) {
	t.Helper()
	conn := dial(t, r.socket, token)
	defer conn.Close()
	client := healthpb.NewHealthClient(conn)
	one, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{Service: "recalld.v1.JournalService"})
	if err != nil {
		t.Fatal(err)
	}
	whole, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return one.Status, whole.Status
}

// TestMaintenanceFindsDamage and says so until it is gone.
func TestMaintenanceFindsDamage(t *testing.T) {
	c := new(clock)
	j := journalOf(start(t, service.Options{Consolidate: "off", Now: c.now}))
	j.talk("s", 0, conversation...)
	j.mustConsolidate()
	if journal, all := journalHealth(t, j.rig); journal != healthpb.HealthCheckResponse_SERVING || all != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("health %v, %v", journal, all)
	}
	night := func() *recalldv1.MemoryStatus {
		c.move(24 * time.Hour)
		j.server.MaintainDue(t.Context())
		s := j.status()
		if ago := c.now().Sub(s.MaintenanceLastRun.AsTime()); ago < 0 || ago > time.Minute {
			t.Errorf("last run %v ago", ago)
		}
		return s
	}
	if s := night(); s.MaintenanceError != "" || !j.server.IsHealthy() {
		t.Fatalf("status %v", s)
	}
	file := filepath.Join(j.store.Folder(ledger.MemoryID(ledger.MemoryKey{Agent: "agent", Project: "project"})), "ledger.db")
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for what, change := range map[string][2]string{
		"batch":   {"UPDATE batch SET dropped = dropped + 1 WHERE number = 1", "UPDATE batch SET dropped = dropped - 1 WHERE number = 1"},
		"session": {"UPDATE session SET title = title || 'x'", "UPDATE session SET title = ''"},
	} {
		if _, err := db.Exec(change[0]); err != nil {
			t.Fatal(err)
		}
		if s := night(); !strings.Contains(s.MaintenanceError, what) || strings.Contains(s.MaintenanceError, "\n") || j.server.IsHealthy() {
			t.Errorf("damage of a %s: %q, healthy %v", what, s.MaintenanceError, j.server.IsHealthy())
		}
		if _, err := db.Exec(change[1]); err != nil {
			t.Fatal(err)
		}
		if s := night(); s.MaintenanceError != "" || !j.server.IsHealthy() {
			t.Errorf("after the repair: %q", s.MaintenanceError)
		}
	}
	if _, err := j.memories.Append(t.Context(), &recalldv1.AppendRequest{Memory: j.ref, Turns: []*recalldv1.NewTurn{said("s", "after", "words")}}); err != nil {
		t.Errorf("Append: %v", err)
	}
}

// TestLateSchedule: two periods after something was due, status and health say
// so, and no longer once it is done. Recall goes on.
func TestLateSchedule(t *testing.T) {
	c := new(clock)
	broken := true
	j := journalOf(start(t, service.Options{Consolidate: "*/5 * * * *", Maintain: "off", Now: c.now, Extractor: by(func(ctx context.Context, w consolidate.Window) ([]consolidate.Draft, error) {
		if broken {
			return nil, errors.New("no answer")
		}
		return consolidate.Builtin{}.Extract(ctx, w)
	})}))
	late := func(want bool, when string) {
		t.Helper()
		if s := j.status(); s.JournalLate != want || j.server.IsHealthy() == want {
			t.Errorf("%s: late %v, healthy %v", when, s.JournalLate, j.server.IsHealthy())
		}
	}
	j.talk("s", 0, conversation[:4]...)
	late(false, "at first")
	c.move(10 * time.Minute)
	late(false, "after ten minutes") // one period late at most
	c.move(5 * time.Minute)
	late(true, "never run")
	j.server.RunDue(t.Context())
	late(true, "run, and failed")
	late(true, "and failed again")
	broken = false
	c.move(time.Hour)
	j.server.RunDue(t.Context())
	late(false, "done")
	c.move(24 * time.Hour)
	late(true, "not run for a day")
	j.server.RunDue(t.Context())
	late(false, "nothing to do")
	c.move(-48 * time.Hour)
	late(false, "a clock that went back")
	j.server.RunDue(t.Context())
	late(false, "a clock that went back, run")
	if got := j.ask(j.ref, "events"); len(got.Passages) == 0 {
		t.Error("Recall found nothing")
	}
}

// TestOffIsNeverLate: nor is a schedule that cannot be used taken.
func TestOffIsNeverLate(t *testing.T) {
	c := new(clock)
	j := journalOf(start(t, service.Options{Consolidate: "off", Maintain: "off", Now: c.now}))
	j.talk("s", 0, conversation...)
	c.move(1000 * time.Hour)
	if s := j.status(); s.JournalLate || s.JournalNextRun != nil || s.MaintenanceLastRun != nil || !j.server.IsHealthy() {
		t.Errorf("status %v", s)
	}
	store, err := ledger.OpenStore(t.TempDir(), ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := service.New(store, service.Options{Maintain: "TZ="}).Run(t.Context()); err == nil {
		t.Error("Run goes on with a schedule of maintenance that cannot be used")
	}
	_, err = j.Consolidate(t.Context(), &recalldv1.ConsolidateRequest{Memory: j.ref})
	wantsCode(t, err, codes.OK)
}

// TestMissedMaintenanceIsLate: two periods after it was due.
func TestMissedMaintenanceIsLate(t *testing.T) {
	c := new(clock)
	r := start(t, service.Options{Consolidate: "off", Maintain: "@every 24h", Now: c.now})
	for _, step := range []struct {
		by   time.Duration
		want bool
	}{{71 * time.Hour, true}, {2 * time.Hour, false}} {
		c.move(step.by)
		if got := r.server.IsHealthy(); got != step.want {
			t.Errorf("healthy %v after %v more", got, step.by)
		}
	}
	r.server.MaintainDue(t.Context())
	if !r.server.IsHealthy() {
		t.Error("not healthy once it was made up for")
	}
}

// TestStoppedAtOnce: a server that is stopped before it serves ends without an error.
func TestStoppedAtOnce(t *testing.T) {
	store, err := ledger.OpenStore(t.TempDir(), ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for range 20 {
		listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if err := service.New(store, service.Options{}).Serve(ctx, listener); err != nil {
			t.Fatalf("Serve: %v", err)
		}
	}
}
