//go:build unix

package main

import (
	"errors"
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
		return fmt.Errorf("%s can be written to by other users; chmod 700 %s makes it private", path, path)
	}
	return nil
}

// isWritable reports whether files can be made in a folder, or may be once
// there is such a folder.
func isWritable(folder string) bool {
	err := unix.Access(folder, unix.W_OK|unix.X_OK)
	return !errors.Is(err, unix.EROFS) && !errors.Is(err, fs.ErrPermission)
}

// detach has cmd survive this process and its terminal.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
