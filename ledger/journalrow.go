package ledger

const batchColumns = "number, hash, previous, session, first_turn, last_turn, end_turn, end_message, end_byte, read_to, entries, dropped, at, seal, body"

// A batchRow is a row of batch.
type batchRow struct {
	number                       int64
	hash, previous               []byte
	session                      stamp // a number, or unknown
	firstTurn, lastTurn          int64
	endTurn, endMessage, endByte int64
	readTo, entries, dropped     int64
	at                           stamp
	body                         []byte
}

func (r *batchRow) seal() []byte {
	return newSealing("batch").number(r.number).bytes(r.hash).bytes(r.previous).stamp(r.session).
		number(r.firstTurn).number(r.lastTurn).number(r.endTurn).number(r.endMessage).number(r.endByte).
		number(r.readTo).number(r.entries).number(r.dropped).stamp(r.at).bytes(r.body).sum()
}

// rowOf is a batch as a row, without number and session.
func rowOf(b *JournalBatch) batchRow {
	return batchRow{
		hash: b.Hash[:], previous: b.Previous[:], firstTurn: int64(b.FirstTurn), lastTurn: int64(b.LastTurn),
		endTurn: int64(b.EndTurn), endMessage: int64(b.EndMessage), endByte: int64(b.EndByte), readTo: int64(b.ReadTo),
		entries: int64(b.Entries), dropped: int64(b.Dropped), at: stampNow(b.At), body: append([]byte{}, b.Body...),
	}
}

// batch is the row as it is returned, without its session.
func (r *batchRow) batch() JournalBatch {
	return JournalBatch{
		Number: uint64(r.number), Hash: [32]byte(r.hash), Previous: [32]byte(r.previous),
		FirstTurn: uint64(r.firstTurn), LastTurn: uint64(r.lastTurn),
		EndTurn: uint64(r.endTurn), EndMessage: uint64(r.endMessage), EndByte: uint64(r.endByte), ReadTo: uint64(r.readTo),
		Entries: uint64(r.entries), Dropped: uint64(r.dropped), At: r.at.time(), Body: r.body,
	}
}

// scanBatch reads a row of batch, and what is wrong with it or "".
func scanBatch(row interface{ Scan(...any) error }) (r batchRow, what string, err error) {
	var seal []byte
	var c cells
	c.number(&r.number).bytes(&r.hash).bytes(&r.previous).stamp(&r.session).number(&r.firstTurn).number(&r.lastTurn).
		number(&r.endTurn).number(&r.endMessage).number(&r.endByte).number(&r.readTo).number(&r.entries).number(&r.dropped).
		stamp(&r.at).bytes(&seal).bytes(&r.body)
	if err := c.scan(row); err != nil {
		return r, "", err
	}
	if what = judge(nil, &c, seal, r.seal()); what == "" && (len(r.hash) != 32 || len(r.previous) != 32) {
		what = wrongType
	}
	return r, what, nil
}

// A closingRow is a row of closing.
type closingRow struct {
	turn, session int64
	at            stamp
}

func (r *closingRow) seal() []byte {
	return newSealing("closing").number(r.turn).number(r.session).stamp(r.at).sum()
}

// scanClosing reads a row of closing, and what is wrong with it or "".
func scanClosing(row interface{ Scan(...any) error }) (r closingRow, what string, err error) {
	var seal []byte
	var c cells
	if err := c.number(&r.turn).number(&r.session).stamp(&r.at).bytes(&seal).scan(row); err != nil {
		return r, "", err
	}
	return r, judge(nil, &c, seal, r.seal()), nil
}
