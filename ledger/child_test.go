package ledger_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"recalld/ledger"
)

// childVar makes the test binary play a part in another process.
const childVar = "RECALLD_LEDGER_TEST_CHILD"

func TestMain(m *testing.M) {
	if name := os.Getenv(childVar); name != "" {
		part, root := systemParts()[name], os.Getenv(childVar+"_ROOT")
		if name == "writer" {
			part = writerPart
		}
		if err := part(root); err != nil {
			fmt.Fprintln(os.Stderr, name+":", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child returns a command that plays a part on the store at root. Before are
// words to put before the command.
func child(t *testing.T, part, root string, before ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	words := append(before, self)
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env = append(os.Environ(), childVar+"="+part, childVar+"_ROOT="+root)
	return cmd
}

// crashTurn is turn n of the crash test: one to three messages, from which the
// reader can tell what must be there. Now and then a text fills many pages.
func crashTurn(n int) ledger.Turn {
	t := turn(fmt.Sprint("s", n%3), fmt.Sprint(n), ledger.Status(n%2))
	for j := range n%3 + 1 {
		size := 20 + n%7*100
		if n%50 == 0 {
			size = 200_000
		}
		t.Messages = append(t.Messages, message(fmt.Sprintf("%d/%d", n, j), fmt.Sprintf("%d/%d ", n, j)+strings.Repeat("x", size)))
	}
	return t
}

// writerPart appends turn after turn, from where the store ends, and prints the
// number of each turn once it is acknowledged. It goes on until it is killed.
func writerPart(root string) error {
	ctx := context.Background()
	s, err := ledger.OpenStore(root, ledger.Options{})
	if err != nil {
		return err
	}
	id, err := s.Ensure(ctx, key)
	if err != nil {
		return err
	}
	m, err := s.Open(ctx, id)
	if err != nil {
		return err
	}
	counts, err := m.Counts(ctx)
	if err != nil {
		return err
	}
	for n := int(counts.Turns) + 1; ; n++ {
		if _, err := m.Append(ctx, []ledger.Turn{crashTurn(n)}); err != nil {
			return err
		}
		if _, err := fmt.Println(n); err != nil {
			return err
		}
	}
}
