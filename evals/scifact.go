package main

import (
	"fmt"
	"os"
	"path/filepath"

	"recalld/retrieve"
)

// publishedBM25 are the parameters of the published figures for SciFact
// (BEIR with Anserini: nDCG@10 .679, recall@100 .925).
var publishedBM25 = retrieve.BM25{K1: .9, B: .4}

const (
	scifactDepth   = 100
	scifactProject = "scifact"
)

// loadScifact ranks whole documents by plain BM25, which is a check of
// arithmetic, and makes the same documents a memory for the fused ranking.
func loadScifact(data string) (*Set, error) {
	set, err := readRetrievalSet(filepath.Join(data, "scifact"))
	if err != nil {
		return nil, err
	}
	set.queries = answered(set)
	extra, err := plainBM25(set)
	if err != nil {
		return nil, fmt.Errorf("rank scifact by plain BM25: %w", err)
	}
	return &Set{
		Name:      "scifact",
		Memories:  []Memory{documentMemory(scifactProject, set.corpus)},
		Questions: documentQuestions(scifactProject, "", set),
		Passes:    []Pass{{Suffix: "_fused"}},
		Extra:     extra,
		Columns:   []string{"ndcg@10", "recall@100", "ndcg@10_fused", "recall@10_fused", "recall@50_fused", "mrr_fused"},
		Keys:      []string{"ndcg@10_fused"},
	}, nil
}

// answered leaves out queries without an answer.
func answered(set *retrievalSet) []queryLine {
	var queries []queryLine
	for _, query := range set.queries {
		if len(set.qrels[query.ID]) > 0 {
			queries = append(queries, query)
		}
	}
	return queries
}

// plainBM25 gives ndcg@10 and recall@100 of each query.
func plainBM25(set *retrievalSet) ([]Values, error) {
	folder, err := os.MkdirTemp("", "evals-corpus-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	corpus, err := retrieve.OpenCorpus(filepath.Join(folder, "words"), english)
	if err != nil {
		return nil, err
	}
	defer func() { _ = corpus.Close() }()
	if err := addDocuments(corpus, set.corpus); err != nil {
		return nil, err
	}
	values := make([]Values, len(set.queries))
	for i, query := range set.queries {
		hits, err := corpus.Search(query.Text, publishedBM25, scifactDepth)
		if err != nil {
			return nil, err
		}
		values[i] = plainValues(hits, set.qrels[query.ID])
	}
	return values, nil
}

func addDocuments(corpus *retrieve.Corpus, lines []corpusLine) error {
	ids, texts := make([]string, len(lines)), make([]string, len(lines))
	for i, line := range lines {
		ids[i], texts[i] = line.ID, line.Title+" "+line.Text
	}
	return corpus.Add(ids, texts)
}

func plainValues(hits []retrieve.Hit, answers []string) Values {
	ranked := make([]string, len(hits))
	for i, hit := range hits {
		ranked[i] = hit.ID
	}
	gold := setOf(answers)
	return Values{
		"ndcg@10":    ndcg(ranked, gold, rankCutoff),
		"recall@100": float64(found(ranked, gold, scifactDepth)) / float64(len(gold)),
	}
}

func setOf(ids []string) map[string]bool {
	set := make(map[string]bool, len(ids))
	for _, id := range ids {
		set[id] = true
	}
	return set
}
