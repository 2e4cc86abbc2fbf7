package workload_test

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"busbar.dev/internal/test/corpus"
	"busbar.dev/workload"
)

// TestPapers holds figures of the source documents, written down apart from the cases: every one comes
// out of the formulas to the digits printed.
func TestPapers(t *testing.T) {
	cases := workload.Papers()
	for _, want := range []struct{ title, name, value string }{
		// Bekman, "The basics".
		{"80B", "parameters once", "320"},
		{"80B", "in bits", "2560"},
		{"80B", "over 200 Gb/s", "12.8"},
		{"80B", "over 1600 Gb/s", "1.6"},
		// "1-GPU training".
		{"1 × 8", "memory for training", "36"},
		// "Single node training" and "Calculating TFLOPS".
		{"1 × 8", "operations of a GPU", "65.536"},
		{"1 × 8", "compute", "0.42"},
		{"1 × 8", "gradients", "8"},
		{"1 × 8", "factor of an all-reduce", "1.75"},
		{"1 × 8", "sent by a GPU", "16"},
		{"1 × 8", "exchange inside a node", "0.053"},
		{"1 × 8", "  in the table", "0.027"},
		{"1 × 8", "  on H100", "0.0356"},
		{"1 × 8", "without recomputation", "49.152"},
		{"1 × 8", "rate of a GPU", "156"},
		{"1 × 8", "H100 over A100", "3"},
		{"1 × 8", "with half the batch", "0.21"},
		// "Multiple node training".
		{"A100 at 200", "compute", "0.42"},
		{"A100 at 200", "sent, in bits", "128"},
		{"A100 at 200", "exchange across nodes", "0.64"},
		{"A100 at 200", "  at 80% of the advertised rate", "0.8"},
		{"A100 at 200", "across over inside", "12"},
		{"A100 at 400", "exchange across nodes", "0.32"},
		{"A100 at 400", "  at 80% of the advertised rate", "0.4"},
		{"20B and 200B", "20B: compute", "4.2"},
		{"20B and 200B", "20B: exchange across nodes", "6.4"},
		{"20B and 200B", "200B: exchange across nodes", "64"},
		{"the factor", "2 GPUs", "1"},
		{"the factor", "8 GPUs", "1.75"},
		{"the factor", "64 GPUs", "1.97"},
		// "NVLink", "NVSwitch", "Infinity Fabric", "Gaudi2".
		{"links, one", "NVLink 2", "150"},
		{"links, one", "NVLink 3", "300"},
		{"links, one", "NVLink 4", "450"},
		{"links, one", "xGMI of MI250X", "350"},
		{"links, one", "xGMI of MI300X", "448"},
		{"links, one", "Gaudi2 inside a node", "262.5"},
		{"links, one", "NVLink 4 over PCIe 5", "7"},
		{"links, one", "  of all servers", "57.6"},
		// "PCIe".
		{"PCIe", "PCIe 4", "31.5"},
		{"PCIe", "PCIe 5", "63"},
		{"PCIe", "PCIe 6", "121"},
		{"PCIe", "PCIe 7", "242"},
		// "Inter-node networking".
		{"networks of a node", "Gaudi2 across nodes", "2400"},
		{"networks of a node", "DGX H100 with ConnectX-7", "1600"},
		{"networks of a node", "Slingshot", "800"},
		{"networks of a node", "SuperPOD's InfiniBand, a node", "0.8"},
		{"InfiniBand, links", "InfiniBand EDR × 4", "100"},
		{"InfiniBand, links", "InfiniBand HDR × 8", "400"},
		{"InfiniBand, links", "InfiniBand NDR × 12", "1200"},
		{"InfiniBand, links", "InfiniBand XDR × 8", "1600"},
		{"InfiniBand, links", "InfiniBand GDR × 12", "4800"},
		// "Unidirectional vs Bidirectional" and "Real network throughput".
		{"what is reached", "MFU: A100 in half precision", "0.5"},
		{"what is reached", "all-reduce on A100 over both directions", "39"},
		{"what is reached", "all-reduce on A100, one direction", "78"},
		{"what is reached", "copies between A100s", "91"},
		{"what is reached", "copies between H100s", "83.6"},
		{"what is reached", "all-reduce on EFA v1", "85"},
		{"what is reached", "the 80% rule at 400 Gb/s", "320"},
		{"what is reached", "one all-reduce of 4 GB over 1000 of 4 MB", "3.4"},
		{"8 A100", "17179869184 B, algbw", "134.22"},
		{"8 A100", "17179869184 B, busbw", "234.89"},
		// Lazauskas, "GPT-2 Large Experiments" and "Ring or Tree?".
		{"GPT-2 Large in", "sent by 4 GPUs", "7.9"},
		{"GPT-2 Large in", "2 × 2", "25.6"},
		{"GPT-2 Large in", "4 × 1", "50.1"},
		{"GPT-2 Large in", "2 × 2, ring", "13.6"},
		{"GPT-2 Large in", "4 × 1, ring, time from the rate", "0.147"},
		{"GPT-2 Large in", "4 × 1, tree, time from the rate", "0.176"},
		{"GPT-2 Large in", "ring on 4 × 1 over ring on 2 × 2", "4"},
		{"epochs", "epoch on 2 × 2 over 1 × 4", "6.6"},
		{"epochs", "epoch on 4 × 1 over 1 × 4", "1.9"},
		// The third document, "Benchmarking".
		{"NVLink 5", "average bus bandwidth", "98.414"},
		{"NVLink 5", "reached of both directions", "40"},
		{"out of place", "1073741824 B, busbw", "355.89"},
		{"another program", "16GiB, busbw", "366.99"},
		// The fifth document, "Examples and Case Studies".
		{"70B parameters on 3 × 8 GPUs at 10", "exchange across nodes", "448"},
		{"70B parameters on 3 × 8 GPUs at 400", "exchange across nodes", "11.2"},
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
			if strings.Contains(l.Worked, "%s") || l.Formula == "" || l.Worked == "" || math.IsNaN(l.Value) || c.Document == "" {
				t.Errorf("%s: %+v", c.Title, l)
			}
		}
	}
}

var leading = regexp.MustCompile(`^~?([0-9]+(\.[0-9]+)?)`)

// TestPapersPrint holds every line to what its document prints beside it: to the printed digits, or to a
// note that says why not. In tables of measurements the times are rounded too.
func TestPapersPrint(t *testing.T) {
	figures, differ := map[string]int{}, 0
	for _, c := range workload.Papers() {
		for _, l := range c.Lines {
			if l.Printed == "" {
				continue
			}
			figures[c.Document]++
			m := leading.FindStringSubmatch(l.Printed)
			if m == nil { // in words
				continue
			}
			_, after, _ := strings.Cut(m[1], ".")
			want, err := strconv.ParseFloat(m[1], 64)
			if err != nil {
				t.Fatal(err)
			}
			margin := 0.5 * math.Pow10(-len(after))
			switch {
			case c.Long: // times have four digits or so
				margin += 6e-4 * l.Value
			case strings.HasPrefix(l.Printed, "~"):
				margin *= 3
			}
			if off := math.Abs(l.Value - want); off > margin*(1+1e-9) {
				differ++
				if l.Note == "" {
					t.Errorf("%s, %s: %g; the document prints %s, and nobody says why", c.Title, l.Name, l.Value, l.Printed)
				}
			}
		}
	}
	total := 0
	for _, n := range figures {
		total += n
	}
	t.Logf("%d printed figures of %d documents, %d of which differ from their formula and say why: %v", total, len(figures), differ, figures)
	if total < 300 || len(figures) != 5 || differ > 24 {
		t.Errorf("%d figures of %d documents, %d differ", total, len(figures), differ)
	}
}

// TestPapersAreQuoted looks every printed figure up in its document.
func TestPapersAreQuoted(t *testing.T) {
	files := map[string]string{
		"S. Bekman": "001_*.txt", "T. Lazauskas": "000_*.txt", "How Network": "002_*.txt", "Distributed comm": "003_*.txt", "Optimizing": "004_*.txt",
	}
	texts := map[string]string{}
	for start, glob := range files {
		list, err := filepath.Glob(filepath.Join(corpus.Dir(t), "seeds", glob))
		if err != nil || len(list) != 1 {
			t.Skipf("no document %s: %v", glob, err)
		}
		data, err := os.ReadFile(list[0])
		if err != nil {
			t.Skip(err)
		}
		texts[start] = strings.Join(strings.Fields(string(data)), " ")
	}
	// The two matrices of copies between GPUs: rows of a number and eight rates.
	row := regexp.MustCompile(`(?:^| )([0-7])((?: \d+\.\d\d){8})`)
	var sums []float64
	for _, m := range row.FindAllStringSubmatch(texts["S. Bekman"], -1) {
		if m[1] == "0" {
			sums = append(sums, 0)
		}
		for k, x := range strings.Fields(m[2]) {
			if v, err := strconv.ParseFloat(x, 64); err == nil && strconv.Itoa(k) != m[1] {
				sums[len(sums)-1] += v
			}
		}
	}
	for _, c := range workload.Papers() {
		for _, l := range c.Lines {
			for k, name := range []string{"copies between A100s, mean of the matrix", "copies between H100s, mean of the matrix"} {
				if l.Name == name && (len(sums) != 2 || math.Abs(sums[k]/56-l.Value) > 1e-4) {
					t.Errorf("%s: %g; the document's add up to %v", name, l.Value, sums)
				}
			}
		}
	}
	for _, c := range workload.Papers() {
		for start, text := range texts {
			if !strings.HasPrefix(c.Document, start) {
				continue
			}
			for _, l := range c.Lines {
				if l.Printed != "" && !strings.Contains(text, l.Printed) {
					t.Errorf("%s, %s: %q is not printed in %s", c.Title, l.Name, l.Printed, c.Document)
				}
			}
		}
	}
}

// The verdicts are the documents' table, and the notes say where a cell is off.
func TestPapersSayWhatIsOff(t *testing.T) {
	notes := ""
	for _, c := range workload.Papers() {
		for _, l := range c.Lines {
			if l.Note != "" {
				notes += c.Title + ": " + l.Name + ": " + l.Note + "\n"
			}
		}
	}
	for _, want := range []string{
		"1 × 8 A100: exchange inside a node: hides: 0.05333 s < 0.4201 s of compute; the text says \"0.053 > 0.42",
		"1 × 8 A100:   in the table: the table sends the gradients once",
		"4 × 8 A100 at 200 Gb/s: exchange across nodes: bottleneck: 0.64 s > 0.4201 s",
		"4 × 8 A100 at 400 Gb/s: exchange across nodes: hides: 0.32 s",
		"across over inside: the document's 23 is 0.64 / 0.027",
		"4 × 1, tree, time from the rate: the rate and the time of this row contradict each other",
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("no %q in\n%s", want, notes)
		}
	}
}
