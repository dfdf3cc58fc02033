package ledger

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of a pattern.
const (
	MaxPhraseBytes  = 64 << 10
	MaxPatternBytes = 1 << 10
	// maxInstructions bounds the compiled pattern, and with it repeats of
	// repeats: the time for a byte of text grows with it.
	maxInstructions = 2_000
)

// A Pattern is what [Memory.Search] looks for. The zero value finds nothing.
type Pattern struct {
	phrase       *phrase
	re           *regexp.Regexp
	instructions int
}

// ParsePattern reads a query: /re/flags with flags out of "ims" is a regular
// expression (RE2), anything else a phrase that is found in any case (Unicode
// simple folding), character by character. A query that only looks like an
// expression, such as a path, is a phrase. An empty query finds nothing. The
// error is a *FieldError for the field "query".
func ParsePattern(q string) (Pattern, error) {
	if len(q) > MaxPhraseBytes {
		return Pattern{}, tooLong(MaxPhraseBytes, len(q))
	}
	if !utf8.ValidString(q) {
		return Pattern{}, &FieldError{Field: "query", What: "is not valid UTF-8"}
	}
	if strings.TrimSpace(q) == "" {
		return Pattern{}, nil
	}
	if expression, ok := cutExpression(q); ok {
		return compile(expression)
	}
	return Pattern{phrase: newPhrase(q)}, nil
}

// cutExpression turns "/re/ims" into "(?ims)re".
func cutExpression(q string) (string, bool) {
	end := strings.LastIndexByte(q, '/')
	if end < 2 || q[0] != '/' { // "//" is no expression
		return "", false
	}
	flags := q[end+1:]
	for i, f := range flags {
		if !strings.ContainsRune("ims", f) || strings.ContainsRune(flags[:i], f) {
			return "", false
		}
	}
	if flags != "" {
		flags = "(?" + flags + ")"
	}
	return flags + q[1:end], true
}

func compile(expression string) (Pattern, error) {
	if len(expression) > MaxPatternBytes {
		return Pattern{}, tooLong(MaxPatternBytes, len(expression))
	}
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return Pattern{}, &FieldError{Field: "query", What: faultOf(err)}
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return Pattern{}, &FieldError{Field: "query", What: faultOf(err)}
	}
	if n := len(program.Inst); n > maxInstructions {
		return Pattern{}, &FieldError{
			Field: "query", What: "repeats too much", Limit: fmt.Sprintf("%d instructions", maxInstructions), Value: fmt.Sprintf("%d instructions", n),
		}
	}
	re, err := regexp.Compile(expression)
	if err != nil {
		return Pattern{}, &FieldError{Field: "query", What: faultOf(err)}
	}
	return Pattern{re: re, instructions: len(program.Inst)}, nil
}

// faultOf says what is wrong with an expression without repeating any of it: a
// person's search is as private as what it looks for.
func faultOf(err error) string {
	const what = "is no regular expression"
	if e := (*syntax.Error)(nil); errors.As(err, &e) {
		return what + ": " + e.Code.String()
	}
	return what
}

func tooLong(limit, got int) error {
	return &FieldError{Field: "query", What: "is too long", Limit: fmt.Sprintf("%d bytes", limit), Value: fmt.Sprintf("%d bytes", got)}
}

// Empty reports whether the pattern finds nothing anywhere.
func (p Pattern) Empty() bool { return p.phrase == nil && p.re == nil }

// Index returns where the pattern first matches in text, as byte offsets, or
// false. The error is ctx's; a long text is given up in the middle then.
func (p Pattern) Index(ctx context.Context, text []byte) (start, end int, ok bool, err error) {
	switch {
	case p.phrase != nil:
		start, end, ok = p.phrase.index(text)
	case p.re == nil:
	case len(text)*p.instructions <= uninterrupted:
		if at := p.re.FindIndex(text); at != nil {
			start, end, ok = at[0], at[1], true
		}
	default:
		return p.indexSlowly(ctx, text)
	}
	return start, end, ok, nil
}

// uninterrupted is how many bytes times instructions are matched in one go: at
// 10 ns each, 20 ms in the worst case.
const uninterrupted = 2 << 20

// indexSlowly matches rune by rune, so that it can stop when ctx ends.
func (p Pattern) indexSlowly(ctx context.Context, text []byte) (start, end int, ok bool, err error) {
	r := &runes{ctx: ctx, text: text}
	at := p.re.FindReaderIndex(r)
	if r.err != nil {
		return 0, 0, false, r.err
	}
	if at == nil {
		return 0, 0, false, nil
	}
	return at[0], at[1], true, nil
}

// runes reads a text until ctx ends. An invalid byte is one rune, as it is for
// a pattern matched against bytes.
type runes struct {
	ctx  context.Context
	text []byte
	at   int
	n    int
	err  error
}

func (r *runes) ReadRune() (rune, int, error) {
	if r.n++; r.n%1024 == 0 && r.err == nil {
		r.err = r.ctx.Err()
	}
	if r.err != nil || r.at >= len(r.text) {
		return 0, 0, io.EOF
	}
	c, size := utf8.DecodeRune(r.text[r.at:])
	r.at += size
	return c, size, nil
}

// A phrase is a literal to be found in any case, without making a folded copy
// of the text.
type phrase struct {
	folded []rune    // of each rune the smallest of those that fold together
	first  [256]bool // bytes that may begin a match
	ascii  [128]rune // folded form of each ASCII character
}

func newPhrase(s string) *phrase {
	p := &phrase{}
	for c := range rune(len(p.ascii)) {
		p.ascii[c] = fold(c)
	}
	for _, c := range s {
		p.folded = append(p.folded, fold(c))
	}
	first, _ := utf8.DecodeRuneInString(s)
	for c := first; ; {
		var b [utf8.UTFMax]byte
		utf8.EncodeRune(b[:], c)
		p.first[b[0]] = true
		if c = unicode.SimpleFold(c); c == first {
			break
		}
	}
	return p
}

// fold returns the smallest rune that differs from c in case only.
func fold(c rune) rune {
	least := c
	for next := unicode.SimpleFold(c); next != c; next = unicode.SimpleFold(next) {
		least = min(least, next)
	}
	return least
}

func (p *phrase) index(text []byte) (start, end int, ok bool) {
	for i, b := range text {
		if !p.first[b] {
			continue
		}
		if end, ok := p.matchAt(text, i); ok {
			return i, end, true
		}
	}
	return 0, 0, false
}

// matchAt reports whether the phrase stands at i, and where it ends. A byte
// that is not valid UTF-8 matches nothing.
func (p *phrase) matchAt(text []byte, i int) (end int, ok bool) {
	for _, want := range p.folded {
		if i >= len(text) {
			return 0, false
		}
		if b := text[i]; b < utf8.RuneSelf {
			if p.ascii[b] != want {
				return 0, false
			}
			i++
			continue
		}
		c, size := utf8.DecodeRune(text[i:])
		if c == utf8.RuneError && size == 1 || fold(c) != want {
			return 0, false
		}
		i += size
	}
	return i, true
}
