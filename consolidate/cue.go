package consolidate

import (
	"embed"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode"
)

// Cues are data: data/LANGUAGE.cues holds, line by line,
//
//	words the of and …          words that show the language
//	hints still open …          a sentence of the agent's without any is skipped
//	let NAME alternatives       {NAME} in later patterns
//	decision .80 pattern        a clause that matches is one, so sure
//	decision .80 pattern !! but unless it also matches this one
//	veto pattern                no choice in such a clause
//	asks pattern                how a clause begins that asks
//
// and the other sections named in [sections]. A pattern is a regular expression
// over a clause as normalise writes it. Lines that begin with # say why.

//go:embed data/*.cues
var cueFiles embed.FS

// A cue is a pattern that tells a kind.
type cue struct {
	sure    float64
	pattern *pattern
	unless  *pattern // nil: always
}

func (c cue) matches(text string) bool {
	return c.pattern.MatchString(text) && (c.unless == nil || !c.unless.MatchString(text))
}

// A language is the content of one file of cues.
type language struct {
	name  string
	words map[string]bool
	hints []string // see hinted
	cues  map[Kind][]cue
	lists map[string]*regexp.Regexp // the patterns of a section as one
	each  map[string][]*pattern     // and one by one, which is faster to look up

	breaks, asks *regexp.Regexp
}

// sections are the patterns a file may hold besides cues; several lines of one
// section are alternatives.
var sections = map[string]bool{
	"breaks":   true, // where a sentence is cut into clauses
	"asks":     true, // how a clause begins that asks
	"request":  true, // a sentence that asks for help
	"politely": true, // a question that is none
	"veto":     true, // no choice in a clause that matches
	"once":     true, // no standing rule in a sentence that matches
	"accept":   true, // how a message begins that accepts
	"agrees":   true, // how a message begins that agrees to what was said before
	"picks":    true, // an acceptance that says which option
	"offers":   true, // the agent's reply ends so when it proposes something
	"option":   true, // what the reply proposes is a choice, not just work
	"deictic":  true, // an acceptance that needs no question before it
	"advice":   true, // the agent says what it would choose
	"refers":   true, // a question about what was proposed before it
	"task":     true, // what the reply offers is just to go on
	"parties":  true, // words for those who take part in the chat
	"either":   true, // a question that offers two things
	"empty":    true, // words that do not say what something is about
	"left":     true, // the agent says that work is left
	"lefthead": true, // so does the head of a list
	"done":     true, // and so does not
	"settled":  true, // what a list says there is nothing to do about
	"chosen":   true, // the agent says what the person chose
	"revises":  true, // a choice that changes an earlier one
	"filler":   true, // words that do not change what a fact says
	"negation": true,
	"replaces": true, // what a choice puts away
	"corrects": true, // a correction of the choice just made
	"frame":    true, // what such a choice does
}

var kindByName = map[string]Kind{
	"decision": Decision, "rule": Rule, "preference": Preference, "reversal": Reversal, "open_work": OpenWork,
}

// languages are the cues of this package, read once. A file that cannot be read
// is a fault of the program, which its tests would have shown.
var languages = sync.OnceValue(func() []*language {
	all, err := loadLanguages()
	if err != nil {
		panic(err)
	}
	return all
})

// loadLanguages reads the files of cues, in the order of their names.
func loadLanguages() ([]*language, error) {
	files, err := cueFiles.ReadDir("data")
	if err != nil {
		return nil, fmt.Errorf("read cues: %w", err)
	}
	var languages []*language
	for _, file := range files {
		data, err := cueFiles.ReadFile("data/" + file.Name())
		if err != nil {
			return nil, fmt.Errorf("read cues: %w", err)
		}
		l, err := parseLanguage(strings.TrimSuffix(file.Name(), ".cues"), string(data))
		if err != nil {
			return nil, err
		}
		languages = append(languages, l)
	}
	return languages, nil
}

// parseLanguage reads one file of cues.
func parseLanguage(name, data string) (*language, error) {
	l := &language{name: name, words: map[string]bool{}, cues: map[Kind][]cue{}, lists: map[string]*regexp.Regexp{}, each: map[string][]*pattern{}}
	lists := map[string][]string{}
	macros := []string{}
	number := 0
	for line := range strings.Lines(data) {
		number++
		line = strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(line) == "" || line[0] == '#' {
			continue
		}
		section, rest, _ := strings.Cut(line, " ")
		fail := func(err error) error { return fmt.Errorf("cues %s line %d: %w", name, number, err) }
		switch {
		case section == "words":
			for _, word := range strings.Fields(rest) {
				l.words[word] = true
			}
		case section == "hints":
			l.hints = strings.Fields(rest)
		case section == "let":
			key, value, _ := strings.Cut(rest, " ")
			macros = append(macros, "{"+key+"}", strings.NewReplacer(macros...).Replace(value))
		case kindByName[section] != 0:
			c, err := parseCue(strings.NewReplacer(macros...), rest)
			if err != nil {
				return nil, fail(err)
			}
			l.cues[kindByName[section]] = append(l.cues[kindByName[section]], c)
		case sections[section]:
			lists[section] = append(lists[section], strings.NewReplacer(macros...).Replace(rest))
		default:
			return nil, fail(fmt.Errorf("no section %q", section))
		}
	}
	for section, patterns := range lists {
		re, err := regexp.Compile("(?:" + strings.Join(patterns, ")|(?:") + ")")
		if err != nil {
			return nil, fmt.Errorf("cues %s, %s: %w", name, section, err)
		}
		l.lists[section] = re
		for _, one := range patterns {
			p, err := compilePattern(one)
			if err != nil {
				return nil, fmt.Errorf("cues %s, %s: %w", name, section, err)
			}
			l.each[section] = append(l.each[section], p)
		}
	}
	l.breaks, l.asks = l.lists["breaks"], l.lists["asks"]
	return l, nil
}

func parseCue(macros *strings.Replacer, s string) (cue, error) {
	number, pattern, _ := strings.Cut(s, " ")
	sure, err := strconv.ParseFloat(number, 64)
	if err != nil || sure <= 0 || sure > 1 {
		return cue{}, fmt.Errorf("confidence %q is not in (0, 1]", number)
	}
	pattern, unless, but := strings.Cut(macros.Replace(pattern), " !! ")
	c := cue{sure: sure}
	if c.pattern, err = compilePattern(pattern); err != nil {
		return cue{}, err
	}
	if but {
		if c.unless, err = compilePattern(unless); err != nil {
			return cue{}, err
		}
	}
	return c, nil
}

// is reports whether text matches a section; a section that the file does not
// have matches nothing.
func (l *language) is(section, text string) bool {
	for _, p := range l.each[section] {
		if p.MatchString(text) {
			return true
		}
	}
	return false
}

// tellingWords is how many words of a text are looked at for its language.
const tellingWords = 200

// wordLanguages says of which languages a word is a sign.
var wordLanguages = sync.OnceValue(func() map[string][]int {
	out := map[string][]int{}
	for i, l := range languages() {
		for word := range l.words {
			out[word] = append(out[word], i)
		}
	}
	return out
})

// languageOf picks the language of a text: by its script if only one language
// here is written in it, else by the words that show it. Ties and texts that
// show nothing go to English.
func languageOf(text string) *language {
	all := languages()
	counts := make([]int, len(all))
	scripts := map[string]int{}
	for i, r := range text {
		if i > 10*tellingWords {
			break
		}
		switch {
		case r < 0x300:
		case unicode.Is(unicode.Cyrillic, r):
			scripts["ru"]++
		case unicode.Is(unicode.Hangul, r):
			scripts["ko"]++
		case unicode.Is(unicode.Han, r):
			scripts["zh"]++
		case unicode.Is(unicode.Devanagari, r):
			scripts["hi"]++
		}
	}
	byWord, n := wordLanguages(), 0
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' }) {
		for _, i := range byWord[strings.ToLower(word)] {
			counts[i]++
		}
		if n++; n == tellingWords {
			break
		}
	}
	best, most := 0, -1
	for i, l := range all {
		count := counts[i] + scripts[l.name]
		if count > most || count == most && l.name == "en" {
			best, most = i, count
		}
	}
	if most == 0 {
		return english()
	}
	return all[best]
}

// english is the language of texts that show none.
func english() *language {
	for _, l := range languages() {
		if l.name == "en" {
			return l
		}
	}
	return languages()[0]
}
