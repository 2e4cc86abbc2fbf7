package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestTriggerFollowsNoLink: everybody may write to the folder in which pipes lie, and a link there leads to no file of the user's.
func TestTriggerFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	precious := filepath.Join(dir, "precious")
	plain := filepath.Join(dir, "trace_1.pipe")
	for _, name := range []string{precious, plain} {
		if err := os.WriteFile(name, []byte("precious"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(precious, filepath.Join(dir, "trace_0.pipe")); err != nil {
		t.Skip(err)
	}
	if n, err := triggerDumps(filepath.Join(dir, "trace_")); err == nil {
		t.Errorf("%d pipes were written to where there are none", n)
	}
	for _, name := range []string{precious, plain} {
		if text, _ := os.ReadFile(name); string(text) != "precious" {
			t.Errorf("%s is %q now", name, text)
		}
	}
}
