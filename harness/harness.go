// Package harness answers one question: how does each harness speak? It reads
// the files in which conversations are kept and turns them into the turns of
// recalld's contract.
//
// [Read] streams a file, compressed or not, as [recalldv1.NewTurn] values in
// the order of the file. Three formats are known: recalld's own turns
// ([Turns]), and the session files of Entire ([Entire]) and of SpecStory
// ([SpecStory]); the format is recognised by the first line that can be read.
// All of them hold one JSON object a line.
//
// A line that cannot be read costs that line and nothing else: it is reported
// as a [LineError] with its number, and reading goes on. Nothing is repaired:
// a line is given whole or not at all.
//
// Identity comes from the file, never from the clock or from the place of the
// file: the same file always gives the same ids, so that importing it again
// stores nothing twice. Words are passed on byte for byte.
//
// The package stores nothing, ranks nothing and starts no goroutine. It does
// not hold more than one line at a time.
package harness

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	recalldv1 "recalld/proto/recalld/v1"
)

// A Format names a kind of file.
type Format string

// The formats that Read knows. Auto, the zero value, recognises one.
const (
	Auto      Format = ""
	Turns     Format = "turns"
	Entire    Format = "entire"
	SpecStory Format = "specstory"
)

// Formats lists the formats that can be named, without Auto.
func Formats() []Format {
	return []Format{Turns, Entire, SpecStory}
}

// ErrFormat is wrapped by the error of a file whose format is neither named
// nor recognised.
var ErrFormat = errors.New("unknown format")

// Options changes how Read reads; the zero value recognises everything.
type Options struct {
	// Format is the format of the file; Auto recognises it.
	Format Format
}

// A LineError tells that one line was left out. Reading goes on after it.
type LineError struct {
	// Line is the number of the line, from 1.
	Line int
	// Field is the path of the field at fault, as in "messages[2].kind"; empty
	// when the line as a whole is.
	Field string
	// Err says what is wrong. It never quotes what was said.
	Err error
}

// Error gives line, field and fault in one sentence.
func (e *LineError) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("line %d: %v", e.Line, e.Err)
	}
	return fmt.Sprintf("line %d: %s: %v", e.Line, e.Field, e.Err)
}

// Unwrap gives the fault.
func (e *LineError) Unwrap() error { return e.Err }

// Read yields the turns of r in their order. With every turn the error is nil.
// A *LineError says that a line was left out and is followed by what comes
// after that line; every other error is the last value: the stream could not be
// read to its end, or its format is unknown (ErrFormat).
//
// The messages of a yielded turn belong to the receiver.
func Read(r io.Reader, o Options) iter.Seq2[*recalldv1.NewTurn, error] {
	return func(yield func(*recalldv1.NewTurn, error) bool) {
		if o.Format != Auto && !slices.Contains(Formats(), o.Format) {
			yield(nil, formatError(fmt.Sprintf("%q", o.Format)))
			return
		}
		plain, err := decompress(r)
		if err != nil {
			yield(nil, err)
			return
		}
		format := o.Format
		for line, err := range lines(plain) {
			if err != nil && !isLineError(err) {
				yield(nil, err)
				return
			}
			var turns []*recalldv1.NewTurn
			if err == nil {
				format, turns, err = parse(format, line)
			}
			if err != nil {
				if !yield(nil, err) || !isLineError(err) {
					return
				}
				continue
			}
			for _, turn := range turns {
				if !yield(turn, nil) {
					return
				}
			}
		}
	}
}

// parse reads one line, recognising the format first if it is not known yet.
// A line left out while the format is unknown leaves it unknown.
func parse(format Format, line numbered) (Format, []*recalldv1.NewTurn, error) {
	o, err := parseObject(line)
	if err != nil {
		return format, nil, err
	}
	if format == Auto {
		if format = recognise(o); format == Auto {
			return Auto, nil, formatError(fmt.Sprintf("line %d", line.number))
		}
	}
	var turns []*recalldv1.NewTurn
	switch format {
	case Turns:
		turns, err = parseTurn(o)
	case Entire:
		turns, err = parseEntire(o)
	case SpecStory:
		turns, err = parseSpecStory(o)
	}
	if err != nil {
		err = atLine(line.number, err)
	}
	return format, turns, err
}

// recognise tells the format of a file by one of its lines.
func recognise(o object) Format {
	switch {
	case o.has("turn_id") || o.has("messages"):
		return Turns
	case !o.has("turns"):
		return Auto
	case o.has("created_at") || o.has("checkpoint"):
		return Entire
	case o.has("path"):
		return SpecStory
	}
	return Auto
}

func formatError(what string) error {
	names := make([]string, 0, len(Formats()))
	for _, f := range Formats() {
		names = append(names, string(f))
	}
	return fmt.Errorf("%s: %w; known are %s", what, ErrFormat, strings.Join(names, ", "))
}

func isLineError(err error) bool {
	var at *LineError
	return errors.As(err, &at)
}
