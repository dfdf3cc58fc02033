package ledger_test

import (
	"testing"

	"recalld/ledger"
)

func TestMemoryID(t *testing.T) {
	tests := []struct {
		key  ledger.MemoryKey
		want string
	}{
		{ledger.MemoryKey{Agent: "claude-code", Project: "/home/user/project"}, "30376525b0c45a99c1329037295fb82327d5d8b2bc7ec6f6bb61b183cbdeb5cf"},
		{ledger.MemoryKey{Agent: "endless", Project: "proj-a"}, "c70ad63b2db85b1d7bb53a6716b0568fb2c7fb3980a9f3e0d806543a21862674"},
		{ledger.MemoryKey{Agent: "endless", Project: ""}, "08b1f394fcd4ef35965efcc6be4341408bde3f50b83944899ff438a260e79c9f"},
		{ledger.MemoryKey{Agent: "endless", Project: "проект-ü"}, "5803ea25821f0383e310c79d6efb73fdd437291b8f0e2f4c48a5bff92d6be288"},
		{ledger.MemoryKey{Agent: "a\nb", Project: "c"}, "6470af78c64ac02f800a7d04d7adb59cebaf45fcc2aa86ab990d77c5d1366168"},
		{ledger.MemoryKey{Agent: "a", Project: "b\nc"}, "5fd650123b10f5e7f9d558cd0b4e4ccedc25992443be918ee01a218e38eee346"},
	}
	for _, tt := range tests {
		if got := ledger.MemoryID(tt.key); got != tt.want {
			t.Errorf("MemoryID(%q) = %s, want %s", tt.key, got, tt.want)
		}
	}
}
