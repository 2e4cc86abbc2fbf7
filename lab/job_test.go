package lab

import (
	"bytes"
	"testing"
)

// A line that comes in parts has its rank's name once, and again only where another
// rank's line came between.
func TestPartsOfLines(t *testing.T) {
	var out bytes.Buffer
	j := &Job{}
	j.write(&out, 0, "a", []byte("12"), true)
	j.write(&out, 0, "a", []byte("34\n"), false)
	j.write(&out, 0, "a", []byte("5"), true)
	j.write(&out, 1, "b", []byte("x"), false)
	j.write(&out, 0, "a", []byte("6"), false)
	if want := "a| 1234\na| 5\nb| x\na| 6\n"; out.String() != want {
		t.Errorf("%q; expected %q", out.String(), want)
	}
}
