package service

import "time"

// Limits of the wire.
const (
	// maxTextBytes of one Append, and so of one message.
	maxTextBytes = 16 << 20
	maxTurns     = 500
	// maxRequestBytes leaves room for ids and names around the text, so that a
	// text one byte too long is answered by us, naming the limit, and not by
	// gRPC, naming another one.
	maxRequestBytes = maxTextBytes + 4<<20

	maxQueryBytes = 64 << 10
	// maxListed is how many ids a filter may name.
	maxListed = 10_000

	defaultPassages, maxPassages                          = 20, 50
	defaultPassageBytes, minPassageBytes, maxPassageBytes = 2_000, 200, 8_000
	defaultBudgetBytes, minBudgetBytes, maxBudgetBytes    = 44_000, 512, 256_000

	defaultHits, maxHits           = 20, 50
	defaultPageTurns, maxPageTurns = 50, 200
	// maxPageBytes keeps a page of history below 2 MB with what is around its text.
	maxPageBytes = 1_800_000

	// chunkBytes is how much of a message one response of GetMessage carries.
	chunkBytes = 256 << 10
)

// Limits of time.
const (
	// recallDeadline holds for Recall and Search when the client set none.
	recallDeadline = 2 * time.Second
	// callDeadline holds for other calls, streamDeadline for those that work
	// through a whole memory.
	callDeadline   = time.Minute
	streamDeadline = time.Hour
	// searchTime is the most one Search may scan.
	searchTime = 2 * time.Second
)

// Limits of what the server takes on at once.
const (
	maxConnections = 256
	maxStreams     = 128 // of one connection
	// maxCalls under way; one more is refused at once instead of making all late.
	maxCalls         = 256
	maxRebuilds      = 2
	maxHeaderBytes   = 16 << 10
	handshakeTimeout = 5 * time.Second
)

// Limits of the way from the ledger to the views.
const (
	// maxTail is how many messages the views may lag behind before a recall no
	// longer waits for them and an Append waits before it adds more. It is the
	// length of the tail retrieve holds in memory.
	maxTail = 4_000
	// feedMessages and feedBytes bound one batch.
	feedMessages = 500
	feedBytes    = 4 << 20
	// A view that fails is opened anew after minPause, then twice that, up to maxPause.
	minPause = 250 * time.Millisecond
	maxPause = time.Minute
)
