//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package ledger

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// unixRights says whether the mode of a file keeps other users out.
const unixRights = true

// lockless is the name of SQLite's access to files without locks.
const lockless = "unix-none"

// syncFolder makes the names in a folder durable.
func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// isReadOnly reports whether err says that nothing can be written there.
func isReadOnly(err error) bool {
	return errors.Is(err, unix.EROFS) || errors.Is(err, fs.ErrPermission)
}

// isNoSpace reports whether err says that the disk is full.
func isNoSpace(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}

// openLock opens or makes the lock file, never through a link.
func openLock(path string, writable bool) (*os.File, error) {
	if !writable {
		return os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	}
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, fileMode)
}

// tryLock takes the kernel's lock on f, which ends with the process, without
// waiting. It returns false when somebody else has it.
func tryLock(f *os.File) (bool, error) {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// freeBytes returns the room left on the disk of path for this user.
func freeBytes(path string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, err
	}
	return uint64(s.Bavail) * uint64(s.Bsize), nil
}
