// Package freeport gives tests ports for programs that they start. The kernel hands out ports from 32768 on to whoever
// connects, so that one of those may be taken between the moment it was found free and the program's own start.
package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
)

const first, count = 20_000, 12_000

var next atomic.Uint32

func init() { next.Store(rand.Uint32N(count)) } // packages are tested side by side

// Of is a port of loopback at which nobody listens, and that no other call of this process gets.
func Of(t testing.TB) int {
	t.Helper()
	for range count {
		port := first + int(next.Add(1)%count)
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return 0
}

// Address is 127.0.0.1 with such a port.
func Address(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("127.0.0.1:%d", Of(t))
}
