package main

import (
	"os"
	"testing"

	"busbar/lab"
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
