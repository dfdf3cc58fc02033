package llm_test

import (
	"strings"
	"testing"

	"recalld/llm"
)

func TestParse(t *testing.T) {
	for s, want := range map[string]llm.Model{
		"ollama:all-minilm": {Provider: llm.Ollama, Name: "all-minilm"},
		"ollama:qwen3:4b":   {Provider: llm.Ollama, Name: "qwen3:4b"},
		"openai:gpt-5-mini": {Provider: llm.OpenAI, Name: "gpt-5-mini"},
		"openai:org/m:free": {Provider: llm.OpenAI, Name: "org/m:free"},
	} {
		got, err := llm.Parse(s)
		if err != nil || got != want || got.String() != s {
			t.Errorf("Parse(%q) = %+v, %v, want %+v", s, got, err, want)
		}
	}
	for _, s := range []string{"", "ollama", "ollama:", ":x", "other:x", "Ollama:x", "ollama:a b", "openai:a\n", "ollama:" + strings.Repeat("x", 300)} {
		if got, err := llm.Parse(s); err == nil {
			t.Errorf("Parse(%q) = %+v, want an error", s, got)
		}
	}
}

func TestAddress(t *testing.T) {
	const bad = "\x00"
	tests := []struct {
		provider llm.Provider
		url      string
		want     string // bad: an error
		loopback bool
	}{
		{llm.Ollama, "", "http://127.0.0.1:11434", true},
		{llm.OpenAI, "", "https://api.openai.com/v1", false},
		{llm.Ollama, "127.0.0.1:9", "http://127.0.0.1:9", true},
		{llm.Ollama, "localhost", "http://localhost", true},
		{llm.Ollama, "http://LOCALHOST./", "http://LOCALHOST.", true},
		{llm.Ollama, "http://models.localhost:80", "http://models.localhost:80", true},
		{llm.Ollama, "http://0.0.0.0:11434", "http://127.0.0.1:11434", true},
		{llm.Ollama, "http://0.0.0.0", "http://127.0.0.1", true},
		{llm.Ollama, "http://[::]:11434", "http://[::1]:11434", true},
		{llm.Ollama, "http://[::]", "http://[::1]", true},
		{llm.Ollama, "http://127.9.9.9/ollama/", "http://127.9.9.9/ollama", true},
		{llm.Ollama, "http://192.168.1.5:11434", "http://192.168.1.5:11434", false},
		{llm.Ollama, "http://localhost.example.org", "http://localhost.example.org", false},
		{llm.OpenAI, "https://example.org/v1/", "https://example.org/v1", false},
		{llm.OpenAI, "ftp://example.org", bad, false},
		{llm.OpenAI, "unix:///run/x", bad, false},
		{llm.OpenAI, "http://", bad, false},
		{llm.OpenAI, "https://user:hunter2@example.org", bad, false},
		{llm.OpenAI, "https://example.org/?key=hunter2", bad, false},
		{llm.OpenAI, "https://example.org/#hunter2", bad, false},
		{llm.OpenAI, "http://exa mple:hunter2", bad, false},
		{"other", "", bad, false},
	}
	for _, tt := range tests {
		m := llm.Model{Provider: tt.provider, Name: "m", URL: tt.url}
		c, err := llm.New(m, llm.Options{})
		if m.Loopback() != tt.loopback {
			t.Errorf("%q is loopback: %v", tt.url, !tt.loopback)
		}
		switch {
		case tt.want == bad:
			if err == nil || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("New with %q: error %v", tt.url, err)
			}
		case err != nil:
			t.Errorf("New with %q: %v", tt.url, err)
		case c.URL().String() != tt.want || c.Model().URL != tt.want:
			t.Errorf("New with %q: the address is %s", tt.url, c.URL())
		}
	}
	for _, key := range []string{"a b", "a\r\nX-Evil: 1", "kéy"} {
		if _, err := llm.New(llm.Model{Provider: llm.OpenAI, Name: "m", Key: key}, llm.Options{}); err == nil || strings.Contains(err.Error(), key) {
			t.Errorf("New with the key %q: error %v", key, err)
		}
	}
}
