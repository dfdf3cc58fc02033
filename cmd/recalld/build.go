package main

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime/debug"
	"strings"
	"time"
)

// buildTime is the layout of the first part of a build id. Ids sort by it.
const buildTime = "20060102T150405Z"

// fingerprintBytes is how much of a program file its fingerprint reads. The
// linker puts Go's build id, which depends on all that was compiled in, near
// the beginning; reading 30 MB at every command would cost more than the
// command does.
const fingerprintBytes = 64 << 10

// buildID names this build as TIME-HASH. When the program was built from a
// clean commit, these are the time and the first 12 digits of the commit; else
// the time of the program file and a fingerprint of its contents. "unknown" is
// neither older nor newer than anything.
func buildID() string {
	if id := commitID(); id != "" {
		return id
	}
	path, err := os.Executable()
	if err != nil {
		return "unknown"
	}
	id, err := fingerprint(path)
	if err != nil {
		return "unknown"
	}
	return id
}

// commitID is empty unless the program was built from a clean commit.
func commitID() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	settings := make(map[string]string)
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	at, err := time.Parse(time.RFC3339, settings["vcs.time"])
	revision := settings["vcs.revision"]
	if err != nil || settings["vcs.modified"] != "false" || len(revision) < 12 {
		return ""
	}
	return at.UTC().Format(buildTime) + "-" + revision[:12]
}

func fingerprint(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	var size [8]byte
	binary.BigEndian.PutUint64(size[:], uint64(info.Size()))
	h.Write(size[:])
	if _, err := io.Copy(h, io.LimitReader(f, fingerprintBytes)); err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	return info.ModTime().UTC().Format(buildTime) + "-" + hex.EncodeToString(h.Sum(nil)[:6]), nil
}

// recordBuild leaves the id of the running server's build beside its socket,
// so that a client need not ask for it; without the record it does. Only the
// holder of the store's lock calls it; forgetBuild undoes it.
func recordBuild(root, build string) error {
	if err := writePrivate(buildPath(root), []byte(build+"\n")); err != nil {
		// That of a server which died must not be taken for this one's.
		return errors.Join(fmt.Errorf("record the build: %w", err), forgetBuild(root))
	}
	return nil
}

func forgetBuild(root string) error {
	if err := os.Remove(buildPath(root)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forget the build: %w", err)
	}
	return nil
}

// maxBuildBytes bounds what is read of the record.
const maxBuildBytes = 256

// readBuild reads what recordBuild wrote.
func readBuild(root string) (string, error) {
	f, err := os.Open(buildPath(root))
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxBuildBytes))
	return strings.TrimSuffix(string(b), "\n"), err
}

// isNewer reports whether build a is another and later one than b. The time
// alone does not make another build: a copy of a program has a new one.
func isNewer(a, b string) bool {
	timeA, hashA, okA := strings.Cut(a, "-")
	timeB, hashB, okB := strings.Cut(b, "-")
	return okA && okB && hashA != hashB && timeA > timeB
}
