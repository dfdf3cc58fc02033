package ledger

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// unixRights says whether the mode of a file keeps other users out. On Windows
// the rights of the user's profile folder do.
const unixRights = false

// lockless is the name of SQLite's access to files without locks: there is none.
const lockless = ""

// syncFolder does nothing: Windows has no way to sync a folder, and NTFS
// journals the names in it.
func syncFolder(string) error { return nil }

// isReadOnly reports whether err says that nothing can be written there.
func isReadOnly(err error) bool {
	return errors.Is(err, windows.ERROR_WRITE_PROTECT) || errors.Is(err, fs.ErrPermission)
}

// isNoSpace reports whether err says that the disk is full.
func isNoSpace(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL)
}

// openLock opens or makes the lock file.
func openLock(path string, writable bool) (*os.File, error) {
	if !writable {
		return os.OpenFile(path, os.O_RDONLY, 0)
	}
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, fileMode)
}

// lockedByte is far behind the text of the lock file: Windows locks bytes
// against reading too, and a second opener wants to read who holds the lock.
const lockedByte = 1 << 30

// tryLock takes the kernel's lock on f, which ends with the process, without
// waiting. It returns false when somebody else has it.
func tryLock(f *os.File) (bool, error) {
	err := windows.LockFileEx(windows.Handle(f.Fd()),
		windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY,
		0, 1, 0, &windows.Overlapped{Offset: lockedByte})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return false, nil
	}
	return err == nil, err
}

// freeBytes returns the room left on the disk of path for this user.
func freeBytes(path string) (uint64, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return 0, err
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(name, &free, nil, nil); err != nil {
		return 0, err
	}
	return free, nil
}
