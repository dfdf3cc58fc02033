package ledger_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"recalld/ledger"
)

var key = ledger.MemoryKey{Agent: "agent", Project: "project"}

// openStore opens the store at root and closes it at the end of the test.
func openStore(t testing.TB, root string, o ledger.Options) *ledger.Store {
	t.Helper()
	s, err := ledger.OpenStore(root, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// openMemory opens the memory of k, making it if need be, and at the end of the
// test verifies it deeply before it is closed.
func openMemory(t testing.TB, s *ledger.Store, k ledger.MemoryKey) *ledger.Memory {
	t.Helper()
	id, err := s.Ensure(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.Open(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := m.Head(context.Background()); err != nil {
			return // the test closed it
		}
		verify(t, m)
		if err := m.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return m
}

// verify fails the test unless the memory is sound.
func verify(t testing.TB, m *ledger.Memory) {
	t.Helper()
	problems, err := m.Verify(context.Background(), ledger.VerifyOptions{Deep: true}, nil)
	if err != nil {
		t.Errorf("Verify: %v", err)
	}
	for _, p := range problems {
		t.Errorf("Verify found %+v", p)
	}
}

// newMemory is a memory in a store of its own.
func newMemory(t testing.TB) *ledger.Memory {
	t.Helper()
	return openMemory(t, openStore(t, filepath.Join(t.TempDir(), "store"), ledger.Options{}), key)
}

// append1 appends turns and fails the test when that fails.
func mustAppend(t testing.TB, m *ledger.Memory, turns ...ledger.Turn) []ledger.AppendResult {
	t.Helper()
	results, err := m.Append(t.Context(), turns)
	if err != nil {
		t.Fatal(err)
	}
	return results
}

var start = time.Date(2026, 3, 1, 9, 30, 0, 123456000, time.UTC)

// exchange is a finished turn of a question and an answer.
func exchange(session string, n int) ledger.Turn {
	return ledger.Turn{
		Session: session, ID: fmt.Sprintf("turn-%d", n), Status: ledger.StatusFinished,
		Messages: []ledger.Message{
			{ID: fmt.Sprintf("%s/%d/user", session, n), Kind: ledger.KindUser, Speaker: "Ada", Time: start.Add(time.Duration(n) * time.Minute), Zone: "Europe/Berlin",
				Text: fmt.Appendf(nil, "question %d of %s", n, session)},
			{ID: fmt.Sprintf("%s/%d/reply", session, n), Kind: ledger.KindReply, Speaker: "agent", Time: start.Add(time.Duration(n)*time.Minute + 10*time.Second),
				Text: fmt.Appendf(nil, "answer %d of %s", n, session)},
		},
	}
}
