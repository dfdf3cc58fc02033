package ledger_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"recalld/ledger"
)

// systemParts are the parts that need this system.
func systemParts() map[string]func(root string) error {
	return map[string]func(root string) error{
		"full": fullPart, "readonly": readOnlyPart, "limited": limitedPart, "fixed": fixedPart,
	}
}

// onOwnDisk plays a part in a mount namespace of its own, where root is an
// empty disk that nobody else sees. It skips the test where that is not allowed.
func onOwnDisk(t *testing.T, part string) {
	t.Helper()
	cmd := child(t, part, t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) || strings.Contains(string(out), errNoMount.Error()) {
		t.Skipf("a disk cannot be mounted here: %v %s", err, out)
	}
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

var errNoMount = errors.New("no mount")

// mountDisk makes root a disk of the given size.
func mountDisk(root, size string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("%w: %w", errNoMount, err)
	}
	if err := unix.Mount("tmpfs", root, "tmpfs", 0, "mode=0700,size="+size); err != nil {
		return fmt.Errorf("%w: %w", errNoMount, err)
	}
	return nil
}

// openBoth opens the store at root and its memory.
func openBoth(root string, o ledger.Options) (*ledger.Store, *ledger.Memory, error) {
	s, err := ledger.OpenStore(root, o)
	if err != nil {
		return nil, nil, err
	}
	id, err := s.Ensure(context.Background(), key)
	if err != nil {
		s.Close()
		return nil, nil, err
	}
	m, err := s.Open(context.Background(), id)
	if err != nil {
		s.Close()
	}
	return s, m, err
}

// soundly checks that the first n turns of the crash test are there, and
// nothing else.
func soundly(m *ledger.Memory, n int) error {
	ctx := context.Background()
	problems, err := m.Verify(ctx, ledger.VerifyOptions{Deep: true}, nil)
	if err != nil || len(problems) > 0 {
		return fmt.Errorf("verify: %+v, %w", problems, err)
	}
	counts, err := m.Counts(ctx)
	if err != nil || counts.Turns != uint64(n) {
		return fmt.Errorf("%d turns are there, not %d: %w", counts.Turns, n, err)
	}
	for i := 1; i <= n; i++ {
		for _, want := range crashTurn(i).Messages {
			got, err := m.Message(ctx, want.ID)
			if err != nil || !bytes.Equal(got.Text, want.Text) {
				return fmt.Errorf("message %s: %w", want.ID, err)
			}
		}
	}
	if _, err := m.Search(ctx, ledger.SearchQuery{}); err != nil {
		return err
	}
	_, _, err = m.History(ctx, ledger.HistoryQuery{})
	return err
}

// TestFullDisk fills the disk: appends fail, all else goes on, and appends too
// as soon as there is room again.
func TestFullDisk(t *testing.T) { onOwnDisk(t, "full") }

func fullPart(root string) error {
	if err := mountDisk(root, "6m"); err != nil {
		return err
	}
	ballast := filepath.Join(root, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 2<<20), 0o600); err != nil {
		return err
	}
	root = filepath.Join(root, "store")
	s, m, err := openBoth(root, ledger.Options{})
	if err != nil {
		return err
	}
	ctx := context.Background()
	n := 0
	for ; ; n++ {
		if _, err = m.Append(ctx, []ledger.Turn{crashTurn(n + 1)}); err != nil {
			break
		}
	}
	for range 20 { // again and again, without harm
		if _, err = m.Append(ctx, []ledger.Turn{crashTurn(n + 50 - n%50)}); !errors.Is(err, ledger.ErrFull) {
			return fmt.Errorf("on a full disk: %w, want ErrFull", err)
		}
	}
	if err := soundly(m, n); err != nil {
		return fmt.Errorf("while the disk is full: %w", err)
	}
	if err := os.Remove(ballast); err != nil {
		return err
	}
	for end := n + 100; n < end; n++ {
		if _, err := m.Append(ctx, []ledger.Turn{crashTurn(n + 1)}); err != nil {
			return fmt.Errorf("with room again: %w", err)
		}
	}
	if err := soundly(m, n); err != nil {
		return err
	}
	if err := errors.Join(m.Close(), s.Close()); err != nil {
		return err
	}
	s, m, err = openBoth(root, ledger.Options{MinFreeBytes: 1 << 30})
	if err != nil {
		return err
	}
	if _, err := m.Append(ctx, []ledger.Turn{crashTurn(n + 1)}); !errors.Is(err, ledger.ErrFull) || !strings.Contains(err.Error(), "1073741824") {
		return fmt.Errorf("below the mark: %w, want ErrFull naming it", err)
	}
	return errors.Join(soundly(m, n), m.Close(), s.Close())
}

// TestReadOnlyDisk opens stores on a disk that cannot be written: one that was
// closed, one whose writer was killed, one without shared memory, those of
// earlier versions and one of a later version.
func TestReadOnlyDisk(t *testing.T) { onOwnDisk(t, "readonly") }

func readOnlyPart(root string) error {
	if err := mountDisk(root, "16m"); err != nil {
		return err
	}
	const turns = 20
	live := filepath.Join(root, "live")
	s, m, err := openBoth(live, ledger.Options{})
	if err != nil {
		return err
	}
	for n := range turns {
		if _, err := m.Append(context.Background(), []ledger.Turn{crashTurn(n + 1)}); err != nil {
			return err
		}
	}
	killed, bare, closed := filepath.Join(root, "killed"), filepath.Join(root, "bare"), filepath.Join(root, "closed")
	for _, to := range []string{killed, bare} {
		if err := os.CopyFS(to, os.DirFS(live)); err != nil { // as a kill would leave it
			return err
		}
	}
	files, err := filepath.Glob(filepath.Join(bare, "memories", "*", "*-shm"))
	if err != nil || len(files) != 1 {
		return fmt.Errorf("shared memory %v, %w", files, err)
	}
	err = errors.Join(os.Remove(files[0]), os.Remove(filepath.Join(bare, "catalog.db-shm")), m.Close(), s.Close(), os.CopyFS(closed, os.DirFS(live)))
	if err != nil {
		return err
	}
	newer := filepath.Join(root, "newer")
	if err := errors.Join(os.CopyFS(newer, os.DirFS(closed)), alter(ledgerFile(newer), "PRAGMA user_version = 99")); err != nil {
		return err
	}
	for version := range ledgerBack {
		aged := agedFolder(root, version)
		if err := errors.Join(os.CopyFS(aged, os.DirFS(closed)), age(aged, version)); err != nil {
			return err
		}
	}
	if err := unix.Mount("", root, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		return err
	}
	for _, root := range []string{closed, killed, bare} {
		if err := readOnlyStore(root, turns); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(root), err)
		}
	}
	for version := range ledgerBack {
		if err := agedReadOnly(agedFolder(root, version), version, turns); err != nil {
			return fmt.Errorf("version %d: %w", version, err)
		}
	}
	if _, _, err := openBoth(newer, ledger.Options{}); !errors.Is(err, ledger.ErrNewer) {
		return fmt.Errorf("newer: %w, want ErrNewer", err)
	}
	return nil
}

func agedFolder(root string, version int) string {
	return filepath.Join(root, fmt.Sprint("aged", version))
}

func readOnlyStore(root string, turns int) error {
	s, m, err := openBoth(root, ledger.Options{})
	if err != nil {
		return err
	}
	ctx := context.Background()
	if !s.ReadOnly() {
		return errors.New("the store does not say that it is read-only")
	}
	if err := soundly(m, turns); err != nil {
		return err
	}
	_, appendErr := m.Append(ctx, []ledger.Turn{crashTurn(turns + 1)})
	_, ensureErr := s.Ensure(ctx, ledger.MemoryKey{Agent: "new"})
	_, _, bindErr := s.Bind(ctx, ledger.Binding{Session: "new", Key: key})
	_, sessionErr := s.Reserve(ctx, m.ID(), ledger.MemoryKey{}, []string{"new"})
	for _, err := range []error{appendErr, ensureErr, bindErr, sessionErr} {
		if !errors.Is(err, ledger.ErrReadOnly) {
			return fmt.Errorf("error %w, want ErrReadOnly", err)
		}
	}
	if _, err := ledger.OpenStore(root, ledger.Options{}); !errors.Is(err, ledger.ErrLocked) {
		return fmt.Errorf("second opener: %w, want ErrLocked", err)
	}
	if problems, err := s.Verify(ctx); err != nil || len(problems) > 0 {
		return fmt.Errorf("verify store: %+v, %w", problems, err)
	}
	return errors.Join(m.Close(), s.Close())
}

// TestFailedWrite lets writes fail in the middle of a commit, over and over.
func TestFailedWrite(t *testing.T) {
	out, err := child(t, "limited", filepath.Join(t.TempDir(), "store")).CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// limitedPart forbids the files to grow from time to time.
func limitedPart(root string) error {
	signal.Ignore(unix.SIGXFSZ)
	s, m, err := openBoth(root, ledger.Options{})
	if err != nil {
		return err
	}
	ctx := context.Background()
	failures := 0
	n := 1
	for ; n <= 120; n++ {
		if n%10 == 0 {
			info, err := os.Stat(filepath.Join(s.Folder(m.ID()), "ledger.db-wal"))
			if err != nil {
				return err
			}
			limit := uint64(info.Size()) + uint64(n*97%9000)
			if err := limitFiles(limit); err != nil {
				return err
			}
			large := crashTurn(n)
			for j := range large.Messages {
				large.Messages[j].Text = make([]byte, 100_000) // does not fit under the limit
				large.Messages[j].ID = fmt.Sprint("large ", n, " ", j)
			}
			if _, err := m.Append(ctx, []ledger.Turn{large}); err == nil {
				return fmt.Errorf("turn %d was acknowledged although the log could not hold it", n)
			}
			failures++
			if err := limitFiles(unix.RLIM_INFINITY); err != nil {
				return err
			}
		}
		if _, err := m.Append(ctx, []ledger.Turn{crashTurn(n)}); err != nil {
			return fmt.Errorf("turn %d after %d failures: %w", n, failures, err)
		}
	}
	if err := soundly(m, n-1); err != nil {
		return err
	}
	if err := errors.Join(m.Close(), s.Close()); err != nil {
		return err
	}
	if s, m, err = openBoth(root, ledger.Options{}); err != nil {
		return err
	}
	return errors.Join(soundly(m, n-1), m.Close(), s.Close())
}

func limitFiles(size uint64) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	limit.Cur = min(size, limit.Max)
	return unix.Setrlimit(unix.RLIMIT_FSIZE, &limit)
}

// TestFailedSync lets the n-th sync of a process fail, for many n. The Append
// that needed it is not acknowledged; the next one opens the file anew first.
func TestFailedSync(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed")
	}
	last := 60
	if testing.Short() {
		last = 35 // making and migrating the files takes about twenty
	}
	failed, refused := 0, 0
	for n := 1; n <= last; n += 2 {
		root := filepath.Join(t.TempDir(), "store")
		cmd := child(t, "fixed", root, strace, "-f", "-qq", "-o", os.DevNull, "-e", "trace=fsync",
			"-e", fmt.Sprintf("inject=fsync:error=EIO:when=%d", n))
		out, err := cmd.CombinedOutput()
		if strings.Contains(string(out), "ptrace") {
			t.Skipf("tracing is not allowed here: %s", out)
		}
		acknowledged := strings.Count(string(out), "ok")
		failed += strings.Count(string(out), "failed")
		if err != nil {
			refused++ // the store itself could not be made or opened
		} else if acknowledged != fixedTurns {
			t.Errorf("sync %d: %d turns acknowledged, %s", n, acknowledged, out)
		}
		s, m, err := openBoth(root, ledger.Options{})
		if err != nil {
			t.Fatalf("sync %d: %v", n, err)
		}
		if err := errors.Join(soundly(m, acknowledged), m.Close(), s.Close()); err != nil {
			t.Errorf("sync %d: %v", n, err)
		}
	}
	t.Logf("%d appends failed, %d starts were refused", failed, refused)
	if failed == 0 {
		t.Error("no append failed: this tested nothing")
	}
}

const fixedTurns = 25

// fixedPart appends a number of turns, each again until it is acknowledged.
func fixedPart(root string) error {
	s, m, err := openBoth(root, ledger.Options{})
	if err != nil {
		return err
	}
	for n := 1; n <= fixedTurns; n++ {
		for {
			results, err := m.Append(context.Background(), []ledger.Turn{crashTurn(n)})
			if err != nil {
				fmt.Println("failed", err)
				continue
			}
			if got := results[0].Seq; got != uint64(n) {
				return fmt.Errorf("turn %d has number %d", n, got)
			}
			fmt.Println("ok")
			break
		}
	}
	return errors.Join(m.Close(), s.Close())
}
