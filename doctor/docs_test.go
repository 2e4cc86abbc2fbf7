package doctor

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"busbar.dev/doctor/cause"
)

var update = flag.Bool("update", false, "rewrite the list of rules in docs/doctor.md")

// The list of rules in docs/doctor.md is the list of rules that printed evidence can show.
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
	m, err := NewModel()
	if err != nil {
		t.Fatal(err)
	}
	list := slices.Clone(m.Detected)
	slices.SortFunc(list, func(a, b *cause.Cause) int { return cmp.Compare(a.ID, b.ID) })
	for _, r := range list {
		fmt.Fprintf(&b, "- [`%s`](%s): %s\n", r.ID, strings.TrimPrefix(r.See, "docs/"), r.Title)
	}
	want := head + begin + b.String() + end + tail
	if want == string(data) {
		return
	}
	if !*update {
		t.Errorf("%s is not the list of rules; go test ./doctor -run TestDocs -update", page)
		return
	}
	if err := os.WriteFile(page, []byte(want), 0o666); err != nil {
		t.Fatal(err)
	}
}
