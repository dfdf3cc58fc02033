package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/rivo/uniseg"
	"golang.org/x/sys/unix"
)

// onTerminal runs a command whose output is a terminal of so many columns.
func (p *place) onTerminal(columns uint16, args ...string) string {
	p.t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		p.t.Skipf("no terminals here: %v", err)
	}
	defer master.Close()
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		p.t.Skipf("no terminals here: %v", err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		p.t.Skipf("no terminals here: %v", err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}); err != nil {
		p.t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		p.t.Skipf("no terminals here: %v", err)
	}
	printed := make(chan string, 1)
	go func() {
		b, _ := io.ReadAll(master) // ends with EIO when the last writer has gone
		printed <- strings.ReplaceAll(string(b), "\r\n", "\n")
	}()
	ctx, cancel := context.WithTimeout(context.Background(), commandPatience)
	defer cancel()
	cmd := p.command(ctx, args...)
	cmd.Stdout, cmd.Stderr = slave, slave
	err = cmd.Run()
	slave.Close()
	out := <-printed
	if err != nil {
		p.t.Fatalf("recalld %q: %v: %s", args, err, out)
	}
	return out
}

// TestTerminal has words of the question be bold on a terminal, and only there,
// and lines fit its width.
func TestTerminal(t *testing.T) {
	p := withShop(t)
	const columns = 50
	p.env = []string{"TERM=xterm", "NO_COLOR="}
	styled := p.onTerminal(columns, of("recall", "stale cache")...)
	if !strings.Contains(styled, "\x1b[1mstale\x1b[0m") {
		t.Errorf("no bold words on a terminal: %q", styled)
	}
	for _, env := range []string{"NO_COLOR=1", "TERM=dumb"} {
		p.env = []string{"TERM=xterm", "NO_COLOR=", env}
		plain := p.onTerminal(columns, of("recall", "stale cache")...)
		if strings.Contains(plain, "\x1b") || !strings.Contains(plain, "stale prices") {
			t.Errorf("%s: %q, want the words without styles", env, plain)
		}
		for line := range strings.Lines(plain) {
			if w := uniseg.StringWidth(strings.TrimSuffix(line, "\n")); w > columns {
				t.Errorf("%s: a line has %d columns: %q", env, w, line)
			}
		}
	}
}
