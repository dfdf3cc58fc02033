package embed_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"recalld/embed"
	"recalld/llm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// providers are the two protocols; what is promised of a Remote holds for both.
var providers = []llm.Provider{llm.Ollama, llm.OpenAI}

// An ask is a request for embeddings as the fake server got it.
type ask struct {
	Model      string   `json:"model"`
	Input      []string `json:"input"`
	Dimensions int      `json:"dimensions"`
	Truncate   *bool    `json:"truncate"`
	Format     string   `json:"encoding_format"`
	key        string
}

// A fake is a server of both protocols. Its model has 4 dimensions and a window
// of 512 tokens unless show says otherwise.
type fake struct {
	URL string
	// show is what Ollama tells of the model.
	show string
	// refuse gives the HTTP status and the message for a text, 0 to accept it.
	// One refused text refuses its batch.
	refuse func(text string) (status int, message string)
	// vector gives the JSON of a text's vector, "" for the usual one.
	vector func(text string) string
	// answer takes over the whole answer to a request for embeddings.
	answer http.HandlerFunc
	// skip is a provider of which there is no such server.
	skip llm.Provider

	mu    sync.Mutex // guards asks
	asks  []ask
	shown int
}

const (
	fakeShow = `{"capabilities": ["embedding"], "parameters": "num_thread 1", "model_info": {"general.architecture": "bert",
		"bert.embedding_length": 4, "bert.vision.embedding_length": 9, "bert.context_length": 512}}`
	chatShow = `{"capabilities": ["completion", "tools"], "model_info": {"general.architecture": "llama", "llama.embedding_length": 4}}`
)

func newFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{show: fakeShow}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	f.URL = server.URL
	return f
}

// remote returns a Remote for a model on the fake server.
func (f *fake) remote(t *testing.T, provider llm.Provider, name string, o embed.Options) *embed.Remote {
	t.Helper()
	return newRemote(t, llm.Model{Provider: provider, Name: name, URL: f.URL, Key: "sesame"}, llm.Options{}, o)
}

func newRemote(t *testing.T, m llm.Model, lo llm.Options, o embed.Options) *embed.Remote {
	t.Helper()
	if m.Provider == llm.OpenAI {
		m.URL += "/v1"
	}
	client, err := llm.New(m, lo)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	if m.Provider == llm.OpenAI {
		return embed.NewOpenAI(client, o)
	}
	return embed.NewOllama(client, o)
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/api/show" {
		f.mu.Lock()
		f.shown++
		f.mu.Unlock()
		fmt.Fprint(w, f.show)
		return
	}
	if r.URL.Path != "/api/embed" && r.URL.Path != "/v1/embeddings" {
		http.NotFound(w, r)
		return
	}
	var a ask
	if err := json.NewDecoder(r.Body).Decode(&a); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a.key = r.Header.Get("Authorization")
	f.mu.Lock()
	f.asks = append(f.asks, a)
	f.mu.Unlock()
	if f.answer != nil {
		f.answer(w, r)
		return
	}
	var vectors []string
	for _, text := range a.Input {
		if f.refuse != nil {
			if status, message := f.refuse(text); status != 0 {
				w.WriteHeader(status)
				fmt.Fprintf(w, `{"error": %q}`, message+": "+text) // a rude server quotes the text
				return
			}
		}
		v := ""
		if f.vector != nil {
			v = f.vector(text)
		}
		if v == "" {
			v = asJSON(vectorOf(text))
		}
		vectors = append(vectors, v)
	}
	if r.URL.Path == "/api/embed" {
		fmt.Fprintf(w, `{"embeddings": [%s], "prompt_eval_count": %d}`, strings.Join(vectors, ","), 7*len(vectors))
		return
	}
	for i, v := range vectors {
		vectors[i] = fmt.Sprintf(`{"object": "embedding", "index": %d, "embedding": %s}`, i, v)
	}
	slices.Reverse(vectors) // the order is that of the index
	fmt.Fprintf(w, `{"data": [%s], "usage": {"prompt_tokens": %d}}`, strings.Join(vectors, ","), 7*len(vectors))
}

// texts lists what was asked to be embedded, request by request.
func (f *fake) texts() [][]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all [][]string
	for _, a := range f.asks {
		all = append(all, a.Input)
	}
	return all
}

// sent lists all texts but the word that servers are probed with.
func (f *fake) sent() []string {
	return slices.DeleteFunc(slices.Concat(f.texts()...), func(s string) bool { return s == "memory" })
}

// vectorOf is the fake model: some vector of 4 dimensions, not of length 1.
func vectorOf(text string) []float32 {
	h := fnv.New32a()
	h.Write([]byte(text))
	sum := h.Sum32()
	v := make([]float32, 4)
	for i := range v {
		v[i] = float32(sum>>(8*i)&0xff) + 1
	}
	return v
}

func asJSON(v []float32) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}
