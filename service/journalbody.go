package service

import (
	"encoding/json"
	"errors"
	"fmt"

	"recalld/consolidate"
	"recalld/ledger"
)

// A body is what the ledger keeps of a batch beside the columns by which it is
// found: a JSON object, whose fields are only ever added to. Its hash is that
// of consolidate, over an encoding of its own that holds no words.
type body struct {
	From, To        *place              `json:",omitempty"`
	Window, Context []source            `json:",omitempty"`
	Source          []byte              `json:",omitempty"`
	Extractor       string              `json:",omitempty"`
	Entries         []consolidate.Entry `json:",omitempty"`
	Dropped         map[string]int      `json:",omitempty"`
	Review          *review             `json:",omitempty"`
}

type place struct {
	Turn, Message uint64
	Byte          int
}

type source struct {
	Message string
	Kind    consolidate.MessageKind
	Inner   []byte
}

type review struct {
	Action   consolidate.Action
	Entries  []string `json:",omitempty"`
	Text     string   `json:",omitempty"`
	Salt     []byte   `json:",omitempty"` // of TextHash; goes with the text
	TextHash []byte   `json:",omitempty"`
	Undoes   []byte   `json:",omitempty"`
	Policy   consolidate.Policy
	Author   string

	Superseded []string `json:",omitempty"`
}

var errBody = errors.New("is not a batch of this version")

// encodeBatch returns the row of a batch. salt is that of an edit.
func encodeBatch(b consolidate.Batch, dropped map[consolidate.Reason]int, salt []byte) (ledger.JournalBatch, error) {
	row := ledger.JournalBatch{Hash: b.Hash, Previous: b.Previous, At: b.At, Entries: uint64(len(b.Entries))}
	var out body
	if r := b.Review; r != nil {
		out.Review = &review{
			Action: r.Action, Entries: r.Entries, Text: r.Text, Salt: salt, TextHash: r.TextHash[:], Undoes: r.Undoes[:],
			Policy: r.Policy, Author: r.Author, Superseded: r.Superseded,
		}
	} else {
		row.Session, row.FirstTurn, row.LastTurn = b.Session, b.FirstTurn, b.LastTurn
		row.EndTurn, row.EndMessage, row.EndByte = b.To.Turn, b.To.Message, uint64(b.To.Byte)
		from, to := place(b.From), place(b.To)
		out = body{
			From: &from, To: &to, Window: sourcesOut(b.Window), Context: sourcesOut(b.Context),
			Source: b.Source[:], Extractor: b.Extractor, Entries: b.Entries,
		}
		for reason, n := range dropped {
			if out.Dropped == nil {
				out.Dropped = map[string]int{}
			}
			out.Dropped[string(reason)] = n
			row.Dropped += uint64(n)
		}
	}
	var err error
	if row.Body, err = json.Marshal(out); err != nil {
		return row, fmt.Errorf("encode batch: %w", err)
	}
	return row, nil
}

func sourcesOut(list []consolidate.Source) []source {
	out := make([]source, len(list))
	for i := range list {
		out[i] = source{list[i].Message, list[i].Kind, list[i].Inner[:]}
	}
	return out
}

// decodeBatch is the batch of a row.
func decodeBatch(row *ledger.JournalBatch) (consolidate.Batch, error) {
	b := consolidate.Batch{Hash: row.Hash, Previous: row.Previous, At: row.At}
	var in body
	// An error of decoding may repeat what it could not read.
	if json.Unmarshal(row.Body, &in) != nil {
		return b, errBody
	}
	if r := in.Review; r != nil {
		if len(r.TextHash) != 32 || len(r.Undoes) != 32 {
			return b, errBody
		}
		b.Review = &consolidate.Review{
			Action: r.Action, Entries: r.Entries, Text: r.Text, TextHash: [32]byte(r.TextHash), Undoes: [32]byte(r.Undoes),
			Policy: r.Policy, Author: r.Author, Superseded: r.Superseded,
		}
		return b, nil
	}
	if in.From == nil || in.To == nil || len(in.Source) != 32 {
		return b, errBody
	}
	b.Session, b.FirstTurn, b.LastTurn = row.Session, row.FirstTurn, row.LastTurn
	b.From, b.To = consolidate.Position(*in.From), consolidate.Position(*in.To)
	b.Source, b.Extractor, b.Entries = [32]byte(in.Source), in.Extractor, in.Entries
	var ok1, ok2 bool
	b.Window, ok1 = sourcesIn(in.Window)
	b.Context, ok2 = sourcesIn(in.Context)
	for i := range b.Entries {
		if len(b.Entries[i].Quotes) == 0 {
			return b, errBody
		}
	}
	if !ok1 || !ok2 {
		return b, errBody
	}
	return b, nil
}

func sourcesIn(list []source) (out []consolidate.Source, ok bool) {
	for _, s := range list {
		if len(s.Inner) != 32 {
			return nil, false
		}
		out = append(out, consolidate.Source{Message: s.Message, Kind: s.Kind, Inner: [32]byte(s.Inner)})
	}
	return out, true
}
