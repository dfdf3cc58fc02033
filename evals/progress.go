package main

import (
	"os"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// A bar shows how far some work is. The nil bar shows nothing.
type bar struct{ bar *progressbar.ProgressBar }

// newBar shows a bar on stderr.
func newBar(label string, total int) *bar {
	return &bar{progressbar.NewOptions(total,
		progressbar.OptionSetWriter(os.Stderr),
		progressbar.OptionSetDescription(label),
		progressbar.OptionShowCount(),
		progressbar.OptionClearOnFinish())}
}

// progressFor gives newBar when a person looks on, else nil.
func progressFor(stderr *os.File) func(label string, total int) *bar {
	if !term.IsTerminal(int(stderr.Fd())) {
		return nil
	}
	return newBar
}

// add counts work done. A bar that cannot be drawn is no reason to fail.
func (b *bar) add(n int) {
	if b != nil {
		_ = b.bar.Add(n)
	}
}

func (b *bar) close() {
	if b != nil {
		_ = b.bar.Finish()
	}
}
