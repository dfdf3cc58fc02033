package service

import (
	"fmt"
	"slices"
	"strings"

	recalldv1 "recalld/proto/recalld/v1"
	"recalld/retrieve"
)

// question checks a RecallRequest and puts it into retrieve's terms. Every
// range of the contract is here; nothing is clamped.
func (s *Server) question(req *recalldv1.RecallRequest) (*question, error) {
	q := &question{exclude: req.GetExcludeMessages()}
	if n := len(req.GetQuery()); n > maxQueryBytes {
		return nil, invalid("query", "is too long", sizeOf(maxQueryBytes), sizeOf(n))
	}
	q.query.Text = string(withoutEchoes([]byte(req.GetQuery())))
	for _, check := range []func(*recalldv1.RecallRequest) error{q.sizes, q.choices, q.filters, q.times} {
		if err := check(req); err != nil {
			return nil, err
		}
	}
	return q, s.reference(q, req.GetNow())
}

func (q *question) sizes(req *recalldv1.RecallRequest) (err error) {
	if q.query.Limit, err = inRange("limit", req.GetLimit(), defaultPassages, 1, maxPassages); err != nil {
		return err
	}
	if q.passageBytes, err = inRange("passage_bytes", req.GetPassageBytes(), defaultPassageBytes, minPassageBytes, maxPassageBytes); err != nil {
		return err
	}
	q.budgetBytes, err = inRange("budget_bytes", req.GetBudgetBytes(), defaultBudgetBytes, minBudgetBytes, maxBudgetBytes)
	return err
}

func (q *question) choices(req *recalldv1.RecallRequest) error {
	if err := checkEnum("relevance", req.GetRelevance(), recalldv1.Relevance_name, true); err != nil {
		return err
	}
	if req.GetRelevance() == recalldv1.Relevance_RELEVANCE_ALWAYS {
		q.query.Relevance = retrieve.Always
	}
	if err := checkEnum("expansion", req.GetExpansion(), recalldv1.Expansion_name, true); err != nil {
		return err
	}
	switch req.GetExpansion() {
	case recalldv1.Expansion_EXPANSION_OFF:
		q.query.Expansion = retrieve.ExpandOff
	case recalldv1.Expansion_EXPANSION_ALWAYS:
		q.query.Expansion = retrieve.ExpandAlways
	}
	if err := checkEnum("order", req.GetOrder(), recalldv1.Order_name, true); err != nil {
		return err
	}
	q.byTime = req.GetOrder() == recalldv1.Order_ORDER_TIME
	return q.sources(req.GetSources())
}

// sources switches off those that a list does not name; an empty list names all.
func (q *question) sources(list []recalldv1.Source) error {
	if len(list) == 0 {
		return nil
	}
	for _, source := range list {
		if err := checkEnum("sources", source, recalldv1.Source_name, false); err != nil {
			return err
		}
	}
	for _, source := range []retrieve.Source{retrieve.Words, retrieve.Meaning, retrieve.Context, retrieve.Expansion} {
		if !slices.Contains(list, recalldv1.Source(source)) {
			q.query.WithoutSources = append(q.query.WithoutSources, source)
		}
	}
	return nil
}

func (q *question) filters(req *recalldv1.RecallRequest) (err error) {
	if q.query.Kinds, err = checkKinds[retrieve.Kind]("kinds", req.GetKinds()); err != nil {
		return err
	}
	for _, list := range []struct {
		field string
		names []string
	}{
		{"exclude_sessions", req.GetExcludeSessions()},
		{"exclude_messages", req.GetExcludeMessages()},
		{"without_parts", req.GetWithoutParts()},
	} {
		if len(list.names) > maxListed {
			return invalid(list.field, "are too many", maxListed, len(list.names))
		}
		for i, s := range list.names {
			if err := checkName(fmt.Sprintf("%s[%d]", list.field, i), s, true); err != nil {
				return err
			}
		}
	}
	// The sessions to look in are checked against the memory, later.
	q.query.Sessions = req.GetSessions()
	q.query.ExcludeSessions = req.GetExcludeSessions()
	q.query.WithoutParts = req.GetWithoutParts()
	return nil
}

func (q *question) times(req *recalldv1.RecallRequest) (err error) {
	if q.query.After, err = checkStamp("after", req.GetAfter()); err != nil {
		return err
	}
	q.query.Before, err = checkStamp("before", req.GetBefore())
	return err
}

// reference sets the time of the one who asks: what the request says of instant
// and zone, and for the rest the server's clock.
func (s *Server) reference(q *question, now *recalldv1.SpokenTime) error {
	at, zone, err := checkSpoken("now", now)
	if err != nil {
		return err
	}
	clock := s.now()
	if now.GetAt() == nil {
		at = clock
	}
	if zone == "" && now == nil {
		zone = zoneOf(clock)
	}
	q.zone = zone
	q.query.Now = zones{}.in(at, zone)
	return nil
}

// outcomeName is an outcome as the contract calls it.
func outcomeName(o recalldv1.Outcome) string {
	return strings.ToLower(strings.TrimPrefix(o.String(), "OUTCOME_"))
}
