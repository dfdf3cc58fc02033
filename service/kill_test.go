package service_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"recalld/consolidate"
	"recalld/ledger"
	"recalld/service"
)

// journalKey is the memory of the tests that work without a wire.
var journalKey = ledger.MemoryKey{Agent: "agent", Project: "project"}

// seed makes a store in which so many windows wait, of three sessions that took
// turns; one of them ends with a tail.
func seed(t *testing.T, windows int) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "store")
	store, err := ledger.OpenStore(root, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	id, err := store.Ensure(t.Context(), journalKey)
	if err != nil {
		t.Fatal(err)
	}
	m, err := store.Open(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var turns []ledger.Turn
	for n := range windows*4 - 2 {
		said := []string{
			fmt.Sprintf("We decided to store part%d in SQLite.", n), "good morning", fmt.Sprintf("Always run checker%d before you commit.", n),
			fmt.Sprintf("Actually, let's use MySQL for part%d instead of SQLite.", n-3), "what does it do?",
		}[n%5]
		turns = append(turns, ledger.Turn{Session: fmt.Sprint("s", n%3), ID: fmt.Sprint(n), Status: ledger.StatusFinished, Messages: []ledger.Message{
			{ID: fmt.Sprintf("%d/user", n), Kind: ledger.KindUser, Speaker: "Ann", Text: []byte(said)},
			{ID: fmt.Sprintf("%d/reply", n), Kind: ledger.KindReply, Speaker: "agent", Text: []byte("Noted.")},
		}})
	}
	if _, err := m.Append(t.Context(), turns); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(m.Close(), store.Close()); err != nil {
		t.Fatal(err)
	}
	return root
}

// copied returns a copy of a store, as it is on the disk just now.
func copied(t *testing.T, root string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "store")
	if err := os.CopyFS(to, os.DirFS(root)); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{to, filepath.Join(to, "memories"), filepath.Join(to, "memories", ledger.MemoryID(journalKey))} {
		if err := os.Chmod(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// withServer has f use a server without a wire on the store at root.
func withServer(root string, o service.Options, f func(ctx context.Context, s *service.Server, id string) error) error {
	store, err := ledger.OpenStore(root, ledger.Options{})
	if err != nil {
		return err
	}
	if o.Consolidate == "" {
		o.Consolidate = "off"
	}
	o.Maintain = "off"
	server := service.New(store, o)
	ctx, stop := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- server.Run(ctx) }()
	err = f(ctx, server, ledger.MemoryID(journalKey))
	stop()
	return errors.Join(err, <-ran, store.Close())
}

// chainOf reads the hashes of the journal at root and verifies the memory deeply.
func chainOf(t *testing.T, root string) []string {
	t.Helper()
	store, err := ledger.OpenStore(root, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	m, err := store.Open(t.Context(), ledger.MemoryID(journalKey))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if problems, err := m.Verify(t.Context(), ledger.VerifyOptions{Deep: true}, nil); err != nil || len(problems) > 0 {
		t.Fatalf("Verify = %v, %v", problems, err)
	}
	batches, err := m.Batches(t.Context(), 0, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	var chain []string
	for _, b := range batches {
		chain = append(chain, fmt.Sprintf("%s %d-%d %x", b.Session, b.FirstTurn, b.LastTurn, b.Hash))
	}
	return chain
}

// uninterrupted is the chain of a store that is read in one go.
func uninterrupted(t *testing.T, root string) []string {
	t.Helper()
	root = copied(t, root)
	if err := withServer(root, service.Options{}, func(ctx context.Context, s *service.Server, id string) error { return s.ConsolidateAll(ctx, id) }); err != nil {
		t.Fatal(err)
	}
	return chainOf(t, root)
}

// A staged extractor says when it begins and when it is done.
type staged struct {
	consolidate.Extractor
	stage func(string) error
}

func (s staged) Extract(ctx context.Context, w consolidate.Window) ([]consolidate.Draft, error) {
	if err := s.stage("extract"); err != nil {
		return nil, err
	}
	drafts, err := s.Extractor.Extract(ctx, w)
	if err == nil {
		err = s.stage("check")
	}
	return drafts, err
}

func inStages(stage func(string) error) (service.Options, func(*service.Server)) {
	return service.Options{Extractor: func(string) consolidate.Extractor { return staged{consolidate.Builtin{}, stage} }},
		func(s *service.Server) { s.SetBetween(func() error { return stage("store") }) }
}

// TestStoppedAtEveryPoint ends a run at every step of every window, and takes a
// copy of the disk there, as a crash would leave it. What goes on from the copy,
// and from the stopped run itself, ends with the same chain.
func TestStoppedAtEveryPoint(t *testing.T) {
	windows := 6
	if testing.Short() {
		windows = 3
	}
	root := seed(t, windows)
	want := uninterrupted(t, root)
	errStop := errors.New("stopped here")
	points := 0
	for stop := 0; ; stop++ {
		stopped, at, crashed := copied(t, root), 0, ""
		options, hook := inStages(func(string) error {
			if at++; at > stop {
				crashed = copied(t, stopped)
				return errStop
			}
			return nil
		})
		err := withServer(stopped, options, func(ctx context.Context, s *service.Server, id string) error {
			hook(s)
			return s.ConsolidateAll(ctx, id)
		})
		if err == nil {
			break
		}
		if !errors.Is(err, errStop) {
			t.Fatalf("point %d: %v", stop, err)
		}
		for _, root := range []string{crashed, stopped} {
			points++
			err := withServer(root, service.Options{}, func(ctx context.Context, s *service.Server, id string) error { return s.ConsolidateAll(ctx, id) })
			if err != nil {
				t.Fatalf("point %d: %v", stop, err)
			}
			if diff := cmp.Diff(want, chainOf(t, root)); diff != "" {
				t.Fatalf("point %d: chain (-uninterrupted +got):\n%s", stop, diff)
			}
		}
	}
	t.Logf("%d points, %d batches", points, len(want))
	if points < 2*3*len(want) {
		t.Errorf("only %d points for %d batches", points, len(want))
	}
}

// readerPart reads what waits in the store at root and prints a line at each step.
func readerPart(root string) error {
	options, hook := inStages(func(stage string) error {
		_, err := fmt.Println(stage)
		return err
	})
	return withServer(root, options, func(ctx context.Context, s *service.Server, id string) error {
		hook(s)
		return s.ConsolidateAll(ctx, id)
	})
}

// TestKill kills a process that reads windows, again and again, at a step or a
// moment after it. Nothing is read twice or left out, and the chain is the one of
// a process that was left alone. RECALLD_KILLS says how often; 1000 is what a
// release is held to.
func TestKill(t *testing.T) {
	kills := 50
	if testing.Short() {
		kills = 10
	}
	if n, err := strconv.Atoi(os.Getenv("RECALLD_KILLS")); err == nil {
		kills = n
	}
	seedOf := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seedOf)
	random := rand.New(rand.NewPCG(seedOf, 0))
	whole := seed(t, 25)
	want := uninterrupted(t, whole)
	killed, ended := 0, 0
	for root := copied(t, whole); killed < kills || ended == 0; {
		alone := killLater(t, root, 1+random.IntN(9), time.Duration(random.IntN(3000))*time.Microsecond)
		if !alone {
			killed++
			if got := chainOf(t, root); len(got) > len(want) || !slices.Equal(got, want[:len(got)]) {
				t.Fatalf("after %d kills (-uninterrupted +got):\n%s", killed, cmp.Diff(want, got))
			}
			continue
		}
		ended++
		if diff := cmp.Diff(want, chainOf(t, root)); diff != "" {
			t.Fatalf("after %d kills (-uninterrupted +got):\n%s", killed, diff)
		}
		root = copied(t, whole)
	}
	t.Logf("%d kills, read to the end %d times", killed, ended)
}

// killLater starts a reader and kills it a while after it came to its n-th step.
// It reports whether the reader ended by itself.
func killLater(t *testing.T, root string, n int, after time.Duration) (alone bool) {
	t.Helper()
	cmd := child(t, root)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	seen := 0
	for seen < n && lines.Scan() {
		seen++
	}
	if seen == n {
		time.Sleep(after) // the moment of the kill, not a wait for something
		if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
	}
	err = cmd.Wait()
	if err != nil && cmd.ProcessState.Exited() {
		t.Fatalf("the reader failed by itself: %v", err)
	}
	return err == nil
}
