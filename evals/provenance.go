package main

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// A Provenance tells when, where and of what figures were made.
type Provenance struct {
	Date    string `json:"date"`
	Machine string `json:"machine"`
	Commit  string `json:"commit"`
}

func provenance(ctx context.Context) Provenance {
	return Provenance{
		Date:    time.Now().UTC().Format(time.DateOnly),
		Machine: machine(),
		Commit:  commit(ctx),
	}
}

// machine names the processor, how many of it there are, and the system.
func machine() string {
	return strings.Join([]string{
		processor(), "×", strconv.Itoa(runtime.NumCPU()), runtime.GOOS + "/" + runtime.GOARCH, runtime.Version(),
	}, " ")
}

// processor reads the name of the processor from Linux's proc.
func processor() string {
	data, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "processor"
	}
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(line, ":")
		if strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "processor"
}

// commit names the commit of the current folder, and says when files differ.
func commit(ctx context.Context) string {
	head, err := exec.CommandContext(ctx, "git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	name := strings.TrimSpace(string(head))
	changes, err := exec.CommandContext(ctx, "git", "status", "--porcelain").Output()
	if err != nil || len(changes) > 0 {
		name += " with changes"
	}
	return name
}
