package gpu

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func TestSplitWords(t *testing.T) {
	for _, tt := range []struct {
		line string
		want []string
	}{
		{"", nil},
		{"  mpirun -np 4\t-H a:2,b:2 ", []string{"mpirun", "-np", "4", "-H", "a:2,b:2"}},
		{`mpirun --mca 'a b' "c d"e\ f ''`, []string{"mpirun", "--mca", "a b", "c de f", ""}},
		{`"a\"b\\c\d"`, []string{`a"b\c\d`}},
		{`'a\'b`, []string{`a\b`}},
	} {
		got, err := SplitWords(tt.line)
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%q: %q, %v; expected %q", tt.line, got, err, tt.want)
		}
		if sh, err := exec.LookPath("sh"); err == nil && tt.line != "" { // what a shell makes of it
			out, err := exec.Command(sh, "-c", `printf '%s\n' `+tt.line).Output()
			if err != nil || string(out) != strings.Join(tt.want, "\n")+"\n" {
				t.Errorf("%q: a shell makes %q of it, %v", tt.line, out, err)
			}
		}
	}
	for _, line := range []string{"'", `"`, `a\`, `"a\"`} {
		if got, err := SplitWords(line); err == nil {
			t.Errorf("%q: %q", line, got)
		}
	}
}

// FuzzSplitWords: nothing panics, and words that are written down are read back.
func FuzzSplitWords(f *testing.F) {
	for _, line := range []string{"srun -N 2 --x='a b'", `"a\"b" c\ d`, "''", "'", `"\`} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		words, err := SplitWords(line)
		if err != nil {
			return
		}
		written := ""
		for _, w := range words {
			written += " '" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		again, err := SplitWords(written)
		if err != nil || !slices.Equal(words, again) {
			t.Errorf("%q: %q, written as %q, reads %q, %v", line, words, written, again, err)
		}
	})
}
