package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// execute runs a command line and gives what it prints.
func execute(args ...string) (stdout, stderr string, err error) {
	var out, errOut bytes.Buffer
	root := newRootCommand()
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(&errOut)
	err = root.Execute()
	return out.String(), errOut.String(), err
}

func TestWrongUsage(t *testing.T) {
	tests := []struct {
		name, want string
		args       []string
	}{
		{"no data", "--data", []string{"beam"}},
		{"unknown split", "--split", []string{"beam", "--data", "x", "--split", "odd"}},
		{"unknown flag", "--odd", []string{"beam", "--odd"}},
		{"an argument too many", "odd", []string{"beam", "odd", "--data", "x"}},
		{"no file", "--file", []string{"longmemeval"}},
		{"speed on a running server", "of its own", []string{"speed", "--root", "x"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := execute(tt.args...)
			var usage *usageError
			if !errors.As(err, &usage) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want wrong usage that names %s", err, tt.want)
			}
		})
	}
}

func TestAbsentDataIsNoFailure(t *testing.T) {
	for _, l := range loaders {
		t.Run(l.name, func(t *testing.T) {
			stdout, stderr, err := execute(l.name, "--data", t.TempDir(), "--json", "-")
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(stderr, l.name+" skipped: data is absent") {
				t.Errorf("stderr %q does not say that the set is skipped", stderr)
			}
			var result Result
			if err := json.Unmarshal([]byte(stdout), &result); err != nil || result.Skipped == "" {
				t.Errorf("stdout %q, %v; want one object that says skipped", stdout, err)
			}
		})
	}
}

func TestRunningServer(t *testing.T) {
	tests := []struct {
		name, socketFlag, rootFlag, socket, token string
	}{
		{"by root", "", "/store", "/store/recalld.sock", "/store/token"},
		{"by socket", "/run/x/a.sock", "", "/run/x/a.sock", "/run/x/token"},
		{"by both", "/run/a.sock", "/store", "/run/a.sock", "/store/token"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := options{socket: tt.socketFlag, root: tt.rootFlag}
			socket, token := o.running()
			if socket != tt.socket || token != tt.token {
				t.Errorf("running = %s, %s; want %s, %s", socket, token, tt.socket, tt.token)
			}
		})
	}
}
