package keywords

import (
	"slices"
	"strings"
	"testing"
)

// naive is what Scan must agree with.
func naive(words []string, text string) []int {
	var list []int
	for i, w := range words {
		if w != "" && strings.Contains(lower(text), lower(w)) {
			list = append(list, i)
		}
	}
	return list
}

// lower is for ASCII, as Scan compares.
func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

func scan(words []string, text string) []int {
	return New(words).All(text)
}

func TestScan(t *testing.T) {
	for _, c := range []struct{ words, text string }{
		{"he she his hers", "usHERs"},
		{"aa aaa a", "aaaa"},
		{"NCCL|WARN|via NET/", "x NCCL warn via net/IB"},
		{"abc bcd cd", "abcd"},
		{"x", ""},
		{"é É", "é"},
	} {
		words := strings.FieldsFunc(c.words, func(r rune) bool { return r == ' ' || r == '|' })
		if got, want := scan(words, c.text), naive(words, c.text); !slices.Equal(got, want) {
			t.Errorf("%v in %q: %v, want %v", words, c.text, got, want)
		}
	}
}

// Digits are one where a set is made so.
func TestDigitless(t *testing.T) {
	var got []int
	NewDigitless([]string{"signal 9", "bar1", "a"}).Scan("SIGNAL 7 at bar12", func(w int) { got = append(got, w) })
	if want := []int{2, 0, 2, 2, 1}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func FuzzScan(f *testing.F) {
	f.Add("he,she,his,hers", "ushers")
	f.Add("a,ab,b,", "AABB")
	f.Fuzz(func(t *testing.T, list, text string) {
		if len(list) > 200 {
			return
		}
		words := strings.Split(list, ",")
		for i := range words {
			words[i] = lower(words[i])
		}
		if got, want := scan(words, text), naive(words, text); !slices.Equal(got, want) {
			t.Errorf("%q in %q: %v, want %v", words, text, got, want)
		}
	})
}
