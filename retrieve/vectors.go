package retrieve

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/philippgille/chromem-go"
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
)

// A vectorStore holds one unit vector per ordinal; a nil vector is none. The
// product with an absent vector is 0.
type vectorStore interface {
	// append copies v.
	append(v []float32)
	len() int
	// at gives the i-th vector, nil or zeros for none; it is not to be changed.
	at(i int) []float32
	// dots fills dst, which has len elements, with the products with a unit
	// vector. It returns ctx's error when that ends first; dst is then
	// incomplete.
	dots(ctx context.Context, query []float32, dst []float32) error
}

// flatFrom is the size from which a flat matrix holds the vectors instead of
// chromem-go. BenchmarkVectors has all of chromem-go's cosines at .3 ms for 256
// vectors of 256 dimensions, the flat scan at .006; at 20,000 it is 26 against
// .8. Below it the difference is nothing that anyone could notice.
const flatFrom = 256

// growing is chromem-go while small and a flat matrix from flatFrom on.
type growing struct {
	vectorStore
	dims  int
	small [][]float32 // kept until the change
}

func newVectorStore(dims int) vectorStore {
	return &growing{vectorStore: newChromemStore(), dims: dims}
}

func (g *growing) append(v []float32) {
	if g.len() == flatFrom {
		flat := newFlatStore(g.dims)
		for _, old := range g.small {
			flat.append(old)
		}
		g.vectorStore, g.small = flat, nil
	}
	if g.len() < flatFrom {
		v = slices.Clone(v)
		g.small = append(g.small, v)
	}
	g.vectorStore.append(v)
}

func (g *growing) at(i int) []float32 {
	if g.small != nil {
		return g.small[i]
	}
	return g.vectorStore.at(i)
}

// A chromemStore holds vectors in a chromem-go collection in memory. Its
// persistence is not used: it loses documents and does not survive a torn file.
type chromemStore struct {
	collection *chromem.Collection
	n          int
	err        error
}

func newChromemStore() *chromemStore {
	never := func(context.Context, string) ([]float32, error) {
		return nil, fmt.Errorf("vectors come ready made")
	}
	collection, err := chromem.NewDB().CreateCollection("vectors", nil, never)
	return &chromemStore{collection: collection, err: err}
}

func (s *chromemStore) len() int { return s.n }

func (s *chromemStore) at(i int) []float32 {
	doc, err := s.collection.GetByID(context.Background(), strconv.Itoa(i))
	if err != nil {
		return nil // none was added
	}
	return doc.Embedding
}

func (s *chromemStore) append(v []float32) {
	id := strconv.Itoa(s.n)
	s.n++
	if v == nil || s.err != nil {
		return
	}
	s.err = s.collection.AddDocument(context.Background(), chromem.Document{ID: id, Embedding: v})
}

func (s *chromemStore) dots(ctx context.Context, query, dst []float32) error {
	clear(dst)
	if s.err != nil {
		return fmt.Errorf("scan vectors: %w", s.err)
	}
	k := s.collection.Count() // asking for more is an error
	if k == 0 {
		return nil
	}
	results, err := s.collection.QueryEmbedding(ctx, query, k, nil, nil)
	if err == nil {
		err = ctx.Err() // what was found before the end comes without an error
	}
	if err != nil {
		return fmt.Errorf("scan vectors: %w", err)
	}
	for _, r := range results {
		i, err := strconv.Atoi(r.ID)
		if err != nil {
			return fmt.Errorf("scan vectors: %w", err)
		}
		dst[i] = r.Similarity
	}
	return nil
}

// flatBlock is how many vectors are held together: growing copies none, and a
// scan looks at its context between blocks.
const flatBlock = 2048

// A flatStore is a matrix in blocks; a missing vector is a row of zeros.
type flatStore struct {
	dims   int
	n      int
	blocks [][]float32
}

func newFlatStore(dims int) *flatStore { return &flatStore{dims: dims} }

func (s *flatStore) len() int { return s.n }

func (s *flatStore) append(v []float32) {
	if s.n%flatBlock == 0 {
		s.blocks = append(s.blocks, make([]float32, flatBlock*s.dims))
	}
	if v != nil {
		at := s.n % flatBlock * s.dims
		copy(s.blocks[len(s.blocks)-1][at:at+s.dims], v)
	}
	s.n++
}

func (s *flatStore) at(i int) []float32 {
	row := i % flatBlock * s.dims
	return s.blocks[i/flatBlock][row : row+s.dims]
}

func (s *flatStore) dots(ctx context.Context, query, dst []float32) error {
	for i, block := range s.blocks {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("scan vectors: %w", err)
		}
		rows := min(flatBlock, s.n-i*flatBlock)
		blas32.Gemv(blas.NoTrans, 1,
			blas32.General{Rows: rows, Cols: s.dims, Stride: s.dims, Data: block},
			blas32.Vector{N: s.dims, Inc: 1, Data: query}, 0,
			blas32.Vector{N: rows, Inc: 1, Data: dst[i*flatBlock : i*flatBlock+rows]})
	}
	return nil
}
