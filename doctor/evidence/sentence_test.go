package evidence

import (
	"strings"
	"testing"
)

// Logs that were cut while they were written to begin with zeros, and some have
// one in them; neither makes them something else than text.
func TestZerosInText(t *testing.T) {
	line := "n1:1:1 [0] NCCL WARN Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 2000\n"
	for name, text := range map[string]string{
		"at the beginning": strings.Repeat("\x00", 900) + line, "in it": strings.Repeat(line, 9) + "a\x00b\n",
	} {
		r := NewReader()
		if err := r.Read("log", strings.NewReader(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if set, err := r.Set(); err != nil || !set.Has("duplicate-gpu") {
			t.Errorf("%s: not seen", name)
		}
	}
	for name, text := range map[string]string{
		"a program": "\x7fELF\x02\x01\x01" + strings.Repeat("\x00\x01", 200), "zeros alone": strings.Repeat("\x00", 5000),
	} {
		if err := NewReader().Read("x", strings.NewReader(text)); err == nil {
			t.Errorf("%s was taken for text", name)
		}
	}
}
