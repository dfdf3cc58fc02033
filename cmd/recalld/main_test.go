package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// builtProgram is the program under test, built once.
var builtProgram string

func TestMain(m *testing.M) {
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	folder, err := os.MkdirTemp("", "recalld-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	builtProgram = filepath.Join(folder, "recalld")
	if runtime.GOOS == "windows" {
		builtProgram += ".exe"
	}
	// Without the commit's stamp the build id comes from the file, which these
	// tests change.
	build := exec.Command("go", "build", "-buildvcs=false", "-o", builtProgram, ".")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		return 1
	}
	return m.Run()
}

// commandPatience bounds every command of a test, so that a hang is a failure.
const commandPatience = 40 * time.Second

// A place is a store of its own with a folder to run commands in.
type place struct {
	t      *testing.T
	root   string
	folder string
	binary string
	env    []string
}

// newPlace gives an empty place. Its server is stopped at the end of the test,
// and the store must then be whole and private.
func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{t: t, root: filepath.Join(shortTemp(t), "store"), folder: t.TempDir(), binary: builtProgram}
	t.Cleanup(func() {
		if _, err := os.Stat(p.root); errors.Is(err, os.ErrNotExist) {
			return
		}
		p.run("stop").want(t, exitDone)
		if r := p.run("verify", "--deep"); r.status != exitDone && r.status != exitNoStore {
			t.Errorf("verify at the end: status %d, %s%s", r.status, r.out, r.err)
		}
	})
	return p
}

// shortTemp gives a folder whose path is short enough for a socket; that of
// t.TempDir holds the name of the test.
func shortTemp(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "rc-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	})
	return folder
}

// A result is what a command printed and returned.
type result struct {
	args     []string
	out, err string
	status   int
}

// command prepares a command of the place.
func (p *place) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.binary, args...)
	cmd.Dir = p.folder
	cmd.Env = append(os.Environ(), "RECALLD_ROOT="+p.root, "RECALLD_NO_SPAWN=")
	cmd.Env = append(cmd.Env, p.env...)
	return cmd
}

func (p *place) run(args ...string) result { return p.runWith("", args...) }

// runWith runs a command with something on its standard input.
func (p *place) runWith(input string, args ...string) result {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), commandPatience)
	defer cancel()
	return execute(p.t, p.command(ctx, args...), input)
}

func execute(t *testing.T, cmd *exec.Cmd, input string) result {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("recalld %q: %v", cmd.Args[1:], err)
	}
	return result{args: cmd.Args[1:], out: out.String(), err: errs.String(), status: cmd.ProcessState.ExitCode()}
}

// want checks the exit status, and that a failure is one sentence.
func (r result) want(t *testing.T, status int) result {
	t.Helper()
	if r.status != status {
		t.Fatalf("recalld %q: status %d, want %d\nstdout: %s\nstderr: %s", r.args, r.status, status, r.out, r.err)
	}
	if strings.Contains(r.err, "goroutine ") || strings.Contains(r.err, "Usage:") {
		t.Fatalf("recalld %q prints more than a sentence on failure:\n%s", r.args, r.err)
	}
	return r
}

// says checks that the output, or for a failure the error, holds words.
func (r result) says(t *testing.T, words ...string) result {
	t.Helper()
	text := r.out + r.err
	flat := strings.Join(strings.Fields(text), " ") // sentences may be wrapped
	for _, w := range words {
		if !strings.Contains(text, w) && !strings.Contains(flat, w) {
			t.Errorf("recalld %q does not say %q:\n%s", r.args, w, text)
		}
	}
	return r
}

// object reads the one JSON object that was printed.
func (r result) object(t *testing.T) map[string]any {
	t.Helper()
	var o map[string]any
	d := json.NewDecoder(strings.NewReader(r.out))
	if err := d.Decode(&o); err != nil {
		t.Fatalf("recalld %q: %v in %q", r.args, err, r.out)
	}
	if d.More() || strings.Count(r.out, "\n") != 1 {
		t.Fatalf("recalld %q printed more than one line with one object:\n%s", r.args, r.out)
	}
	return o
}

// write makes a file in the place's folder and returns its name.
func (p *place) write(name, content string) string {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.folder, name), []byte(content), 0o600); err != nil {
		p.t.Fatal(err)
	}
	return name
}

// shop is a small history in recalld's own format.
const shop = `{"session_id":"s1","session_title":"Cache","turn_id":"t1","status":"finished","messages":[{"id":"m1","kind":"user","speaker":"Ines","time":"2026-03-02T09:14:05+01:00","text":"The Redis cache serves stale prices, can we drop it?"},{"id":"m2","kind":"reply","speaker":"agent","time":"2026-03-02T09:15:00+01:00","text":"Yes: decided, we drop Redis and read prices from PostgreSQL directly."}]}
{"session_id":"s1","session_title":"Cache","turn_id":"t2","status":"finished","messages":[{"id":"m3","kind":"user","speaker":"Ines","time":"2026-03-02T10:00:00+01:00","text":"Rule: never deploy on a Friday."},{"id":"m4","kind":"trace","speaker":"agent","time":"2026-03-02T10:00:01+01:00","text":"ERROR connection refused: 127.0.0.1:5432"}]}
{"session_id":"s2","session_title":"Invoices","turn_id":"t3","status":"finished","messages":[{"id":"m5","kind":"user","speaker":"Ines","time":"2026-07-01T12:00:00Z","zone":"Europe/Berlin","text":"Rechnungen bekommen ab jetzt eine fortlaufende Nummer."},{"id":"m6","kind":"reply","speaker":"agent","time":"2026-07-01T12:01:00Z","text":"Understood, invoices are numbered."}]}
`

// of names the memory of the shop.
func of(args ...string) []string {
	return append(args, "--agent", "codex", "--project", "shop")
}

// withShop gives a place that holds the shop's history.
func withShop(t *testing.T) *place {
	t.Helper()
	p := newPlace(t)
	p.run(of("import", p.write("shop.jsonl", shop))...).want(t, exitDone)
	return p
}
