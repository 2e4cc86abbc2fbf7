package texttab

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	tab := New("name", ">rate", If(false, "hidden"), "?never", "state")
	tab.Indent = "  "
	tab.Row("nic0", "400 Gb/s", "wider than its heading", "", "up")
	tab.Row("\x1b[31mmlx5_10\x1b[0m", "1 Gb/s", "x", "")
	tab.Row("all")
	want := strings.Join([]string{
		"  name         rate  state",
		"  nic0     400 Gb/s  up",
		"  \x1b[31mmlx5_10\x1b[0m    1 Gb/s",
		"  all",
		"",
	}, "\n")
	if got := tab.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if tab.Len() != 3 {
		t.Errorf("Len %d, want 3", tab.Len())
	}
}

// TestColumns declares columns that hide and columns of values.
func TestColumns(t *testing.T) {
	tab := New("name", If(true, ">size", "?>rate|%.1f"), If(false, "a", "b"), "?note")
	tab.Add("x", 8, 1.25, "not", "shown", "")
	tab.Add("y", short(16), "", nil, nil, "")
	if got, want := tab.String(), "name  size  rate\nx        8   1.2\ny      16s\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	tab.Add("z", 0, 0.0, "", "", "last")
	if got := tab.Heads(); !slices.Equal(got, []string{"name", "size", "rate", "note"}) {
		t.Errorf("headings %q", got)
	}
}

// short is a quantity that has a short form.
type short int

func (s short) Short() string { return fmt.Sprint(int(s)) + "s" }

// TestWriteClean: a name cannot act on a terminal.
func TestWriteClean(t *testing.T) {
	tab := New("name")
	tab.Row("a\x1b[31m\x1b]0;title\ab")
	var b strings.Builder
	if err := tab.Write(&b); err != nil || strings.ContainsAny(b.String(), "\x1b\a") {
		t.Errorf("%q, %v", b.String(), err)
	}
}

func TestTableForms(t *testing.T) {
	for _, c := range []struct {
		name string
		tab  *Table
		rows [][]string
		want string
	}{
		{"empty", &Table{}, nil, ""},
		{"no headings", &Table{Gap: "|"}, [][]string{{"a", "b"}, {"cc", "dd"}}, "a |b\ncc|dd\n"},
		{
			"style", &Table{Columns: []Column{{Head: "h", Align: Right}}, Style: strings.ToUpper},
			[][]string{{"xyz"}},
			"  H\nxyz\n",
		},
		{"center", &Table{Columns: []Column{{Head: "head", Align: Center}}}, [][]string{{"x"}}, "head\n x\n"},
	} {
		for _, r := range c.rows {
			c.tab.Row(r...)
		}
		if got := c.tab.String(); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestWidth(t *testing.T) {
	for s, want := range map[string]int{
		"": 0, "abc": 3, "µs×16": 5, "\x1b[1;31mred\x1b[0m": 3, "\x1b[m": 0,
		"\x1b[2Jx": 5, "\x1b[": 2, "\xff\xfe": 2,
	} {
		if got := Width(s); got != want {
			t.Errorf("Width(%q) = %d, want %d", s, got, want)
		}
	}
	if got := Strip("a\x1b[1mb\x1b[0mµ"); got != "abµ" {
		t.Errorf("Strip: %q", got)
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		in    string
		width int
		want  []string
	}{
		{"", 10, []string{""}},
		{"one two three", 7, []string{"one two", "three"}},
		{"one two three", 0, []string{"one two three"}},
		{"a /very/long/path b", 5, []string{"a", "/very/long/path", "b"}},
		{"first\n\nsecond line", 20, []string{"first", "", "second line"}},
		{"\x1b[1mbold\x1b[0m text", 9, []string{"\x1b[1mbold\x1b[0m text"}},
	} {
		if got := Wrap(c.in, c.width); !slices.Equal(got, c.want) {
			t.Errorf("Wrap(%q, %d) = %q, want %q", c.in, c.width, got, c.want)
		}
	}
	if got := Flow([]string{"a b", "c d", "e"}, " · ", 9); !slices.Equal(got, []string{"a b · c d", "e"}) {
		t.Errorf("Flow: %q", got)
	}
}

// A table that is wider than the terminal is printed in blocks that repeat the first column, and a last column of
// sentences is wrapped inside its column.
func TestNarrow(t *testing.T) {
	tab := New("size", ">time", ">rate", ">moving", "bottleneck")
	tab.Row("1 MiB", "12.5", "83.9", "10.0", "nic node0/mlx5_0")
	tab.Row("1 GiB", "9000", "119", "8990", "nic node0/mlx5_0")
	want := `size   time  rate  moving
1 MiB  12.5  83.9    10.0
1 GiB  9000   119    8990

size   bottleneck
1 MiB  nic node0/mlx5_0
1 GiB  nic node0/mlx5_0
`
	if got := tab.Fit(30); got != want {
		t.Errorf("30 columns: got\n%s\nwant\n%s", got, want)
	}
	if wide := tab.Fit(80); wide != tab.String() || strings.Contains(wide, "\n\n") {
		t.Errorf("80 columns: got\n%s", wide)
	}
	list := New("name", ">GPUs", "description")
	list.Row("dgx-h100", "8", "eight H100 behind NVSwitch, eight NDR ports")
	want = `name      GPUs  description
dgx-h100     8  eight H100 behind
                NVSwitch, eight NDR
                ports
`
	if got := list.Fit(40); got != want {
		t.Errorf("40 columns: got\n%s\nwant\n%s", got, want)
	}
	if got := (&Table{rows: [][]string{{}}}).Fit(10); got != "\n" {
		t.Errorf("a row without cells: %q", got)
	}
}
