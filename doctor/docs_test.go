package doctor

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the list of rules in docs/doctor.md")

// The list of rules in docs/doctor.md is the table of rules.
func TestDocs(t *testing.T) {
	const page, begin, end = "../docs/doctor.md", "<!-- rules -->\n", "<!-- end of rules -->\n"
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(data), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s lacks the marks of the list", page)
	}
	var b strings.Builder
	b.WriteString("| rule | concludes | from |\n|---|---|---|\n")
	for _, r := range Rules() {
		fmt.Fprintf(&b, "| [`%s`](%s) | %s | %s |\n", r.ID, strings.TrimPrefix(r.Reference, "docs/"), r.Says, r.Needs)
	}
	want := head + begin + b.String() + end + tail
	if want == string(data) {
		return
	}
	if !*update {
		t.Errorf("%s is not the table of rules; go test ./doctor -run TestDocs -update", page)
		return
	}
	if err := os.WriteFile(page, []byte(want), 0o666); err != nil {
		t.Fatal(err)
	}
}
