package lines

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func collect(r *Reader) []string {
	var got []string
	for r.Next() {
		got = append(got, fmt.Sprintf("%d:%s", r.Num(), r.Text()))
	}
	return got
}

func TestReader(t *testing.T) {
	for _, tc := range []struct {
		name, in, want string
	}{
		{"nothing", "", ""},
		{"plain", "a\nb\n", "1:a|2:b"},
		{"no newline at the end", "a\nb", "1:a|2:b"},
		{"empty lines count", "\n\na\n\n", "1:|2:|3:a|4:"},
		{"windows", "a\r\nb\r\n", "1:a|2:b"},
		{"progress bar", "10%\r20%\r30%\nx", "1:10%|1:20%|1:30%|2:x"},
		{"colour", "\x1b[1;31mred\x1b[0m end\n", "1:red end"},
		{"title", "\x1b]0;title\x07text\n", "1:text"},
		{"cut colour", "text\x1b[", "1:text"},
		{"zero bytes", "a\x00b\n", "1:ab"},
	} {
		if got := strings.Join(collect(New(strings.NewReader(tc.in))), "|"); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
		if got := strings.Join(collect(New(iotest.OneByteReader(strings.NewReader(tc.in)))), "|"); got != tc.want {
			t.Errorf("%s, byte by byte: got %q, want %q", tc.name, got, tc.want)
		}
	}
}

// A line without end arrives in pieces under one number and loses nothing.
func TestLongLine(t *testing.T) {
	in := "a\n" + strings.Repeat("x", 3*MaxPiece+5) + "\nb\n"
	r := New(strings.NewReader(in))
	n, last := 0, ""
	for r.Next() {
		if len(r.Text()) > MaxPiece {
			t.Fatalf("a piece of %d bytes; at most %d", len(r.Text()), MaxPiece)
		}
		if r.Num() == 2 {
			n += len(r.Text())
		}
		last = fmt.Sprintf("%d:%s", r.Num(), r.Text())
	}
	if n != 3*MaxPiece+5 || last != "3:b" {
		t.Errorf("line 2 has %d bytes and the last line is %q", n, last)
	}
	if r.in.bytes != int64(len(in)) {
		t.Errorf("read %d of %d bytes", r.in.bytes, len(in))
	}
}

func TestReaderError(t *testing.T) {
	boom := errors.New("boom")
	r := New(io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(boom)))
	if got := strings.Join(collect(r), "|"); got != "1:a|2:b" || !errors.Is(r.Err(), boom) {
		t.Errorf("got %q and error %v", got, r.Err())
	}
}

func TestBare(t *testing.T) {
	for in, want := range map[string]string{
		"[1,0]<stdout>:# x":                     "# x",
		"[1,0]<stdout>: 8 -1[1,0]<stdout>: 2":   " 8 -1 2",
		"2026-10-20T18:22:43.123456789Z \tGPU0": "\tGPU0",
		"[pod/a-0/main] # x":                    "# x",
		"2026-10-20 18:22:43 x":                 "2026-10-20 18:22:43 x",
		"node0:1| # x":                          "# x",
		"node0|":                                "",
		"a | b":                                 "a | b",
		"nccl-test_1  | # x":                    "# x",
		"trainer-0  |   x":                      "  x",
		"gpu-0 | 12":                            "gpu-0 | 12",
		"[1,12]<stderr>: x":                     " x",
		"7: timsnt8 x":                          "timsnt8 x",
		" 0:     0 114.41":                      "    0 114.41",
		"(Worker pid=3590, ip=10.48.4.17) x":    "x",
		"> [1,0]<stdout>:  x":                   "  x",
		"0:":                                    "",
		"     0 801.28  22.23":                  "     0 801.28  22.23",
		"[P2P (Peer-to-Peer) GPU]":              "[P2P (Peer-to-Peer) GPU]",
		"12:34:56 x":                            "12:34:56 x",
		"":                                      "",
	} {
		if got := Bare(in); got != want {
			t.Errorf("Bare(%q) = %q, want %q", in, got, want)
		}
	}
}

// reference cuts a text as Reader should, with all of it at hand.
func reference(s string) (list []string) {
	num := 0
	for line := range strings.Lines(s) {
		for num++; line != ""; {
			piece := line[:min(len(line), MaxPiece)]
			line = line[len(piece):]
			parts := strings.Split(strings.TrimRight(piece, "\r\n"), "\r")
			for i, part := range parts {
				if i == 0 || i+1 < len(parts) || part != "" {
					list = append(list, fmt.Sprintf("%d:%s", num, StripANSI(part)))
				}
			}
		}
	}
	return list
}

func FuzzReader(f *testing.F) {
	f.Add("a\r\nb\rc\x1b[0m\n[1,0]<stdout>:x")
	f.Fuzz(func(t *testing.T, s string) {
		r := New(strings.NewReader(s))
		for r.Next() {
			Bare(r.Text())
		}
		if r.Num() > strings.Count(s, "\n")+1 || r.in.bytes != int64(len(s)) {
			t.Errorf("%d lines, %d of %d bytes", r.Num(), r.in.bytes, len(s))
		}
		want := reference(s)
		if got := collect(New(strings.NewReader(s))); !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		if got, err := ahead(strings.NewReader(s), MaxPiece, 2); err != nil || !slices.Equal(got, want) {
			t.Errorf("in chunks %q, want %q; %v", got, want, err)
		}
	})
}
