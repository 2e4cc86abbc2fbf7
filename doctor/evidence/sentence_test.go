package evidence

import (
	"strings"
	"testing"
)

// A symptom that a sentence denies is none; one that stands beside it stays.
func TestDenied(t *testing.T) {
	for _, c := range []struct {
		text string
		want string // of the symptoms
	}{
		{"We had no timeouts, no hangs, and the errors went away.", ""},
		{"All tests passed, 0 failures; no timeout or hang", ""},
		{"The job is fine now: error: 0", ""},
		{"The heartbeat timeout is 480 s", ""},
		{"I1115 10:00:00 worker.py: the job hangs", ""},
		{"The job hangs with no error.", "hang"},
		{"The job crashes or hangs.", "hang crash"},
		{"There are no errors, hangs after the first step.", "hang"},
		{"It makes no progress.", "hang"},
		{"The run gives 10 errors.", "crash slow"},
	} {
		r := NewReader()
		if err := r.Read("note", strings.NewReader(c.text+"\n")); err != nil {
			t.Fatal(err)
		}
		set, err := r.Set()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]bool{}
		for _, o := range set.All(Symptom) {
			got[o.Args[0]] = true
		}
		for _, w := range strings.Fields(c.want) {
			if !got[w] {
				t.Errorf("%q: no %q in %v", c.text, w, got)
			}
			delete(got, w)
		}
		if len(got) > 0 {
			t.Errorf("%q: also %v", c.text, got)
		}
	}
}

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
		} else if set, err := r.Set(); err != nil || !set.Has(DuplicateGPU) {
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
