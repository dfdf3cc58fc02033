package embed

import (
	_ "embed" // for the files of the table
	"encoding/binary"
	"fmt"
	"math"
	"strings"
)

// The files are strings rather than bytes so that they stay in the read-only
// part of the program and nothing of them is copied to the heap.
var (
	//go:embed minilm-static-256/table.bin
	tableFile string
	//go:embed minilm-static-256/vocab.txt
	vocabularyFile string
)

// A table holds the rows of a vocabulary's tokens. It is read-only once made.
type table struct {
	vocabulary
	dimensions int
	rows       string    // int8, one row of dimensions after the other
	scales     []float32 // by token: a number of its row is scale × int8
	words      []bool    // by token: its piece holds a Latin letter
}

// loadBuiltIn panics if the files in the program do not fit together: that is
// a broken build, which the tests of this package find.
func loadBuiltIn() *table {
	t, err := parseTable(tableFile, vocabularyFile)
	if err != nil {
		panic(fmt.Sprintf("embed: built-in table: %v", err))
	}
	return t
}

// parseTable reads the format of table.bin, little-endian: "STE1", the number
// of rows and of dimensions (uint32 each), a float32 scale for each row, then
// the rows as int8. Line i of the vocabulary is the piece of row i.
func parseTable(data, vocabulary string) (*table, error) {
	const magic, headerBytes = "STE1", 12
	if len(data) < headerBytes || !strings.HasPrefix(data, magic) {
		return nil, fmt.Errorf("header is not that of a token table")
	}
	header := []byte(data[:headerBytes])
	rows := int(binary.LittleEndian.Uint32(header[4:]))
	dimensions := int(binary.LittleEndian.Uint32(header[8:]))
	if want := headerBytes + 4*rows + rows*dimensions; len(data) != want {
		return nil, fmt.Errorf("%d bytes, want %d for %d rows of %d", len(data), want, rows, dimensions)
	}
	pieces := strings.Split(strings.TrimSuffix(vocabulary, "\n"), "\n")
	if len(pieces) != rows {
		return nil, fmt.Errorf("%d pieces for %d rows", len(pieces), rows)
	}

	t := &table{
		vocabulary: newVocabulary(pieces),
		dimensions: dimensions,
		rows:       data[headerBytes+4*rows:],
		scales:     make([]float32, rows),
		words:      make([]bool, rows),
	}
	scales := []byte(data[headerBytes : headerBytes+4*rows])
	for i, piece := range pieces {
		t.scales[i] = math.Float32frombits(binary.LittleEndian.Uint32(scales[4*i:]))
		t.words[i] = strings.ContainsFunc(piece, isLatin)
	}
	return t, nil
}

// addRow adds weight times the row of token to dst.
//
// The conversion of each product looks idle and is not: it keeps the compiler
// from fusing multiplication and addition, which it does on some processors
// and which would round differently there.
func (t *table) addRow(dst []float32, token int32, weight float32) {
	begin := int(token) * t.dimensions
	row := t.rows[begin : begin+t.dimensions]
	factor := weight * t.scales[token]
	dst = dst[:len(row)]
	for i := range dst {
		dst[i] += float32(factor * float32(int8(row[i])))
	}
}

// meaningful reports whether any of tokens holds a Latin letter.
func (t *table) meaningful(tokens []int32) bool {
	for _, token := range tokens {
		if t.words[token] {
			return true
		}
	}
	return false
}
