package service_test

import (
	"testing"

	"google.golang.org/grpc/codes"

	recalldv1 "recalld/proto/recalld/v1"
	"recalld/service"
)

// TestSupersedeByReview: a person confirms that an entry replaces an older one,
// and can take it back; nonsense is refused by field.
func TestSupersedeByReview(t *testing.T) {
	j := journalOf(start(t, service.Options{Consolidate: "off"}))
	j.talk("s", 0, [2]string{"Let's use Postgres for the ledger.", "Ok."}, [2]string{"Always use tabs.", "Ok."})
	j.mustConsolidate()
	older, newer := "", ""
	for _, e := range j.entries() {
		switch e.Text {
		case "Let's use Postgres for the ledger.":
			older = e.Id
		case "Always use tabs.":
			newer = e.Id
		}
	}
	if older == "" || newer == "" {
		t.Fatalf("entries %v", states(j.entries()))
	}
	const action = recalldv1.ReviewAction_REVIEW_ACTION_SUPERSEDE
	stateOf := func(id string) recalldv1.EntryState {
		for _, e := range j.entries() {
			if e.Id == id {
				return e.State
			}
		}
		return 0
	}
	resp := j.review(&recalldv1.ReviewRequest{Action: action, EntryIds: []string{newer}, SupersededIds: []string{older}})
	if got := stateOf(older); got != recalldv1.EntryState_ENTRY_STATE_SUPERSEDED || len(resp.Entries) != 2 {
		t.Errorf("older entry %v, %d entries touched; want superseded and 2", got, len(resp.Entries))
	}
	j.review(&recalldv1.ReviewRequest{Action: recalldv1.ReviewAction_REVIEW_ACTION_UNDO, BatchHash: resp.Batch.Hash})
	if got := stateOf(older); got != recalldv1.EntryState_ENTRY_STATE_LIVE {
		t.Errorf("after the undo: %v, want live", got)
	}
	j.verified()
	for _, tt := range []struct {
		name  string
		req   *recalldv1.ReviewRequest
		code  codes.Code
		field string
	}{
		{"nothing older", &recalldv1.ReviewRequest{Action: action, EntryIds: []string{newer}}, codes.InvalidArgument, "superseded_ids"},
		{"itself", &recalldv1.ReviewRequest{Action: action, EntryIds: []string{newer}, SupersededIds: []string{newer}}, codes.InvalidArgument, "superseded_ids[0]"},
		{"a later one", &recalldv1.ReviewRequest{Action: action, EntryIds: []string{older}, SupersededIds: []string{newer}}, codes.InvalidArgument, "superseded_ids[0]"},
		{"two at once", &recalldv1.ReviewRequest{Action: action, EntryIds: []string{newer, older}, SupersededIds: []string{older}}, codes.InvalidArgument, "entry_ids"},
		{"an unknown one", &recalldv1.ReviewRequest{Action: action, EntryIds: []string{newer}, SupersededIds: []string{"none"}}, codes.NotFound, "superseded_ids[0]"},
		{"of another action", &recalldv1.ReviewRequest{Action: recalldv1.ReviewAction_REVIEW_ACTION_PIN, EntryIds: []string{newer}, SupersededIds: []string{older}}, codes.InvalidArgument, "superseded_ids"},
		{"the action of SetPolicy", &recalldv1.ReviewRequest{Action: recalldv1.ReviewAction_REVIEW_ACTION_SET_POLICY, EntryIds: []string{newer}}, codes.InvalidArgument, "action"},
	} {
		tt.req.Memory, tt.req.Author = j.ref, "Ann"
		_, err := j.Review(t.Context(), tt.req)
		t.Run(tt.name, func(t *testing.T) { wants(t, err, tt.code, tt.field) })
	}
	if _, err := j.SetPolicy(t.Context(), &recalldv1.SetPolicyRequest{Memory: j.ref, Policy: recalldv1.Policy_POLICY_REVIEW, Author: "Ann"}); err != nil {
		t.Fatal(err)
	}
	got, err := j.Get(t.Context(), &recalldv1.GetRequest{Memory: j.ref})
	if err != nil || got.Policy != recalldv1.Policy_POLICY_REVIEW {
		t.Errorf("the policy is %v, %v", got.GetPolicy(), err)
	}
	log, err := j.Log(t.Context(), &recalldv1.LogRequest{Memory: j.ref, Limit: 1})
	if err != nil || log.Batches[0].Action != recalldv1.ReviewAction_REVIEW_ACTION_SET_POLICY || log.Batches[0].Author != "Ann" || log.Batches[0].Policy != got.Policy {
		t.Errorf("log %v, %v; want the policy set by Ann", log, err)
	}
}

// TestSupersedeOldTranscript: what is older is what was said before, not what
// was imported before.
func TestSupersedeOldTranscript(t *testing.T) {
	j := journalOf(start(t, service.Options{Consolidate: "off"}))
	j.talk("s", 30, [2]string{"Let's keep the log files for a week.", "Ok."})
	j.talk("imported", 0, [2]string{"We decided to delete the log files every night.", "Ok."}) // half an hour earlier
	j.mustConsolidate()
	list := j.entries()
	if len(list) != 2 || list[1].Text != "Let's keep the log files for a week." {
		t.Fatalf("entries %v", states(list))
	}
	older, newer := list[0].Id, list[1].Id
	const action = recalldv1.ReviewAction_REVIEW_ACTION_SUPERSEDE
	_, err := j.Review(t.Context(), &recalldv1.ReviewRequest{Memory: j.ref, Author: "Ann", Action: action, EntryIds: []string{older}, SupersededIds: []string{newer}})
	wants(t, err, codes.InvalidArgument, "superseded_ids[0]")
	j.review(&recalldv1.ReviewRequest{Action: action, EntryIds: []string{newer}, SupersededIds: []string{older}})
	if got := j.entries()[0]; got.Id != older || got.State != recalldv1.EntryState_ENTRY_STATE_SUPERSEDED {
		t.Errorf("entries %v", states(j.entries()))
	}
	j.verified()
}
