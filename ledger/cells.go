package ledger

// Cells are the columns of a row as they are read. A flipped bit can give a
// column another type, and a row that cannot be converted would end a whole
// read, with an error that quotes the value. So a cell takes any value, and the
// row remembers that one was not of its type.
type cells struct {
	to  []any
	bad bool
}

// number adds a column that holds an integer.
func (c *cells) number(to *int64) *cells {
	return c.add(func(v any) bool {
		n, ok := v.(int64)
		*to = n
		return ok
	})
}

// small adds a column that holds an integer of 0 to 255.
func small[T ~uint8](c *cells, to *T) *cells {
	return c.add(func(v any) bool {
		n, ok := v.(int64)
		*to = T(n)
		return ok && n >= 0 && n <= 255
	})
}

// text adds a column that holds a text.
func (c *cells) text(to *string) *cells {
	return c.add(func(v any) bool {
		s, ok := v.(string)
		*to = s
		return ok
	})
}

// bytes adds a column that holds bytes. They are overwritten by the next row:
// the driver's own live no longer, and most rows are only looked at.
func (c *cells) bytes(to *[]byte) *cells {
	return c.add(func(v any) bool {
		b, ok := v.([]byte)
		*to = append((*to)[:0], b...)
		return ok
	})
}

// stamp adds a column that holds a time, or NULL for an unknown one.
func (c *cells) stamp(to *stamp) *cells {
	return c.add(func(v any) bool {
		n, ok := v.(int64)
		*to = stamp{n, ok}
		return ok || v == nil
	})
}

func (c *cells) add(take func(any) bool) *cells {
	c.to = append(c.to, cell{c, take})
	return c
}

type cell struct {
	row  *cells
	take func(any) bool
}

// Scan implements [database/sql.Scanner]. It never fails.
func (c cell) Scan(v any) error {
	if !c.take(v) {
		c.row.bad = true
	}
	return nil
}

// scan reads a row. The columns' types are in c.bad afterwards.
func (c *cells) scan(row interface{ Scan(...any) error }) error {
	c.bad = false
	return row.Scan(c.to...)
}

// What is said of a row that fails a check.
const (
	wrongType = "a column has the wrong type"
	wrongSeal = "the row does not match its checksum"
	// An index that is damaged leads to sound rows, but not to those asked for.
	wrongIndex = "an index led to the wrong row"
)
