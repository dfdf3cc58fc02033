package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/rivo/uniseg"
	"golang.org/x/term"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	recalldv1 "recalld/proto/recalld/v1"
)

// defaultWidth is the width of text where no terminal tells its own.
const defaultWidth = 80

// minWidth keeps a narrow terminal from breaking every word.
const minWidth = 30

// A checkedWriter remembers that something could not be written. Text is made of
// many small prints; that one of them failed is told once, at the end.
type checkedWriter struct {
	w   io.Writer
	err error // the first
}

// Write writes nothing more after an error.
func (c *checkedWriter) Write(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.w.Write(p)
	c.err = err
	return n, err
}

// A page is where output for people goes.
type page struct {
	w        io.Writer
	width    int  // in columns
	styled   bool // whether bold and dim may be used
	terminal bool
}

// page looks at where output goes. Only a terminal gets styles, and none if
// NO_COLOR is set (no-color.org) or the terminal is dumb.
func (a *app) page() page {
	p := page{w: a.out, width: defaultWidth}
	out := a.out
	if c, ok := out.(*checkedWriter); ok {
		out = c.w
	}
	f, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return p
	}
	p.terminal = true
	if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
		p.width = max(width, minWidth)
	}
	p.styled = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return p
}

func (p page) bold(s string) string { return p.style("1", s) }
func (p page) dim(s string) string  { return p.style("2", s) }

func (p page) style(code, s string) string {
	if !p.styled || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// printf prints. Its error is kept by the checkedWriter that it prints to.
func (p page) printf(format string, args ...any) { fmt.Fprintf(p.w, format, args...) }

// paragraph prints text, wrapped to the width behind an indent of spaces, with
// the marked bytes in bold.
func (p page) paragraph(indent int, text string, marks []span) {
	for _, line := range wrap(text, p.width-indent) {
		if line.start == line.end {
			p.printf("\n")
			continue
		}
		pad := strings.Repeat(" ", indent+line.indent)
		p.printf("%s%s\n", pad, emphasise(text, line.span, marks, p.bold))
	}
}

// table prints rows in columns as wide as their widest cell.
func (p page) table(rows [][]string) {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], uniseg.StringWidth(cell))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(cell)
			line.WriteString(strings.Repeat(" ", widths[i]-uniseg.StringWidth(cell)+2))
		}
		p.printf("%s\n", strings.TrimRight(line.String(), " "))
	}
}

// printJSON prints a response as one line.
func (a *app) printJSON(m proto.Message) error {
	b, err := protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(m)
	if err != nil {
		return fmt.Errorf("print: %w", err)
	}
	// protojson varies its white space on purpose.
	var line bytes.Buffer
	if err := json.Compact(&line, b); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	line.WriteByte('\n')
	return a.print(line.Bytes())
}

// print prints bytes as they are.
func (a *app) print(b []byte) error {
	if _, err := a.out.Write(b); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// printObject prints what is no response of the wire.
func (a *app) printObject(v any) error {
	encoder := json.NewEncoder(a.out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// number prints a count with its thousands apart.
func number[N ~int | ~int64 | ~uint32 | ~uint64](n N) string {
	return message.NewPrinter(language.English).Sprintf("%d", n)
}

// count prints a count with its noun.
func count[N ~int | ~int64 | ~uint32 | ~uint64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return number(n) + " " + many
}

// size prints bytes.
func size(n uint64) string {
	switch {
	case n < 1_000:
		return fmt.Sprintf("%d B", n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	case n < 1_000_000_000:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}

// when prints an instant as the clock of whoever spoke had it, with the zone:
// a date without one would be read as the reader's own.
func when(t *recalldv1.SpokenTime) string {
	if t.GetAt() == nil {
		return "time unknown"
	}
	return clock(t.GetAt().AsTime().In(location(t.GetZone())))
}

func clock(t time.Time) string { return t.Format("Mon 2 Jan 2006 15:04 MST") }

// location reads a zone as it is on the wire. One that this machine does not
// know shows as UTC, which names the same instant.
func location(zone string) *time.Location {
	if zone == "" {
		return time.UTC
	}
	if offset, err := time.Parse("-07:00", zone); err == nil {
		_, seconds := offset.Zone()
		return time.FixedZone(zone, seconds)
	}
	if l, err := time.LoadLocation(zone); err == nil && zone != "Local" {
		return l
	}
	return time.UTC
}

// kindName and statusName give the words of the contract.
func kindName(k recalldv1.Kind) string {
	return strings.ToLower(strings.TrimPrefix(k.String(), "KIND_"))
}

func statusName(s recalldv1.TurnStatus) string {
	return strings.ToLower(strings.TrimPrefix(s.String(), "TURN_STATUS_"))
}
