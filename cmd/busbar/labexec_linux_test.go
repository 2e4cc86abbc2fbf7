package main

import (
	"bytes"
	"testing"
)

// A line that comes in pieces has its rank's name once, and again only where another
// rank's line came between.
func TestPiecesOfLines(t *testing.T) {
	var out bytes.Buffer
	c := &crowd{}
	c.piece(&out, 0, "a", []byte("12"), true)
	c.piece(&out, 0, "a", []byte("34\n"), false)
	c.piece(&out, 0, "a", []byte("5"), true)
	c.piece(&out, 1, "b", []byte("x"), false)
	c.piece(&out, 0, "a", []byte("6"), false)
	if want := "a| 1234\na| 5\nb| x\na| 6\n"; out.String() != want {
		t.Errorf("%q; expected %q", out.String(), want)
	}
}
