package retrieve

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/analysis"
	"github.com/blevesearch/bleve/v2/document"
	"github.com/blevesearch/bleve/v2/mapping"
	"github.com/blevesearch/bleve/v2/registry"
	index "github.com/blevesearch/bleve_index_api"
)

// analyzerName is this package's analysis in bleve's registry. Its version is
// part of a view's identity: another analysis makes other postings.
const analyzerName = "recalld-v1"

// An init is what bleve's registry needs: analyzers are looked up by the name
// stored in the index when it is opened.
func init() {
	err := registry.RegisterAnalyzer(analyzerName, func(map[string]any, *registry.Cache) (analysis.Analyzer, error) {
		return textAnalyzer{}, nil
	})
	if err != nil {
		panic(fmt.Sprintf("register analyzer: %v", err)) // two packages claim the name
	}
}

// textAnalyzer is [Analyze] as bleve knows it.
type textAnalyzer struct{}

func (textAnalyzer) Analyze(text []byte) analysis.TokenStream {
	return tokenStream(Analyze(string(text)))
}

// tokensAnalyzer gives tokens that are known already, so that a message is
// analysed once for memory and for disk.
type tokensAnalyzer []Token

func (t tokensAnalyzer) Analyze([]byte) analysis.TokenStream { return tokenStream(t) }

func tokenStream(tokens []Token) analysis.TokenStream {
	stream := make(analysis.TokenStream, len(tokens))
	held := make([]analysis.Token, len(tokens))
	for i, t := range tokens {
		held[i] = analysis.Token{Term: []byte(t.Term), Start: t.Start, End: t.End, Position: i + 1}
		stream[i] = &held[i]
	}
	return stream
}

// A posting says how often a term stands in one slice.
type posting struct {
	slice int32 // ordinal of the slice in its table
	count int32
}

// A slicePosting is a posting by what bleve stores: sequence number and slice.
type slicePosting struct {
	key   sliceKey
	count int32
}

// A sliceKey names a slice on disk: the message's sequence number and the
// number of the slice in it.
type sliceKey struct {
	seq   uint64
	slice uint16
}

func (k sliceKey) id() string {
	var b [10]byte
	binary.BigEndian.PutUint64(b[:8], k.seq)
	binary.BigEndian.PutUint16(b[8:], k.slice)
	return string(b[:])
}

func parseSliceKey(id string) (sliceKey, error) {
	if len(id) != 10 {
		return sliceKey{}, fmt.Errorf("document id of %d bytes", len(id))
	}
	return sliceKey{binary.BigEndian.Uint64([]byte(id[:8])), binary.BigEndian.Uint16([]byte(id[8:]))}, nil
}

// A wordDocument is one slice on its way to disk.
type wordDocument struct {
	key    sliceKey
	field  string
	tokens []Token
}

// coveredKey holds, inside the index, the sequence number it covers: it is
// written in one batch with the documents, so the two cannot disagree.
var coveredKey = []byte("covered")

// A wordIndex keeps postings on disk. bleve analyses nothing and scores
// nothing here: it stores postings and gives them back.
type wordIndex struct {
	idx bleve.Index
}

// wordMapping stores nothing but postings: everything else costs six times the
// disk and is never read.
func wordMapping(fields ...string) mapping.IndexMapping {
	m := bleve.NewIndexMapping()
	m.DefaultAnalyzer = analyzerName
	m.DefaultMapping.Dynamic = false
	for _, name := range fields {
		f := bleve.NewTextFieldMapping()
		f.Store, f.IncludeTermVectors, f.IncludeInAll, f.DocValues = false, false, false, false
		m.DefaultMapping.AddFieldMappingsAt(name, f)
	}
	return m
}

// boltTimeout bounds the wait for another process's lock; without it a second
// opener waits for ever.
const boltTimeout = "2s"

// openWordIndex opens or creates the index in folder and returns the sequence
// number it covers. A panic of the library is an error here.
func openWordIndex(folder string, fields ...string) (w *wordIndex, covered uint64, err error) {
	defer guarded("open word index", &err)()
	var idx bleve.Index
	if _, statErr := os.Stat(filepath.Join(folder, "index_meta.json")); errors.Is(statErr, os.ErrNotExist) {
		idx, err = bleve.NewUsing(folder, wordMapping(fields...), "scorch", "scorch", map[string]any{"bolt_timeout": boltTimeout})
	} else {
		idx, err = bleve.OpenUsing(folder, map[string]any{"bolt_timeout": boltTimeout})
	}
	if err != nil {
		return nil, 0, fmt.Errorf("open word index: %w", err)
	}
	w = &wordIndex{idx: idx}
	value, err := idx.GetInternal(coveredKey)
	if err != nil {
		_ = idx.Close()
		return nil, 0, fmt.Errorf("read what the word index covers: %w", err)
	}
	if len(value) == 8 {
		covered = binary.BigEndian.Uint64(value)
	}
	return w, covered, nil
}

// write stores documents and, with them, what the index now covers.
func (w *wordIndex) write(docs []wordDocument, covered uint64) (err error) {
	defer guarded("write word index", &err)()
	batch := w.idx.NewBatch()
	for _, d := range docs {
		doc := document.NewDocument(d.key.id())
		doc.AddField(document.NewTextFieldCustom(d.field, nil, nil, index.IndexField, tokensAnalyzer(d.tokens)))
		if err := batch.IndexAdvanced(doc); err != nil {
			return fmt.Errorf("index message %d: %w", d.key.seq, err)
		}
	}
	batch.SetInternal(coveredKey, binary.BigEndian.AppendUint64(nil, covered))
	if err := w.idx.Batch(batch); err != nil {
		return fmt.Errorf("write word index: %w", err)
	}
	return nil
}

func (w *wordIndex) close() (err error) {
	defer guarded("close word index", &err)()
	return w.idx.Close()
}

// A wordReader is a snapshot of a wordIndex.
type wordReader struct {
	reader index.IndexReader
	// keys maps bleve's document numbers, which change with every merge.
	keys []sliceKey
}

// read takes a snapshot.
func (w *wordIndex) read() (r *wordReader, err error) {
	defer guarded("read word index", &err)()
	advanced, err := w.idx.Advanced()
	if err != nil {
		return nil, fmt.Errorf("read word index: %w", err)
	}
	reader, err := advanced.Reader()
	if err != nil {
		return nil, fmt.Errorf("read word index: %w", err)
	}
	r = &wordReader{reader: reader}
	if r.keys, err = documentKeys(reader); err != nil {
		_ = reader.Close()
		return nil, err
	}
	return r, nil
}

func documentKeys(reader index.IndexReader) ([]sliceKey, error) {
	all, err := reader.DocIDReaderAll()
	if err != nil {
		return nil, fmt.Errorf("list documents: %w", err)
	}
	defer func() { _ = all.Close() }()
	var keys []sliceKey
	for {
		id, err := all.Next()
		if err != nil {
			return nil, fmt.Errorf("list documents: %w", err)
		}
		if id == nil {
			return keys, nil
		}
		name, err := reader.ExternalID(id)
		if err != nil {
			return nil, fmt.Errorf("name document: %w", err)
		}
		key, err := parseSliceKey(name)
		if err != nil {
			return nil, err
		}
		n := int(id.Value())
		for len(keys) <= n {
			keys = append(keys, sliceKey{})
		}
		keys[n] = key
	}
}

// postings reads all postings of a term, in no particular order.
func (r *wordReader) postings(ctx context.Context, field, term string) (list []slicePosting, err error) {
	defer guarded("read postings", &err)()
	docs, err := r.reader.TermFieldReader(ctx, []byte(term), field, true, false, false)
	if err != nil {
		return nil, fmt.Errorf("read postings: %w", err)
	}
	defer func() { _ = docs.Close() }()
	list = make([]slicePosting, 0, docs.Count())
	var held index.TermFieldDoc
	for {
		doc, err := docs.Next(held.Reset())
		if err != nil {
			return nil, fmt.Errorf("read postings: %w", err)
		}
		if doc == nil {
			return list, nil
		}
		list = append(list, slicePosting{r.keys[doc.ID.Value()], int32(doc.Freq)})
	}
}

func (r *wordReader) close() (err error) {
	defer guarded("close word reader", &err)()
	return r.reader.Close()
}

// guarded turns a panic of a search library into an error; so, too, the fault
// of reading a mapped file that was cut short, which would end the process
// otherwise. Defer what it returns. The value of a panic may hold words of a
// text, so it is left out.
func guarded(doing string, err *error) func() {
	was := debug.SetPanicOnFault(true)
	return func() {
		debug.SetPanicOnFault(was)
		if r := recover(); r != nil {
			*err = fmt.Errorf("%s: %w", doing, errPanic)
		}
	}
}

// errPanic stands for a panic inside a library.
var errPanic = errors.New("the search library panicked")
