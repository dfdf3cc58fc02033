//go:build !linux

package ledger_test

// systemParts are the parts that need this system: none.
func systemParts() map[string]func(root string) error { return nil }
