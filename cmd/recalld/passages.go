package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rivo/uniseg"

	recalldv1 "recalld/proto/recalld/v1"
)

// passageIndent is the room for the number before a passage.
const passageIndent = 4

// printRecall prints an answer for people.
func (p page) printRecall(query string, r *recalldv1.RecallResponse, explain bool) {
	for i, passage := range r.GetPassages() {
		if i > 0 {
			p.printf("\n")
		}
		p.printPassage(i+1, query, passage)
		if explain {
			p.printParts(passage)
		}
	}
	if len(r.GetPassages()) == 0 {
		p.paragraph(0, nothingFound(r), nil)
	} else if s := shortcomings(r); s != "" {
		p.printf("\n")
		p.paragraph(0, s, nil)
	}
	if explain {
		p.printAccount(r)
	}
}

// printPassage prints number, date, speaker and score, then the session's
// title, the words, and the id by which recalld show gives the whole message.
func (p page) printPassage(n int, query string, passage *recalldv1.Passage) {
	pad := strings.Repeat(" ", passageIndent)
	p.found(n, passage, fmt.Sprintf("score %.2f", passage.GetScore()))
	text := printable(passage.GetText())
	if passage.GetRange().GetStart() > 0 {
		text = "… " + strings.TrimLeft(text, " \n")
	}
	p.paragraph(passageIndent, text, wordsOf(query, text))
	p.printf("%s%s\n", pad, p.dim("id "+oneLine(passage.GetMessageId())))
}

// A finding is a passage or a hit.
type finding interface {
	GetTime() *recalldv1.SpokenTime
	GetSpeaker() string
	GetKind() recalldv1.Kind
	GetSessionTitle() string
}

// found prints what stands above the words of a finding.
func (p page) found(n int, f finding, right string) {
	p.heading(fmt.Sprintf("%2d. %s · %s", n, when(f.GetTime()), bySpeaker(f.GetSpeaker(), f.GetKind())), right)
	if title := oneLine(f.GetSessionTitle()); title != "" {
		p.printf("%s%s\n", strings.Repeat(" ", passageIndent), p.dim(fitted(title, p.width-passageIndent)))
	}
}

// heading prints a line with something at its right end, if there is room.
func (p page) heading(left, right string) {
	if right == "" {
		p.printf("%s\n", p.bold(fitted(left, p.width)))
		return
	}
	gap := p.width - uniseg.StringWidth(left) - uniseg.StringWidth(right)
	if gap < 2 {
		p.printf("%s\n    %s\n", p.bold(fitted(left, p.width)), p.dim(right))
		return
	}
	p.printf("%s%s%s\n", p.bold(left), strings.Repeat(" ", gap), p.dim(right))
}

// bySpeaker names who spoke, and what kind of message it was if it was not
// spoken.
func bySpeaker(speaker string, kind recalldv1.Kind) string {
	speaker = oneLine(speaker)
	switch kind {
	case recalldv1.Kind_KIND_USER, recalldv1.Kind_KIND_REPLY:
		return speaker
	}
	return speaker + " (" + kindName(kind) + ")"
}

// fitted cuts one line to a width.
func fitted(s string, width int) string {
	if uniseg.StringWidth(s) <= width {
		return s
	}
	var b strings.Builder
	used := 0
	graphemes := uniseg.NewGraphemes(s)
	for graphemes.Next() && used+graphemes.Width() < width {
		b.WriteString(graphemes.Str())
		used += graphemes.Width()
	}
	return b.String() + "…"
}

// nothingFound says what was looked through: that is not the same as what was
// ever said.
func nothingFound(r *recalldv1.RecallResponse) string {
	if r.GetNothingToSearch() {
		return "Nothing to search for: the question holds no words."
	}
	if r.GetSnapshot().GetSequence() == 0 {
		return "Nothing found: this memory is empty."
	}
	s := "Nothing found"
	if g := r.GetGate(); g != nil && !g.GetPassed() && g.GetReason() != "always" {
		s = "Nothing found that bears on this"
	}
	return fmt.Sprintf("%s. Searched by %s, in %s. %s", s, searchedBy(r), reach(r.GetSnapshot()), shortcomings(r))
}

// searchedBy lists the sources that were used.
func searchedBy(r *recalldv1.RecallResponse) string {
	var used []string
	for _, s := range r.GetSources() {
		if s.GetOutcome() == recalldv1.Outcome_OUTCOME_USED || s.GetOutcome() == recalldv1.Outcome_OUTCOME_REBUILDING {
			used = append(used, s.GetSource())
		}
	}
	if len(used) == 0 {
		return "nothing"
	}
	return strings.Join(used, ", ")
}

// reach tells how much of the memory can be found.
func reach(r *recalldv1.Reach) string {
	all := r.GetSequence()
	switch {
	case r.GetIndexed() >= all && (r.GetEmbedded() >= all || r.GetEmbedded() == 0):
		return "all of " + count(all, "message", "messages")
	case r.GetIndexed() >= all:
		return fmt.Sprintf("all of %s by words and %s by meaning", count(all, "message", "messages"), number(r.GetEmbedded()))
	}
	return fmt.Sprintf("%s of %s by words and %s by meaning", number(r.GetIndexed()), count(all, "message", "messages"), number(r.GetEmbedded()))
}

// shortcomings tells what an answer was made without. What is off by choice is
// none.
func shortcomings(r *recalldv1.RecallResponse) string {
	var all []string
	for _, s := range r.GetSources() {
		var what string
		switch s.GetOutcome() {
		case recalldv1.Outcome_OUTCOME_LATE:
			what = "came too late"
		case recalldv1.Outcome_OUTCOME_FAILED:
			what = "failed"
		case recalldv1.Outcome_OUTCOME_REBUILDING:
			what = "is being made anew, so older messages may be missing"
		case recalldv1.Outcome_OUTCOME_SKIPPED:
			if s.GetSource() != "meaning" {
				continue // other wordings are looked for when there is need of them
			}
			what = "was left out: " + oneLine(s.GetReason())
		default:
			continue
		}
		all = append(all, fmt.Sprintf("The search by %s %s.", s.GetSource(), what))
	}
	if n := r.GetOmitted(); n > 0 {
		all = append(all, count(n, "more passage was", "more passages were")+" left out for want of room (--budget).")
	}
	return strings.Join(all, " ")
}

// printParts shows what a score is made of.
func (p page) printParts(passage *recalldv1.Passage) {
	p.printf("%14s %10s %10s %10s\n", "part", "value", "weight", "adds")
	for _, part := range slices.Concat(passage.GetParts(), passage.GetExpansionParts()) {
		p.printf("%14s %10.4f %10.4f %10.4f\n", oneLine(part.GetName()), part.GetValue(), part.GetWeight(), part.GetValue()*part.GetWeight()+0) // + 0: no "-0.0000"
	}
}

// printAccount shows how the answer as a whole came about.
func (p page) printAccount(r *recalldv1.RecallResponse) {
	p.printf("\n")
	rows := [][]string{{"source", "outcome", "ms", "reason"}}
	for _, s := range r.GetSources() {
		outcome := strings.ToLower(strings.TrimPrefix(s.GetOutcome().String(), "OUTCOME_"))
		rows = append(rows, []string{s.GetSource(), outcome, fmt.Sprintf("%.1f", s.GetMilliseconds()), oneLine(s.GetReason())})
	}
	p.table(rows)
	if g := r.GetGate(); g != nil {
		verdict := "closed"
		if g.GetPassed() {
			verdict = "open"
		}
		p.printf("gate      %s: measure %.4f, threshold %.4f, of each passage %.4f", verdict, g.GetMeasure(), g.GetThreshold(), g.GetPassageThreshold())
		if reason := oneLine(g.GetReason()); reason != "" {
			p.printf(" (%s)", reason)
		}
		p.printf("\n")
		for _, part := range g.GetParts() {
			p.printf("          %s %.4f × %.4f\n", part.GetName(), part.GetValue(), part.GetWeight())
		}
	}
	if r.GetPeriodStart() != nil || r.GetPeriodEnd() != nil {
		zone := location(r.GetNow().GetZone())
		p.printf("period    %s to %s\n", clock(r.GetPeriodStart().AsTime().In(zone)), clock(r.GetPeriodEnd().AsTime().In(zone)))
	}
	if e := r.GetExpansions(); len(e) > 0 {
		p.printf("expansion %s\n", oneLine(strings.Join(e, "; ")))
	}
	p.printf("searched  %s\n", reach(r.GetSnapshot()))
}
