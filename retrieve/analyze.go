package retrieve

import (
	"strings"
	"unicode/utf8"
)

// A Token is one indexed term of a text.
type Token struct {
	Term string
	// Start and End are the bytes of the text the term was made from.
	Start, End int
	// Base tokens are the words of the text. The others only widen what
	// matches: parts and joined forms of identifiers, unfolded accents, numbers
	// without leading zeros.
	Base bool
	// Stop marks a base token that says little by itself. It is indexed, but
	// neither counted as length nor searched for beside other words.
	Stop bool
}

// maxTermBytes is the longest term kept whole; of longer words (encoded data,
// mostly) only the beginning is indexed.
const maxTermBytes = 64

// maxParts is the most pieces an identifier is taken apart into; a run with
// more changes between letters, digits and cases is a hash, not a name.
const maxParts = 6

// Analyze cuts a text into tokens, in the order of the text. It accepts any
// bytes, depends on nothing else, and is the one analysis of documents and
// queries:
//
//   - words are runs of letters and digits, compatibility-normalised (NFKC),
//     with case, accents and ß folded, and stemmed by their script;
//   - a word with accents also keeps its unfolded form;
//   - identifiers are indexed whole, in parts (camelCase, letter to digit) and
//     joined over a single mark between them (DEC-0054, session_store, 1,299);
//   - scripts written without spaces, and Hangul, give overlapping pairs;
//   - pictographs are words; C++, C# and .NET keep their marks.
func Analyze(text string) []Token {
	var tokens []Token
	emit := func(t Token) { tokens = append(tokens, t) }
	forWords(text, func(run []word) {
		for _, w := range run {
			w.forms().emit(w, emit)
		}
		emitJoined(run, emit)
	})
	return tokens
}

// contentLength counts the base tokens that are not stop words: the length of
// a text in ranking. Two overlapping pairs make about one word.
func contentLength(tokens []Token) int {
	words, pairs := 0, 0
	for _, t := range tokens {
		if !t.Base || t.Stop {
			continue
		}
		if first, _ := utf8.DecodeRuneInString(t.Term); classify(first) == classPair {
			pairs++
		} else {
			words++
		}
	}
	return words + pairs/2
}

// forms are the terms one word is indexed under.
type forms struct {
	base  string
	stop  bool
	wider []string // other forms of the whole word
	parts []string // pieces of an identifier
	// accented is the one of wider that keeps its accents, if any.
	accented string
}

func (f forms) emit(w word, emit func(Token)) {
	emit(Token{Term: f.base, Start: w.start, End: w.end, Base: true, Stop: f.stop})
	seen := [maxParts * 3]string{0: f.base}
	n := 1
	for _, list := range [][]string{f.wider, f.parts} {
	next:
		for _, term := range list {
			for _, s := range seen[:n] {
				if s == term {
					continue next
				}
			}
			if n < len(seen) {
				seen[n] = term
				n++
			}
			emit(Token{Term: term, Start: w.start, End: w.end})
		}
	}
}

// forms gives the terms of w. Pairs of an unspaced script have one form.
func (w word) forms() forms {
	switch w.class {
	case classPair:
		return forms{base: cut(fold(w.text)), stop: strings.ContainsAny(w.text, stopCharacters)}
	case classSign:
		return forms{base: cut(fold(w.text))}
	}
	lower := unfolded(w.text)
	folded := fold(lower)
	f := forms{base: cut(stem(folded)), stop: isStopWord(lower)}
	if folded != lower {
		f.accented = cut(lower)
		f.wider = append(f.wider, f.accented)
	}
	if bare := strings.TrimLeft(folded, "0"); bare != folded && bare != "" && isDigits(bare) {
		f.wider = append(f.wider, cut(bare))
	}
	if w.marked != "" {
		f.wider = append(f.wider, w.marked)
	}
	f.parts = nameParts(w.text)
	return f
}

// nameParts takes an identifier apart where case or kind of character changes,
// and joins neighbouring parts, so that "username" finds getUserName. A plain
// word has no parts.
func nameParts(name string) []string {
	pieces := splitName(name)
	if len(pieces) < 2 || len(pieces) > maxParts {
		return nil
	}
	var parts []string
	for i, piece := range pieces {
		p := fold(unfolded(piece))
		parts = append(parts, cut(stem(p)))
		if bare := strings.TrimLeft(p, "0"); bare != p && bare != "" {
			parts = append(parts, cut(bare))
		}
		if i > 0 && len(pieces) > 2 {
			parts = append(parts, cut(stem(fold(unfolded(pieces[i-1]+piece)))))
		}
	}
	return parts
}

// emitJoined emits the joined forms of words that stand together with one mark
// between them: each neighbouring pair, and the whole of three to five.
func emitJoined(run []word, emit func(Token)) {
	start := 0
	for i := 1; i <= len(run); i++ {
		if i < len(run) && run[i].joined {
			emitJoin(run[i-1:i+1], emit)
			continue
		}
		if n := i - start; n >= 3 && n <= 5 {
			emitJoin(run[start:i], emit)
		}
		start = i
	}
}

func emitJoin(words []word, emit func(Token)) {
	if term := joinedTerm(words); term != "" {
		emit(Token{Term: term, Start: words[0].start, End: words[len(words)-1].end})
	}
}

// joinedTerm is the term of words written as one; empty when it is too long to
// be a name, or when one of them is not a run of letters and digits.
func joinedTerm(words []word) string {
	var b strings.Builder
	for _, w := range words {
		if w.class != classWord {
			return ""
		}
		b.WriteString(w.text)
	}
	if b.Len() > maxTermBytes {
		return ""
	}
	return stem(fold(unfolded(b.String())))
}

// cut shortens a term to maxTermBytes at a character.
func cut(term string) string {
	if len(term) <= maxTermBytes {
		return term
	}
	end := maxTermBytes
	for end > 0 && !utf8.RuneStart(term[end]) {
		end--
	}
	return term[:end]
}

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
