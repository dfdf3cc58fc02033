package retrieve

import (
	"encoding/binary"
	"errors"
)

// errRow says that a stored row cannot be read.
var errRow = errors.New("damaged row")

// appendRow encodes a row but for its sequence number, which is its key:
// varints and length-prefixed strings, in the order of the fields.
func appendRow(b []byte, r row) []byte {
	b = appendString(b, r.Session)
	b = appendString(b, r.Speaker)
	b = append(b, byte(r.Kind), byte(r.Flags))
	b = binary.AppendUvarint(b, r.TurnSeq)
	b = binary.AppendVarint(b, int64(r.Ordinal))
	b = binary.AppendVarint(b, r.Micros)
	b = binary.AppendVarint(b, int64(r.Day))
	b = binary.AppendVarint(b, int64(r.Length))
	b = binary.BigEndian.AppendUint64(b, r.TextHash)
	b = binary.AppendUvarint(b, uint64(len(r.Slices)))
	for _, s := range r.Slices {
		b = binary.AppendUvarint(b, uint64(s.Start))
		b = binary.AppendUvarint(b, uint64(s.End-s.Start))
		b = binary.AppendUvarint(b, uint64(s.Length))
		b = binary.AppendUvarint(b, uint64(len(s.Tokens)))
		for _, t := range s.Tokens {
			b = binary.LittleEndian.AppendUint16(b, t)
		}
	}
	return b
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// readRow decodes what appendRow encoded. It accepts nothing else, and
// allocates no more than the input is long.
func readRow(seq uint64, b []byte) (row, error) {
	d := rowReader{b: b}
	r := row{Seq: seq, Session: d.string(), Speaker: d.string()}
	r.Kind, r.Flags = Kind(d.byte()), flags(d.byte())
	r.TurnSeq = d.uvarint()
	r.Ordinal = int(d.varint())
	r.Micros = d.varint()
	r.Day = int32(d.varint())
	r.Length = int32(d.varint())
	if hash := d.take(8); hash != nil {
		r.TextHash = binary.BigEndian.Uint64(hash)
	}
	for range d.count(4) {
		r.Slices = append(r.Slices, d.slice())
	}
	if d.failed || len(d.b) > 0 {
		return row{}, errRow
	}
	return r, nil
}

func (d *rowReader) slice() sliceRow {
	start := int(d.uvarint())
	s := sliceRow{Range: Range{start, start + int(d.uvarint())}, Length: int32(d.uvarint())}
	n := d.count(2)
	if n == 0 {
		return s
	}
	s.Tokens = make([]uint16, n)
	for i := range s.Tokens {
		if t := d.take(2); t != nil {
			s.Tokens[i] = binary.LittleEndian.Uint16(t)
		}
	}
	return s
}

// A rowReader reads fields until one is damaged; then all are zero.
type rowReader struct {
	b      []byte
	failed bool
}

func (d *rowReader) take(n int) []byte {
	if d.failed || n < 0 || n > len(d.b) {
		d.failed = true
		return nil
	}
	field := d.b[:n]
	d.b = d.b[n:]
	return field
}

func (d *rowReader) byte() byte {
	if field := d.take(1); field != nil {
		return field[0]
	}
	return 0
}

func (d *rowReader) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.failed = true
		return 0
	}
	d.take(n)
	return v
}

func (d *rowReader) varint() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.failed = true
		return 0
	}
	d.take(n)
	return v
}

// count reads how many items of at least size bytes follow.
func (d *rowReader) count(size int) int {
	n := d.uvarint()
	if d.failed || n > uint64(len(d.b)/size) {
		d.failed = true
		return 0
	}
	return int(n)
}

func (d *rowReader) string() string {
	return string(d.take(d.count(1)))
}
