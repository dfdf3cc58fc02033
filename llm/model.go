package llm

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"unicode"
)

// The servers asked when a model names none.
const (
	ollamaURL = "http://127.0.0.1:11434"
	openaiURL = "https://api.openai.com/v1"
)

// maxName bounds the name of a model; the longest in use have about 100 bytes.
const maxName = 256

// Parse reads "ollama:NAME" or "openai:NAME". The name may hold colons itself,
// as in "ollama:qwen3:4b". URL and Key are left empty.
func Parse(s string) (Model, error) {
	provider, name, found := strings.Cut(s, ":")
	if !found {
		return Model{}, fmt.Errorf("model %q: want ollama:NAME or openai:NAME", s)
	}
	m := Model{Provider: Provider(provider), Name: name}
	if _, err := m.check(); err != nil {
		return Model{}, err
	}
	return m, nil
}

// String returns what [Parse] reads: "ollama:NAME".
func (m Model) String() string { return string(m.Provider) + ":" + m.Name }

// Loopback reports whether the server is on this machine, so that what is sent
// to it does not leave the machine.
func (m Model) Loopback() bool {
	base, err := m.check()
	return err == nil && loopback(base.Hostname())
}

// check returns the server's base address, or what is wrong with m.
func (m Model) check() (*url.URL, error) {
	raw := m.URL
	switch m.Provider {
	case Ollama:
		if raw == "" {
			raw = ollamaURL
		}
	case OpenAI:
		if raw == "" {
			raw = openaiURL
		}
	default:
		return nil, fmt.Errorf("model %q: the provider is neither ollama nor openai", m)
	}
	switch {
	case m.Name == "":
		return nil, fmt.Errorf("model %q has no name", m)
	case len(m.Name) > maxName:
		return nil, fmt.Errorf("the name of a model has %d bytes, at most %d are allowed", len(m.Name), maxName)
	case strings.ContainsFunc(m.Name, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }):
		return nil, fmt.Errorf("model %q: a name has no spaces", m)
	case strings.ContainsFunc(m.Key, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return nil, errors.New("the key of the model server holds a space or another character that no key has")
	}
	base, err := address(raw)
	if err != nil {
		return nil, fmt.Errorf("address of the server of model %q: %w", m, err)
	}
	return base, nil
}

// address parses the base address of a server. "host:port" alone is taken as
// http, as Ollama's own tools do. Its errors do not repeat the address, which
// may hold a password.
func address(raw string) (*url.URL, error) {
	if !strings.Contains(raw, "://") {
		raw = "http://" + raw
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return nil, errors.New("it is not a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("it must begin with http:// or https://")
	case u.Hostname() == "":
		return nil, errors.New("it names no host")
	case u.User != nil:
		return nil, errors.New("it holds a user or password; give a key instead")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("it has a query or fragment")
	}
	// A server that listens on every address is told to its clients by that
	// address (OLLAMA_HOST=0.0.0.0); from here it is on this machine.
	if ip := net.ParseIP(u.Hostname()); ip != nil && ip.IsUnspecified() {
		host := "127.0.0.1"
		if ip.To4() == nil {
			host = "::1"
		}
		u.Host = joinPort(host, u.Port())
	}
	u.Path = strings.TrimRight(u.Path, "/")
	u.RawPath = ""
	return u, nil
}

func joinPort(host, port string) string {
	if port != "" {
		return net.JoinHostPort(host, port)
	}
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

// loopback reports whether a host is this machine.
func loopback(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
