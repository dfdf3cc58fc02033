package ledger

import "context"

const givenColumns = "number, session, entry, digest, message, first_byte, end_byte, at, seal"

// A givenRow is a row of given.
type givenRow struct {
	number         int64
	session, entry string
	digest         []byte
	message        stamp // a number, or unknown
	start, end     int64
	at             stamp
}

func (r *givenRow) seal() []byte {
	return newSealing("given").number(r.number).text(r.session).text(r.entry).bytes(r.digest).stamp(r.message).
		number(r.start).number(r.end).stamp(r.at).sum()
}

func givenRowOf(session string, g *Given, at stamp) givenRow {
	return givenRow{
		session: session, entry: g.Entry, digest: append([]byte{}, g.Digest...),
		message: stamp{int64(g.Message), g.Message != 0}, start: int64(g.Start), end: int64(g.End), at: at,
	}
}

func (r *givenRow) given() Given {
	g := Given{Entry: r.entry, Message: uint64(r.message.micros), Start: uint64(r.start), End: uint64(r.end)}
	if r.entry != "" {
		g.Digest = r.digest
	}
	return g
}

// scanGiven reads a row of given, and what is wrong with it or "".
func scanGiven(row interface{ Scan(...any) error }) (r givenRow, what string, err error) {
	var seal []byte
	var c cells
	c.number(&r.number).text(&r.session).text(&r.entry).bytes(&r.digest).stamp(&r.message).number(&r.start).number(&r.end).
		stamp(&r.at).bytes(&seal)
	if err := c.scan(row); err != nil {
		return r, "", err
	}
	if what = judge(nil, &c, seal, r.seal()); what == "" && (r.entry == "") != r.message.known {
		what = "it is neither an entry nor a passage"
	}
	return r, what, nil
}

// given checks the rows of what was given.
func (v *verification) given(ctx context.Context, q querier) error {
	rows, err := q.QueryContext(ctx, "SELECT "+givenColumns+" FROM given ORDER BY number")
	if err != nil {
		return err
	}
	defer rows.Close()
	count := map[string]int{}
	for rows.Next() {
		r, what, err := scanGiven(rows)
		if err != nil {
			return err
		}
		if what != "" {
			v.found("given", r.number, "%s", what)
			continue
		}
		if count[r.session]++; count[r.session] == MaxGiven+1 {
			v.found("given", r.number, "is one more than a session may have")
		}
	}
	return rows.Err()
}
