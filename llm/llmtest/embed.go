package llmtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"net/http"
	"slices"
	"strings"
	"unicode"
)

// Vector returns the unit vector that a healthy server gives for text. Each word
// of it, in lower case, adds or takes away 1 at a place that its hash tells, so
// that texts with common words are near. A text without words has the first
// unit vector.
func Vector(text string, dimension int) []float32 {
	v := make([]float32, dimension)
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	for _, word := range words {
		h := fnv.New64a()
		h.Write([]byte(word))
		sum := h.Sum64()
		// The low bits of this hash hardly differ between words that end alike.
		sum ^= sum >> 29
		if sum>>40&1 == 0 {
			v[sum%uint64(dimension)]++
		} else {
			v[sum%uint64(dimension)]--
		}
	}
	var square float64
	for _, x := range v {
		square += float64(x) * float64(x)
	}
	if square == 0 {
		v[0] = 1
		return v
	}
	for i := range v {
		v[i] = float32(float64(v[i]) / math.Sqrt(square))
	}
	return v
}

// show answers /api/show.
func (s *Server) show(be Behaviour) any {
	capabilities := s.options.Capabilities
	if be == CannotEmbed {
		capabilities = slices.DeleteFunc(slices.Clone(capabilities), func(c string) bool { return c == "embedding" })
	}
	return map[string]any{
		"capabilities": capabilities,
		"details":      map[string]any{"family": "bert", "format": "gguf"},
		"model_info": map[string]any{
			"general.architecture":  "bert",
			"bert.embedding_length": s.options.Dimension,
			"bert.context_length":   512,
		},
	}
}

// embed answers /api/embed and /embeddings.
func (s *Server) embed(call Call, be Behaviour) (status int, body []byte) {
	refuse := func(status int, message string) (int, []byte) {
		body, _ := json.Marshal(call.fault("", message))
		return status, body
	}
	for _, text := range call.Texts {
		switch {
		case be == OneBad && strings.Contains(text, Poison):
			return refuse(500, "failed to encode response: json: unsupported value: NaN")
		case s.options.Window > 0 && len(text) > s.options.Window:
			return refuse(400, "the input length exceeds the context length")
		}
	}
	if be == CannotEmbed {
		return refuse(400, fmt.Sprintf("%q does not support embeddings", call.Model))
	}
	vectors := s.vectors(call, be)
	var out map[string]any
	words := len(strings.Fields(strings.Join(call.Texts, " ")))
	if call.openai() {
		data := []any{}
		for i, v := range vectors {
			data = append(data, map[string]any{"object": "embedding", "index": i, "embedding": v})
		}
		out = map[string]any{"object": "list", "model": call.Model, "data": data,
			"usage": map[string]any{"prompt_tokens": words, "total_tokens": words}}
	} else {
		out = map[string]any{"model": call.Model, "embeddings": vectors, "prompt_eval_count": words}
	}
	body, err := json.Marshal(out)
	if err != nil {
		panic(err)
	}
	return http.StatusOK, bytes.ReplaceAll(body, []byte(`"NaN"`), []byte("NaN"))
}

// vectors makes the vectors of a call; any is []float32, or something worse.
func (s *Server) vectors(call Call, be Behaviour) []any {
	dimension := s.options.Dimension
	if asked, ok := call.Fields["dimensions"].(float64); ok && asked >= 1 && int(asked) < dimension {
		dimension = int(asked)
	}
	vectors := []any{}
	// Ollama has no vector for the empty text alone.
	if !call.openai() && len(call.Texts) == 1 && call.Texts[0] == "" {
		return vectors
	}
	for i, text := range call.Texts {
		var v []float32
		if s.options.Vector != nil {
			v = s.options.Vector(call.Model, text)
		} else {
			v = Vector(text, dimension)
		}
		vectors = append(vectors, spoil(v, be, i))
	}
	switch be {
	case NoVectors:
		return []any{}
	case TooFew:
		return vectors[:max(0, len(vectors)-1)]
	case TooManyVectors:
		return append(vectors, Vector("one more", dimension))
	}
	return vectors
}

// spoil does to the i-th vector of an answer what be does to vectors.
func spoil(v []float32, be Behaviour, i int) any {
	all := func(x any) any {
		list := make([]any, len(v))
		for j := range list {
			list[j] = x
		}
		return list
	}
	switch be {
	case NaN:
		return all("NaN")
	case NullVector:
		return nil
	case NullNumbers:
		return all(nil)
	case HugeNumbers:
		return all(1e300)
	case EmptyVectors:
		return []float32{}
	case ZeroVector:
		return make([]float32, len(v))
	case WrongDimension:
		return append(v, 0)
	case MixedDimension:
		if i%2 == 1 {
			return append(v, 0)
		}
	case NotUnit:
		for j := range v {
			v[j] *= 10
		}
	}
	return v
}
