package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestOllamaURL(t *testing.T) {
	for _, tt := range []struct{ host, want string }{
		{"", ""},
		{"127.0.0.1", "http://127.0.0.1:11434"},
		{"127.0.0.1:11500", "http://127.0.0.1:11500"},
		{"0.0.0.0", "http://127.0.0.1:11434"},
		{"0.0.0.0:8080", "http://127.0.0.1:8080"},
		{":8080", "http://127.0.0.1:8080"},
		{" 'gpu.lan' ", "http://gpu.lan:11434"},
		{"[::1]:11434", "http://[::1]:11434"},
		{"http://gpu.lan", "http://gpu.lan:80"},
		{"https://gpu.lan/ollama/", "https://gpu.lan:443/ollama"},
	} {
		if got, err := ollamaURL(tt.host); err != nil || got != tt.want {
			t.Errorf("ollamaURL(%q) = %q, %v; want %q", tt.host, got, err, tt.want)
		}
	}
	for _, host := range []string{"ftp://gpu.lan", "http://", "a b", "http://[::1"} {
		if got, err := ollamaURL(host); err == nil {
			t.Errorf("ollamaURL(%q) = %q; want an error", host, got)
		}
	}
}

func TestReadKey(t *testing.T) {
	folder := t.TempDir()
	write := func(text string, mode os.FileMode) string {
		path := filepath.Join(folder, "key")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if key, err := readKey(""); key != "" || err != nil {
		t.Errorf("no file: %q, %v", key, err)
	}
	if key, err := readKey(write("sk-abc\n", 0o600)); key != "sk-abc" || err != nil {
		t.Errorf("a key: %q, %v", key, err)
	}
	for _, tt := range []struct {
		name, text string
		mode       os.FileMode
	}{
		{"others can read it", "sk-abc", 0o644},
		{"nothing in it", "\n", 0o600},
		{"two keys", "sk-abc sk-def", 0o600},
		{"too long", strings.Repeat("k", maxKeyBytes+1), 0o600},
	} {
		path := write(tt.text, tt.mode)
		if key, err := readKey(path); err == nil || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "sk-abc") {
			t.Errorf("%s: %q, %v; want an error that names the file and not the key", tt.name, key, err)
		}
	}
	if _, err := readKey(filepath.Join(folder, "missing")); err == nil {
		t.Error("a missing file is no error")
	}
}

// TestReadFlags: the store's file sets what the command line does not.
func TestReadFlags(t *testing.T) {
	set := func() *pflag.FlagSet {
		cmd := new(app).serveCommand()
		return cmd.Flags()
	}
	read := func(t *testing.T, text string, arguments ...string) (*pflag.FlagSet, error) {
		t.Helper()
		root := t.TempDir()
		if err := os.WriteFile(filepath.Join(root, flagsName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		flags := set()
		if err := flags.Parse(arguments); err != nil {
			t.Fatal(err)
		}
		return flags, readFlags(root, flags, flags)
	}
	flags, err := read(t, "# models\n\n--embed ollama:all-minilm\nexpand=ollama:qwen3:4b\n  --daily-tokens\t1000\n", "--expand", "off")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"embed": "ollama:all-minilm", "expand": "off", "daily-tokens": "1000", "extract": "builtin"} {
		if got := flags.Lookup(name).Value.String(); got != want {
			t.Errorf("--%s is %q, want %q", name, got, want)
		}
	}
	for _, tt := range []struct{ text, say string }{
		{"embed off\nembod off", "line 2"},
		{"--spawned true", "line 1"},
		{"--daily-tokens many", "whole number"},
	} {
		if _, err := read(t, tt.text); err == nil || !strings.Contains(err.Error(), tt.say) {
			t.Errorf("%q: %v; want an error that says %q", tt.text, err, tt.say)
		}
	}
	if flags := set(); readFlags(t.TempDir(), flags, flags) != nil {
		t.Error("a missing file is an error")
	}
}

func TestModelFlags(t *testing.T) {
	none := func(string) string { return "" }
	for _, tt := range []struct {
		name string
		o    modelOptions
		say  string
	}{
		{"unknown embedder", modelOptions{embed: "word2vec", expand: off, extract: builtIn}, "--embed"},
		{"expansion is not built in", modelOptions{embed: off, expand: builtIn, extract: builtIn}, "--expand"},
		{"no name", modelOptions{embed: off, expand: off, extract: "ollama:"}, "--extract"},
		{"dimensions", modelOptions{embed: off, expand: off, extract: builtIn, dimensions: -1}, "--embed-dimensions"},
		{"no key file", modelOptions{embed: "openai:m", expand: off, extract: builtIn, openAIKeyFile: "/does/not/exist"}, "/does/not/exist"},
	} {
		if _, err := tt.o.open(nil, none); err == nil || !strings.Contains(err.Error(), tt.say) {
			t.Errorf("%s: %v; want an error that says %q", tt.name, err, tt.say)
		}
	}
	host := func(string) string { return "gpu.lan" }
	m, err := modelOptions{embed: "ollama:all-minilm", expand: off, extract: builtIn}.open(nil, host)
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	if remote := m.remoteOnes(); len(remote) != 1 || remote[0].Purpose != purposeEmbed {
		t.Errorf("remote models %+v, want the one at gpu.lan", remote)
	}
}
