package cluster

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseHosts(t *testing.T) {
	tests := []struct{ in, want string }{
		{"gpu1", "gpu1"},
		{"gpu[001-003,020]", "gpu001 gpu002 gpu003 gpu020"},
		{"gpu[8-11]", "gpu8 gpu9 gpu10 gpu11"},
		{"gpu[08-11]", "gpu08 gpu09 gpu10 gpu11"},
		{"gpu[098-101]", "gpu098 gpu099 gpu100 gpu101"},
		{"gpu[99-101]", "gpu99 gpu100 gpu101"},
		{"gpu[1,01,001]", "gpu1 gpu01 gpu001"},
		{"a[1-2],b[3],c", "a1 a2 b3 c"},
		{"r[1-2]n[01-02]", "r1n01 r1n02 r2n01 r2n02"},
		{"a[0-1]b[0-1]c[0-1]d", "a0b0c0d a0b0c1d a0b1c0d a0b1c1d a1b0c0d a1b0c1d a1b1c0d a1b1c1d"},
		{"gpu[1-2]-ib", "gpu1-ib gpu2-ib"},
		{"[1101-1102]", "1101 1102"},
		{" a , b[1-2] ,\tc ", "a b1 b2 c"},
		{"a,a", "a a"},
		{"im[0],grp[23-24]", "im0 grp23 grp24"},
		{"node1-4", "node1-4"}, // a range only inside brackets
		{"a.b-c_d", "a.b-c_d"},
		{"n[00000000000000000000000001]", "n00000000000000000000000001"},
		{"tux[0-0]", "tux0"},
	}
	for _, tt := range tests {
		got, err := ParseHosts(tt.in)
		if err != nil {
			t.Errorf("%s: %v", tt.in, err)
		} else if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("%s = %s; want %s", tt.in, s, tt.want)
		}
	}
}

func TestParseHostsRefuses(t *testing.T) {
	tests := []struct{ in, want string }{
		{"", "column 1: empty"},
		{"  ", "column 1: empty"},
		{"gpu[1-4", "column 4: [ is never closed"},
		{"gpu[", "column 4: [ is never closed"},
		{"gpu[1,", "column 4: [ is never closed"},
		{"gpu[1-", "column 4: [ is never closed"},
		{"gpu[]", "column 5: ']' in brackets"},
		{"gpu[1,]", "column 7: ']' in brackets"},
		{"gpu[4-1]", "column 5: range 4-1 ends before it starts"},
		{"gpu[1-2-3]", "column 8: '-' in brackets"},
		{"gpu[1-a]", "column 7: 'a' after the dash"},
		{"gpu[a]", "column 5: 'a' in brackets"},
		{"gpu[1[2]]", "column 6: '[' in brackets"},
		{"gpu1]", "column 5: ] without ["},
		{"a,,b", "column 3: empty name"},
		{"a,", "column 3: empty name"},
		{",a", "column 1: empty name"},
		{"a b", "column 2: white space inside a name"},
		{"a\x00b", "column 2: control character"},
		{"n[0-1000000]", "more than 1000000 hosts"},
		{"n[0-999999],m", "column 13: more than 1000000 hosts"},
		{"n[0-999][0-999][0-999]", "more than 1000000 hosts"},
		{"n[0-99999999999999999999]", "too many digits"},
		{strings.Repeat("x", 256), "a name of 256 bytes"},
		{strings.Repeat("x", 200) + "[100000-999999]", "take more than 64 MiB"},
	}
	for _, tt := range tests {
		if got, err := ParseHosts(tt.in); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.40s: %d names, error %v; want %s", tt.in, len(got), err, tt.want)
		}
	}
}

func TestFormatHosts(t *testing.T) {
	tests := []struct{ in, want string }{
		{"", ""},
		{"gpu1", "gpu1"},
		{"gpu001 gpu002 gpu003 gpu020", "gpu[001-003,020]"},
		{"gpu9 gpu10", "gpu[9-10]"},
		{"gpu09 gpu10", "gpu[09-10]"},
		{"gpu9 gpu010", "gpu[9,010]"},
		{"a1 b1", "a1,b1"},
		{"a1 a2 b1 b2 c", "a[1-2],b[1-2],c"},
		{"gpu3 gpu2 gpu1", "gpu[3,2,1]"},
		{"r1n01 r1n02 r2n01 r2n02 r3n01", "r[1-2]n[01-02],r3n01"},
		{"r1n1 r2n1", "r[1-2]n1"},
		{"gpu1-ib gpu2-ib", "gpu[1-2]-ib"},
		{"1101 1102", "[1101-1102]"},
		{"a a a", "a,a,a"},
		{"n99999999999999999998 n99999999999999999999", "n[99999999999999999998,99999999999999999999]"},
		{"rack1-pod2-n1 rack1-pod2-n2 rack1-pod3-n1 rack1-pod3-n2", "rack1-pod[2-3]-n[1-2]"},
	}
	for _, tt := range tests {
		if got := FormatHosts(strings.Fields(tt.in)); got != tt.want {
			t.Errorf("%s = %s; want %s", tt.in, got, tt.want)
		}
	}
}

func TestFormatSlurmHosts(t *testing.T) {
	tests := []struct{ in, want string }{
		{"gpu001 gpu002 gpu020", "gpu[001-002,020]"},
		{"r1n01 r1n02 r2n01 r2n02", "r[1-2]n[01-02]"},
		{"r1n1 r2n1", "r[1-2]n[1]"},
		{"r1p1n1 r1p2n1 r2p1n1 r2p2n1", "r1p[1-2]n[1],r2p[1-2]n[1]"},
		{"gpu1-ib gpu2-ib gpu3", "gpu1-ib,gpu2-ib,gpu3"},
	}
	for _, tt := range tests {
		if got := FormatSlurmHosts(strings.Fields(tt.in)); got != tt.want {
			t.Errorf("%s = %s; want %s", tt.in, got, tt.want)
		}
	}
}

// Whatever FormatHosts writes, ParseHosts reads back, order and repeats
// included.
func TestHostsRoundTrip(t *testing.T) {
	name := rapid.OneOf(
		rapid.StringMatching(`[a-z]{1,3}[0-9]{1,3}`),
		rapid.StringMatching(`(r|rack)[0-3]n[01]?[0-9](-ib)?`),
		rapid.StringMatching(`[0-9a-b.\-_]{1,8}`),
		rapid.StringMatching(`n9{17,22}`),
		rapid.StringMatching(`[^][,\s\pC]{1,6}`),
	)
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfN(name, 1, 30).Draw(t, "names")
		for _, text := range []string{FormatHosts(names), FormatSlurmHosts(names)} {
			if got, err := ParseHosts(text); err != nil || !reflect.DeepEqual(got, names) {
				t.Fatalf("%q = %q, %v; want %q", text, got, err, names)
			}
		}
	})
}

// Runs of numbers, as clusters name their nodes, compress and come back.
func TestHostsRoundTripRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var names []string
		for range rapid.IntRange(1, 4).Draw(t, "runs") {
			stem := rapid.StringMatching(`[a-c]{1,2}([0-9]n)?`).Draw(t, "stem")
			tail := rapid.SampledFrom([]string{"", "", "-x", ".y9"}).Draw(t, "tail")
			width := rapid.IntRange(1, 4).Draw(t, "width")
			first := rapid.IntRange(0, 1100).Draw(t, "first")
			for i := range rapid.IntRange(1, 40).Draw(t, "n") {
				names = append(names, fmt.Sprintf("%s%0*d%s", stem, width, first+i, tail))
			}
		}
		for _, text := range []string{FormatHosts(names), FormatSlurmHosts(names)} {
			if got, err := ParseHosts(text); err != nil || !reflect.DeepEqual(got, names) {
				t.Fatalf("%q = %q, %v; want %q", text, got, err, names)
			}
		}
	})
}

func FuzzParseHosts(f *testing.F) {
	for _, s := range []string{
		"gpu[001-016,020]", "r[1-2]n[01-04]", "a,b[1-2]-ib", "[1-3]", "a[", "a[2-1]", "x[0-999999]",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		names, err := ParseHosts(s)
		if err != nil {
			return
		}
		if len(names) == 0 || len(names) > MaxHosts {
			t.Fatalf("%q: %d names", s, len(names))
		}
		again, err := ParseHosts(FormatHosts(names))
		if err != nil || !reflect.DeepEqual(again, names) {
			t.Fatalf("%q: %q reads back as %d names, %v; want %d", s, FormatHosts(names), len(again), err, len(names))
		}
	})
}

func BenchmarkHosts(b *testing.B) {
	var names []string
	for r := range 1000 {
		for n := range 100 {
			names = append(names, fmt.Sprintf("rack%03dnode%02d", r, n))
		}
	}
	b.Run("format", func(b *testing.B) {
		for b.Loop() {
			FormatHosts(names)
		}
	})
	text := FormatHosts(names)
	b.Run("parse", func(b *testing.B) {
		for b.Loop() {
			if got, err := ParseHosts(text); err != nil || len(got) != len(names) {
				b.Fatal(len(got), err)
			}
		}
	})
	plain := strings.Join(names, ",")
	b.Run("parse-plain", func(b *testing.B) {
		for b.Loop() {
			if got, err := ParseHosts(plain); err != nil || len(got) != len(names) {
				b.Fatal(len(got), err)
			}
		}
	})
}
