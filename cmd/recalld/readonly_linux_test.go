package main

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestReadOnlyStore has a store on a disk that cannot be written be read, by a
// server that keeps its socket elsewhere.
func TestReadOnlyStore(t *testing.T) {
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		t.Skip(err)
	}
	p := withShop(t)
	p.run("stop").want(t, exitDone)
	const mounted = `mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" "$0" && exec "$@"`
	if out, err := exec.Command(unshare, "-rm", "sh", "-c", mounted, p.root, "true").CombinedOutput(); err != nil {
		t.Skipf("nothing can be mounted here: %v, %s", err, out)
	}
	p.env = []string{"XDG_RUNTIME_DIR=" + shortTemp(t)}
	readOnly := func(args ...string) result {
		ctx, cancel := context.WithTimeout(context.Background(), commandPatience)
		defer cancel()
		cmd := p.command(ctx, args...)
		cmd.Path = unshare
		cmd.Args = append([]string{unshare, "-rm", "sh", "-c", mounted, p.root, p.binary}, args...)
		return execute(t, cmd, "")
	}
	before := names(t, p.root)
	readOnly("memories").want(t, exitDone).says(t, "codex", "shop")
	readOnly(of("history")...).want(t, exitDone).says(t, "drop Redis")
	readOnly(of("search", "friday")...).want(t, exitDone).says(t, "id m3")
	readOnly(of("recall", "why did we drop Redis")...).want(t, exitDone).says(t, "drop Redis")
	readOnly("verify", "--deep").want(t, exitDone).says(t, "whole")
	first := readOnly("status", "--json", "--no-spawn").want(t, exitDone).object(t)["processId"]
	if again := readOnly("status", "--json").want(t, exitDone).object(t)["processId"]; again != first {
		t.Errorf("server %v, then %v; want it to stay", first, again)
	}
	added := strings.NewReplacer(`"m1"`, `"n1"`, `"t1"`, `"u1"`).Replace(shop)
	readOnly(of("import", p.write("added.jsonl", added))...).want(t, exitFailed).says(t, "cannot be written", "0 messages stored")
	readOnly("stop").want(t, exitDone)
	if after := names(t, p.root); after != before {
		t.Errorf("the store held %s and now holds %s", before, after)
	}
	checkModes(t, strings.TrimPrefix(p.env[0], "XDG_RUNTIME_DIR="))
}

// names lists the files of a folder.
func names(t *testing.T, folder string) string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return strings.Join(all, " ")
}
