package retrieve

import (
	"cmp"
	"context"
	"fmt"
	"slices"
)

// A Corpus ranks whole documents by BM25 and nothing else, over the same
// postings and with the same arithmetic as an Index. It exists to check that
// arithmetic against published figures.
//
// A Corpus is not safe for concurrent use.
type Corpus struct {
	words   *wordIndex
	analyze func(text string) []string
	ids     []string
	lengths []int
	total   int
}

// A Hit is a document and its score.
type Hit struct {
	ID    string
	Score float64
}

// corpusField is the one field of a corpus.
const corpusField = "text"

// OpenCorpus makes an empty corpus in folder, whose texts and queries are cut
// into terms by analyze.
func OpenCorpus(folder string, analyze func(text string) []string) (*Corpus, error) {
	words, _, err := openWordIndex(folder, corpusField)
	if err != nil {
		return nil, err
	}
	return &Corpus{words: words, analyze: analyze}, nil
}

// Add indexes texts under ids, which must be new.
func (c *Corpus) Add(ids, texts []string) error {
	docs := make([]wordDocument, len(ids))
	for i, text := range texts {
		terms := c.analyze(text)
		tokens := make([]Token, len(terms))
		for k, term := range terms {
			tokens[k] = Token{Term: term}
		}
		docs[i] = wordDocument{sliceKey{seq: uint64(len(c.ids))}, corpusField, tokens}
		c.ids = append(c.ids, ids[i])
		c.lengths = append(c.lengths, len(terms))
		c.total += len(terms)
	}
	return c.words.write(docs, uint64(len(c.ids)))
}

// Search gives the k best documents for query, best first; ties go to the
// document added first. Repeated terms of the query count as often.
func (c *Corpus) Search(query string, bm BM25, k int) ([]Hit, error) {
	reader, err := c.words.read()
	if err != nil {
		return nil, err
	}
	defer func() { _ = reader.close() }()
	n := len(c.ids)
	average := float64(c.total) / float64(max(n, 1))
	scores := make([]float64, n)
	for _, term := range c.analyze(query) {
		list, err := reader.postings(context.Background(), corpusField, term)
		if err != nil {
			return nil, fmt.Errorf("search corpus: %w", err)
		}
		weight := idf(n, len(list))
		for _, p := range list {
			scores[p.key.seq] += bm.Weight(weight, int(p.count), c.lengths[p.key.seq], average)
		}
	}
	var hits []Hit
	var order []int
	for i, s := range scores {
		if s > 0 {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(scores[b], scores[a]), cmp.Compare(a, b))
	})
	for _, i := range order[:min(k, len(order))] {
		hits = append(hits, Hit{c.ids[i], scores[i]})
	}
	return hits, nil
}

// Close releases the files; the folder may then be removed.
func (c *Corpus) Close() error { return c.words.close() }
