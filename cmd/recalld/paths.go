package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Names in the store's folder that are ours; the others are the ledger's.
const (
	socketName  = "recalld.sock"
	pointerName = "socket"
	tokenName   = "token"
	logName     = "recalld.log"
	buildName   = "build"
)

// Names of the ledger's that tell whether there is a store, and who has it.
const (
	catalogName = "catalog.db"
	lockName    = "recalld.lock"
)

// maxSocketPath is the longest path a Unix socket may have everywhere: macOS
// has room for 104 bytes with the final zero, Linux for 108.
const maxSocketPath = 103

func logPath(root string) string   { return filepath.Join(runFolder(root), logName) }
func tokenPath(root string) string { return filepath.Join(runFolder(root), tokenName) }
func buildPath(root string) string { return filepath.Join(runFolder(root), buildName) }

// runFolder is where the server of a store keeps what it needs to run: in the
// store, or in a folder for this store when that cannot be written to. Then
// server and clients must have the same XDG_RUNTIME_DIR or temporary folder,
// as there is no place for a pointer.
func runFolder(root string) string {
	if isWritable(root) {
		return root
	}
	return sideFolder(root, os.Getenv)
}

// ensureRunFolder makes the folder that runFolder names when it is not the
// store's.
func ensureRunFolder(root string) error {
	folder := runFolder(root)
	if folder == root {
		return nil
	}
	return makeSideFolder(folder)
}

// sideFolder names a folder for what of a store cannot be in the store.
func sideFolder(root string, getenv func(string) string) string {
	base := getenv("XDG_RUNTIME_DIR")
	if !filepath.IsAbs(base) {
		base = os.TempDir()
	}
	sum := sha256.Sum256([]byte(root))
	return filepath.Join(base, "recalld-"+hex.EncodeToString(sum[:8]))
}

func makeSideFolder(folder string) error {
	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make folder for the socket: %w", err)
	}
	return checkPrivate(folder)
}

// storeRoot gives the absolute path of the store: the flag, else RECALLD_ROOT,
// else recalld in the user's folder for data.
func storeRoot(flag string, getenv func(string) string) (string, error) {
	root := flag
	if root == "" {
		root = getenv("RECALLD_ROOT")
	}
	if root == "" {
		// The XDG specification has relative paths ignored.
		if data := getenv("XDG_DATA_HOME"); filepath.IsAbs(data) {
			root = filepath.Join(data, "recalld")
		}
	}
	if root == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("no folder for the store: %w; name one with --root", err)
		}
		root = filepath.Join(home, ".local", "share", "recalld")
	}
	abs, err := filepath.Abs(root)
	if err != nil {
		return "", fmt.Errorf("folder of the store: %w", err)
	}
	return abs, nil
}

// socketOf gives the path under which the server of a store listens, as its
// clients find it: in the store, or, when that path would be too long for the
// system, where the pointer in the store says. The environment of server and
// client may differ, so nothing of it is used here, except for a store that
// cannot be written to. It is empty when the path is too long and there is no
// pointer, which means that no server runs.
func socketOf(root string) (string, error) {
	if folder := runFolder(root); folder != root {
		return filepath.Join(folder, socketName), nil
	}
	if path := filepath.Join(root, socketName); len(path) <= maxSocketPath {
		return path, nil
	}
	b, err := os.ReadFile(filepath.Join(root, pointerName))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read where the server listens: %w", err)
	}
	return strings.TrimSuffix(string(b), "\n"), nil
}

// placeSocket decides where the server of a store listens and leaves a pointer
// if that is not in the store. Only the holder of the store's lock calls it.
func placeSocket(root string, getenv func(string) string) (string, error) {
	writable := isWritable(root)
	path := filepath.Join(root, socketName)
	if writable && len(path) <= maxSocketPath {
		return path, nil
	}
	folder := sideFolder(root, getenv)
	if err := makeSideFolder(folder); err != nil {
		return "", err
	}
	path = filepath.Join(folder, socketName)
	if len(path) > maxSocketPath {
		return "", fmt.Errorf("%s is too long for a socket; set XDG_RUNTIME_DIR or TMPDIR to a shorter folder", path)
	}
	if !writable {
		return path, nil
	}
	if err := writePrivate(filepath.Join(root, pointerName), []byte(path+"\n")); err != nil {
		return "", fmt.Errorf("write where the server listens: %w", err)
	}
	return path, nil
}

// writePrivate replaces a file by one of mode 0600 that is there whole or not
// at all.
func writePrivate(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(0o600), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// checkPrivate refuses a folder in which someone else could put a socket.
func checkPrivate(folder string) error {
	info, err := os.Lstat(folder)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder", folder)
	}
	return checkOwner(folder, info)
}
