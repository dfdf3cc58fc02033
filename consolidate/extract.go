package consolidate

import "context"

// An Extractor proposes what was decided in a window.
//
// Extract reads the window's pieces; of its context it may quote what the
// person accepts. It must return soon after ctx is done, and be safe for
// concurrent use. An error means that nothing is known about the window, which
// stays to be read; it repeats nothing of what was said. No drafts and no error
// mean that the window holds nothing.
type Extractor interface {
	// Identity names everything that decides what is extracted: the program's
	// version and, if there is one, model and prompt. It is part of every batch.
	Identity() string
	Extract(ctx context.Context, w Window) ([]Draft, error)
}

// Threshold is the least confidence with which an entry goes live by itself. The
// confidence of a cue says how often what it finds was right; below this one
// they were wrong too often on the chats that the cues were tuned on.
const Threshold = 0.6
