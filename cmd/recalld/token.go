package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// tokenBytes of randomness make a token; in the file it is twice as long.
const tokenBytes = 32

// ensureToken reads the token of a store, or makes one if there is none that
// could be used. Only the holder of the store's lock calls it.
func ensureToken(root string) (string, error) {
	token, err := readToken(root)
	if err == nil {
		return token, os.Chmod(tokenPath(root), 0o600)
	}
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errBadToken) {
		return "", err
	}
	raw := make([]byte, tokenBytes)
	rand.Read(raw)
	token = hex.EncodeToString(raw)
	if err := writePrivate(tokenPath(root), []byte(token+"\n")); err != nil {
		return "", fmt.Errorf("write token: %w", err)
	}
	return token, nil
}

var errBadToken = errors.New("does not hold a token")

// readToken reads the token of a store. A link is refused: the file is ours.
func readToken(root string) (string, error) {
	path := tokenPath(root)
	info, err := os.Lstat(path)
	if err != nil {
		return "", fmt.Errorf("read token: %w", err)
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("read token: %s is not a plain file", path)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read token: %w", err)
	}
	token := strings.TrimSuffix(string(b), "\n")
	if raw, err := hex.DecodeString(token); err != nil || len(raw) != tokenBytes {
		return "", fmt.Errorf("read token: %s: %w", path, errBadToken)
	}
	return token, nil
}

// A bearer shows the token with every call.
type bearer struct{ token string }

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + b.token}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials: a socket in
// a private folder needs no encryption.
func (bearer) RequireTransportSecurity() bool { return false }
