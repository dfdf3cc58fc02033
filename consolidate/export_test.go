package consolidate

// What the tests outside this package look at.

// ReadReply returns what a reply to the question about w amounts to.
func ReadReply(w Window, reply string) ([]Draft, error) {
	entries, err := parseReply(reply)
	if err != nil {
		return nil, err
	}
	return new(Model).join(nil, show(w, 1), entries), nil
}
