package ledger_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"recalld/ledger"
)

// A stored memory: what every way of reading it gave when it was sound.
type stored struct {
	records  []ledger.Record
	hits     []ledger.Record // of a search for "answer"
	turns    []ledger.Turn
	sessions []ledger.SessionInfo
	counts   ledger.Counts
}

// byBytes compares texts at once instead of looking for the least difference.
var byBytes = cmp.Comparer(bytes.Equal)

// damageTurns fill some 40 pages: small texts, texts over several pages, growing
// turns, several sessions.
func damageTurns() []ledger.Turn {
	var turns []ledger.Turn
	for n := range 60 {
		t := exchange(fmt.Sprint("session ", n%4), n)
		t.SessionTitle = fmt.Sprint("title ", n%4)
		if n%10 == 0 {
			t.Messages[1].Text = bytes.Repeat(fmt.Appendf(nil, "long %d ", n), 1500)
		}
		if n%7 == 0 {
			t.Status = ledger.StatusOpen
		}
		turns = append(turns, t)
	}
	return turns
}

// readAll reads a memory in every way; damage ends none of them silently.
func readAll(ctx context.Context, m *ledger.Memory, answers ledger.Pattern) (all stored, damaged int, err error) {
	var errs []error
	note := func(err error) {
		var damage *ledger.DamageError
		if errors.As(err, &damage) {
			damaged++
			return
		}
		errs = append(errs, err)
	}
	all.records, err = m.Read(ctx, 0, 0, 0)
	note(err)
	for before := uint64(0); ; {
		turns, next, err := m.History(ctx, ledger.HistoryQuery{Before: before})
		note(err)
		all.turns = append(turns, all.turns...)
		if before = next; next == 0 {
			break
		}
	}
	for before := uint64(0); ; {
		r, err := m.Search(ctx, ledger.SearchQuery{Pattern: answers, Before: before})
		note(err)
		damaged += r.Damaged
		for _, hit := range r.Hits {
			all.hits = append(all.hits, hit.Record)
		}
		if before = r.SearchedTo; before == 0 {
			break
		}
	}
	all.sessions, err = m.Sessions(ctx)
	note(err)
	all.counts, err = m.Counts(ctx)
	note(err)
	return all, damaged, errors.Join(errs...)
}

// checkTruth fails the test if anything that was read without complaint is not
// what was stored. It returns how many complaints there were.
func checkTruth(t *testing.T, name string, want, got stored) (complaints int) {
	t.Helper()
	bySeq := map[uint64]ledger.Record{}
	for _, r := range want.records {
		bySeq[r.Seq] = r
	}
	for i, r := range got.records {
		if r.Seq != uint64(i)+1 {
			t.Errorf("%s: message %d stands where %d should", name, r.Seq, i+1)
		}
		if r.Damage != nil {
			complaints++
			continue
		}
		if diff := cmp.Diff(bySeq[r.Seq], r, byBytes); diff != "" {
			t.Errorf("%s: message %d is returned as truth:\n%.600s", name, r.Seq, diff)
		}
	}
	for _, r := range got.hits {
		if diff := cmp.Diff(bySeq[r.Seq], r, byBytes); diff != "" {
			t.Errorf("%s: hit %d is returned as truth:\n%.600s", name, r.Seq, diff)
		}
	}
	turnBySeq := map[uint64]ledger.Turn{}
	for _, turn := range want.turns {
		turnBySeq[turn.Seq] = turn
	}
	for _, turn := range got.turns {
		whole := turnBySeq[turn.Seq]
		if diff := cmp.Diff(whole, turn, byBytes, cmpopts.IgnoreFields(ledger.Turn{}, "Messages")); diff != "" {
			t.Errorf("%s: turn %d is returned as truth:\n%.600s", name, turn.Seq, diff)
		}
		messageBySeq := map[uint64]ledger.Message{}
		for _, m := range whole.Messages {
			messageBySeq[m.Seq] = m
		}
		for _, m := range turn.Messages {
			if m.Damage != nil {
				complaints++
			} else if diff := cmp.Diff(messageBySeq[m.Seq], m, byBytes); diff != "" {
				t.Errorf("%s: message %d of turn %d is returned as truth:\n%.600s", name, m.Seq, turn.Seq, diff)
			}
		}
	}
	if got.sessions != nil && !cmp.Equal(want.sessions, got.sessions) {
		t.Errorf("%s: sessions are returned as truth:\n%s", name, cmp.Diff(want.sessions, got.sessions))
	}
	if got.counts != (ledger.Counts{}) && got.counts != want.counts {
		t.Errorf("%s: counts are returned as truth: %+v", name, got.counts)
	}
	return complaints
}

// TestFlippedBits damages a closed file bit by bit. Whatever is then read is
// what was stored or is said to be damaged, and Verify finds all that matters.
func TestFlippedBits(t *testing.T) {
	flips := 200
	if testing.Short() {
		flips = 100
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	root := t.TempDir()
	s := openStore(t, root, ledger.Options{})
	id, err := s.Ensure(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(s.Folder(id), "ledger.db")
	m, err := s.Open(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, m, damageTurns()...)
	want, damaged, err := readAll(t.Context(), m, parse(t, "answer"))
	if err != nil || damaged > 0 || len(want.records) != 120 || len(want.turns) != 60 {
		t.Fatalf("read %d messages, %d turns, %d damaged, error %v", len(want.records), len(want.turns), damaged, err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	sound, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var refused, found, harmless int
	for range flips {
		at, bit := random.IntN(len(sound)), random.IntN(8)
		name := fmt.Sprintf("bit %d of byte %d (page %d)", bit, at, at/4096+1)
		file := bytes.Clone(sound)
		file[at] ^= 1 << bit
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := s.Open(t.Context(), id)
		if err != nil {
			var damage *ledger.DamageError
			if !errors.As(err, &damage) && !errors.Is(err, ledger.ErrNewer) {
				t.Errorf("%s: refused with %v, want a DamageError", name, err)
			}
			refused++
			continue
		}
		got, damaged, err := readAll(t.Context(), m, parse(t, "answer"))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		complaints := checkTruth(t, name, want, got) + damaged
		problems, err := m.Verify(t.Context(), ledger.VerifyOptions{Deep: true}, nil)
		if err != nil {
			t.Errorf("%s: Verify: %v", name, err)
		}
		switch {
		case len(problems) > 0:
			found++
		case complaints > 0:
			t.Errorf("%s: reading complained %d times, Verify found nothing", name, complaints)
		case !cmp.Equal(want, got, byBytes, cmp.AllowUnexported(stored{})):
			t.Errorf("%s: something is missing, and Verify found nothing", name)
		default:
			harmless++
		}
		if err := m.Close(); err != nil {
			t.Logf("%s: close: %v", name, err)
		}
	}
	t.Logf("%d flips: %d refused to open, %d found by Verify, %d harmless", flips, refused, found, harmless)
	if found == 0 {
		t.Error("no flip was found: this tested nothing")
	}
}
