package harness

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"iter"
)

// maxLine is the longest line that is read, in bytes. A session of a coding
// agent takes about one megabyte; a line is held in memory whole, and what the
// server takes at once is 16 MiB of text.
const maxLine = 64 << 20

// A numbered line is what a file says on one line, without the newline. Its
// text is valid until the next line is read.
type numbered struct {
	number int
	text   []byte
}

// decompress gives the plain bytes of r, which is compressed if it begins with
// the two magic bytes of gzip (RFC 1952, section 2.3.1).
func decompress(r io.Reader) (io.Reader, error) {
	buffered := bufio.NewReader(r)
	magic, err := buffered.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read: %w", err)
	}
	if !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return buffered, nil
	}
	plain, err := gzip.NewReader(buffered)
	if err != nil {
		return nil, fmt.Errorf("read gzip header: %w", err)
	}
	return plain, nil
}

// lines yields the lines of r that hold anything but white space. A line that
// is too long is a *LineError and is passed over; another error is the last
// value, after everything that could be read before it.
func lines(r io.Reader) iter.Seq2[numbered, error] {
	return func(yield func(numbered, error) bool) {
		reader := bufio.NewReaderSize(r, 64<<10)
		var line []byte
		for number := 1; ; number++ {
			var long bool
			var err error
			line, long, err = readLine(reader, line[:0])
			text := line
			if number == 1 {
				text = bytes.TrimPrefix(text, []byte("\ufeff")) // a byte order mark
			}
			text = bytes.TrimSpace(text)
			switch {
			case long:
				what := fmt.Errorf("longer than %d bytes", maxLine)
				if !yield(numbered{}, &LineError{Line: number, Err: what}) {
					return
				}
			case len(text) > 0:
				if !yield(numbered{number, text}, nil) {
					return
				}
			}
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(numbered{}, fmt.Errorf("read line %d: %w", number, err))
				return
			}
		}
	}
}

// readLine appends the next line to buf, the newline included. A line longer
// than maxLine is read to its end but not kept. The error is io.EOF with the
// last line.
func readLine(r *bufio.Reader, buf []byte) (line []byte, long bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if long = long || len(buf)+len(part) > maxLine; !long {
			buf = append(buf, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return buf, long, err
		}
	}
}
