package llmtest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// maxBody bounds what the server reads; a caller that sends more is at fault.
const maxBody = 16 << 20

// loadTime is how long [Loading] takes.
const loadTime = 30 * time.Second

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return // the caller has left
	}
	call := read(r, body)
	s.mu.Lock()
	s.calls = append(s.calls, call)
	s.changed()
	be := s.be
	s.mu.Unlock()
	if s.options.Key != "" && call.Key != s.options.Key {
		be = NoKey
	}
	if s.outside(w, r, call, be) {
		return
	}
	if s.options.Latency > 0 && !s.pause(r.Context(), s.options.Latency) {
		return
	}
	status, answer := s.answer(call, be)
	s.send(w, r, be, status, answer)
}

// read takes a request apart, in either protocol.
func read(r *http.Request, body []byte) Call {
	call := Call{Path: r.URL.Path}
	call.Key, _ = strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	json.Unmarshal(body, &call.Fields)
	var q struct {
		Model    string
		Messages []struct{ Role, Content string }
		Input    any
		Format   json.RawMessage
		Response struct {
			Schema struct {
				Schema json.RawMessage
			} `json:"json_schema"`
		} `json:"response_format"`
	}
	json.Unmarshal(body, &q)
	call.Model = q.Model
	for _, m := range q.Messages {
		if m.Role == "system" {
			call.System = m.Content
		} else {
			call.Prompt = m.Content
		}
	}
	call.Schema = q.Format
	if call.Schema == nil {
		call.Schema = q.Response.Schema.Schema
	}
	switch input := q.Input.(type) {
	case string:
		call.Texts = []string{input}
	case []any:
		for _, text := range input {
			text, _ := text.(string)
			call.Texts = append(call.Texts, text)
		}
	}
	return call
}

// openai reports whether a call is in OpenAI's protocol.
func (c *Call) openai() bool { return !strings.HasPrefix(c.Path, "/api/") }

// fault is the body of an error, in the protocol of the call.
func (c *Call) fault(code, message string) any {
	if c.openai() {
		return map[string]any{"error": map[string]any{"message": message, "code": code, "type": "invalid_request_error"}}
	}
	return map[string]any{"error": message}
}

// outside behaves where there is no answer in any protocol. It reports whether
// that was the case.
func (s *Server) outside(w http.ResponseWriter, r *http.Request, call Call, be Behaviour) bool {
	status := map[Behaviour]int{
		BadRequest: 400, NoKey: 401, Forbidden: 403, TooMany: 429, ServerError: 500, Unavailable: 503,
	}[be]
	switch {
	case status != 0:
		if be == TooMany || be == Unavailable {
			w.Header().Set("Retry-After", "90")
		}
		// Servers like to quote what they were sent.
		s.write(w, status, call.fault("", fmt.Sprintf("no: %s %s %v", call.System, call.Prompt, call.Texts)))
	case be == NoModel:
		s.noModel(w, call)
	case be == NoPage:
		http.NotFound(w, r)
	case be == Redirect:
		http.Redirect(w, r, s.options.Elsewhere+r.URL.Path, http.StatusTemporaryRedirect)
	case be == HTML:
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, "<!doctype html>\n<html><body>\n<h1>Sign in to this network</h1>\n</body></html>\n")
	case be == EmptyBody:
	case be == Null:
		io.WriteString(w, "null")
	case be == WrongFields:
		io.WriteString(w, `{"answer":"yes","result":[1,2,3]}`)
	case be == WrongTypes:
		io.WriteString(w, `{"message":"yes","choices":{"a":1},"embeddings":"none","data":7,"done":"done"}`)
	case be == ErrorIn200:
		s.write(w, http.StatusOK, call.fault("", "cannot answer: "+call.Prompt+strings.Join(call.Texts, " ")))
	case be == HangUp:
		panic(http.ErrAbortHandler)
	case be == Silent:
		s.pause(r.Context(), 1000*time.Hour)
	case be == SlowHeaders:
		s.slowHeaders(w)
	case be == Endless:
		s.endless(w)
	case be == Loading:
		return !s.pause(r.Context(), loadTime)
	default:
		return false
	}
	return true
}

func (s *Server) noModel(w http.ResponseWriter, call Call) {
	s.write(w, http.StatusNotFound, call.fault("model_not_found", fmt.Sprintf("model %q not found, try pulling it first", call.Model)))
}

func (s *Server) write(w http.ResponseWriter, status int, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(data)
}

// pause waits, and reports whether it got to the end.
func (s *Server) pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-s.done:
	}
	return false
}

// slowHeaders writes an endless header, a byte a second, to whoever listens.
func (s *Server) slowHeaders(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		io.Copy(io.Discard, conn) // ends when the caller leaves
		cancel()
	}()
	io.WriteString(conn, "HTTP/1.1 200 OK\r\nX-Slow: ")
	for s.pause(ctx, time.Second) {
		if _, err := io.WriteString(conn, "a"); err != nil {
			return
		}
	}
}

// endless answers with a string that has no end.
func (s *Server) endless(w http.ResponseWriter) {
	io.WriteString(w, `{"message":{"role":"assistant","content":"`)
	chunk := strings.Repeat("and so on ", 1000)
	for {
		if _, err := io.WriteString(w, chunk); err != nil {
			return
		}
		select {
		case <-s.done:
			return
		default:
		}
	}
}

// answer makes the body of a good answer, or of a bad one of the call's kind.
func (s *Server) answer(call Call, be Behaviour) (status int, body []byte) {
	path := strings.TrimPrefix(call.Path, "/v1")
	var out any
	switch path {
	case "/api/version":
		out = map[string]any{"version": "0.0.0-fake"}
	case "/api/tags", "/models":
		out = s.models(call)
	case "/api/show", "/api/chat", "/chat/completions", "/api/embed", "/embeddings":
		if len(s.options.Models) > 0 && !slices.Contains(s.options.Models, call.Model) {
			status, out = 404, call.fault("model_not_found", fmt.Sprintf("model %q not found, try pulling it first", call.Model))
			break
		}
		switch path {
		case "/api/show":
			out = s.show(be)
		case "/api/chat", "/chat/completions":
			return s.chat(call, be)
		default:
			return s.embed(call, be)
		}
	default:
		status, out = 404, call.fault("", "404 page not found")
	}
	body, err := json.Marshal(out)
	if err != nil {
		panic(err)
	}
	return max(status, http.StatusOK), body
}

func (s *Server) models(call Call) any {
	list := []any{}
	for _, name := range s.options.Models {
		list = append(list, map[string]any{"name": name, "model": name, "id": name, "object": "model"})
	}
	if call.openai() {
		return map[string]any{"object": "list", "data": list}
	}
	return map[string]any{"models": list}
}

// send writes an answer, or some of it.
func (s *Server) send(w http.ResponseWriter, r *http.Request, be Behaviour, status int, answer []byte) {
	w.Header().Set("Content-Type", "application/json")
	switch be {
	case Truncated:
		answer = answer[:len(answer)/2]
	case Disconnect, Drip:
		w.Header().Set("Content-Length", fmt.Sprint(len(answer)))
	}
	w.WriteHeader(status)
	switch be {
	case Disconnect:
		w.Write(answer[:len(answer)/2])
		http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case Drip:
		for i := range answer {
			w.Write(answer[i : i+1])
			http.NewResponseController(w).Flush()
			if !s.pause(r.Context(), time.Second) {
				return
			}
		}
	default:
		w.Write(answer)
	}
}
