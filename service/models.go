package service

import (
	"cmp"
	"context"
	"time"

	"recalld/ledger"
	recalldv1 "recalld/proto/recalld/v1"
)

// A ModelState is how a model server has fared since the start.
type ModelState struct {
	// Purpose is "embed", "expand" or "extract".
	Purpose, Model string
	// Remote: memory text leaves the machine for it.
	Remote bool
	// Failures in a row, the last of them, and when it is asked again; the zero
	// time if nothing keeps it from being asked.
	Failures  int
	LastError string
	RetryAt   time.Time
}

// modelStatus tells which models there are, how they have fared and what they
// cost today.
func (s *Server) modelStatus(ctx context.Context, resp *recalldv1.StatusResponse) error {
	o := s.options
	resp.EmbeddingModel = name(cmp.Or(o.EmbeddingModel, "off"))
	resp.ExpansionModel = name(cmp.Or(o.ExpansionModel, "off"))
	resp.ExtractionModel = name(cmp.Or(o.ExtractionModel, "builtin"))
	resp.DailyTokensMemory, resp.DailyTokens = o.DailyTokens, o.DailyTokensAll
	if o.Models != nil {
		for _, m := range o.Models() {
			resp.Models = append(resp.Models, &recalldv1.ModelStatus{
				Purpose: name(m.Purpose), Model: name(m.Model), Remote: m.Remote,
				Failures: uint32(m.Failures), RetryAt: stampOf(m.RetryAt), LastError: name(m.LastError),
			})
		}
	}
	spent, err := s.store.SpendToday(ctx, "")
	resp.SpendToday = spendOf(spent)
	return err
}

func spendOf(list []ledger.Spend) []*recalldv1.Spend {
	var out []*recalldv1.Spend
	for _, one := range list {
		out = append(out, &recalldv1.Spend{
			Purpose: name(one.Purpose), Model: name(one.Model), Calls: one.Calls, Tokens: one.Tokens,
			Milliseconds: uint64(one.Took.Milliseconds()),
		})
	}
	return out
}
