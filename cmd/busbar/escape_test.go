package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNamesAreHarmless prints a cluster whose names hold codes for terminals, in every form.
func TestNamesAreHarmless(t *testing.T) {
	bad := "n1\u009b31mX\u202eY\u2066Z\x7f"
	file := filepath.Join(t.TempDir(), "c.json")
	text := `{"version":1,"name":"` + bad + `\u001b]0;title\u0007\u001b[2J","types":[{"name":"` + bad + `","devices":[{"kind":"gpu","name":"gpu0","label":"` + bad + `\u001b[8m"}]}],"nodes":[{"hosts":"a","type":"` + bad + `"}],"sources":["` + bad + `\r\u001bc"]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"map", file},
		{"map", file, "--json"},
		{"map", file, "-v"},
		{"map", file, "-o", "yaml"},
		{"map", file, "-o", "matrix"},
		{"map", "--audit", file},
		{"predict", "-c", file},
	} {
		var out, errs bytes.Buffer
		run(t.Context(), strings.NewReader(""), &out, &errs, args)
		for _, s := range []string{out.String(), errs.String()} {
			for _, code := range []string{
				"\u009b", "\u202e", "\u2066", "\x7f", "\x07", "\r", "\x1b]", "\x1b[2J", "\x1b[8m", "\x1bc",
			} {
				if strings.Contains(s, code) {
					t.Errorf("%v prints %q", args[:2], code)
				}
			}
		}
	}
}
