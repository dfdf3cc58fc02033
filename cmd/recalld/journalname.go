package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	recalldv1 "recalld/proto/recalld/v1"
)

// entryKinds and entryStates are the names of the contract.
var (
	entryKinds  = []string{"decision", "rule", "preference", "reversal", "open_work"}
	entryStates = []string{"live", "candidate", "superseded", "rejected", "stale"}
)

func entryKind(k recalldv1.EntryKind) string {
	return strings.ToLower(strings.TrimPrefix(k.String(), "ENTRY_KIND_"))
}

func entryState(s recalldv1.EntryState) string {
	return strings.ToLower(strings.TrimPrefix(s.String(), "ENTRY_STATE_"))
}

func actionName(a recalldv1.ReviewAction) string {
	return strings.ToLower(strings.TrimPrefix(a.String(), "REVIEW_ACTION_"))
}

// parseEnums reads the values of a flag by their names in the contract; a hyphen
// may stand for an underscore.
func parseEnums[E ~int32](flag string, names []string, prefix string, values map[string]int32, known []string) ([]E, error) {
	var out []E
	for _, name := range names {
		name = strings.ReplaceAll(strings.ToLower(name), "-", "_")
		if !slices.Contains(known, name) {
			return nil, usageErrorf("--%s: %q is not known; the values are %s", flag, name, strings.Join(known, ", "))
		}
		out = append(out, E(values[prefix+strings.ToUpper(name)]))
	}
	return out, nil
}

const (
	// minAbbreviation keeps a mistyped letter from naming an entry.
	minAbbreviation = 4
	// entryDigits and hashDigits are the lengths of a whole id and hash.
	entryDigits = 20
	hashDigits  = 64
	// shortDigits of a hash are shown where people read it.
	shortDigits = 12
	// resolvePage is the most that one answer lists.
	resolvePage = 200
)

func shortHash(hash string) string { return oneLine(hash[:min(len(hash), shortDigits)]) }

// entryIDs completes abbreviated ids. What may be a whole one stays as it is:
// an entry that was merged into another is known to the server alone.
func (j journalCall) entryIDs(ctx context.Context, ids []string) ([]string, error) {
	out := slices.Clone(ids)
	found := make([][]string, len(ids))
	short := false
	for i, id := range ids {
		out[i] = strings.ToLower(id)
		if abbreviated(id, entryDigits) {
			short = true
		} else {
			found[i] = []string{out[i]}
		}
	}
	for cursor := ""; short; {
		answer, err := j.List(ctx, &recalldv1.JournalServiceListRequest{Memory: j.ref, Limit: resolvePage, Cursor: cursor})
		if err != nil {
			return nil, j.app.failed("look for the entry", err)
		}
		for i, id := range out {
			if !abbreviated(id, entryDigits) {
				continue
			}
			for _, e := range answer.GetEntries() {
				if strings.HasPrefix(e.GetId(), id) && !slices.Contains(found[i], e.GetId()) {
					found[i] = append(found[i], e.GetId())
				}
			}
		}
		if cursor = answer.GetCursor(); cursor == "" {
			break
		}
	}
	for i, id := range out {
		whole, err := only("entry", "recalld journal list", id, found[i])
		if err != nil {
			return nil, err
		}
		out[i] = whole
	}
	return out, nil
}

// batchHash completes the abbreviated hash of a review.
func (j journalCall) batchHash(ctx context.Context, hash string) (string, error) {
	hash = strings.ToLower(hash)
	if !abbreviated(hash, hashDigits) {
		return hash, nil
	}
	var found []string
	for cursor := ""; ; {
		answer, err := j.Log(ctx, &recalldv1.LogRequest{Memory: j.ref, Limit: resolvePage, Cursor: cursor})
		if err != nil {
			return "", j.app.failed("look for the batch", err)
		}
		for _, b := range answer.GetBatches() {
			if strings.HasPrefix(b.GetHash(), hash) {
				found = append(found, b.GetHash())
			}
		}
		if cursor = answer.GetCursor(); cursor == "" {
			return only("batch", "recalld journal log", hash, found)
		}
	}
}

// abbreviated reports whether a name is the beginning of a longer one.
func abbreviated(name string, digits int) bool {
	return len(name) >= minAbbreviation && len(name) < digits && strings.Trim(strings.ToLower(name), "0123456789abcdef") == ""
}

// only is the one name that was found for an abbreviation.
func only(what, lister, name string, found []string) (string, error) {
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return "", fmt.Errorf("no %s begins with %q; %s lists them", what, name, lister)
	}
	return "", fmt.Errorf("%q is the beginning of %d: %s; name one in full", name, len(found), strings.Join(found[:min(len(found), 5)], ", "))
}

// entryFailed is failed for calls that name entries or batches.
func (a *app) entryFailed(doing string, err error) error {
	s, ok := status.FromError(err)
	if !ok || s.Code() != codes.NotFound {
		return a.failed(doing, err)
	}
	switch {
	case strings.HasPrefix(s.Message(), "entry_id"):
		return fmt.Errorf("%s: %s; recalld journal list lists the entries", doing, s.Message())
	case strings.HasPrefix(s.Message(), "batch_hash"):
		return fmt.Errorf("%s: %s; recalld journal log lists the batches", doing, s.Message())
	}
	return a.failed(doing, err)
}

// completeEntries completes ids of entries, of at most so many; 0 is any number.
func (a *app) completeEntries(most int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		var ids []string
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		a.whileCompleting(cmd, func(ctx context.Context, j journalCall) {
			answer, err := j.List(ctx, &recalldv1.JournalServiceListRequest{Memory: j.ref, Limit: resolvePage})
			if err != nil {
				return // nothing is offered
			}
			for _, e := range answer.GetEntries() {
				if !slices.Contains(args, e.GetId()) {
					ids = append(ids, cobra.CompletionWithDesc(oneLine(e.GetId()), fitted(oneLine(e.GetText()), 60)))
				}
			}
		})
		return ids, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

// completeReviews completes the hashes of reviews, newest first.
func (a *app) completeReviews(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var hashes []string
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	a.whileCompleting(cmd, func(ctx context.Context, j journalCall) {
		answer, err := j.Log(ctx, &recalldv1.LogRequest{Memory: j.ref, Limit: resolvePage})
		if err != nil {
			return // nothing is offered
		}
		for _, b := range answer.GetBatches() {
			if isReview(b) {
				hashes = append(hashes, cobra.CompletionWithDesc(shortHash(b.GetHash()), batchDeed(b)))
			}
		}
	})
	return hashes, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// whileCompleting calls f with the journal of the running server, if there is
// one; see namesOf.
func (a *app) whileCompleting(cmd *cobra.Command, f func(context.Context, journalCall)) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
	defer cancel()
	if a.prepare(cmd) != nil {
		return
	}
	c, err := a.reach(ctx)
	if err != nil {
		return
	}
	defer c.close()
	ref, err := a.memoryRef(ctx, c)
	if err != nil {
		return
	}
	f(ctx, journalCall{recalldv1.NewJournalServiceClient(c.conn), a, ref})
}
