package ledger

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

const lockName = "recalld.lock"

// maxHolderBytes bounds what is read of the lock file for a message.
const maxHolderBytes = 256

// lockRoot takes the lock of the store at root for as long as the file it
// returns is open. What the file says is only for the message to a second
// opener; a file left by a dead process locks nothing.
//
// On a disk that cannot be written, readOnly is true; the file is nil if the
// lock file is not there.
func lockRoot(root, build string) (f *os.File, readOnly bool, err error) {
	path := filepath.Join(root, lockName)
	f, err = openLock(path, true)
	if err != nil && isReadOnly(err) {
		readOnly = true
		if f, err = openLock(path, false); os.IsNotExist(err) {
			return nil, true, nil
		}
	}
	if err != nil {
		return nil, false, fmt.Errorf("open lock: %w", err)
	}
	got, err := tryLock(f)
	if err != nil {
		f.Close()
		return nil, false, fmt.Errorf("lock %s: %w", path, err)
	}
	if !got {
		who := holder(f)
		f.Close()
		return nil, false, fmt.Errorf("%s: %w by %s", root, ErrLocked, who)
	}
	if readOnly {
		return f, true, nil
	}
	if err := writeHolder(f, build); err != nil {
		f.Close()
		return nil, false, fmt.Errorf("write lock: %w", err)
	}
	return f, false, nil
}

// writeHolder is best effort on a full disk: the lock itself needs no room.
func writeHolder(f *os.File, build string) error {
	if err := f.Chmod(fileMode); err != nil && unixRights {
		return err
	}
	text := fmt.Sprintf("process %d", os.Getpid())
	if build != "" {
		text += ", build " + build
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	if _, err := f.WriteAt([]byte(text+"\n"), 0); err != nil && !isNoSpace(err) {
		return err
	}
	return nil
}

func holder(f *os.File) string {
	b, _ := io.ReadAll(io.LimitReader(f, maxHolderBytes)) // an empty answer is answered below
	first, _, _ := strings.Cut(string(b), "\n")
	if !strings.HasPrefix(first, "process ") {
		return "another process"
	}
	return first
}
