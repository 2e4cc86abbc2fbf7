package texttab

import (
	"strings"
	"testing"

	"busbar.dev/unit"
)

func TestExport(t *testing.T) {
	tab := New("name", ">size (B)", If(false, "hidden"), "state")
	tab.Row("\x1b[31mnic0\x1b[0m", "8", "x", `a "b", c|d`)
	tab.Row("all")
	var b strings.Builder
	if err := tab.CSV(&b); err != nil {
		t.Fatal(err)
	}
	if want := "name,size (B),state\nnic0,8,\"a \"\"b\"\", c|d\"\nall,,\n"; b.String() != want {
		t.Errorf("CSV: got\n%s\nwant\n%s", b.String(), want)
	}
	b.Reset()
	if err := tab.Markdown(&b); err != nil {
		t.Fatal(err)
	}
	if want := "| name | size (B) | state |\n| --- | --: | --- |\n| nic0 | 8 | a \"b\", c\\|d |\n| all |  |  |\n"; b.
		String() != want {
		t.Errorf("Markdown: got\n%s\nwant\n%s", b.String(), want)
	}
	used := map[string]bool{}
	if got := tab.Select([]string{"STATE", "size", "none", "hidden"}, used).String(); !strings.HasPrefix(got, "state") ||
		len(used) != 2 {
		t.Errorf("Select: %q, used %v", got, used)
	}
	if tab.Select([]string{"none"}, used) != nil {
		t.Error("a table without the columns")
	}
}

func TestWrapLong(t *testing.T) {
	long := "  shard: " + strings.Repeat("all-gathers and ", 8)
	got := WrapLong("short\n"+long+"\n", 60)
	for i, l := range strings.Split(got, "\n") {
		if Width(l) > 60 || i > 1 && l != "" && !strings.HasPrefix(l, "    ") {
			t.Errorf("line %q", l)
		}
	}
	if one := "a\tb\n\n  c"; WrapLong(one, 60) != one {
		t.Error("lines that fit are changed")
	}
}

// TestTitled: what stands above a table in a text is in its rows elsewhere, and rows that a text leaves out are there.
func TestTitled(t *testing.T) {
	tab := New("rank", ">wait")
	tab.Title, tab.Most = "job 7", 1
	tab.Row("0", "1%")
	tab.Row("1", "2%")
	if got := tab.String(); got != "rank  wait\n0       1%\n" {
		t.Errorf("text: %q", got)
	}
	var b strings.Builder
	if err := tab.Titled().CSV(&b); err != nil || b.String() != "of,rank,wait\njob 7,0,1%\njob 7,1,2%\n" {
		t.Errorf("CSV: %q, %v", b.String(), err)
	}
}

// TestOneUnit: a column of a file has numbers of one unit, and what is no quantity stays as it is.
func TestOneUnit(t *testing.T) {
	tab := New("layout", ">step", ">exposed", "memory", ">rate", "model", "size")
	tab.Row("1x8", "1.2 s", "0", "48.5 of 80 GiB", "400 Gb/s", "8 B", "64 KiB")
	tab.Row("2x8", "819 ms", "12.6 µs", "31 of 80 GiB", "6.25 GB/s", "llama", "1 MiB")
	tab.Row("4x8", "2.5 min", "", "", "–", "", "")
	var b strings.Builder
	if err := tab.CSV(&b); err != nil {
		t.Fatal(err)
	}
	want := `layout,step (s),exposed (s),memory,rate (GB/s),model,size (B)
1x8,1.2,0,48.5 of 80 GiB,50,8 B,65536
2x8,0.819,1.26e-05,31 of 80 GiB,6.25,llama,1048576
4x8,150,,,–,,
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	none := New("bubble")
	none.Add(unit.Span(0))
	b.Reset()
	if err := none.CSV(&b); err != nil || b.String() != "bubble (s)\n0\n" {
		t.Errorf("a time of none: %q, %v", b.String(), err)
	}
	none.Add("does not fit")
	b.Reset()
	if err := none.CSV(&b); err != nil || b.String() != "bubble\n0\ndoes not fit\n" {
		t.Errorf("a time and a text: %q, %v", b.String(), err)
	}
	if !strings.Contains(tab.String(), "819 ms") {
		t.Error("the text has lost its units")
	}
}
