package service_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
	_ "modernc.org/sqlite"

	"recalld/ledger"
	recalldv1 "recalld/proto/recalld/v1"
	"recalld/service"
)

// TestErrorTable goes through the table of errors row by row, over the wire.
func TestErrorTable(t *testing.T) {
	r := start(t, service.Options{})
	ref := byKey("agent", "one")
	id := r.append(ref, said("s1", "t1", "the first words")).MemoryId
	r.append(byKey("agent", "two"), said("s2", "t1", "words elsewhere"))
	ctx := context.Background()

	appending := func(ref *recalldv1.MemoryRef, change func(*recalldv1.NewTurn)) func() error {
		return func() error {
			turn := said("s1", "t2", "more words")
			if change != nil {
				change(turn)
			}
			_, err := r.memories.Append(ctx, &recalldv1.AppendRequest{Memory: ref, Turns: []*recalldv1.NewTurn{turn}})
			return err
		}
	}
	recalling := func(change func(*recalldv1.RecallRequest)) func() error {
		return func() error {
			req := &recalldv1.RecallRequest{Memory: ref, Query: "words"}
			change(req)
			_, err := r.recall.Recall(ctx, req)
			return err
		}
	}
	searching := func(change func(*recalldv1.SearchRequest)) func() error {
		return func() error {
			req := &recalldv1.SearchRequest{Memory: ref, Query: "words"}
			change(req)
			_, err := r.recall.Search(ctx, req)
			return err
		}
	}
	paging := func(req *recalldv1.HistoryRequest) func() error {
		return func() error { _, err := r.memories.History(ctx, req); return err }
	}
	getting := func(ref *recalldv1.MemoryRef, id string) func() error {
		return func() error { _, _, err := r.get(ref, id); return err }
	}
	binding := func(req *recalldv1.BindRequest) func() error {
		return func() error { _, err := r.memories.Bind(ctx, req); return err }
	}

	const invalid, missing = codes.InvalidArgument, codes.NotFound
	tests := []struct {
		name  string
		call  func() error
		code  codes.Code
		words []string
	}{
		// unknown memory, session, message
		{"recall of an unknown key", recalling(func(q *recalldv1.RecallRequest) { q.Memory = byKey("agent", "three") }), missing, []string{"memory"}},
		{"recall of an unknown id", recalling(func(q *recalldv1.RecallRequest) { q.Memory = byID(strings.Repeat("0", 64)) }), missing, []string{"memory"}},
		{"recall of the prefix of an id", recalling(func(q *recalldv1.RecallRequest) { q.Memory = byID(id[:63]) }), missing, []string{"memory"}},
		{"recall in an unknown session", recalling(func(q *recalldv1.RecallRequest) { q.Sessions = []string{"s1", "s9"} }), missing, []string{"sessions[1]"}},
		{"recall in a session of another memory", recalling(func(q *recalldv1.RecallRequest) { q.Sessions = []string{"s2"} }), missing, []string{"sessions[0]"}},
		{"search in an unknown memory", searching(func(q *recalldv1.SearchRequest) { q.Memory = byKey("nobody", "") }), missing, []string{"memory"}},
		{"search in an unknown session", searching(func(q *recalldv1.SearchRequest) { q.Sessions = []string{"s9"} }), missing, []string{"sessions[0]"}},
		{"append to an unknown id", appending(byID("no-such-alias"), nil), missing, []string{"memory"}},
		{"history of an unknown session", paging(&recalldv1.HistoryRequest{Memory: ref, SessionId: "s9"}), missing, []string{"session"}},
		{"an unknown message", getting(ref, "nothing"), missing, []string{"message"}},
		{"a message of another memory", getting(ref, "s2/t1"), missing, []string{"message"}},
		{"status of an unknown memory", func() error {
			_, err := r.admin.Status(ctx, &recalldv1.StatusRequest{Memory: byKey("x", "y")})
			return err
		}, missing, []string{"memory"}},

		// no memory named
		{"recall of no memory", recalling(func(q *recalldv1.RecallRequest) { q.Memory = nil }), invalid, []string{"memory"}},
		{"recall of an empty memory", recalling(func(q *recalldv1.RecallRequest) { q.Memory = &recalldv1.MemoryRef{} }), invalid, []string{"memory"}},
		{"a project without agent", recalling(func(q *recalldv1.RecallRequest) { q.Memory = byKey("", "one") }), invalid, []string{"memory.agent"}},
		{"id and key that disagree", recalling(func(q *recalldv1.RecallRequest) {
			q.Memory = &recalldv1.MemoryRef{Id: id, Agent: "agent", Project: "two"}
		}), invalid, []string{"memory"}},
		{"append to no memory", appending(nil, nil), invalid, []string{"memory"}},
		{"bind without agent", binding(&recalldv1.BindRequest{SessionId: "s5", Project: "p"}), invalid, []string{"agent"}},

		// out of range
		{"limit 51", recalling(func(q *recalldv1.RecallRequest) { q.Limit = 51 }), invalid, []string{"limit", "1 to 50", "51"}},
		{"passage_bytes 199", recalling(func(q *recalldv1.RecallRequest) { q.PassageBytes = 199 }), invalid, []string{"passage_bytes", "200 to 8000", "199"}},
		{"passage_bytes 8001", recalling(func(q *recalldv1.RecallRequest) { q.PassageBytes = 8001 }), invalid, []string{"passage_bytes", "8001"}},
		{"budget_bytes 511", recalling(func(q *recalldv1.RecallRequest) { q.BudgetBytes = 511 }), invalid, []string{"budget_bytes", "512 to 256000", "511"}},
		{"budget_bytes 256001", recalling(func(q *recalldv1.RecallRequest) { q.BudgetBytes = 256_001 }), invalid, []string{"budget_bytes", "256001"}},
		{"query of 64 KiB + 1", recalling(func(q *recalldv1.RecallRequest) { q.Query = strings.Repeat("a", 64<<10+1) }), invalid, []string{"query", "65536 bytes", "65537 bytes"}},
		{"search limit 51", searching(func(q *recalldv1.SearchRequest) { q.Limit = 51 }), invalid, []string{"limit", "51"}},
		{"history limit 201", paging(&recalldv1.HistoryRequest{Memory: ref, Limit: 201}), invalid, []string{"limit", "1 to 200", "201"}},
		{"a time out of range", recalling(func(q *recalldv1.RecallRequest) { q.After = &timestamppb.Timestamp{Nanos: -1} }), invalid, []string{"after"}},
		{"the time that means none", recalling(func(q *recalldv1.RecallRequest) { q.Before = timestamppb.New(time.Time{}) }), invalid, []string{"before", "leave the field out"}},
		{"the time that means none, of a message", appending(ref, func(n *recalldv1.NewTurn) {
			n.Messages[0].Time = &recalldv1.SpokenTime{At: timestamppb.New(time.Time{})}
		}), invalid, []string{"turns[0].messages[0].time.at", "leave the field out"}},
		{"a zone that is none", recalling(func(q *recalldv1.RecallRequest) { q.Now = &recalldv1.SpokenTime{Zone: "Middle/Earth"} }), invalid, []string{"now.zone", "Middle/Earth"}},
		{"the zone Local", recalling(func(q *recalldv1.RecallRequest) { q.Now = &recalldv1.SpokenTime{Zone: "Local"} }), invalid, []string{"now.zone"}},
		{"no turns", func() error {
			_, err := r.memories.Append(ctx, &recalldv1.AppendRequest{Memory: ref})
			return err
		}, invalid, []string{"turns"}},

		// unknown enum
		{"kind of a filter", recalling(func(q *recalldv1.RecallRequest) { q.Kinds = []recalldv1.Kind{7} }), invalid, []string{"kinds", "7"}},
		{"kind unspecified in a filter", recalling(func(q *recalldv1.RecallRequest) { q.Kinds = []recalldv1.Kind{0} }), invalid, []string{"kinds", "0"}},
		{"relevance", recalling(func(q *recalldv1.RecallRequest) { q.Relevance = 3 }), invalid, []string{"relevance", "3"}},
		{"expansion", recalling(func(q *recalldv1.RecallRequest) { q.Expansion = 9 }), invalid, []string{"expansion", "9"}},
		{"order", recalling(func(q *recalldv1.RecallRequest) { q.Order = 3 }), invalid, []string{"order", "3"}},
		{"source", recalling(func(q *recalldv1.RecallRequest) { q.Sources = []recalldv1.Source{5} }), invalid, []string{"sources", "5"}},
		{"kind of a message", appending(ref, func(n *recalldv1.NewTurn) { n.Messages[0].Kind = 9 }), invalid, []string{"turns[0].messages[0].kind", "9"}},
		{"kind of a message left out", appending(ref, func(n *recalldv1.NewTurn) { n.Messages[0].Kind = 0 }), invalid, []string{"kind"}},
		{"status of a turn", appending(ref, func(n *recalldv1.NewTurn) { n.Status = -1 }), invalid, []string{"turns[0].status", "-1"}},

		// bad regexp, bad cursor
		{"a regular expression", searching(func(q *recalldv1.SearchRequest) { q.Query = "/(/" }), invalid, []string{"query"}},
		{"a cursor", searching(func(q *recalldv1.SearchRequest) { q.Cursor = "12" }), invalid, []string{"cursor"}},

		// bad id
		{"no session id", appending(ref, func(n *recalldv1.NewTurn) { n.SessionId = "" }), invalid, []string{"turns[0].session_id"}},
		{"no turn id", appending(ref, func(n *recalldv1.NewTurn) { n.TurnId = "" }), invalid, []string{"turns[0].turn_id"}},
		{"an id with NUL", appending(ref, func(n *recalldv1.NewTurn) { n.Messages[0].Id = "a\x00b" }), invalid, []string{"turns[0].messages[0].id"}},
		{"an id of 513 bytes", appending(ref, func(n *recalldv1.NewTurn) { n.Messages[0].Id = strings.Repeat("a", 513) }), invalid, []string{"512 bytes", "513 bytes"}},
		{"an agent with NUL", appending(byKey("a\x00", "p"), nil), invalid, []string{"memory.agent"}},
		{"a project of 513 bytes", appending(byKey("a", strings.Repeat("p", 513)), nil), invalid, []string{"memory.project", "512 bytes"}},

		// bound elsewhere, other bytes
		{"append to a session bound elsewhere", appending(ref, func(n *recalldv1.NewTurn) { n.SessionId = "s2" }), codes.AlreadyExists, []string{"s2"}},
		{"bind a session bound elsewhere", binding(&recalldv1.BindRequest{SessionId: "s2", Agent: "agent", Project: "one"}), codes.AlreadyExists, []string{"s2"}},
		{"other bytes under a known id", appending(ref, func(n *recalldv1.NewTurn) { n.Messages[0].Id = "s1/t1" }), codes.AlreadyExists, []string{"s1/t1"}},

		// not built yet
		{"forget", func() error {
			_, err := r.memories.Forget(ctx, &recalldv1.ForgetRequest{Memory: ref})
			return err
		}, codes.Unimplemented, nil},
		{"verify against a journal head", func() error {
			stream, err := r.admin.Verify(ctx, &recalldv1.VerifyRequest{Head: "00"})
			if err != nil {
				return err
			}
			_, err = stream.Recv()
			return err
		}, invalid, []string{"head"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			wants(t, tt.call(), tt.code, tt.words...)
		})
	}
	if n := r.messages(id); n != 1 {
		t.Errorf("after all these errors the memory holds %d messages, want 1", n)
	}
	list, err := r.memories.List(ctx, &recalldv1.ListRequest{})
	if err != nil || len(list.Memories) != 2 {
		t.Errorf("after all these errors there are the memories %v (%v), want the two", list, err)
	}
}

// get reads one message whole.
func (r *rig) get(ref *recalldv1.MemoryRef, id string) (*recalldv1.Message, []byte, error) {
	stream, err := r.memories.GetMessage(context.Background(), &recalldv1.GetMessageRequest{Memory: ref, MessageId: id})
	if err != nil {
		return nil, nil, err
	}
	first, err := stream.Recv()
	if err != nil {
		return nil, nil, err
	}
	var data []byte
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return first.Message, data, nil
		}
		if err != nil {
			return nil, nil, err
		}
		data = append(data, resp.Data...)
	}
}

// TestMapError looks at the codes of errors that are hard to bring about.
func TestMapError(t *testing.T) {
	tests := []struct {
		name    string
		err     error
		code    codes.Code
		message string
	}{
		{"read-only", fmt.Errorf("append: %w", ledger.ErrReadOnly), codes.FailedPrecondition, "cannot be written"},
		{"second writer", fmt.Errorf("open: %w", ledger.ErrLocked), codes.FailedPrecondition, "another process"},
		{"paused", ledger.ErrPaused, codes.FailedPrecondition, "paused"},
		{"newer", fmt.Errorf("open x: %w", ledger.ErrNewer), codes.FailedPrecondition, "newer version"},
		{"full disk", fmt.Errorf("append: %w", ledger.ErrFull), codes.ResourceExhausted, "disk is full"},
		{"nearly full disk", fmt.Errorf("append: %w", &ledger.FullError{Free: 12, MinFree: 345}), codes.ResourceExhausted, "the disk is full: 12 bytes are free, at least 345 must be"},
		{"damage", fmt.Errorf("read: %w", &ledger.DamageError{File: "f.db", Table: "message", Row: 7, What: "torn"}), codes.DataLoss, "f.db, table message, row 7"},
		{"field", &ledger.FieldError{Field: "f", What: "is wrong", Limit: 3, Value: 4}, codes.InvalidArgument, "f: is wrong, limit 3, got 4"},
		{"closed", ledger.ErrClosed, codes.Unavailable, "stopping"},
		{"deadline", fmt.Errorf("rank: %w", context.DeadlineExceeded), codes.DeadlineExceeded, "deadline"},
		{"cancelled", context.Canceled, codes.Canceled, "cancelled"},
		{"a status stays", status.Error(codes.Aborted, "as it was"), codes.Aborted, "as it was"},
		{"a bug", errors.New("secret detail"), codes.Internal, "internal error"},
		{"none", nil, codes.OK, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := service.MapError(tt.err)
			if got := status.Code(err); got != tt.code {
				t.Errorf("code %v, want %v", got, tt.code)
			}
			if got := status.Convert(err).Message(); !strings.Contains(got, tt.message) || strings.Contains(got, "secret") {
				t.Errorf("message %q, want %q in it", got, tt.message)
			}
		})
	}
}

// TestDamageStaysInItsMemory damages one ledger of three: that one says so, by
// file, and the others answer.
func TestDamageStaysInItsMemory(t *testing.T) {
	root := t.TempDir()
	r := startIn(t, root, service.Options{})
	var ids []string
	for _, project := range []string{"a", "b", "c"} {
		ids = append(ids, r.append(byKey("x", project), said("s"+project, "t", "words of "+project)).MemoryId)
	}
	r.stop()
	file := filepath.Join(root, "memories", ids[1], "ledger.db")
	if err := os.WriteFile(file, []byte(strings.Repeat("this is no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}

	r = startIn(t, root, service.Options{})
	ctx := context.Background()
	_, err := r.recall.Recall(ctx, &recalldv1.RecallRequest{Memory: byID(ids[1]), Query: "words"})
	wants(t, err, codes.DataLoss, ids[1]+"/ledger.db")
	_, err = r.memories.Append(ctx, &recalldv1.AppendRequest{Memory: byID(ids[1]), Turns: []*recalldv1.NewTurn{said("sb", "t2", "more")}})
	wants(t, err, codes.DataLoss, "ledger.db")
	for _, i := range []int{0, 2} {
		if got := r.ask(byID(ids[i]), "words"); len(got.Passages) != 1 {
			t.Errorf("memory %d gives %d passages beside a damaged one, want 1", i, len(got.Passages))
		}
	}
	list, err := r.memories.List(ctx, &recalldv1.ListRequest{})
	if err != nil {
		t.Fatal(err)
	}
	status, err := r.admin.Status(ctx, &recalldv1.StatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Memories {
		damaged := list.Memories[i].Id == ids[1]
		if got := list.Memories[i].Damage; damaged != strings.Contains(got, "ledger.db") {
			t.Errorf("List says of memory %d: %q", i, got)
		}
		if got := status.Memories[i].Damage; damaged != strings.Contains(got, "ledger.db") {
			t.Errorf("Status says of memory %d: %q", i, got)
		}
	}
	problems, last := r.verify(&recalldv1.VerifyRequest{})
	if len(problems) == 0 || problems[0].MemoryId != ids[1] || last.Ok || last.Memories != 3 {
		t.Errorf("Verify found %v, ended with %v; want the damage and not ok", problems, last)
	}
}

// TestDamagedMessage changes one stored text behind the ledger's back: it is not
// shown, the answer says so, and what lies around it is found.
func TestDamagedMessage(t *testing.T) {
	root := t.TempDir()
	r := startIn(t, root, service.Options{})
	id := r.append(byKey("x", "y"), said("s", "1", "alpha words"), said("s", "2", "beta words")).MemoryId
	if got := r.ask(byID(id), "words"); len(got.Passages) != 2 {
		t.Fatalf("%d passages, want 2", len(got.Passages))
	}
	r.stop()
	db, err := sql.Open("sqlite", filepath.Join(root, "memories", id, "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("UPDATE message SET text = CAST('gamma' AS BLOB) WHERE seq = 1"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	r = startIn(t, root, service.Options{})
	got := r.ask(byID(id), "words")
	if len(got.Passages) != 1 || got.Passages[0].MessageId != "s/2" {
		t.Errorf("passages %v, want the sound one", ids(got.Passages))
	}
	if o := outcome(got, "ledger"); o.GetOutcome() != recalldv1.Outcome_OUTCOME_FAILED || !strings.Contains(o.GetReason(), "row 1") {
		t.Errorf("sources %v do not name the damage", got.Sources)
	}
	_, _, err = r.get(byID(id), "s/1")
	wants(t, err, codes.DataLoss, "message", "row 1")
	problems, last := r.verify(&recalldv1.VerifyRequest{Memory: byID(id), Deep: true})
	if len(problems) == 0 || last.Ok {
		t.Errorf("Verify found %v, ended with %v", problems, last)
	}
}

// outcome is what an answer says of a source.
func outcome(resp *recalldv1.RecallResponse, source string) *recalldv1.SourceOutcome {
	for _, s := range resp.Sources {
		if s.Source == source {
			return s
		}
	}
	return nil
}

// verify reads a Verify to its end.
func (r *rig) verify(req *recalldv1.VerifyRequest) (problems []*recalldv1.Problem, last *recalldv1.VerifyResponse) {
	r.t.Helper()
	stream, err := r.admin.Verify(context.Background(), req)
	if err != nil {
		r.t.Fatal(err)
	}
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return problems, last
		}
		if err != nil {
			r.t.Fatal(err)
		}
		problems, last = append(problems, resp.Problems...), resp
	}
}
