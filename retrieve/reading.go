package retrieve

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
)

const (
	// maxTexts is how many texts a model is handed at once: few enough for an
	// answer in a moment, and for little to be lost with it.
	maxTexts = 32
	// maxTextBytes bounds the messages read for one call; the first is read
	// whatever its size.
	maxTextBytes = 4 << 20
	// maxSurprises is how many answers in a row must have vectors of one other
	// dimension, all of them, before the model is taken for another under the
	// same name and everything is embedded anew. One such answer may be a
	// server's slip, and 20,000 messages are dear.
	maxSurprises = 3
)

// An unread message is one whose slices' vectors are to be had.
type unread struct {
	ord     int
	seq     uint64
	speaker string
	hash    uint64
	slices  []tableSlice
	wanted  []storedVector
	known   []bool
}

// unread lists the next messages to read, at least maxTexts slices of them if
// there are so many.
func (x *Index) unread() []unread {
	x.mu.RLock()
	defer x.mu.RUnlock()
	t := x.main.table
	var list []unread
	count, bytes := 0, 0
	for ord := x.remote.done; ord < len(t.messages) && count < maxTexts; ord++ {
		m := t.messages[ord]
		u := unread{ord: ord, seq: m.seq, speaker: t.speakers[m.speaker], hash: m.textHash, known: make([]bool, m.slices)}
		u.slices = t.slices[m.firstSlice : m.firstSlice+m.slices]
		if bytes += int(u.slices[len(u.slices)-1].end); len(list) > 0 && bytes > maxTextBytes {
			break
		}
		for k := range u.slices {
			u.wanted = append(u.wanted, t.wanted(m.firstSlice+int32(k)))
		}
		list = append(list, u)
		count += len(u.slices)
	}
	return list
}

// readMessages has the model read the next slices and takes into memory the
// messages that are complete with them. What is on disk, from before another
// model or a kill in the middle of a message, is not asked for again.
func (x *Index) readMessages(ctx context.Context) error {
	r := x.remote
	list := x.unread()
	dims, err := r.recover(list)
	if err != nil {
		return err
	}
	if texts, err := x.missingTexts(ctx, list); err != nil {
		return err
	} else if len(texts) > 0 {
		if dims, err = x.readTexts(ctx, list, texts, dims); err != nil {
			return err
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, u := range list {
		if slices.Contains(u.known, false) || u.ord != r.done {
			break
		}
		vectors := make([][]float32, len(u.wanted))
		for k, w := range u.wanted {
			vectors[k] = w.vector
		}
		r.hold(x.main.table, vectors, dims)
	}
	x.signal()
	return nil
}

// recover takes from disk what is there of the listed slices.
func (r *remote) recover(list []unread) (dims int, err error) {
	dims, _, err = r.db.state()
	if err != nil {
		return 0, err
	}
	i, k := 0, 0
	next := func() (storedVector, bool) {
		if i == len(list) {
			return storedVector{}, false
		}
		return list[i].wanted[k], true
	}
	err = r.db.walk(dims, next, func(s storedVector, found bool) bool {
		list[i].wanted[k].vector, list[i].known[k] = s.vector, found
		if k++; k == len(list[i].wanted) {
			i, k = i+1, 0
		}
		return true
	})
	return dims, err
}

// A missing text is that of one slice to be embedded.
type missingText struct {
	message, slice int // in the list of unread ones
	text           string
}

// missingTexts gives the texts of the first slices without a vector. Of a
// message whose text is no longer the one that was indexed, none is embedded:
// the vectors would be of something else.
func (x *Index) missingTexts(ctx context.Context, list []unread) ([]missingText, error) {
	var seqs []uint64
	for _, u := range list {
		if slices.Contains(u.known, false) {
			seqs = append(seqs, u.seq)
		}
	}
	if len(seqs) == 0 {
		return nil, nil
	}
	texts, err := x.options.Texts(ctx, seqs)
	if err != nil {
		return nil, fmt.Errorf("get texts to embed: %w", err)
	}
	if len(texts) != len(seqs) {
		return nil, fmt.Errorf("get texts to embed: %d of %d", len(texts), len(seqs))
	}
	var missing []missingText
	for i := range list {
		if u := &list[i]; slices.Contains(u.known, false) {
			missing = u.addMissing(missing, i, texts[0])
			texts = texts[1:]
		}
	}
	return missing[:min(len(missing), maxTexts)], nil
}

func (u *unread) addMissing(missing []missingText, message int, text string) []missingText {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text)) // never fails
	same := h.Sum64() == u.hash
	for k, s := range u.slices {
		if u.known[k] {
			continue
		}
		if !same || int(s.end) > len(text) {
			u.known[k] = true // without a vector, until the next start
			continue
		}
		part := strings.ToValidUTF8(text[s.start:s.end], " ")
		if k == 0 && strings.TrimSpace(part) != "" && u.speaker != "" {
			part = u.speaker + ": " + part // as a token table reads it
		}
		missing = append(missing, missingText{message, k, part})
	}
	return missing
}

// readTexts has the texts embedded and stores their vectors in one transaction.
func (x *Index) readTexts(ctx context.Context, list []unread, missing []missingText, dims int) (int, error) {
	var texts []string
	var asked []int // of missing
	for i, m := range missing {
		if strings.TrimSpace(m.text) != "" { // nobody has an opinion on nothing
			texts, asked = append(texts, m.text), append(asked, i)
		}
	}
	vectors := make([][]float32, len(missing))
	if len(texts) > 0 {
		r := x.remote
		got, err := insist(ctx, r.slots, func(ctx context.Context) ([][]float32, error) { return r.embedder.EmbedDocuments(ctx, texts) })
		if err != nil {
			return 0, fmt.Errorf("embed messages: %w", err)
		}
		if len(got) != len(texts) {
			return 0, fmt.Errorf("embed messages: %d vectors for %d texts", len(got), len(texts))
		}
		if dims, err = x.accept(got, dims); err != nil {
			return 0, fmt.Errorf("embed messages: %w", err)
		}
		for i, v := range got {
			vectors[asked[i]] = v
		}
	}
	stored := make([]storedVector, len(missing))
	for i, m := range missing {
		w := &list[m.message].wanted[m.slice]
		w.vector = vectors[i]
		stored[i] = *w
	}
	if err := x.remote.db.write(stored, dims); err != nil {
		return 0, err
	}
	for _, m := range missing {
		list[m.message].known[m.slice] = true
	}
	return dims, nil
}

// accept makes unit vectors of a model's answer, in place, and gives their
// dimension. The first vector there ever was sets it. Among vectors of that
// dimension one of another is no vector; an answer with vectors of another only
// is refused, and after maxSurprises of them in a row the old ones are dropped.
func (x *Index) accept(vectors [][]float32, dims int) (int, error) {
	other, agree := 0, false
	for i, v := range vectors {
		vectors[i] = unit(v)
		if n := len(vectors[i]); n > 0 {
			if dims == 0 {
				dims = n
			}
			agree = agree || n == dims
			if n != dims && other == 0 {
				other = n
			}
		}
	}
	if other == 0 || agree {
		for i, v := range vectors {
			if len(v) != dims {
				vectors[i] = nil
			}
		}
		if agree {
			x.remote.surprise = surprise{}
		}
		return dims, nil
	}
	s := &x.remote.surprise
	if s.dims != other {
		*s = surprise{dims: other}
	}
	if s.answers++; s.answers >= maxSurprises {
		*s = surprise{}
		if err := x.beginAnew(); err != nil {
			return 0, err
		}
	}
	return 0, errDimension
}
