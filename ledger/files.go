package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	folderMode fs.FileMode = 0o700
	fileMode   fs.FileMode = 0o600
)

// makeFolder makes the folder at path with mode 0700 and syncs its parent. A
// folder that is there is made private; anything else there, a link above
// all, is refused.
func makeFolder(path string) error {
	err := os.Mkdir(path, folderMode)
	if errors.Is(err, fs.ErrExist) {
		return checkFolder(path)
	}
	if err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// checkFolder refuses what is not a folder, without following a link, and
// takes rights of others away.
func checkFolder(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder but %s", path, describe(info.Mode()))
	}
	return tighten(path, info.Mode(), folderMode)
}

// makeFile makes an empty file with mode 0600, on disk when it returns.
// SQLite gives the rights of a file to the log and shared memory beside it.
func makeFile(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, fileMode)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// checkDatabase refuses a database, or a file SQLite keeps beside it, that is
// a link or no plain file. Only the database itself must be there.
func checkDatabase(path string) error {
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		info, err := os.Lstat(path + suffix)
		if suffix != "" && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%s is not a file but %s", path+suffix, describe(info.Mode()))
		}
		if err := tighten(path+suffix, info.Mode(), fileMode); err != nil {
			return err
		}
	}
	return nil
}

// tighten takes rights of others from what is at path. Where that is not
// possible, on a read-only disk, nothing can be written to it either.
func tighten(path string, mode, want fs.FileMode) error {
	if mode.Perm()&^want == 0 || !unixRights {
		return nil
	}
	if err := os.Chmod(path, want); err != nil && !isReadOnly(err) {
		return err
	}
	return nil
}

func describe(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeSymlink != 0:
		return "a symbolic link"
	case mode.IsDir():
		return "a folder"
	case mode.IsRegular():
		return "a file"
	}
	return "a special file"
}

// makeRoot makes the folder of a store and those above it.
func makeRoot(root string) error {
	info, err := os.Lstat(root)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(filepath.Dir(root), folderMode); err != nil {
			return err
		}
		return makeFolder(root)
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder but %s", root, describe(info.Mode()))
	}
	if info.Mode().Perm()&^folderMode == 0 || !unixRights {
		return nil
	}
	// A mistyped root must not lock other people out of their folder: only a
	// store or an empty folder is made private.
	if _, err := os.Lstat(filepath.Join(root, lockName)); errors.Is(err, fs.ErrNotExist) {
		entries, err := os.ReadDir(root)
		if err != nil {
			return err
		}
		if len(entries) > 0 {
			return fmt.Errorf("%s holds other things and is open to other users: name a folder of its own", root)
		}
	}
	return tighten(root, info.Mode(), folderMode)
}
