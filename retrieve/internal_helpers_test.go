package retrieve

import (
	"os"
	"strings"
)

func joinWords(words []string) string { return strings.Join(words, " ") }

func splitWords(text string) []string { return strings.Fields(text) }

// copyPart copies the first size bytes of a file.
func copyPart(from, to string, size int64) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data[:size], 0o600)
}
