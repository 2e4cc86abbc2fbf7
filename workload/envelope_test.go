package workload_test

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"busbar/workload"
)

// Every figure of the source documents comes out of the formulas, to the digits they print.
func TestPapers(t *testing.T) {
	cases := workload.Papers()
	for _, want := range []struct{ title, name, value string }{
		{"80B", "parameters once", "320"},
		{"80B", "in bits", "2560"},
		{"80B", "over 200 Gb/s", "12.8"},
		{"80B", "over 1600 Gb/s", "1.6"},
		{"1 × 8", "memory for training", "36"},
		{"1 × 8", "operations of a GPU", "65.536"},
		{"1 × 8", "compute", "0.42"},
		{"1 × 8", "gradients", "8"},
		{"1 × 8", "factor of an all-reduce", "1.75"},
		{"1 × 8", "sent by a GPU", "16"},
		{"1 × 8", "exchange inside a node", "0.053"},
		{"1 × 8", "  on H100", "0.0356"},
		{"1 × 8", "without recomputation", "49.152"},
		{"at 200", "compute", "0.42"},
		{"at 200", "exchange across nodes", "0.64"},
		{"at 200", "  at 80 % of the advertised rate", "0.8"},
		{"at 200", "across over inside", "12"},
		{"at 400", "exchange across nodes", "0.32"},
		{"at 400", "  at 80 % of the advertised rate", "0.4"},
		{"the factor", "2 GPUs", "1"},
		{"the factor", "8 GPUs", "1.75"},
		{"the factor", "64 GPUs", "1.97"},
		{"links", "NVLink 2", "150"},
		{"links", "NVLink 3", "300"},
		{"links", "NVLink 4", "450"},
		{"links", "xGMI of MI250X", "350"},
		{"links", "xGMI of MI300X", "448"},
		{"links", "Gaudi2 inside a node", "262.5"},
		{"links", "Gaudi2 across nodes", "2400"},
		{"links", "DGX H100 with ConnectX-7", "1600"},
		{"links", "Slingshot", "800"},
		{"links", "InfiniBand EDR × 4", "100"},
		{"links", "InfiniBand HDR × 8", "400"},
		{"links", "InfiniBand NDR × 12", "1200"},
		{"links", "InfiniBand XDR × 8", "1600"},
		{"links", "InfiniBand GDR × 12", "4800"},
		{"what is reached", "MFU: A100 in half precision", "50"},
		{"what is reached", "all-reduce on A100 over both directions", "39"},
		{"what is reached", "all-reduce on A100, one direction", "78"},
		{"what is reached", "copies between A100s", "91"},
		{"what is reached", "copies between H100s", "83.6"},
		{"what is reached", "all-reduce on EFA v1", "85"},
		{"what is reached", "the 80 % rule at 400 Gb/s", "320"},
		{"what is reached", "one all-reduce of 4 GB over 1000 of 4 MB", "3.4"},
		{"GPT-2", "sent by 4 GPUs", "7.9"},
		{"GPT-2", "2 × 2", "25.6"},
		{"GPT-2", "4 × 1", "50.1"},
		{"GPT-2", "2 × 2, ring", "13.6"},
	} {
		got := math.NaN()
		for _, c := range cases {
			if !strings.Contains(c.Title, want.title) {
				continue
			}
			for _, l := range c.Lines {
				if l.Name == want.name {
					got = l.Value
				}
			}
		}
		digits := 0
		if _, after, ok := strings.Cut(want.value, "."); ok {
			digits = len(after)
		}
		if s := strconv.FormatFloat(got, 'f', digits, 64); s != want.value {
			t.Errorf("%s, %s: %s (%g); expected %s", want.title, want.name, s, got, want.value)
		}
	}
	for _, c := range cases {
		for _, l := range c.Lines {
			if strings.Contains(l.Worked, "%s") || l.Formula == "" || l.Worked == "" || math.IsNaN(l.Value) {
				t.Errorf("%s: %+v", c.Title, l)
			}
		}
	}
}

// The verdicts are the documents' table, and the notes say where a cell is off.
func TestPapersSayWhatIsOff(t *testing.T) {
	notes := ""
	for _, c := range workload.Papers() {
		for _, l := range c.Lines {
			notes += c.Title + ": " + l.Name + ": " + l.Note + "\n"
		}
	}
	for _, want := range []string{
		"1 × 8 A100: exchange inside a node: hides: 0.05333 s < 0.4201 s of compute; the document's table prints 0.027",
		"4 × 8 A100 at 200 Gb/s: exchange across nodes: bottleneck: 0.64 s > 0.4201 s",
		"4 × 8 A100 at 400 Gb/s: exchange across nodes: hides: 0.32 s",
		"across over inside: the document says 23",
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("no %q in\n%s", want, notes)
		}
	}
}
