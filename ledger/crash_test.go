package ledger_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"recalld/ledger"
)

// TestKill kills a writing process at random moments. No acknowledged turn may
// be lost, no turn be half there, no start fail.
func TestKill(t *testing.T) {
	rounds := 50
	if testing.Short() {
		rounds = 10
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	root := filepath.Join(t.TempDir(), "store")
	acknowledged := 0
	for round := range rounds {
		var out bytes.Buffer
		cmd := child(t, "writer", root)
		cmd.Stdout, cmd.Stderr = &out, os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(20+random.IntN(180)) * time.Millisecond) // the moment of the kill, not a wait for something
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); cmd.ProcessState.Exited() {
			t.Fatalf("round %d: the writer ended by itself: %v", round, err)
		}
		acknowledged = max(acknowledged, lastAcknowledged(out.Bytes()))
		if round%5 == 4 || round == rounds-1 { // in other rounds the next writer opens what the kill left
			checkCrashed(t, root, acknowledged)
		}
	}
	t.Logf("%d turns acknowledged in %d rounds", acknowledged, rounds)
	if acknowledged < rounds {
		t.Errorf("only %d turns were acknowledged in %d rounds: this tested nothing", acknowledged, rounds)
	}
}

// lastAcknowledged returns the last number on a whole line.
func lastAcknowledged(out []byte) int {
	whole := out[:bytes.LastIndexByte(out, '\n')+1]
	lines := bytes.Fields(whole)
	if len(lines) == 0 {
		return 0
	}
	n := 0
	fmt.Sscan(string(lines[len(lines)-1]), &n)
	return n
}

// checkCrashed opens what a crash left and compares it with what was
// acknowledged. At most one turn more may be there.
func checkCrashed(t *testing.T, root string, acknowledged int) {
	t.Helper()
	s, err := ledger.OpenStore(root, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	id, err := s.Ensure(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.Open(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	verify(t, m)
	counts, err := m.Counts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if counts.Turns < uint64(acknowledged) {
		t.Fatalf("%d turns were acknowledged, %d are there", acknowledged, counts.Turns)
	}
	checkTurns(t, m, int(counts.Turns))
}

// checkTurns reads all messages and compares them with those of the first n
// turns of the crash test.
func checkTurns(t *testing.T, m *ledger.Memory, n int) {
	t.Helper()
	var after uint64
	for i := 1; i <= n; i++ {
		want := crashTurn(i)
		records, err := m.Read(t.Context(), after, len(want.Messages), 0)
		if err != nil || len(records) != len(want.Messages) {
			t.Fatalf("turn %d: %d messages, error %v", i, len(records), err)
		}
		for j, r := range records {
			if r.TurnSeq != uint64(i) || r.TurnID != want.ID || r.Ordinal != j || !bytes.Equal(r.Text, want.Messages[j].Text) {
				t.Fatalf("message %d of turn %d is message %d of turn %d (%s)", j, i, r.Ordinal, r.TurnSeq, r.ID)
			}
			after = r.Seq
		}
	}
	if head, err := m.Head(t.Context()); err != nil || head != after {
		t.Errorf("head is %d after message %d, %v", head, after, err)
	}
}

// crashed returns the files of a memory as a kill would leave them, the log
// not yet moved: the file, the log, and the length the log had after each turn.
func crashed(t *testing.T, turns int) (file, log []byte, after []int64) {
	t.Helper()
	s := openStore(t, t.TempDir(), ledger.Options{})
	m := openMemory(t, s, key)
	path := filepath.Join(s.Folder(m.ID()), "ledger.db")
	for n := 1; n <= turns; n++ {
		mustAppend(t, m, crashTurn(n))
		info, err := os.Stat(path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		after = append(after, info.Size())
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if log, err = os.ReadFile(path + "-wal"); err != nil {
		t.Fatal(err)
	}
	return file, log, after
}

// Of SQLite's log: the length of its header, and of a frame with its own.
const walHeader, walFrame = 32, 24 + 4096

// TestTornLog cuts the log at many places in its last commits, and fills what
// was cut off with zeros or rubbish. Each time the memory opens, and holds
// every turn that was committed before the cut.
func TestTornLog(t *testing.T) {
	const turns, torn = 12, 3
	file, log, after := crashed(t, turns)
	random := rand.New(rand.NewPCG(1, 2))
	n := 200
	if testing.Short() {
		n = 50
	}
	first, end := after[turns-torn-1], int64(len(log))
	cuts := []int64{0, 1, 31, 32, 33, end}
	for at := int64(walHeader); at <= end; at += walFrame { // around each frame and its header
		if at >= first {
			cuts = append(cuts, at-1, at, min(at+1, end), min(at+24, end))
		}
	}
	for range n {
		cuts = append(cuts, first+random.Int64N(end-first))
	}
	root := t.TempDir()
	s := openStore(t, root, ledger.Options{})
	id, err := s.Ensure(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(s.Folder(id), "ledger.db")
	for i, cut := range cuts {
		damaged := append([]byte(nil), log...)
		switch i % 3 {
		case 0:
			damaged = damaged[:cut]
		case 1:
			clear(damaged[cut:])
		case 2:
			for j := range damaged[cut:] {
				damaged[cut+int64(j)] = byte(random.Uint32())
			}
		}
		err := errors.Join(os.RemoveAll(path+"-shm"), os.WriteFile(path, file, 0o600), os.WriteFile(path+"-wal", damaged, 0o600))
		if err != nil {
			t.Fatal(err)
		}
		committed := 0
		for n, size := range after {
			if size <= cut {
				committed = n + 1
			}
		}
		m, err := s.Open(t.Context(), id)
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		counts, err := m.Counts(t.Context())
		if err != nil || counts.Turns < uint64(committed) || counts.Turns > uint64(committed)+1 {
			t.Fatalf("cut at %d: %d turns, committed %d, error %v", cut, counts.Turns, committed, err)
		}
		verify(t, m)
		checkTurns(t, m, int(counts.Turns))
		mustAppend(t, m, exchange("after", 1))
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d cuts", len(cuts))
}
