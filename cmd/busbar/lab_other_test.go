//go:build !linux

package main

import "testing"

// labAllowed reports that labs need Linux.
func labAllowed(*testing.T) bool { return false }

// endLabs has nothing to end.
func endLabs(string) {}
