package evidence

import "testing"

// TestEmptyLinesAreNotKept: lines without a character count as their newline, or gigabytes of them, out of a small
// packed file, would be held on to.
func TestEmptyLinesAreNotKept(t *testing.T) {
	r := NewReader()
	for range longLog + 1 {
		r.keep("", nil)
	}
	if n := r.kept.Len(); n > maxWhole {
		t.Errorf("%d bytes are kept of empty lines, expected at most %d", n, maxWhole)
	}
}
