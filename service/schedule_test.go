package service_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"recalld/ledger"
	"recalld/service"
)

// TestScheduleRuns: what waited when the server started is read soon after, what
// comes later with the next run, and nothing once the server has stopped.
func TestScheduleRuns(t *testing.T) {
	root := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		store, err := ledger.OpenStore(root, ledger.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		server := service.New(store, service.Options{Token: token})
		ctx, stop := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- server.Run(ctx) }()
		// The views stay closed: what they are made with has goroutines of its own.
		id, err := store.Ensure(ctx, ledger.MemoryKey{Agent: "agent", Project: "project"})
		if err != nil {
			t.Fatal(err)
		}
		holding := func(f func(*ledger.Memory) error) {
			m, release, err := server.HoldLedger(ctx, id)
			if err != nil {
				t.Fatal(err)
			}
			defer release()
			if err := f(m); err != nil {
				t.Fatal(err)
			}
		}
		add := func(first int) {
			holding(func(m *ledger.Memory) error {
				var turns []ledger.Turn
				for i := range 4 {
					turns = append(turns, ledger.Turn{Session: "s", ID: fmt.Sprint(first + i), Status: ledger.StatusFinished,
						Messages: []ledger.Message{{Kind: ledger.KindUser, Speaker: "Ann", Text: []byte("We decided to use SQLite.")}}})
				}
				_, err := m.Append(ctx, turns)
				server.Touch(id)
				return err
			})
		}
		batches := func() (n uint64) {
			holding(func(m *ledger.Memory) (err error) {
				_, n, err = m.JournalHead(ctx)
				return err
			})
			return n
		}
		add(0)
		time.Sleep(time.Minute)
		if n := batches(); n != 1 {
			t.Errorf("%d windows were read soon after the start, want 1", n)
		}
		add(4)
		time.Sleep(5 * time.Minute)
		if n := batches(); n != 2 {
			t.Errorf("%d windows were read after the next run, want 2", n)
		}
		add(8)
		stop()
		if err := <-ran; err != nil {
			t.Errorf("Run: %v", err)
		}
		time.Sleep(time.Hour)
	})
}
