package main

import (
	"io/fs"
	"os/exec"
	"syscall"

	"golang.org/x/sys/windows"
)

// unixRights says whether the mode of a file keeps other users out.
const unixRights = false

// setUmask does nothing: on Windows the rights of the folder above are
// inherited, and the user's own folders are private.
func setUmask(int) {}

func checkOwner(string, fs.FileInfo) error { return nil }

// isWritable is always true: the attribute of a folder says nothing of it here.
func isWritable(string) bool { return true }

// detach has cmd survive this process and its console.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{
		CreationFlags: windows.CREATE_NEW_PROCESS_GROUP | windows.DETACHED_PROCESS,
	}
}
