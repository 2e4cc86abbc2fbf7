package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestWritten: what package reduce has is what this command writes.
func TestWritten(t *testing.T) {
	for name, want := range files() {
		got, err := os.ReadFile(filepath.Join("../../internal/reduce", name))
		if err != nil || string(got) != want {
			t.Errorf("%s is not what make kernels writes (%v)", name, err)
		}
	}
}
