package consolidate

import (
	"regexp"
	"regexp/syntax"
	"strings"
)

// A pattern is a regular expression that first looks for one of the strings
// without which it cannot match. Cues are many and most of them have nothing to
// do with a sentence.
type pattern struct {
	re  *regexp.Regexp
	any []string // none: any text may match
}

// maxNeeded is how many strings are looked for at most.
const maxNeeded = 80

func compilePattern(s string) (*pattern, error) {
	re, err := regexp.Compile(s)
	if err != nil {
		return nil, err
	}
	p := &pattern{re: re}
	if tree, err := syntax.Parse(s, syntax.Perl); err == nil {
		p.any = needed(tree)
	}
	return p, nil
}

// MatchString reports whether text contains a match.
func (p *pattern) MatchString(text string) bool {
	if len(p.any) == 0 {
		return p.re.MatchString(text)
	}
	for _, s := range p.any {
		if strings.Contains(text, s) {
			return p.re.MatchString(text)
		}
	}
	return false
}

// needed returns strings of which every match of tree contains at least one, or
// none if there are no such strings.
func needed(tree *syntax.Regexp) []string {
	switch tree.Op {
	case syntax.OpLiteral:
		if tree.Flags&syntax.FoldCase != 0 {
			return nil
		}
		return []string{string(tree.Rune)}
	case syntax.OpCapture, syntax.OpPlus:
		return needed(tree.Sub[0])
	case syntax.OpRepeat:
		if tree.Min > 0 {
			return needed(tree.Sub[0])
		}
	case syntax.OpAlternate:
		var all []string
		for _, sub := range tree.Sub {
			some := needed(sub)
			if some == nil || len(all)+len(some) > maxNeeded {
				return nil
			}
			all = append(all, some...)
		}
		return all
	case syntax.OpConcat:
		var best []string
		for _, sub := range tree.Sub {
			if some := needed(sub); rarer(some, best) {
				best = some
			}
		}
		return best
	}
	return nil
}

// rarer reports whether fewer texts contain one of a than one of b, as far as
// lengths tell. Nothing is in every text, and so is a space.
func rarer(a, b []string) bool {
	shortA, shortB := shortest(a), shortest(b)
	return shortA > shortB || shortA == shortB && shortA > 0 && len(a) < len(b)
}

// shortest is the length of the shortest of some strings, without spaces.
func shortest(list []string) int {
	least := 0
	for i, s := range list {
		if n := len(strings.TrimSpace(s)); i == 0 || n < least {
			least = n
		}
	}
	return least
}
