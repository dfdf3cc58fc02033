//go:build unix

package ledger_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"recalld/ledger"
)

// TestModes walks a store made under a umask that takes nothing away.
func TestModes(t *testing.T) {
	old := syscall.Umask(0) // of the whole process: this package runs no tests in parallel
	defer syscall.Umask(old)
	root := filepath.Join(t.TempDir(), "a", "b")
	s := openStore(t, root, ledger.Options{})
	m := openMemory(t, s, key)
	mustAppend(t, m, exchange("s", 1))
	seen := map[string]bool{}
	err := filepath.WalkDir(filepath.Dir(root), func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o600)
		if e.IsDir() {
			want = 0o700
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %o, want %o", path, info.Mode().Perm(), want)
		}
		seen[e.Name()] = true
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"recalld.lock", "catalog.db", "ledger.db", "ledger.db-wal", "ledger.db-shm"} {
		if !seen[name] {
			t.Errorf("the walk did not see %s", name)
		}
	}
}

// TestModesTightened opens a store that somebody opened to others.
func TestModesTightened(t *testing.T) {
	root := t.TempDir()
	s, err := ledger.OpenStore(root, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	id, err := s.Ensure(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(s.Folder(id), "ledger.db")
	if err := errors.Join(s.Close(), os.Chmod(root, 0o755), os.Chmod(filepath.Dir(file), 0o755), os.Chmod(file, 0o644)); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, root, ledger.Options{})
	openMemory(t, s, key)
	for path, want := range map[string]fs.FileMode{root: 0o700, filepath.Dir(file): 0o700, file: 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %o (%v)", path, info.Mode(), want, err)
		}
	}
}

func TestRootOfOthers(t *testing.T) {
	dir := t.TempDir()
	shared := filepath.Join(dir, "shared")
	link := filepath.Join(dir, "link")
	file := filepath.Join(dir, "file")
	err := errors.Join(os.Mkdir(shared, 0o755), os.Chmod(shared, 0o755), os.WriteFile(filepath.Join(shared, "theirs"), nil, 0o644),
		os.Symlink(t.TempDir(), link), os.WriteFile(file, nil, 0o644))
	if err != nil {
		t.Fatal(err)
	}
	for _, root := range []string{shared, link, file} {
		if s, err := ledger.OpenStore(root, ledger.Options{}); err == nil {
			s.Close()
			t.Errorf("OpenStore(%s) took a folder that is not its own", root)
		}
	}
	if info, err := os.Stat(shared); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the folder of others now has mode %v, %v", info.Mode(), err)
	}
}

// TestLinks plants links where the store expects its own files. Nothing may be
// read or written behind them.
func TestLinks(t *testing.T) {
	id := ledger.MemoryID(key)
	for _, name := range []string{"memories", "catalog.db", "recalld.lock", "memories/" + id, "memories/" + id + "/ledger.db", "memories/" + id + "/ledger.db-wal"} {
		t.Run(name, func(t *testing.T) {
			root, outside := t.TempDir(), t.TempDir()
			s, err := ledger.OpenStore(root, ledger.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Ensure(t.Context(), key); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			path, target := filepath.Join(root, name), filepath.Join(outside, "target")
			if _, err := os.Lstat(path); err == nil {
				if err := os.Rename(path, target); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink(target, path); err != nil {
				t.Fatal(err)
			}
			before := tree(t, outside)
			if err := tryAll(t.Context(), root); err == nil {
				t.Error("a link was followed")
			}
			if after := tree(t, outside); after != before {
				t.Errorf("outside the store there was %q, now %q", before, after)
			}
		})
	}
	t.Run("new memory", func(t *testing.T) {
		root, outside := t.TempDir(), t.TempDir()
		s := openStore(t, root, ledger.Options{})
		if err := os.Symlink(outside, filepath.Join(root, "memories", id)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Ensure(t.Context(), key); err == nil {
			t.Error("a link was followed")
		}
		if after := tree(t, outside); after != "" {
			t.Errorf("outside the store there is %q", after)
		}
	})
}

// tryAll opens the store and the memory of key and appends to it.
func tryAll(ctx context.Context, root string) error {
	s, err := ledger.OpenStore(root, ledger.Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	id, err := s.Ensure(ctx, key)
	if err != nil {
		return err
	}
	m, err := s.Open(ctx, id)
	if err != nil {
		return err
	}
	defer m.Close()
	_, err = m.Append(ctx, []ledger.Turn{exchange("s", 1)})
	return err
}

// tree lists names and sizes under a folder.
func tree(t *testing.T, root string) string {
	t.Helper()
	list := ""
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err == nil && path != root {
			info, err := e.Info()
			if err != nil {
				return err
			}
			list += path + " " + info.ModTime().String() + "\n"
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}
