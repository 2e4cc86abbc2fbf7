package memlimit

import (
	"os"
	"path/filepath"
	"testing"
)

func TestGroup(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("a/memory.max", "3000\n")
	write("a/b/memory.max", "max\n")
	write("memory/x/memory.limit_in_bytes", "2000\n")
	for self, want := range map[string]int64{"0::/a/b\n": 3000, "0::/\n": 0, "4:memory:/x\n0::/a\n": 2000, "": 0} {
		if got := group(dir, write("self", self)); got != want {
			t.Errorf("group %q: %d; want %d", self, got, want)
		}
	}
}
