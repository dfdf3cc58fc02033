package main

import (
	_ "embed"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// chatterFile holds phrases that ask for nothing, a language and a phrase a line.
//
//go:embed data/chatter.txt
var chatterFile string

// maxQuery is the longest query the server takes.
const maxQuery = 64 << 10

// A phrase is a line of chatter.
type phrase struct{ language, text string }

// chatter gives the phrases that must bring nothing back.
func chatter() []phrase {
	var phrases []phrase
	for line := range strings.Lines(chatterFile) {
		language, text, ok := strings.Cut(strings.TrimSpace(line), "\t")
		if ok {
			phrases = append(phrases, phrase{language, text})
		}
	}
	return phrases
}

// loadSilence asks whether anything relevant is there. Top-level metrics are
// LoCoMo's; BEAM, coding and chatter stand apart, as categories.
func loadSilence(data string) (*Set, error) {
	set := &Set{
		Name:    "silence",
		Gated:   true,
		Columns: []string{"kept_related", "fired_unrelated"},
		Keys:    []string{"kept_related", "fired_unrelated"},
	}
	for _, add := range []func(set *Set, data string) error{addLocomoSilence, addBeamSilence, addCodingSilence} {
		if err := add(set, data); err != nil {
			return nil, err
		}
	}
	addChatter(set)
	return set, nil
}

func addLocomoSilence(set *Set, data string) error {
	locomo, err := readLocomo(data)
	if err != nil {
		return err
	}
	speakers := make(map[string][]string)
	for _, line := range locomo.corpus {
		if !slices.Contains(speakers[line.Scope], line.Speaker) {
			speakers[line.Scope] = append(speakers[line.Scope], line.Speaker)
		}
	}
	next := nextScope(scopesOf(locomo.corpus), locomoSplit)
	for _, query := range locomo.queries {
		q := Question{
			ID:         query.ID,
			Text:       withoutNames(query.Text, speakers[query.Scope]),
			Categories: []string{"locomo-" + query.Category},
			Split:      locomoSplit(query.Scope),
		}
		set.addPair(q, locomoProject(query.Scope, false), locomoProject(next[query.Scope], false))
	}
	set.Memories = append(set.Memories, locomoMemories(locomo.corpus, false)...)
	return nil
}

func addBeamSilence(set *Set, data string) error {
	beam, err := readRetrievalSet(filepath.Join(data, "beam-100k"))
	if err != nil {
		return err
	}
	next := nextScope(scopesOf(beam.corpus), beamSplit)
	for _, query := range beam.queries {
		q := Question{
			ID:         "beam/" + query.ID,
			Text:       query.Text,
			Categories: []string{"beam"},
			Apart:      true,
			Split:      beamSplit(query.Scope),
		}
		set.addPair(q, beamProject(query.Scope), beamProject(next[query.Scope]))
	}
	memories, _ := beamMemories(beam.corpus)
	set.Memories = append(set.Memories, memories...)
	return nil
}

// addCodingSilence puts commit subjects to the memory they come from and to
// that of another project, and first prompts of each project to the other.
func addCodingSilence(set *Set, data string) error {
	entire, err := readEntire(data)
	if err != nil {
		return err
	}
	specstory, err := readSpecstory(data)
	if err != nil {
		return err
	}
	pairs, err := readPairs(data)
	if err != nil {
		return err
	}
	for i, pair := range pairs {
		q := Question{
			ID:         fmt.Sprintf("subject/%s/%d", pair.Commit, i),
			Text:       pair.Subject,
			Categories: []string{"coding", "coding-subjects"},
			Apart:      true,
			Split:      hashSplit(pair.Commit),
		}
		set.addPair(q, entireProject, specstoryProject)
	}
	set.addPrompts(specstory, entireProject, "coding", "coding-prompts-specstory")
	set.addPrompts(entire, specstoryProject, "coding-prompts-entire")
	set.Memories = append(set.Memories,
		codingMemory(entireProject, entire), codingMemory(specstoryProject, specstory))
	return nil
}

// addPair puts a question to a memory that holds something about it and to one
// that does not.
func (s *Set) addPair(q Question, own, other string) {
	related, unrelated := q, q
	related.ID, related.Project, related.Related = q.ID+"/own", own, true
	unrelated.ID, unrelated.Project = q.ID+"/other", other
	s.Questions = append(s.Questions, related, unrelated)
}

// addPrompts puts the first prompts of sessions to another project's memory.
// What a harness wrote where a prompt would stand, such as the markup of a
// command, is put too, but under a category of its own. The same text counts
// once.
func (s *Set) addPrompts(sessions []codingSession, project string, categories ...string) {
	seen := make(map[string]bool)
	for _, session := range sessions {
		own, wrapped := firstPrompts(session)
		s.addPrompt(seen, session, own, project, categories)
		s.addPrompt(seen, session, wrapped, project, []string{"coding-commands"})
	}
}

func (s *Set) addPrompt(seen map[string]bool, session codingSession, prompt, project string, categories []string) {
	if prompt == "" || seen[prompt] {
		return
	}
	seen[prompt] = true
	s.Questions = append(s.Questions, Question{
		ID:         fmt.Sprintf("prompt/%s/%s", categories[len(categories)-1], session.ID),
		Project:    project,
		Text:       lastBytes(prompt, maxQuery),
		Categories: categories,
		Apart:      true,
		Split:      hashSplit(session.ID),
	})
}

// markup is how text begins that a harness wrapped.
var markup = regexp.MustCompile(`^<[a-z][a-z0-9_-]*>`)

// firstPrompts gives the first words of the person's own, and what a harness
// wrapped before them. What an agent asks another (a sidechain) is neither.
func firstPrompts(session codingSession) (own, wrapped string) {
	for _, turn := range session.Turns {
		text := strings.TrimSpace(turn.Text)
		if turn.Role != "user" || text == "" || strings.Contains(turn.Meta, "sidechain") {
			continue
		}
		if !markup.MatchString(text) {
			return text, wrapped
		}
		if wrapped == "" {
			wrapped = text
		}
	}
	return "", wrapped
}

// addChatter puts every phrase to every memory.
func addChatter(set *Set) {
	for _, memory := range set.Memories {
		for i, p := range chatter() {
			set.Questions = append(set.Questions, Question{
				ID:         fmt.Sprintf("chatter/%s/%d", memory.Project, i),
				Project:    memory.Project,
				Text:       p.text,
				Categories: []string{"chatter", "chatter-" + p.language},
				Apart:      true,
			})
		}
	}
}

// scopesOf lists the scopes of a corpus in the order they come.
func scopesOf(corpus []corpusLine) []string {
	var scopes []string
	seen := make(map[string]bool)
	for _, line := range corpus {
		if !seen[line.Scope] {
			seen[line.Scope] = true
			scopes = append(scopes, line.Scope)
		}
	}
	return scopes
}

// nextScope tells the scope that follows each one in its split; the first
// follows the last.
func nextScope(scopes []string, split func(scope string) Split) map[string]string {
	bySplit := make(map[Split][]string)
	for _, scope := range scopes {
		bySplit[split(scope)] = append(bySplit[split(scope)], scope)
	}
	next := make(map[string]string, len(scopes))
	for _, list := range bySplit {
		for i, scope := range list {
			next[scope] = list[(i+1)%len(list)]
		}
	}
	return next
}

// possessive is what may follow a name and goes with it.
var possessive = regexp.MustCompile(`^['\x{2019}]s\b`)

// withoutNames replaces names by "they": whole words in any case, with their
// possessive ending.
func withoutNames(text string, names []string) string {
	for _, name := range names {
		word := regexp.MustCompile(`(?i)` + regexp.QuoteMeta(name))
		text = replaceWhole(text, word)
	}
	return text
}

// replaceWhole replaces matches that neither follow nor precede a letter or
// digit of any script.
func replaceWhole(text string, word *regexp.Regexp) string {
	var out strings.Builder
	at := 0
	for _, m := range word.FindAllStringIndex(text, -1) {
		before, _ := utf8.DecodeLastRuneInString(text[:m[0]])
		after, _ := utf8.DecodeRuneInString(text[m[1]:])
		if isWordRune(before) || isWordRune(after) {
			continue
		}
		out.WriteString(text[at:m[0]])
		out.WriteString("they")
		at = m[1] + len(possessive.FindString(text[m[1]:]))
	}
	out.WriteString(text[at:])
	return out.String()
}

// lastBytes cuts a text to at most n bytes from its end, at a character.
func lastBytes(text string, n int) string {
	if len(text) <= n {
		return text
	}
	text = text[len(text)-n:]
	for len(text) > 0 && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	return text
}
