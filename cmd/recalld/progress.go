package main

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progressAfter is how long work may take before it shows how far it is.
const progressAfter = time.Second

// A progress shows how far work has come, on a terminal and only when it takes
// longer than a second. Its methods are called by one goroutine.
type progress struct {
	w     io.Writer // nil when there is no terminal
	what  string
	total int64 // 0 or less: unknown
	began time.Time
	bar   *progressbar.ProgressBar
}

func (a *app) progress(what string, total int64) *progress {
	p := &progress{what: what, total: total, began: time.Now()}
	if f, ok := a.err.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.w = f
	}
	return p
}

// set tells how much is done.
func (p *progress) set(done int64) {
	if p.w == nil {
		return
	}
	if p.bar == nil {
		if time.Since(p.began) < progressAfter {
			return
		}
		if p.total <= 0 {
			p.total = -1
		}
		// Neither rate nor time: the bar did not see the work begin.
		p.bar = progressbar.NewOptions64(p.total,
			progressbar.OptionSetWriter(p.w),
			progressbar.OptionSetDescription(p.what),
			progressbar.OptionSetElapsedTime(false),
			progressbar.OptionSetPredictTime(false),
			progressbar.OptionSetWidth(40),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionClearOnFinish(),
		)
	}
	p.bar.Set64(done)
}

// hide takes the bar off the terminal until the next set, to make room for a
// message.
func (p *progress) hide() {
	if p.bar != nil {
		p.bar.Clear()
	}
}

// end takes the bar off the terminal for good. It may be called twice.
func (p *progress) end() {
	p.hide()
	p.w = nil
}
