package alike

import (
	"strconv"
	"strings"
	"testing"
)

func TestBlank(t *testing.T) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for _, text := range []string{
		"", "7", "rank 12 of 4096", "0123456789/:;9", string(all), "é9é9é9é9é9", strings.Repeat("9", 33),
	} {
		want := []byte(text)
		for i, c := range want {
			if c >= '0' && c <= '9' {
				want[i] = '0'
			}
		}
		got := []byte(text)
		if blank(got); string(got) != string(want) {
			t.Errorf("blank(%q) = %q, want %q", text, got, want)
		}
	}
}

// TestOf: texts of one form are looked at once, and again only where there were too many others in between.
func TestOf(t *testing.T) {
	var m Memo[string]
	looked := 0
	of := func(text string) string {
		return m.Of(text, func(text string) string {
			looked++
			return text
		})
	}
	for i := range 90 {
		if got := of("step " + strconv.Itoa(10+i)); got != "step 10" {
			t.Fatalf("got %q, want the first of its form", got)
		}
	}
	if of("step 7"); looked != 2 {
		t.Errorf("looked %d times at two forms", looked)
	}
	for i := range 2 * most {
		of(strings.Repeat("x", i))
	}
	m.Exact = true
	if got := of("step 8"); got != "step 8" || looked != 3+2*most || len(m.found) > most {
		t.Errorf("looked %d times, %d remembered", looked, len(m.found))
	}
}
