package main

import (
	"os"
	"testing"

	"busbar.dev/lab"
)

// labAllowed reports whether this machine lets the tests make a lab.
func labAllowed(t *testing.T) bool {
	self, err := os.Executable()
	if err == nil {
		err = lab.Allowed(self, "busbar", "version")
	}
	if err != nil {
		t.Logf("no lab here: %v", err)
	}
	return err == nil
}

// endLabs ends what labs there are in a folder.
func endLabs(dir string) {
	names, _ := lab.Folder(dir).Names() // no folder, no labs
	for _, n := range names {
		_, _ = lab.Folder(dir).Down(n)
	}
}
