package main

import (
	"bufio"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// server is the process id of the server that runs.
func (p *place) server() int {
	p.t.Helper()
	return int(p.run("status", "--json", "--no-spawn").want(p.t, exitDone).object(p.t)["processId"].(float64))
}

// eventually waits for something that another process does.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for range 500 {
		if is() {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("%s: not within 10 s", what)
}

// serve starts a server in the foreground and waits until it says that it
// serves. wait waits for its end and gives its status.
func (p *place) serve(args ...string) (cmd *exec.Cmd, wait func() int) {
	p.t.Helper()
	cmd = p.command(context.Background(), append([]string{"serve"}, args...)...)
	pipe, err := cmd.StderrPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	ended := make(chan int, 1)
	ready := make(chan bool, 1)
	go func() {
		lines := bufio.NewScanner(pipe)
		for lines.Scan() {
			if strings.Contains(lines.Text(), "msg=serving") {
				ready <- true
			}
		}
		cmd.Wait()
		close(ready)
		ended <- cmd.ProcessState.ExitCode()
	}()
	p.t.Cleanup(func() { cmd.Process.Kill() })
	if !<-ready {
		p.t.Fatalf("serve ended with status %d before it served", <-ended)
	}
	return cmd, func() int {
		select {
		case status := <-ended:
			return status
		case <-time.After(commandPatience):
			p.t.Fatal("the server does not end")
			return 0
		}
	}
}

func TestNoSpawn(t *testing.T) {
	p := newPlace(t)
	p.run("memories", "--no-spawn").want(t, exitFailed).says(t, "no server runs", p.root, "recalld serve")
	p.env = []string{"RECALLD_NO_SPAWN=1"}
	p.run("memories").want(t, exitFailed).says(t, "no server runs")
	p.env = []string{"RECALLD_NO_SPAWN=0"}
	p.run("memories").want(t, exitDone).says(t, "There are no memories")
}

func TestSpawnAndStop(t *testing.T) {
	p := newPlace(t)
	p.run("stop").want(t, exitDone).says(t, "No server runs")
	p.run("memories").want(t, exitDone)
	first := p.server()
	if second := p.server(); second != first {
		t.Errorf("server %d, then %d; want it to stay", first, second)
	}
	o := p.run("stop", "--json").want(t, exitDone).object(t)
	if o["processId"] != float64(first) {
		t.Errorf("stop gives process %v, want %d", o["processId"], first)
	}
	if _, err := os.Lstat(filepath.Join(p.root, socketName)); err == nil {
		t.Error("the socket is left")
	}
	p.run("status", "--no-spawn").want(t, exitFailed)
	// A server that was just stopped does not stand in the way of the next.
	_, wait := p.serve()
	p.run("stop").want(t, exitDone)
	if status := wait(); status != exitDone {
		t.Errorf("the stopped server ends with status %d", status)
	}
}

// TestBuildRecord has clients know the server's build without a call that costs
// the more, the more memories there are.
func TestBuildRecord(t *testing.T) {
	p := newPlace(t)
	p.run("memories").want(t, exitDone)
	build := p.run("version", "--json").object(t)["build"]
	if got, err := readBuild(p.root); err != nil || got != build {
		t.Errorf("build %q, %v is recorded, want %q", got, err, build)
	}
	calls := func(method string) int {
		log, err := os.ReadFile(logPath(p.root))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(log), method)
	}
	before := calls("AdminService/Status")
	p.run("memories").want(t, exitDone)
	if calls("MemoriesService/List") != 2 || calls("AdminService/Status") != before {
		t.Errorf("%d calls of Status for a server of the same build, want none", calls("AdminService/Status")-before)
	}
	if err := os.Remove(buildPath(p.root)); err != nil {
		t.Fatal(err)
	}
	p.run("memories").want(t, exitDone)
	if calls("AdminService/Status") != before+1 {
		t.Error("a server without a record is not asked for its build")
	}
	p.run("stop").want(t, exitDone)
	if _, err := readBuild(p.root); err == nil {
		t.Error("the record is left when the server has ended")
	}
}

// TestManyClientsOneServer has clients that come at once share one server.
func TestManyClientsOneServer(t *testing.T) {
	p := newPlace(t)
	servers := make([]float64, 6)
	var group sync.WaitGroup
	for i := range servers {
		group.Go(func() {
			r := p.run("status", "--json")
			if r.status != exitDone {
				t.Errorf("status %d: %s", r.status, r.err)
				return
			}
			servers[i] = r.object(t)["processId"].(float64)
		})
	}
	group.Wait()
	for _, s := range servers {
		if s != servers[0] {
			t.Fatalf("servers %v, want one", servers)
		}
	}
}

// TestKilledServer has the next command work after the server was killed, on
// the socket that it left.
func TestKilledServer(t *testing.T) {
	p := withShop(t)
	pid := p.server()
	process, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the killed server is gone", func() bool {
		return p.run("status", "--no-spawn").status == exitFailed
	})
	p.run(of("recall", "cache dropped")...).want(t, exitDone).says(t, "Redis")
	if again := p.server(); again == pid {
		t.Errorf("server %d was killed and still answers", pid)
	}
}

func TestSecondServer(t *testing.T) {
	p := newPlace(t)
	first, _ := p.serve()
	began := time.Now()
	p.run("serve").want(t, exitFailed).says(t, "locked", strconv.Itoa(first.Process.Pid), "recalld stop")
	if took := time.Since(began); took > time.Second {
		t.Errorf("the second server took %v to give up, want at most 1s", took)
	}
	p.run("memories").want(t, exitDone)
}

func TestSignals(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no signals")
	}
	for _, signal := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		p := newPlace(t)
		cmd, wait := p.serve()
		p.run("memories").want(t, exitDone)
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if status := wait(); status != exitDone {
			t.Errorf("%v: status %d, want %d", signal, status, exitDone)
		}
		if _, err := os.Lstat(filepath.Join(p.root, socketName)); err == nil {
			t.Errorf("%v: the socket is left", signal)
		}
	}
}

func TestIdleServerEnds(t *testing.T) {
	p := newPlace(t)
	_, wait := p.serve("--idle", "100ms")
	if status := wait(); status != exitDone {
		t.Errorf("status %d, want %d", status, exitDone)
	}
}

// TestNewerClientReplacesServer has a later build end the server of an earlier
// one, and an earlier build use the server of a later one.
func TestNewerClientReplacesServer(t *testing.T) {
	p := withShop(t)
	old := p.server()
	later := filepath.Join(t.TempDir(), filepath.Base(builtProgram))
	program, err := os.ReadFile(builtProgram)
	if err != nil {
		t.Fatal(err)
	}
	// Bytes after its end are another build to the fingerprint, and nothing to
	// the system.
	if err := os.WriteFile(later, append(program, 0), 0o700); err != nil {
		t.Fatal(err)
	}
	future := time.Now().Add(time.Hour)
	if err := os.Chtimes(later, future, future); err != nil {
		t.Fatal(err)
	}
	p.binary = later
	if pid := p.server(); pid != old {
		t.Errorf("--no-spawn replaced server %d by %d", old, pid)
	}
	p.run(of("recall", "cache dropped")...).want(t, exitDone).says(t, "Redis")
	replaced := p.server()
	if replaced == old {
		t.Error("the server of the earlier build still runs")
	}
	p.binary = builtProgram
	p.run(of("recall", "cache dropped")...).want(t, exitDone).says(t, "Redis")
	if pid := p.server(); pid != replaced {
		t.Errorf("the earlier build replaced server %d by %d", replaced, pid)
	}
}

// TestLongRoot has a store work whose path is too long for a socket, also for a
// client with another environment.
func TestLongRoot(t *testing.T) {
	p := newPlace(t)
	p.root = filepath.Join(filepath.Dir(p.root), strings.Repeat("long/", 30), "store")
	runtimeFolder := shortTemp(t)
	p.env = []string{"XDG_RUNTIME_DIR=" + runtimeFolder}
	p.run(of("import", p.write("shop.jsonl", shop))...).want(t, exitDone)
	first := p.server()
	checkModes(t, runtimeFolder)
	p.env = []string{"XDG_RUNTIME_DIR="}
	if again := p.server(); again != first {
		t.Errorf("another environment finds server %d, want %d", again, first)
	}
	p.run(of("recall", "cache dropped")...).want(t, exitDone).says(t, "Redis")
	p.run("stop").want(t, exitDone)
}

// TestFilesArePrivate walks the store after work under the umask that hides
// nothing.
func TestFilesArePrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no umask")
	}
	for _, umask := range []string{"000", "022"} {
		t.Run(umask, func(t *testing.T) {
			p := newPlace(t)
			file := p.write("shop.jsonl", shop)
			under := func(args ...string) {
				ctx, cancel := context.WithTimeout(context.Background(), commandPatience)
				defer cancel()
				cmd := p.command(ctx, args...)
				cmd.Path = "/bin/sh"
				cmd.Args = append([]string{"sh", "-c", `umask ` + umask + `; exec "$@"`, "sh", p.binary}, args...)
				execute(t, cmd, "").want(t, exitDone)
			}
			under(of("import", file)...)
			under(of("recall", "cache")...)
			under("verify", "--deep")
			checkModes(t, p.root)
			under("stop")
			under("verify", "--deep")
			checkModes(t, p.root)
		})
	}
}

// checkModes fails for every file that others could read.
func checkModes(t *testing.T, root string) {
	t.Helper()
	seen := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		seen++
		want := fs.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v", path, info.Mode().Perm(), want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 2 {
		t.Errorf("only %d files in %s", seen, root)
	}
}

// TestTakenPlaces has a server refuse to start where something else is.
func TestTakenPlaces(t *testing.T) {
	t.Run("a file in the place of the socket", func(t *testing.T) {
		p := newPlace(t)
		p.run("memories").want(t, exitDone)
		p.run("stop").want(t, exitDone)
		socket := filepath.Join(p.root, socketName)
		if err := os.WriteFile(socket, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		p.run("serve").want(t, exitFailed).says(t, socket, "is not a socket")
		p.run("memories").want(t, exitFailed).says(t, "did not start", "is not a socket")
		if err := os.Remove(socket); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("a folder of other things that is open to others", func(t *testing.T) {
		if runtime.GOOS == "windows" {
			t.Skip("Windows has no modes")
		}
		p := newPlace(t)
		folder := t.TempDir()
		if err := os.Chmod(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "thesis.txt"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		p.run("memories", "--root", folder).want(t, exitFailed).says(t, folder, "holds other things", "chmod 700 "+folder)
		entries, err := os.ReadDir(folder)
		if err != nil || len(entries) != 1 {
			t.Errorf("the folder holds %v, %v; want it untouched", entries, err)
		}
	})
	t.Run("a folder that others may write to", func(t *testing.T) {
		if runtime.GOOS == "windows" {
			t.Skip("Windows has no modes")
		}
		p := newPlace(t)
		if err := os.Mkdir(p.root, 0o700); err != nil {
			t.Fatal(err)
		}
		open := func() {
			if err := os.Chmod(p.root, 0o775); err != nil {
				t.Fatal(err)
			}
		}
		open()
		p.run("memories").want(t, exitDone) // it is empty
		checkModes(t, p.root)
		open()
		p.run("memories").want(t, exitFailed).says(t, "can be written to by other users", "chmod 700 "+p.root)
		if err := os.Chmod(p.root, 0o700); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("a lost token", func(t *testing.T) {
		p := newPlace(t)
		_, wait := p.serve()
		if err := os.WriteFile(tokenPath(p.root), []byte(strings.Repeat("0", 2*tokenBytes)+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		p.run("memories").want(t, exitFailed).says(t, "refused the call")
		p.run("verify").want(t, exitFailed).says(t, "refused the call")
		if err := syscallTerm(p); err != nil {
			t.Skip(err)
		}
		wait()
	})
}

// syscallTerm ends the server by its process id, as a user would who lost the
// token.
func syscallTerm(p *place) error {
	b, err := os.ReadFile(filepath.Join(p.root, lockName))
	if err != nil {
		return err
	}
	var pid int
	if _, err := fmt.Sscanf(string(b), "process %d", &pid); err != nil {
		return err
	}
	process, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return process.Signal(syscall.SIGTERM)
}

// TestSuspendedServer has a server that is there but does not answer be told
// from one that is not there: verify says that the store is locked.
func TestSuspendedServer(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no signals")
	}
	t.Parallel()
	p := newPlace(t)
	cmd, _ := p.serve()
	if err := suspend(cmd.Process); err != nil {
		t.Fatal(err)
	}
	p.run("verify").want(t, exitLocked).says(t, "does not answer")
	if err := resume(cmd.Process); err != nil {
		t.Fatal(err)
	}
}
