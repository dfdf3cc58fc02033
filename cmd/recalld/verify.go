package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"recalld/ledger"
	recalldv1 "recalld/proto/recalld/v1"
)

func (a *app) verifyCommand() *cobra.Command {
	var deep bool
	var head string
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check that the store is whole",
		Long: `Verify checks the structure of the store or, with --deep, every message against
its hash. It asks the server if one runs and opens the store itself if none
does. Nothing is repaired or changed.

Exit status: 0 the store is whole, 1 it is not or could not be checked, 10 there
is no store, 11 another process has it and does not answer.`,
		Example: `  recalld verify
  recalld verify --deep --agent claude-code --project shop
  recalld verify --head "$(cat head.txt)"`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("head") {
				return a.verifyWithHead(cmd.Context(), deep, head)
			}
			return a.verify(cmd.Context(), deep)
		},
	}
	cmd.Flags().StringVar(&head, "head", "", "check the journal of the memory, too, and that its chain holds this hash; see journal head")
	cmd.Flags().BoolVar(&deep, "deep", false, "read and hash every message")
	return cmd
}

func (a *app) verify(ctx context.Context, deep bool) (err error) {
	c, end, err := a.anyServer(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	request := &recalldv1.VerifyRequest{Deep: deep}
	if a.memory != "" || a.agent != "" || a.projectGiven {
		if request.Memory, err = a.memoryRef(ctx, c); err != nil {
			return err
		}
	}
	stream, err := c.admin.Verify(ctx, request)
	if err != nil {
		return a.failed("verify", err)
	}
	return a.printVerify(ctx, stream)
}

// anyServer gives a client of the server that runs or, if none does, of one
// inside this process. end must be called.
func (a *app) anyServer(ctx context.Context) (c *client, end func() error, err error) {
	c, err = a.reach(ctx)
	if err == nil {
		return c, func() error { c.close(); return nil }, nil
	}
	if !errors.Is(err, errNoServer) && !errors.Is(err, errStopping) {
		// Somebody has the store and does not answer as they should.
		return nil, nil, &exitError{exitLocked, fmt.Errorf("verify: %w", err)}
	}
	if _, err := os.Lstat(filepath.Join(a.root, catalogName)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil, &exitError{exitNoStore, fmt.Errorf("verify: there is no store in %s; name one with --root", a.root)}
	}
	c, end, err = inside(ctx, a.root, ledger.Options{MustExist: true})
	switch {
	case errors.Is(err, ledger.ErrLocked):
		return nil, nil, &exitError{exitLocked, fmt.Errorf("verify: %w, which does not answer; end it and try again", err)}
	case errors.Is(err, ledger.ErrNotFound):
		return nil, nil, &exitError{exitNoStore, fmt.Errorf("verify: %w; name one with --root", err)}
	case err != nil:
		return nil, nil, fmt.Errorf("verify: %w", err)
	}
	return c, end, nil
}

// printVerify prints what is found as it is found.
func (a *app) printVerify(ctx context.Context, stream recalldv1.AdminService_VerifyClient) error {
	bar := a.progress("verifying", 0)
	defer bar.end()
	problems := 0
	var last *recalldv1.VerifyResponse
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return a.failed("verify", err)
		}
		last = r
		problems += len(r.GetProblems())
		if a.json {
			if err := a.printJSON(r); err != nil {
				return err
			}
			continue
		}
		bar.set(int64(r.GetMessagesDone()))
		for _, p := range r.GetProblems() {
			fmt.Fprintln(a.out, problemLine(p))
		}
	}
	bar.end()
	switch {
	case problems > 0:
		return fmt.Errorf("verify: %s in %s", count(problems, "problem", "problems"), a.root)
	case last == nil || !last.GetDone() || !last.GetOk():
		return fmt.Errorf("verify: the check of %s did not come to its end", a.root)
	}
	if !a.json {
		fmt.Fprintf(a.out, "%s is whole: %s checked.\n", a.root, count(last.GetMemories(), "memory", "memories"))
	}
	return ctx.Err()
}

func problemLine(p *recalldv1.Problem) string {
	where := p.GetFile()
	if p.GetTable() != "" {
		where += fmt.Sprintf(", table %s", p.GetTable())
	}
	if p.GetRow() != 0 {
		where += fmt.Sprintf(", row %d", p.GetRow())
	}
	return oneLine(where + ": " + p.GetWhat())
}
