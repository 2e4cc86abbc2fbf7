package evidence

import (
	"strings"
	"testing"
)

const fourPairs = `{"alone":false,"names":["a","b"],"hosts":["a","b"],"bandwidth_GBps":[[null,1.5],[2.5,null]],"latency_us":[[null,10],[20,null]],"findings":[]}`

func TestPairsAreRead(t *testing.T) {
	for name, text := range map[string]string{
		"bare": fourPairs, "labelled": "node0| " + strings.ReplaceAll(fourPairs, ",\"", "\nnode0| ,\""),
		"behind notes": "busbar: note: busy\n" + fourPairs,
	} {
		s := read(t, text)
		if len(s.Pairs) != 1 || len(s.Pairs[0].Cells) != 2 || s.Pairs[0].Cells[1].Rate.GBps() != 2.5 ||
			s.Pairs[0].Names[1] != "b" {
			t.Errorf("%s: %+v", name, s.Pairs)
		}
	}
}

// Documents that only look like tables of pairs give none.
func TestPairsAreRefused(t *testing.T) {
	for _, text := range []string{
		`{"bandwidth_GBps":[[null,1]]}`, `{"alone":true,"bandwidth_GBps":[]}`,
		`{"alone":true,"bandwidth_GBps":[[null,1],[1,null]]}`,
		`{"alone":true,"names":["a"],"bandwidth_GBps":[[null,1],[1,null]]}`, `{"alone":true,"bandwidth_GBps":`,
		`"bandwidth_GBps"`,
	} {
		s := read(t, text)
		if len(s.Pairs) != 0 {
			t.Errorf("%s: %+v", text, s.Pairs)
		}
	}
}

func FuzzPairs(f *testing.F) {
	f.Add(fourPairs)
	f.Add("node0| {\"alone\": true,\nnode0| \"bandwidth_GBps\": [[null, -1e300], [1]]}")
	f.Fuzz(func(t *testing.T, text string) {
		r := &Reader{set: &Set{}, name: "f"}
		if r.measured([]byte(text)) {
			for i := range r.set.Pairs {
				r.set.Pairs[i].Findings()
			}
		}
	})
}

// TestPerftest takes the best rate of a perftest table as one of the wire.
func TestPerftest(t *testing.T) {
	text := "                    RDMA_Write BW Test\n Dual-port       : OFF\t\tDevice         : mlx5_3\n #bytes     " +
		"#iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n 65536      5000             92.00          " +
		"    91.20              0.173950\n"
	s := read(t, text)
	if len(s.Figures) != 1 || s.Figures[0].GBps != 11.4 || s.Figures[0].Quote.Line != 4 {
		t.Errorf("%+v", s.Figures)
	}
}
