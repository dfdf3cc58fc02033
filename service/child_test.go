package service_test

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// childVar makes the test binary play a part in another process.
const childVar = "RECALLD_SERVICE_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVar) != "" {
		if err := readerPart(os.Getenv(childVar + "_ROOT")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child returns a command that reads what waits in the store at root.
func child(t *testing.T, root string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childVar+"=reader", childVar+"_ROOT="+root)
	return cmd
}
