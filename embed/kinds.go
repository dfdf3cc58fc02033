package embed

import (
	"path"
	"strings"
)

// A kind is what must be known of a model to ask it well, and cannot be asked
// of its server.
type kind struct {
	// uncased: the model reads text as uncased BERT does, see [prepare].
	uncased bool
	// query and document stand before texts of either sort. Models trained with
	// such marks rank worse without them.
	query, document string
	// tokens is the model's window where its server does not tell; 0: unknown.
	tokens int
}

// The prefixes that more than one model was trained with.
const (
	representSentence = "Represent this sentence for searching relevant passages: "
	representCode     = "Represent this query for searching relevant code: "
	// instructQuery and instructQuerySpaced differ in their last space, as the
	// model cards do.
	instructQuery       = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"
	instructQuerySpaced = instructQuery + " "
)

// kinds lists models by the last part of their name, lower-case and with '-'
// for '_'; patterns are those of [path.Match] and the first that fits is taken,
// so what is special stands before what is general. The facts are those of the
// model cards.
var kinds = []struct {
	pattern string
	kind
}{
	// Built on multilingual or mistral models, in spite of their names.
	{"*multilingual-e5*instruct*", kind{query: instructQuerySpaced, tokens: 512}},
	{"*multilingual-e5*", kind{query: "query: ", document: "passage: ", tokens: 512}},
	{"*e5-mistral*", kind{query: instructQuerySpaced, tokens: 4096}},
	{"*multilingual-minilm*", kind{tokens: 128}},
	{"*gte-multilingual*", kind{tokens: 8192}},
	{"*gte-modernbert*", kind{tokens: 8192}},
	{"*gte-qwen2*", kind{query: instructQuerySpaced, tokens: 32768}},
	{"*bge-m3*", kind{tokens: 8192}},
	{"*nomic-embed-text*v2*", kind{query: "search_query: ", document: "search_document: ", tokens: 512}},
	{"*snowflake-arctic-embed2*", kind{query: "query: ", tokens: 8192}},
	{"*arctic-embed*v2*", kind{query: "query: ", tokens: 8192}},

	// Uncased BERT and its like.
	{"*minilm*", kind{uncased: true, tokens: 512}},
	{"*mpnet*", kind{uncased: true, tokens: 384}},
	{"*bge-*zh*", kind{uncased: true, query: "为这个句子生成表示以用于检索相关文章：", tokens: 512}},
	{"*bge-small*", kind{uncased: true, query: representSentence, tokens: 512}},
	{"*bge-base*", kind{uncased: true, query: representSentence, tokens: 512}},
	{"*bge-large*", kind{uncased: true, query: representSentence, tokens: 512}},
	{"*e5-small*", kind{uncased: true, query: "query: ", document: "passage: ", tokens: 512}},
	{"*e5-base*", kind{uncased: true, query: "query: ", document: "passage: ", tokens: 512}},
	{"*e5-large*", kind{uncased: true, query: "query: ", document: "passage: ", tokens: 512}},
	{"*gte-*v1.5*", kind{uncased: true, tokens: 8192}},
	{"*gte-small*", kind{uncased: true, tokens: 512}},
	{"*gte-base*", kind{uncased: true, tokens: 512}},
	{"*gte-large*", kind{uncased: true, tokens: 512}},
	{"*nomic-embed-text*", kind{uncased: true, query: "search_query: ", document: "search_document: ", tokens: 2048}},
	{"*mxbai-embed*", kind{uncased: true, query: representSentence, tokens: 512}},
	{"*arctic-embed*long*", kind{uncased: true, query: representSentence, tokens: 2048}},
	{"*arctic-embed*", kind{uncased: true, query: representSentence, tokens: 512}},
	{"*jina-embeddings-v2*-en*", kind{uncased: true, tokens: 8192}},

	{"*embeddinggemma*", kind{query: "task: search result | query: ", document: "title: none | text: ", tokens: 2048}},
	{"*qwen3-embedding*", kind{query: instructQuery, tokens: 32768}},
	{"*nomic-embed-code*", kind{query: representCode, tokens: 32768}},
	{"*coderankembed*", kind{query: representCode, tokens: 8192}},
	{"*granite-embedding*", kind{tokens: 512}},
	{"*text-embedding-3-*", kind{tokens: 8191}},
	{"*text-embedding-ada-*", kind{tokens: 8191}},
}

// kindOf finds a model's kind by its name. One that is not listed is fed as it
// is: no prefix, no folding.
func kindOf(name string) kind {
	name = strings.ToLower(name)
	name = strings.ReplaceAll(name[strings.LastIndexByte(name, '/')+1:], "_", "-")
	for _, k := range kinds {
		if ok, err := path.Match(k.pattern, name); ok && err == nil {
			return k.kind
		}
	}
	return kind{}
}
