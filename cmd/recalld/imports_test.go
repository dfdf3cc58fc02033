package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// allowed is the dependency diagram of ARCHITECTURE.md: each package, and the
// packages of this module that it may import.
var allowed = map[string][]string{
	"cmd/recalld":      {"consolidate", "embed", "expand", "harness", "ledger", "llm", "proto/recalld/v1", "retrieve", "service"},
	"service":          {"consolidate", "ledger", "proto/recalld/v1", "retrieve"},
	"harness":          {"proto/recalld/v1"},
	"evals":            {"proto/recalld/v1", "retrieve"}, // retrieve: scifact only
	"consolidate":      {"ledger", "llm"},
	"embed":            {"llm"},
	"expand":           {"llm"},
	"llm":              {},
	"llm/llmtest":      {},
	"ledger":           {},
	"retrieve":         {},
	"proto/recalld/v1": {},
}

// speaksGRPC are the packages that may know gRPC; runsSQL those that may know a
// database.
var (
	speaksGRPC = []string{"cmd/recalld", "service", "harness", "evals", "proto/recalld/v1"}
	runsSQL    = []string{"ledger"}
)

// TestImports holds the code to the diagram.
func TestImports(t *testing.T) {
	const module = "recalld/"
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, module+"...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		paths := strings.Fields(line)
		pkg := strings.TrimPrefix(paths[0], module)
		may, ok := allowed[pkg]
		if !ok {
			t.Errorf("package %s is not in the diagram", pkg)
		}
		for _, path := range paths[1:] {
			dep, ours := strings.CutPrefix(path, module)
			if ours && !slices.Contains(may, dep) {
				t.Errorf("%s imports %s; the diagram does not allow it", pkg, dep)
			}
			if strings.HasPrefix(path, "google.golang.org/grpc") && !slices.Contains(speaksGRPC, pkg) {
				t.Errorf("%s imports %s; only %v speak gRPC", pkg, path, speaksGRPC)
			}
			if (path == "database/sql" || strings.HasPrefix(path, "modernc.org/sqlite")) && !slices.Contains(runsSQL, pkg) {
				t.Errorf("%s imports %s; only the ledger runs SQL", pkg, path)
			}
		}
	}
}
