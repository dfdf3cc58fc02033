package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"recalld/harness"
	recalldv1 "recalld/proto/recalld/v1"
)

func (a *app) importCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "import FILE...",
		Short: "Store the conversations of files in a memory",
		Long: `Import reads files of conversations, compressed with gzip or not, and stores
what the memory does not have yet: importing a file again stores nothing. It
returns when all it stored can be found. "-" reads standard input.

The formats are recognised by the first line:

  turns      recalld's own: one turn a line,
             {"session_id", "session_title"?, "turn_id", "status"?, "messages":
             [{"id"?, "kind", "speaker", "time"?, "zone"?, "text"}]}; kinds are
             user, reply, trace, work, note and mark; times are RFC 3339, and
             their offset is the speaker's zone unless "zone" names one; the
             status is finished, stopped, interrupted or open, which is the
             default and keeps the turn from the journal until a later one
  entire     sessions of the Entire command line, one session a line
  specstory  sessions of SpecStory, one session a line

A line that cannot be read, or that the server refuses, is reported with its
number, and the rest is stored; the exit status is then 1.`,
		Example: `  recalld import --agent claude-code --project shop sessions.jsonl.gz
  zcat old/*.gz | recalld import --agent codex --project shop -`,
		Args: atLeastOne("a file"),
		RunE: func(cmd *cobra.Command, files []string) error {
			f := harness.Format(format)
			if format != "" && !slices.Contains(harness.Formats(), f) {
				return usageErrorf("--format: %q is not known; the formats are turns, entire and specstory", format)
			}
			return a.importFiles(cmd.Context(), files, harness.Options{Format: f})
		},
	}
	cmd.Flags().StringVar(&format, "format", "", "format of the files: turns, entire, specstory (default: recognised)")
	completes(cmd, "format", oneOf("turns", "entire", "specstory"))
	return cmd
}

// imported tells what became of one file, or of all.
type imported struct {
	File       string `json:"file,omitempty"`
	Sessions   int    `json:"sessions"`
	Turns      int    `json:"turns"`
	Messages   int    `json:"messages"`
	Stored     int    `json:"stored"`
	Duplicates int    `json:"duplicates"`
	Forgotten  int    `json:"forgotten"`
	// CopiedSessions and CopiedTurns hold only messages that were stored already.
	CopiedSessions int `json:"copiedSessions"`
	CopiedTurns    int `json:"copiedTurns"`
	// Skipped are lines that could not be read and turns that were refused.
	Skipped  int      `json:"skipped"`
	Problems []string `json:"problems,omitempty"`
}

func (i *imported) add(o imported) {
	i.Sessions += o.Sessions
	i.Turns += o.Turns
	i.Messages += o.Messages
	i.Stored += o.Stored
	i.Duplicates += o.Duplicates
	i.Forgotten += o.Forgotten
	i.CopiedSessions += o.CopiedSessions
	i.CopiedTurns += o.CopiedTurns
	i.Skipped += o.Skipped
}

func (a *app) importFiles(ctx context.Context, files []string, o harness.Options) error {
	// A mistyped name should not leave half an import behind.
	for _, name := range files {
		if info, err := os.Stat(name); name != "-" && err != nil {
			return fmt.Errorf("import: %w", err)
		} else if name != "-" && info.IsDir() {
			return fmt.Errorf("import: %s is a folder; name the files in it", name)
		}
	}
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	ref, err := a.memoryRef(ctx, c)
	if err != nil {
		return err
	}
	im := &importer{client: c, memory: ref}
	all := struct {
		MemoryID string     `json:"memoryId"`
		Files    []imported `json:"files"`
		imported
	}{Files: []imported{}}
	var failures []error
	for _, name := range files {
		one, err := a.importFile(ctx, im, name, o)
		all.Files = append(all.Files, one)
		all.add(one)
		if !a.json {
			fmt.Fprintln(a.out, one.line()) // its bar is gone by now
			if copied := one.copied(); copied != "" {
				fmt.Fprintln(a.out, "  "+copied)
			}
		}
		if err != nil {
			failures = append(failures, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	all.MemoryID = im.id
	if err := a.awaitReach(ctx, c, ref, im.sequence); err != nil {
		failures = append(failures, err)
	}
	if a.json {
		failures = append(failures, a.printObject(all))
	}
	return summarise(failures, all.Skipped)
}

// summarise gives one error for everything that went wrong.
func summarise(failures []error, skipped int) error {
	err := errors.Join(failures...)
	switch {
	case err != nil:
		return fmt.Errorf("import: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	case skipped > 0:
		return fmt.Errorf("import: %s skipped; everything else is stored", count(skipped, "line or turn was", "lines or turns were"))
	}
	return nil
}

// line says what became of a file.
func (i *imported) line() string {
	parts := []string{
		count(i.Sessions, "session", "sessions"),
		count(i.Turns, "turn", "turns"),
		count(i.Stored, "message stored", "messages stored"),
		count(i.Duplicates, "duplicate", "duplicates"),
	}
	if i.Forgotten > 0 {
		parts = append(parts, number(i.Forgotten)+" forgotten earlier")
	}
	if i.Skipped > 0 {
		parts = append(parts, number(i.Skipped)+" skipped")
	}
	return printable(i.File) + ": " + strings.Join(parts, ", ")
}

// copied says how much of a file brought nothing new; empty if all did.
func (i *imported) copied() string {
	var parts []string
	if i.CopiedSessions > 0 {
		parts = append(parts, count(i.CopiedSessions, "session", "sessions"))
	}
	if i.CopiedTurns > 0 {
		parts = append(parts, count(i.CopiedTurns, "turn", "turns"))
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, " and ") + " held only messages that were stored already"
}

// importFile imports one file. What was stored before an error stays stored.
func (a *app) importFile(ctx context.Context, im *importer, name string, o harness.Options) (imported, error) {
	result := imported{File: name}
	from, total := a.in, int64(0)
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return result, err
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil {
			total = info.Size()
		}
		from = f
	}
	counted := &countingReader{r: from}
	bar := a.progress("importing", total)
	defer bar.end()
	im.begin(&result, func(problem string) {
		bar.hide()
		fmt.Fprintf(a.err, "recalld: %s: %s\n", printable(name), oneLine(problem))
	})
	for turn, err := range harness.Read(counted, o) {
		bar.set(counted.n)
		var line *harness.LineError
		switch {
		case errors.As(err, &line):
			im.skip(err.Error())
		case err != nil:
			return result, errors.Join(im.flush(ctx), fmt.Errorf("%s: %w", name, err))
		default:
			if err := im.add(ctx, turn); err != nil {
				return result, fmt.Errorf("%s: %w", name, a.failed("append", err))
			}
		}
	}
	if err := im.flush(ctx); err != nil {
		return result, fmt.Errorf("%s: %w", name, a.failed("append", err))
	}
	return result, nil
}

// A countingReader counts what was read, for the progress bar.
type countingReader struct {
	r io.Reader
	n int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// awaitReach waits until the memory's words and meanings cover a sequence
// number, so that what was imported is found.
func (a *app) awaitReach(ctx context.Context, c *client, ref *recalldv1.MemoryRef, sequence uint64) error {
	if sequence == 0 {
		return nil
	}
	bar := a.progress("indexing", int64(sequence))
	defer bar.end()
	return waitCovered(ctx, c, ref, sequence, func(covered uint64) { bar.set(int64(covered)) })
}
