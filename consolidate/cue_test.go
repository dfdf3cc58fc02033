package consolidate

import (
	"strings"
	"testing"
)

func TestCueFiles(t *testing.T) {
	all, err := loadLanguages()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 10 {
		t.Errorf("%d languages, want ten", len(all))
	}
	for _, l := range all {
		for _, kind := range order {
			if len(l.cues[kind]) == 0 {
				t.Errorf("%s has no cue for a %v", l.name, kind)
			}
		}
		for _, section := range []string{"veto", "asks", "accept", "offers", "option", "filler", "negation", "revises"} {
			if l.lists[section] == nil {
				t.Errorf("%s has no %s", l.name, section)
			}
			if l.is(section, "") {
				t.Errorf("%s: %s matches nothing at all", l.name, section)
			}
		}
		if len(l.words) == 0 {
			t.Errorf("%s has no words to show it", l.name)
		}
	}
}

func TestParseLanguageRejects(t *testing.T) {
	for name, data := range map[string]string{
		"unknown section": "decide .5 x",
		"no confidence":   "decision x",
		"too sure":        "decision 1.5 x",
		"bad pattern":     "decision .5 (x",
		"bad exception":   "decision .5 x !! (y",
		"bad list":        "veto [",
	} {
		if _, err := parseLanguage("xx", data+"\n"); err == nil || !strings.Contains(err.Error(), "cues xx") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestLanguageOf(t *testing.T) {
	tests := []struct{ text, want string }{
		{"use Postgres", "en"}, {"", "en"}, {"1 2 3", "en"},
		{"wir haben uns entschieden", "de"}, {"nous avons choisi la base de données", "fr"}, {"vamos a usar la base de datos", "es"},
		{"abbiamo deciso di usare il database", "it"}, {"vamos usar o banco de dados em vez disso", "pt"}, {"мы решили", "ru"},
		{"我们决定", "zh"}, {"우리는 결정했다", "ko"}, {"हमने तय किया", "hi"},
	}
	for _, tt := range tests {
		if got := languageOf(tt.text).name; got != tt.want {
			t.Errorf("languageOf(%q) = %s, want %s", tt.text, got, tt.want)
		}
	}
}

func TestSentences(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{
		{"full stops", "One. Two! Three? four", []string{"One.", "Two!", "Three?", "four"}},
		{"file names", "Change main.go and v1.2 too.", []string{"Change main.go and v1.2 too."}},
		{"abbreviation", "Use a store, e.g. this one.", []string{"Use a store, e.g. this one."}},
		{"list", "- one thing\n2. another\n* third", []string{"one thing", "another", "third"}},
		{"emphasis", "**Bold** text\n## Head", []string{"**Bold** text", "Head"}},
		{"numbered", "1. First thing\n**2. Second** thing\n(3) Third", []string{"First thing", "**2. Second** thing", "(3) Third"}},
		{"half of a mark", "**#7 Slow path** - later", []string{"**#7 Slow path** - later"}},
		{"wrapped", strings.Repeat("word ", 13) + "and\nso it goes on", []string{strings.Repeat("word ", 13) + "and\nso it goes on"}},
		{"Chinese", "我们决定。好吗？", []string{"我们决定。", "好吗？"}},
		{"nothing", "...\n\n--- \n", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, s := range sentences([]byte(tt.text)) {
				got = append(got, tt.text[s.start:s.end])
			}
			if strings.Join(got, "|") != strings.Join(tt.want, "|") {
				t.Errorf("sentences = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestProseKeepsOffsets(t *testing.T) {
	text := "look:\n```\ncode\n```\n> quoted\n$ ls -l\n  total 0\n\nkeep this <system-reminder>x</system-reminder> too"
	got := prose([]byte(text))
	if len(got) != len(text) {
		t.Fatalf("%d bytes, want %d", len(got), len(text))
	}
	if kept := strings.Join(strings.Fields(string(got)), " "); kept != "look: keep this too" {
		t.Errorf("prose keeps %q", kept)
	}
	for i := range got {
		if got[i] != '\n' && got[i] != text[i] {
			t.Fatalf("byte %d moved", i)
		}
	}
}
