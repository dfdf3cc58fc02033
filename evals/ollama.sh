#!/usr/bin/env bash
# Runs everything that wants a real Ollama against the one at OLLAMA_HOST, and
# prints what it saw: recalld doctor, then the tests that are skipped without it.
# The models must be there (ollama pull all-minilm; ollama pull smollm2:135m).
set -euo pipefail
: "${OLLAMA_HOST:?is not set: say where Ollama is, as in OLLAMA_HOST=127.0.0.1:11434 evals/ollama.sh}"
cd "$(dirname "${BASH_SOURCE[0]}")/.."
embed=${EMBED_MODEL:-all-minilm}
chat=${CHAT_MODEL:-smollm2:135m}
export OLLAMA_HOST CGO_ENABLED=0 RECALLD_EMBED_MODEL=$embed RECALLD_CHAT_MODEL=$chat

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
go build -o "$folder/recalld" ./cmd/recalld
echo "== doctor: $embed, $chat"
"$folder/recalld" doctor --root "$folder/store" --embed "ollama:$embed" --expand "ollama:$chat"

echo "== tests"
go test -count=1 -v -timeout 20m -run '^TestReal' ./embed ./service |
  grep -E '^(---|ok|FAIL|panic)|^\s*--- FAIL|^\s*[a-z_]+_test\.go'
