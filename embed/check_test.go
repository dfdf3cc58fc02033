package embed_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"recalld/embed"
	"recalld/llm"
)

func TestCheck(t *testing.T) {
	for _, p := range providers {
		f := newFake(t)
		info, err := f.remote(t, p, "all-minilm", embed.Options{}).Check(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := embed.Info{Dimensions: 4, Took: info.Took}
		if p == llm.Ollama {
			want.ContextTokens = 512
		}
		if info != want || info.Took <= 0 {
			t.Errorf("%s: Check = %+v, want %+v and some time", p, info, want)
		}
	}
}

// TestCheckSaysWhatToDo: its errors are read by someone at a terminal.
func TestCheckSaysWhatToDo(t *testing.T) {
	missing := func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(404)
		io.WriteString(w, `{"error": {"message": "The model 'some-model' does not exist"}}`)
	}
	refusing := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(400) }
	tests := []struct {
		name     string
		provider llm.Provider
		make     func(*fake)
		options  embed.Options
		want     []string
		is       error
	}{
		{"a chat model", llm.Ollama, func(f *fake) { f.show = chatShow }, embed.Options{},
			[]string{"cannot embed", "completion, tools", "type: ollama pull all-minilm"}, nil},
		{"too many dimensions", llm.Ollama, func(*fake) {}, embed.Options{Dimensions: 5}, []string{"5 dimensions", "have 4"}, nil},
		{"other dimensions than told", llm.Ollama, func(f *fake) { f.vector = func(string) string { return "[1,2]" } }, embed.Options{},
			[]string{"2 numbers", "one of 4"}, llm.ErrReply},
		{"nothing told", llm.Ollama, func(f *fake) { f.show = "{}"; f.vector = func(string) string { return "[]" } }, embed.Options{},
			[]string{"0 numbers"}, llm.ErrReply},
		{"the description is no JSON", llm.Ollama, func(f *fake) { f.show = "<html>" }, embed.Options{}, nil, llm.ErrReply},
		{"a missing model", llm.Ollama, func(f *fake) { f.answer = missing }, embed.Options{}, []string{"type: ollama pull some-model"}, llm.ErrMissing},
		{"a missing model", llm.OpenAI, func(f *fake) { f.answer = missing }, embed.Options{}, []string{"/v1/models"}, llm.ErrMissing},
		{"no such address", llm.OpenAI, func(f *fake) { f.answer = http.NotFound }, embed.Options{}, []string{"404", "/v1"}, nil},
		{"a key that is not accepted", llm.OpenAI, func(f *fake) {
			f.answer = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }
		}, embed.Options{}, []string{"key"}, nil},
		{"all refused", llm.OpenAI, func(f *fake) { f.answer = refusing }, embed.Options{}, []string{"every text", "400"}, llm.ErrReply},
		{"all refused, perhaps for the dimensions", llm.OpenAI, func(f *fake) { f.answer = refusing }, embed.Options{Dimensions: 2},
			[]string{"400", "2 dimensions"}, llm.ErrReply},
		{"a server that is not there", llm.Ollama, func(f *fake) { f.URL = "http://127.0.0.1:1" }, embed.Options{},
			[]string{"http://127.0.0.1:1", "type: ollama serve"}, nil},
		{"a server that is not there", llm.OpenAI, func(f *fake) { f.URL = "http://127.0.0.1:1" }, embed.Options{},
			[]string{"http://127.0.0.1:1/v1"}, nil},
	}
	for _, tt := range tests {
		t.Run(string(tt.provider)+": "+tt.name, func(t *testing.T) {
			f := newFake(t)
			tt.make(f)
			_, err := f.remote(t, tt.provider, "some-model", tt.options).Check(t.Context())
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("error %q does not wrap %q", err, tt.is)
			}
			if strings.Contains(err.Error(), "sesame") {
				t.Errorf("error %q holds the key", err)
			}
			t.Log(err)
		})
	}
}

// TestCheckLooksAgain: what was learnt before does not hide what is wrong now.
func TestCheckLooksAgain(t *testing.T) {
	f := newFake(t)
	r := f.remote(t, llm.Ollama, "some-model", embed.Options{})
	if _, err := r.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.show = chatShow
	if _, err := r.Check(t.Context()); err == nil {
		t.Error("a model that cannot embed any more passes")
	}
}

// TestOldServer: Ollama listed no capabilities once.
func TestOldServer(t *testing.T) {
	f := newFake(t)
	f.show = `{"model_info": {"general.architecture": "bert", "bert.embedding_length": 4}}`
	if info, err := f.remote(t, llm.Ollama, "some-model", embed.Options{}).Check(t.Context()); err != nil || info.Dimensions != 4 {
		t.Errorf("Check = %+v, %v", info, err)
	}
}
