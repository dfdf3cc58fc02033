//go:build unix

package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// unixRights says whether the mode of a file keeps other users out.
const unixRights = true

func setUmask(mask int) { unix.Umask(mask) }

// checkOwner refuses a folder of another user or one that others may write to.
func checkOwner(path string, info fs.FileInfo) error {
	if s, ok := info.Sys().(*syscall.Stat_t); !ok || int(s.Uid) != os.Getuid() {
		return fmt.Errorf("%s belongs to another user", path)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s can be written to by other users", path)
	}
	return nil
}

// detach has cmd survive this process and its terminal.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
