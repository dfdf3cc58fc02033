package retrieve

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
)

// vectorMagic begins a file of vectors; its number changes with the format.
const vectorMagic = "recalld vectors 1\n"

var (
	errVectors = errors.New("damaged or foreign vectors")
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// quantise rounds a direction to 8 bits an element, in place, and gives the
// step. What is compared is always what a file would give back, so that a
// restart changes no score; at 256 dimensions it costs nothing in quality.
func quantise(v []float32) (step float32) {
	var top float32
	for _, x := range v {
		top = max(top, x, -x)
	}
	step = top / 127
	for i, x := range v {
		v[i] = float32(roundTo(x, step)) * step
	}
	return step
}

// roundTo gives how many steps x is.
func roundTo(x, step float32) int8 {
	if step == 0 {
		return 0
	}
	return int8(math.RoundToEven(float64(x / step)))
}

// vectorHeader is what stands before the arrays of a file of vectors.
type vectorHeader struct {
	Since                           uint64
	Dims, Weights, Slices, Messages uint32
	Unseen                          float32
}

// save writes the state of meaning to a file beside path and renames it: the
// file is whole or absent. It is a view, so it is not synced; a checksum tells
// when a power cut tore it.
func (m *meaning) save(path, identity string) (err error) {
	var b bytes.Buffer
	b.WriteString(vectorMagic)
	b.WriteString(identity + "\n")
	header := vectorHeader{m.since, uint32(len(m.mean)), uint32(len(m.weights)), uint32(len(m.lengths)), uint32(len(m.norms)), m.unseen}
	for _, part := range []any{header, m.mean, m.weights, m.lengths, m.norms, m.first, m.steps} {
		if err := binary.Write(&b, binary.LittleEndian, part); err != nil {
			return fmt.Errorf("save vectors: %w", err)
		}
	}
	for i, step := range m.steps {
		if step == 0 {
			continue
		}
		for _, x := range m.vectors.at(i) {
			b.WriteByte(byte(roundTo(x, step)))
		}
	}
	sum := crc32.Checksum(b.Bytes(), castagnoli)
	if err := binary.Write(&b, binary.LittleEndian, sum); err != nil {
		return fmt.Errorf("save vectors: %w", err)
	}
	aside := path + ".new"
	if err := os.WriteFile(aside, b.Bytes(), 0o600); err != nil {
		return fmt.Errorf("save vectors: %w", err)
	}
	if err := os.Rename(aside, path); err != nil {
		return fmt.Errorf("save vectors: %w", err)
	}
	return nil
}

// loadMeaning reads what save wrote. The error wraps that of the file system,
// or errVectors when the file is torn or was made with something else.
func loadMeaning(table TokenTable, path, identity string) (*meaning, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("load vectors: %w", err)
	}
	prefix := vectorMagic + identity + "\n"
	if len(data) < len(prefix)+4 || string(data[:len(prefix)]) != prefix {
		return nil, fmt.Errorf("load vectors: %w", errVectors)
	}
	body, sum := data[:len(data)-4], binary.LittleEndian.Uint32(data[len(data)-4:])
	if crc32.Checksum(body, castagnoli) != sum {
		return nil, fmt.Errorf("load vectors: %w", errVectors)
	}
	m, err := readMeaning(table, bytes.NewReader(body[len(prefix):]))
	if err != nil {
		return nil, fmt.Errorf("load vectors: %w: %w", errVectors, err)
	}
	return m, nil
}

func readMeaning(table TokenTable, r *bytes.Reader) (*meaning, error) {
	var h vectorHeader
	if err := binary.Read(r, binary.LittleEndian, &h); err != nil {
		return nil, err
	}
	if h.Dims == 0 || int(h.Dims) != table.Dimensions() || uint64(h.Slices)*uint64(h.Dims) > uint64(r.Len()) || uint64(h.Messages)+uint64(h.Weights) > uint64(r.Len()) {
		return nil, io.ErrUnexpectedEOF
	}
	m := newMeaning(table)
	m.since, m.unseen = h.Since, h.Unseen
	m.weights, m.steps = make([]float32, h.Weights), make([]float32, h.Slices)
	m.lengths, m.norms, m.first = make([]shifted, h.Slices), make([]shifted, h.Messages), make([]int32, h.Messages)
	for _, part := range []any{m.mean, m.weights, m.lengths, m.norms, m.first, m.steps} {
		if err := binary.Read(r, binary.LittleEndian, part); err != nil {
			return nil, err
		}
	}
	row := make([]byte, h.Dims)
	v := make([]float32, h.Dims)
	for _, step := range m.steps {
		if step == 0 {
			m.vectors.append(nil)
			continue
		}
		if _, err := io.ReadFull(r, row); err != nil {
			return nil, err
		}
		for k, x := range row {
			v[k] = float32(int8(x)) * step
		}
		m.vectors.append(v)
	}
	return m, nil
}
