package synth

import (
	"regexp"
	"strings"
	"testing"
)

// The corpus is the same every time, says of every file that it is synthetic, and names no real host or address.
func TestFiles(t *testing.T) {
	a, err := Files()
	if err != nil {
		t.Fatal(err)
	}
	b, err := Files()
	if err != nil {
		t.Fatal(err)
	}
	index := a[len(a)-1]
	if len(a) != len(b) || index.Name != "INDEX.jsonl" || strings.Count(index.Text, `"synthetic":true`) != len(a)-1 {
		t.Fatalf("%d and %d files", len(a), len(b))
	}
	address := regexp.MustCompile(`\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b`)
	unmarked, seen := 0, map[string]bool{}
	for i, f := range a {
		if f != b[i] {
			t.Errorf("%s differs the second time", f.Name)
		}
		if !strings.Contains(index.Text, `"`+f.Name+`"`) && f != index {
			t.Errorf("%s is not in the index", f.Name)
		}
		if first, _, _ := strings.Cut(f.Text, "\n"); !strings.Contains(first, "synthetic") {
			// JSON begins with a brace
			if first, _, _ = strings.Cut(f.Text[len(first)+1:], "\n"); !strings.Contains(first, "synthetic") {
				unmarked++
			}
		}
		if seen[f.Text] {
			continue
		}
		seen[f.Text] = true
		for _, ip := range address.FindAllString(f.Text, -1) {
			if !strings.HasPrefix(ip, "10.77.") && ip != "172.17.0.1" { // a private network, and Docker's bridge
				t.Errorf("%s names %s", f.Name, ip)
			}
		}
	}
	if unmarked > 2 { // the outputs of ulimit, which have no room for it
		t.Errorf("%d files do not begin with a mark", unmarked)
	}
}

// Every case is of its own, and its two jobs differ.
func TestCases(t *testing.T) {
	cases, err := Cases()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, c := range cases {
		if seen[c.Name] || c.Want == "" || len(c.Sick) == 0 || len(c.Healthy) == 0 {
			t.Errorf("%+v", c.Name)
		}
		seen[c.Name] = true
		text := func(files []File) (all string) {
			for _, f := range files {
				all += f.Name + "\n" + f.Text
			}
			return all
		}
		if text(c.Sick) == text(c.Healthy) {
			t.Errorf("%s: nothing is planted", c.Name)
		}
	}
}
