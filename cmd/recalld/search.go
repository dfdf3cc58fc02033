package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	recalldv1 "recalld/proto/recalld/v1"
)

// searchOptions are the flags of search.
type searchOptions struct {
	limit           uint32
	cursor          string
	kinds, sessions []string
}

func (a *app) searchCommand() *cobra.Command {
	var o searchOptions
	cmd := &cobra.Command{
		Use:   "search WORDS...",
		Short: "Find raw words or a /regular expression/, newest first",
		Long: `Search looks through every message, traces too, for a phrase in any case or for
a regular expression between slashes (RE2 syntax). The flags after its second
slash are i, m and s; with any other letter there, as in /x/g or in a path, the
whole is a phrase. Nothing is ranked: the newest message comes first.`,
		Example: `  recalld search "connection refused"
  recalld search '/TODO\(\w+\)/' --kind trace --limit 50
  recalld search --json --cursor "$CURSOR" "connection refused"`,
		Args: atLeastOne("the words to look for"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.search(cmd.Context(), strings.Join(args, " "), o)
		},
	}
	flags := cmd.Flags()
	flags.Uint32Var(&o.limit, "limit", 0, "hits, 1 to 50; 0 for the default (20)")
	flags.StringVar(&o.cursor, "cursor", "", "go on where an earlier answer ended")
	flags.StringSliceVar(&o.kinds, "kind", nil, "only messages of these kinds: user, reply, trace, work, note, mark (default all)")
	flags.StringArrayVar(&o.sessions, "session", nil, "only messages of this session, by its id; may be repeated")
	completes(cmd, "kind", listOf(kindNames...))
	return cmd
}

func (a *app) search(ctx context.Context, query string, o searchOptions) error {
	kinds, err := parseKinds(o.kinds)
	if err != nil {
		return err
	}
	if flags := unknownFlags(query); flags != "" {
		fmt.Fprintf(a.err, "recalld: hint: looking for this as a phrase, as %q is not what a regular expression has for flags; those are i, m and s, each once\n", flags)
	}
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	ref, err := a.memoryRef(ctx, c)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, recallPatience)
	defer cancel()
	answer, err := c.recall.Search(limited, &recalldv1.SearchRequest{
		Memory: ref, Query: query, Limit: o.limit, Cursor: o.cursor, Kinds: kinds, Sessions: o.sessions,
	})
	if err != nil {
		return a.failed("search", err)
	}
	if a.json {
		return a.printJSON(answer)
	}
	a.page().printHits(answer)
	return nil
}

// otherFlags are the letters that other programs know as flags of a regular
// expression.
const otherFlags = "gimsuyvdxAUX"

// unknownFlags gives what a query like /x/g has in the place of flags, if that
// makes it the phrase it was hardly meant to be. It is empty for expressions and
// for what looks like a path.
func unknownFlags(query string) string {
	end := strings.LastIndexByte(query, '/')
	if end < 2 || query[0] != '/' {
		return ""
	}
	flags := query[end+1:]
	if strings.Trim(flags, otherFlags) != "" {
		return ""
	}
	for i, f := range flags {
		if !strings.ContainsRune("ims", f) || strings.ContainsRune(flags[:i], f) {
			return flags
		}
	}
	return ""
}

// printHits prints the answer of a search for people.
func (p page) printHits(r *recalldv1.SearchResponse) {
	pad := strings.Repeat(" ", passageIndent)
	for i, hit := range r.GetHits() {
		if i > 0 {
			p.printf("\n")
		}
		p.found(i+1, hit, "")
		text, marks := shownMatch(hit)
		p.paragraph(passageIndent, text, marks)
		p.printf("%s%s\n", pad, p.dim("id "+oneLine(hit.GetMessageId())))
	}
	switch {
	case len(r.GetHits()) == 0 && r.GetTruncated():
		p.paragraph(0, "Nothing found so far.", nil)
	case len(r.GetHits()) == 0:
		p.paragraph(0, "Nothing found in the raw words of this memory's messages.", nil)
	default:
		p.printf("\n")
	}
	if r.GetTruncated() {
		p.paragraph(0, "The search took too long and ended early, at message "+number(r.GetSearchedTo())+
			" (the newest come first, the oldest is 1).", nil)
	}
	if cursor := r.GetCursor(); cursor != "" {
		p.paragraph(0, "Older messages: --cursor "+oneLine(cursor), nil)
	}
}

// shownMatch gives the text of a hit and where the match is in it, if what is
// shown is what was stored.
func shownMatch(hit *recalldv1.SearchHit) (string, []span) {
	text := printable(hit.GetText())
	base := int(hit.GetRange().GetStart())
	const cut = "… "
	if base > 0 {
		text = cut + text
		base -= len(cut)
	}
	if !hit.GetExact() || !strings.HasSuffix(text, hit.GetText()) {
		return text, nil
	}
	match := span{int(hit.GetMatch().GetStart()) - base, int(hit.GetMatch().GetEnd()) - base}
	match.start, match.end = max(match.start, 0), min(match.end, len(text))
	if match.start >= match.end {
		return text, nil
	}
	return text, []span{match}
}
