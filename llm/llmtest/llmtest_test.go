package llmtest_test

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"recalld/llm/llmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// post asks the server and returns what came, or the error.
func post(t *testing.T, h *http.Client, url, body string) (status int, answer string, err error) {
	t.Helper()
	r, err := h.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	defer r.Body.Close()
	data, err := io.ReadAll(r.Body)
	return r.StatusCode, string(data), err
}

func TestWell(t *testing.T) {
	s := llmtest.New(t, llmtest.Options{Dimension: 4})
	h := &http.Client{Transport: &http.Transport{}}
	defer h.CloseIdleConnections()
	tests := []struct{ name, path, body, want string }{
		{"chat of Ollama", "/api/chat",
			`{"model":"m","messages":[{"role":"user","content":"hi there"}],"format":{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}}}}}`,
			`"content":"{\"a\":[\"alternative 1\",\"alternative 2\",\"alternative 3\"]}"`},
		{"chat of OpenAI", "/v1/chat/completions",
			`{"model":"m","messages":[{"role":"user","content":"hi there"}]}`, `"content":"alternative 1"`},
		{"show", "/api/show", `{"model":"m"}`, `"bert.embedding_length":4`},
		{"embed of Ollama", "/api/embed", `{"model":"m","input":["", "x"]}`, `[[1,0,0,0],[`},
		{"the empty text alone", "/api/embed", `{"model":"m","input":""}`, `"embeddings":[]`},
		{"embed of OpenAI", "/v1/embeddings", `{"model":"m","input":"?"}`, `"embedding":[1,0,0,0]`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			status, got, err := post(t, h, s.URL+tt.path, tt.body)
			if err != nil || status != 200 || !json.Valid([]byte(got)) || !strings.Contains(got, tt.want) {
				t.Errorf("status %d, error %v, answer %s; want %s in it", status, err, got, tt.want)
			}
		})
	}
	if call := s.Calls()[0]; call.Prompt != "hi there" || call.Path != "/api/chat" || call.Model != "m" {
		t.Errorf("the first call is %+v", call)
	}
	h.CloseIdleConnections()
	s.AwaitClosed(t)
}

// TestEverySicknessIsSick checks that no behaviour is, by an oversight, the same
// as being well.
func TestEverySicknessIsSick(t *testing.T) {
	type endpoint struct {
		path, body string
		behaviours []llmtest.Behaviour
	}
	chat := `"model":"m","messages":[{"role":"user","content":"hello you"}]`
	schema := `{"type":"object","properties":{"terms":{"type":"array","items":{"type":"string"}}}}`
	embed := `{"model":"m","input":["a b c","some poison","d"]}`
	for _, e := range []endpoint{
		{"/api/chat", `{` + chat + `,"format":` + schema + `}`, llmtest.ForChat()},
		{"/v1/chat/completions", `{` + chat + `,"response_format":{"type":"json_schema","json_schema":{"schema":` + schema + `}}}`, llmtest.ForChat()},
		{"/api/embed", embed, llmtest.ForEmbed()},
		{"/v1/embeddings", embed, llmtest.ForEmbed()},
	} {
		for _, b := range e.behaviours {
			t.Run(e.path+" "+string(b), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := llmtest.NewPipe(t, llmtest.Options{})
					h := &http.Client{Transport: &http.Transport{DialContext: s.Dial}, Timeout: time.Hour}
					defer h.CloseIdleConnections()
					h.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
					url := s.URL + e.path
					_, well, err := post(t, h, url, e.body)
					if err != nil {
						t.Fatal(err)
					}
					began := time.Now()
					s.Be(b)
					if b == llmtest.Endless {
						r, err := h.Post(url, "", strings.NewReader(e.body))
						if err != nil {
							t.Fatal(err)
						}
						defer r.Body.Close()
						if n, err := io.CopyN(io.Discard, r.Body, 2<<20); err != nil {
							t.Errorf("an endless body ended after %d bytes: %v", n, err)
						}
						return
					}
					status, sick, err := post(t, h, url, e.body)
					if err == nil && status == 200 && sick == well && time.Since(began) < time.Second {
						t.Errorf("the answer is that of a healthy server: %s", sick)
					}
					s.Be(llmtest.Well)
					if _, again, err := post(t, h, url, e.body); err != nil || again != well {
						t.Errorf("once it is well again: error %v, answer %s", err, again)
					}
				})
			})
		}
	}
}

func TestBackAndForthOnTCP(t *testing.T) {
	s := llmtest.New(t, llmtest.Options{})
	h := &http.Client{Transport: &http.Transport{}}
	defer h.CloseIdleConnections()
	ask := func() error {
		_, _, err := post(t, h, s.URL+"/api/version", "")
		return err
	}
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	s.Be(llmtest.Refused)
	if err := ask(); err == nil {
		t.Error("a server that refuses answered")
	}
	if s.Open() != 0 {
		t.Errorf("%d connections are open to a server that refuses", s.Open())
	}
	s.Be(llmtest.BlackHole)
	s.Be(llmtest.Well)
	if err := ask(); err != nil {
		t.Errorf("once it is well again: %v", err)
	}
}

func TestVector(t *testing.T) {
	cosine := func(a, b string) (sum float64) {
		v, w := llmtest.Vector(a, 64), llmtest.Vector(b, 64)
		for i := range v {
			sum += float64(v[i]) * float64(w[i])
		}
		return sum
	}
	if c := cosine("the red house", "The red house!"); math.Abs(c-1) > 1e-6 {
		t.Errorf("equal words have the cosine %v", c)
	}
	near, far := cosine("the red house by the sea", "a red house"), cosine("the red house by the sea", "quarterly tax report")
	if near <= far+.2 {
		t.Errorf("cosine of similar texts %v, of others %v", near, far)
	}
	if !bytes.Equal([]byte(jsonOf(llmtest.Vector("", 3))), []byte("[1,0,0]")) {
		t.Errorf("no words: %v", llmtest.Vector("", 3))
	}
}

func jsonOf(v any) string {
	data, _ := json.Marshal(v)
	return string(data)
}
