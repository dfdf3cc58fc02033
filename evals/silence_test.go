package main

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestWithoutNames(t *testing.T) {
	tests := []struct {
		name, text string
		names      []string
		want       string
	}{
		{name: "whole words", text: "When did Caroline go?", names: []string{"Caroline"}, want: "When did they go?"},
		{name: "any case", text: "CAROLINE and caroline", names: []string{"Caroline"}, want: "they and they"},
		{name: "possessive, both apostrophes", text: "Jon's car, Jon\u2019s shop", names: []string{"Jon"}, want: "they car, they shop"},
		{name: "not inside a word", text: "Jonathan and Gil-Jon", names: []string{"Jon"}, want: "Jonathan and Gil-they"},
		{name: "not before a letter of another script", text: "Jonы", names: []string{"Jon"}, want: "Jonы"},
		{name: "both speakers", text: "Did Tim meet John?", names: []string{"Tim", "John"}, want: "Did they meet they?"},
		{name: "a plural is another word", text: "Jons", names: []string{"Jon"}, want: "Jons"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := withoutNames(tt.text, tt.names); got != tt.want {
				t.Errorf("withoutNames(%q) = %q, want %q", tt.text, got, tt.want)
			}
		})
	}
}

func TestNextScopeWrapsInItsSplit(t *testing.T) {
	got := nextScope([]string{"conv-26", "conv-44", "conv-30", "conv-47", "conv-41"}, locomoSplit)
	want := map[string]string{
		"conv-26": "conv-30", "conv-30": "conv-41", "conv-41": "conv-26",
		"conv-44": "conv-47", "conv-47": "conv-44",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("nextScope (-want +got):\n%s", diff)
	}
}

func TestLoadSilence(t *testing.T) {
	data := t.TempDir()
	writeLocomo(t, data)
	writeBeam(t, data)
	writeCoding(t, data)
	set := mustLoad(t, loadSilence, data)
	var got []string
	for _, q := range set.Questions {
		if strings.HasPrefix(q.ID, "chatter/") {
			continue
		}
		got = append(got, fmt.Sprintf("%s | %s | %s | related %t | apart %t | %s",
			strings.Join(q.Categories, " "), q.Project, q.Text, q.Related, q.Apart, q.Split))
	}
	want := []string{
		"locomo-multi-hop | locomo/conv-26 | What did they plant, and how was they harvest? | related true | apart false | tune",
		"locomo-multi-hop | locomo/conv-26 | What did they plant, and how was they harvest? | related false | apart false | tune",
		"locomo-single-hop | locomo/conv-44 | What of they leaks? | related true | apart false | report",
		"locomo-single-hop | locomo/conv-47 | What of they leaks? | related false | apart false | report",
		"locomo-adversarial | locomo/conv-47 | What does Cy bake? | related true | apart false | report",
		"locomo-adversarial | locomo/conv-44 | What does Cy bake? | related false | apart false | report",
		"beam | beam/1 | When do I deploy? | related true | apart true | tune",
		"beam | beam/1 | When do I deploy? | related false | apart true | tune",
		"beam | beam/2 | What is hard? | related true | apart true | report",
		"beam | beam/2 | What is hard? | related false | apart true | report",
		"coding coding-subjects | sessions/entire | Use the git user for shadow branches | related true | apart true | " + string(hashSplit("aaa")),
		"coding coding-subjects | sessions/specstory | Use the git user for shadow branches | related false | apart true | " + string(hashSplit("aaa")),
		"coding coding-subjects | sessions/entire | quiet the linter | related true | apart true | " + string(hashSplit("bbb")),
		"coding coding-subjects | sessions/specstory | quiet the linter | related false | apart true | " + string(hashSplit("bbb")),
		"coding coding-prompts-specstory | sessions/entire | Move the release workflow | related false | apart true | " + string(hashSplit("p-one")),
		"coding coding-prompts-specstory | sessions/entire | Sign the binaries | related false | apart true | " + string(hashSplit("p-six")),
		"coding-commands | sessions/entire | <command-name>/model</command-name> | related false | apart true | " + string(hashSplit("p-six")),
		"coding-prompts-entire | sessions/specstory | Use the git user for shadow branches | related false | apart true | " + string(hashSplit("s-one")),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("questions but chatter (-want +got):\n%s", diff)
	}
	if n := len(set.Questions) - len(want); n != len(chatter())*len(set.Memories) {
		t.Errorf("%d questions of chatter, want %d phrases in each of %d memories", n, len(chatter()), len(set.Memories))
	}
}

func TestChatter(t *testing.T) {
	seen := make(map[string]bool)
	languages := make(map[string]int)
	for _, p := range chatter() {
		if seen[p.text] || p.text == "" {
			t.Errorf("phrase %q is empty or there twice", p.text)
		}
		seen[p.text] = true
		languages[p.language]++
	}
	want := map[string]int{"en": 38, "de": 38, "fr": 38, "es": 38, "ru": 38, "zh": 10}
	if diff := cmp.Diff(want, languages); diff != "" {
		t.Errorf("phrases by language (-want +got):\n%s", diff)
	}
}

func TestLastBytes(t *testing.T) {
	if got := lastBytes("a😀b", 4); got != "b" || !utf8.ValidString(got) {
		t.Errorf("lastBytes cut inside a character: %q", got)
	}
	if got := lastBytes("short", 9); got != "short" {
		t.Errorf("lastBytes(short) = %q", got)
	}
}
