package lines

import (
	"strings"
	"testing"
)

func TestClean(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"plain", "plain"},
		{"", ""},
		{"end\r", "end"},
		{"\xef\xbb\xbfCA 'mlx5_0'", "CA 'mlx5_0'"},
		{"\x1b[4mState\x1b[0m: Up", "State: Up"},
		{"\x1b]0;title\x07text", "text"},
		{"torn\x1b", "torn"},
		{"[1,0]<stdout>:[3]\t\"S-1\"[2]", "[3]\t\"S-1\"[2]"},
		{"[1,12]<stderr>:x", "x"},
		{"[3]\t\"S-1\"[2] # \"a>b\"", "[3]\t\"S-1\"[2] # \"a>b\""},
		{"0: text", "text"},
		{"  12: \tindented", "\tindented"},
		{"           2    1[  ] ==( 4X", "           2    1[  ] ==( 4X"},
		{"(RayWorker pid=77, ip=10.0.0.1) text", "text"},
		{"(note) text", "(note) text"},
		{"    indented", "    indented"},
	} {
		if got := string(Clean([]byte(c.in))); got != c.want {
			t.Errorf("Clean(%q) = %q; want %q", c.in, got, c.want)
		}
	}
}

func TestReader(t *testing.T) {
	long := strings.Repeat("x", MaxLine+10)
	r := NewReader(strings.NewReader("one\r\n\n" + long + "\nlast"))
	var got []string
	for r.Next() {
		line := string(r.Line())
		if r.Cut() {
			line = "cut"
		}
		got = append(got, line)
		if r.Num() != len(got) {
			t.Errorf("line %d has number %d", len(got), r.Num())
		}
	}
	if want := "one||cut|last"; strings.Join(got, "|") != want || r.Err() != nil {
		t.Errorf("lines %q, error %v; want %q", got, r.Err(), want)
	}
}

func TestReaderKeepsTheStartOfALongLine(t *testing.T) {
	r := NewReader(strings.NewReader("start" + strings.Repeat("x", 3*MaxLine) + "\nnext\n"))
	if !r.Next() || !r.Cut() || !strings.HasPrefix(string(r.Line()), "startxxx") || len(r.Line()) != MaxLine {
		t.Fatalf("long line: cut %v, %d bytes", r.Cut(), len(r.Line()))
	}
	if !r.Next() || string(r.Line()) != "next" || r.Num() != 2 {
		t.Fatalf("after it: %q, number %d", r.Line(), r.Num())
	}
}

func TestFind(t *testing.T) {
	isSwitch := func(line []byte) bool { return strings.HasPrefix(string(line), "Switch\t") }
	for _, c := range []struct {
		in   string
		want bool
	}{
		{"a\n0: Switch\t8\nb", true},
		{"the Switch\t8", false},
		{"the Switch\nSwitch\t8", true},
		{"", false},
		{"Switch\t" + strings.Repeat("x", MaxLine), false},
	} {
		if got := Find([]byte(c.in), "Switch", isSwitch); got != c.want {
			t.Errorf("Find in %.20q = %v", c.in, got)
		}
	}
}

func FuzzReader(f *testing.F) {
	f.Add("[1,0]<stdout>:\x1b[4ma\r\n 3: b\n(x pid=1) c")
	f.Fuzz(func(t *testing.T, s string) {
		r := NewReader(strings.NewReader(s))
		n := 0
		for r.Next() {
			n += len(r.Line()) + 1
		}
		if n > len(s)+1 {
			t.Errorf("%d bytes came out of %d", n, len(s))
		}
	})
}
