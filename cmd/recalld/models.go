package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"recalld/consolidate"
	"recalld/embed"
	"recalld/expand"
	"recalld/ledger"
	"recalld/llm"
	"recalld/retrieve"
	"recalld/service"
)

// The packages do not import each other; here is where their promises meet.
var (
	_ retrieve.TokenTable   = (*embed.Static)(nil)
	_ retrieve.Embedder     = (*embed.Remote)(nil)
	_ retrieve.Expander     = (*expand.Expander)(nil)
	_ consolidate.Extractor = (*consolidate.Model)(nil)
	_ llm.Meter             = meter{}
)

// flagsName is the file in the store's folder with further flags of serve.
const flagsName = "serve.flags"

// Values of --embed, --expand and --extract that name no model server.
const (
	builtIn = "builtin"
	off     = "off"
)

// Purposes under which spending is kept.
const (
	purposeEmbed   = "embed"
	purposeExpand  = "expand"
	purposeExtract = "extract"
)

// modelOptions are the flags that say which models are asked, and how.
type modelOptions struct {
	embed, expand, extract   string
	openAIURL, openAIKeyFile string
	dimensions               int
	dailyTokens, dailyAll    uint64

	key string // of openAIKeyFile, once it has been read
}

func (o *modelOptions) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.embed, "embed", builtIn, "who gives texts their meaning: builtin, ollama:MODEL, openai:MODEL, or off for words alone")
	flags.StringVar(&o.expand, "expand", off, "who proposes other wordings of a question: off, ollama:MODEL or openai:MODEL")
	flags.StringVar(&o.extract, "extract", builtIn, "who reads windows for the journal: builtin, ollama:MODEL or openai:MODEL")
	flags.IntVar(&o.dimensions, "embed-dimensions", 0, "dimensions to ask an embedding model for; 0 leaves it to the model")
	flags.StringVar(&o.openAIURL, "openai-url", "", "base URL of openai:MODEL (default https://api.openai.com/v1)")
	flags.StringVar(&o.openAIKeyFile, "openai-key-file", "", "file that holds the key for openai:MODEL")
	flags.Uint64Var(&o.dailyTokens, "daily-tokens", 0, "tokens that models may spend on one memory a day (UTC); 0 is no cap")
	flags.Uint64Var(&o.dailyAll, "daily-tokens-all", 0, "tokens that models may spend on all memories a day; 0 is no cap")
	completes(cmd, "embed", oneOf(builtIn, "ollama:", "openai:", off))
	completes(cmd, "expand", oneOf(off, "ollama:", "openai:"))
	completes(cmd, "extract", oneOf(builtIn, "ollama:", "openai:"))
}

// readFlags sets those of flags that the store's file names and the command line
// does not: one a line, as on the command line. So a server that a client
// starts knows of them too. What the file names must be a flag of serve. A
// missing file names none.
func readFlags(root string, flags, serve *pflag.FlagSet) error {
	path := filepath.Join(root, flagsName)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil // that the store is no folder is for others to say
	}
	if err != nil {
		return fmt.Errorf("read flags: %w", err)
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := readFlag(line, flags, serve); err != nil {
			return usageErrorf("%s, line %d: %v", path, n, err)
		}
	}
	return lines.Err()
}

// readFlag sets one flag unless the command line did: "--name value" or
// "--name=value", the dashes may be left out.
func readFlag(line string, flags, serve *pflag.FlagSet) error {
	line = strings.TrimLeft(line, "-")
	name, value := line, ""
	if i := strings.IndexAny(line, "= \t"); i >= 0 {
		name, value = line[:i], strings.TrimSpace(line[i+1:])
	}
	if known := serve.Lookup(name); known == nil || known.Hidden {
		return fmt.Errorf("there is no flag --%s (recalld serve --help lists them)", name)
	}
	if flag := flags.Lookup(name); flag == nil || flag.Changed {
		return nil
	}
	if err := flags.Set(name, value); err != nil {
		return flagError(err)
	}
	return nil
}

// models are those that a server asks, each behind one client for all memories.
type models struct {
	builtIn                bool        // the built-in table gives meaning
	embed, expand, extract *llm.Client // nil: none of that purpose

	remote                *embed.Remote
	expander              *expand.Expander
	extractor             *consolidate.Model
	dailyTokens, dailyAll uint64
}

// open makes the clients. It asks no server: one that is not there yet may come.
// store keeps what they spend; nil keeps nothing.
func (o modelOptions) open(store *ledger.Store, getenv func(string) string) (m models, err error) {
	m.builtIn, m.dailyTokens, m.dailyAll = o.embed == builtIn, o.dailyTokens, o.dailyAll
	if o.asks(llm.OpenAI) {
		if o.key, err = readKey(o.openAIKeyFile); err != nil {
			return m, usageErrorf("--openai-key-file: %w", err)
		}
	}
	client := func(flag, value string, none ...string) (*llm.Client, error) {
		if slices.Contains(none, value) {
			return nil, nil
		}
		c, err := o.client(value, store, getenv)
		if err != nil {
			return nil, usageErrorf("--%s: %w; the values are %s, ollama:MODEL and openai:MODEL", flag, err, strings.Join(none, ", "))
		}
		return c, nil
	}
	if m.embed, err = client("embed", o.embed, builtIn, off); err != nil {
		return m, err
	}
	if m.expand, err = client("expand", o.expand, off); err != nil {
		return m, err
	}
	if m.extract, err = client("extract", o.extract, builtIn); err != nil {
		return m, err
	}
	if o.dimensions < 0 || o.dimensions > maxDimensions {
		return m, usageErrorf("--embed-dimensions: %d is not between 0 and %d", o.dimensions, maxDimensions)
	}
	if m.embed != nil {
		open := embed.NewOllama
		if m.embed.Model().Provider == llm.OpenAI {
			open = embed.NewOpenAI
		}
		m.remote = open(m.embed, embed.Options{Dimensions: o.dimensions})
	}
	if m.expand != nil {
		m.expander = expand.New(m.expand, expand.Options{})
	}
	if m.extract != nil {
		m.extractor = consolidate.NewModel(m.extract, consolidate.ModelOptions{})
	}
	return m, nil
}

// asks reports whether a model of a provider is named.
func (o modelOptions) asks(p llm.Provider) bool {
	return slices.ContainsFunc([]string{o.embed, o.expand, o.extract}, func(value string) bool {
		return strings.HasPrefix(value, string(p)+":")
	})
}

// maxDimensions is more than any model has.
const maxDimensions = 16_384

// client makes the client of one model.
func (o modelOptions) client(value string, store *ledger.Store, getenv func(string) string) (*llm.Client, error) {
	model, err := llm.Parse(value)
	if err != nil {
		return nil, err
	}
	switch model.Provider {
	case llm.Ollama:
		if model.URL, err = ollamaURL(getenv("OLLAMA_HOST")); err != nil {
			return nil, err
		}
	case llm.OpenAI:
		model.URL = o.openAIURL
		model.Key = o.key
	}
	options := llm.Options{DailyTokens: o.dailyTokens, DailyTokensAll: o.dailyAll}
	if store != nil {
		options.Meter = meter{store}
	}
	return llm.New(model, options)
}

// ollamaPort is where Ollama listens if nothing else is said.
const ollamaPort = "11434"

// ollamaURL reads OLLAMA_HOST as Ollama's own client does: a host, a host and a
// port, or a URL. An address to listen on at all interfaces is that of this
// machine.
func ollamaURL(host string) (string, error) {
	host = strings.TrimSpace(strings.Trim(strings.TrimSpace(host), `"'`))
	if host == "" {
		return "", nil
	}
	port := ollamaPort
	switch scheme, _, found := strings.Cut(host, "://"); {
	case !found:
		host = "http://" + host
	case scheme == "http":
		port = "80"
	case scheme == "https":
		port = "443"
	default:
		return "", fmt.Errorf("OLLAMA_HOST: the scheme %q is not http or https", scheme)
	}
	u, err := url.Parse(host)
	if err != nil || u.Host == "" {
		return "", errors.New("OLLAMA_HOST is no address")
	}
	port = cmp.Or(u.Port(), port)
	name := u.Hostname()
	switch name {
	case "", "0.0.0.0", "::":
		name = "127.0.0.1"
	}
	u.Host = net.JoinHostPort(name, port)
	return strings.TrimSuffix(u.String(), "/"), nil
}

// maxKeyBytes is more than any key has.
const maxKeyBytes = 8 << 10

// readKey reads a key from a file that only its user can read; an empty path is
// no key.
func readKey(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("read key: %w", err)
	}
	if unixRights && info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("read key: other users can read it; chmod 600 %s", path)
	}
	if info.Size() > maxKeyBytes {
		return "", fmt.Errorf("read key: %s is longer than any key", path)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read key: %w", err)
	}
	key := strings.TrimSpace(string(b))
	if key == "" || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("read key: %s does not hold a key alone", path)
	}
	return key, nil
}

// options hands the models to a server, each memory its own account. The rows of
// its views are made with the built-in table whoever answers, so that changing
// --embed makes no words anew.
func (m models) options(o *service.Options) {
	table := embed.BuiltIn()
	o.Tokens = table
	if m.builtIn {
		o.Embedder = func(string) retrieve.Embedder { return table }
		o.EmbeddingModel = table.Identity()
	}
	if m.remote != nil {
		o.Embedder = func(memory string) retrieve.Embedder { return m.remote.For(memory) }
		o.EmbeddingModel = m.remote.Identity()
	}
	if m.expander != nil {
		o.Expander = func(memory string) retrieve.Expander { return m.expander.For(memory) }
		o.ExpansionModel = m.expand.Model().String()
	}
	if m.extractor != nil {
		o.Extractor = func(memory string) consolidate.Extractor { return m.extractor.For(memory) }
		o.ExtractionModel = m.extract.Model().String()
	}
	o.Models = m.states
	o.DailyTokens, o.DailyTokensAll = m.dailyTokens, m.dailyAll
}

// states tells how the models have fared.
func (m models) states() []service.ModelState {
	var list []service.ModelState
	for _, one := range []struct {
		purpose string
		client  *llm.Client
	}{{purposeEmbed, m.embed}, {purposeExpand, m.expand}, {purposeExtract, m.extract}} {
		if one.client == nil {
			continue
		}
		s := one.client.State()
		list = append(list, service.ModelState{
			Purpose: one.purpose, Model: one.client.Model().String(), Remote: !one.client.Model().Loopback(),
			Failures: s.Failures, RetryAt: s.RetryAt, LastError: s.LastError,
		})
	}
	return list
}

// warn tells the log which models get to read memory text elsewhere.
func (m models) warn(log *slog.Logger) {
	for _, one := range m.remoteOnes() {
		log.Warn("memory text leaves this machine", "for", one.Purpose, "model", one.Model)
	}
}

// remoteOnes are the models that are not on this machine.
func (m models) remoteOnes() []service.ModelState {
	return slices.DeleteFunc(m.states(), func(s service.ModelState) bool { return !s.Remote })
}

func (m models) close() {
	for _, c := range []*llm.Client{m.embed, m.expand, m.extract} {
		if c != nil {
			c.Close()
		}
	}
}

// A meter keeps spending in the store.
type meter struct{ store *ledger.Store }

func (m meter) Spent(ctx context.Context, account string) (own, all uint64, err error) {
	return m.store.TokensToday(ctx, account)
}

func (m meter) Charge(ctx context.Context, account string, u llm.Use) error {
	return m.store.AddSpend(ctx, account, ledger.Spend{
		Purpose: u.Purpose, Model: u.Model, Calls: u.Calls, Tokens: u.Tokens, Took: u.Took,
	})
}
