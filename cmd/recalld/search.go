package main

import (
	"context"
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
a regular expression between slashes with the flags i, m and s (RE2 syntax).
Nothing is ranked: the newest message comes first.`,
		Example: `  recalld search "connection refused"
  recalld search '/TODO\(\w+\)/' --kind trace --limit 50
  recalld search --json --cursor "$CURSOR" "connection refused"`,
		Args: atLeastOne("the words to look for"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.search(cmd.Context(), strings.Join(args, " "), o)
		},
	}
	flags := cmd.Flags()
	flags.Uint32Var(&o.limit, "limit", 0, "hits, 1 to 50 (default 20)")
	flags.StringVar(&o.cursor, "cursor", "", "go on where an earlier answer ended")
	flags.StringSliceVar(&o.kinds, "kind", nil, "only messages of these kinds: user, reply, trace, work, note, mark (default all)")
	flags.StringArrayVar(&o.sessions, "session", nil, "only messages of this session, by its id; may be repeated")
	return cmd
}

func (a *app) search(ctx context.Context, query string, o searchOptions) error {
	kinds, err := parseKinds(o.kinds)
	if err != nil {
		return err
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
