//go:build !linux

package main

import "testing"

// labAllowed reports that labs need Linux.
func labAllowed(*testing.T) bool { return false }
