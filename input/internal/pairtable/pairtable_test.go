package pairtable

import (
	"fmt"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/board"
	"busbar.dev/unit"
)

// Lines below a title: the header first, rows until another line.
func TestFigures(t *testing.T) {
	for in, want := range map[string]string{
		"D\\D 0 1|0 1.5 N/A|1 2 3":    "[0 1] 0:[1.5 N/A] 1:[2 3] true []",
		"GPU 0 7||7 n/a":              "[0 7] 7:[n/a ] true [row 7 has 1 cells]",
		"0 1|0 1 2 3":                 "[0 1] false []", // more values than columns
		"0 1|0":                       "[0 1] false []",
		"0 1|-1 2":                    "[0 1] false []",
		"0 1|1024 2":                  "[0 1] false []",
		"0 1|0 1 fast":                "[0 1] false []",
		"0 1|GPU0 1 2":                "[0 1] false []",
		"0 x":                         "[] false []",
		"CPU 0 1":                     "[] false []",
		"0 -1":                        "[] false []",
		"0 1|0 1 2|0 3 4|5 1 1|1 6 7": "[0 1] 0:[1 2] 1:[6 7] true [row 0 stands here again row 5 has no column]",
	} {
		m, ok := Matrix{}, true
		for i, line := range strings.Split(in, "|") {
			ok = m.Figures(i+1, line)
		}
		got := fmt.Sprint(m.Cols)
		for i, r := range m.Rows {
			if r != nil {
				got += fmt.Sprintf(" %s:%v", m.Cols[i], r.Cells)
			}
		}
		f := cluster.Fragment{Source: "log"}
		m.Warns.AddTo(&f, "")
		var warned []string
		for _, w := range f.Warnings {
			text, _, _ := strings.Cut(w.Text, ";")
			text, _, _ = strings.Cut(text, " (")
			warned = append(warned, text)
		}
		if got += fmt.Sprint(" ", ok, " ", warned); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
	if m := (Matrix{}); m.Figures(1, strings.Repeat("1 ", MaxDevices+1)) {
		t.Error("more numbers than devices can be")
	}
}

func TestCheck(t *testing.T) {
	m := Matrix{Line: 3}
	if m.Head([]string{"0", "1", "0"}); m.Check() == nil || m.Count() != 0 {
		t.Error("a column twice was taken")
	}
	if m.Head(make([]string, MaxDevices+1)); m.Check() == nil {
		t.Error("more columns than devices can be were taken")
	}
	m.Head([]string{"0", "1"})
	m.Add(4, "1", []string{"5", "6"})
	if m.Check() != nil || m.Count() != 1 || !strings.HasPrefix(m.Missing(), "no row for 0:") {
		t.Errorf("%+v, %s", m, m.Missing())
	}
}

func TestNode(t *testing.T) {
	f := &cluster.Fragment{Format: "tool", Source: "log"}
	a, b := board.GPU("nvidia", 0), board.GPU("nvidia", 2)
	a.PCI, b.PCI = "0000:01:00.0", "0000:01:00.0"
	n := NewNode(f, map[int]cluster.Device{0: a, 2: b})
	n.Pair(2, 0).Rate = cluster.FromMeasured(20*unit.GBps, "tool")
	n.Pair(0, 2).Rate = cluster.FromMeasured(10*unit.GBps, "tool")
	n.Pair(2, 0).Latency = cluster.FromMeasured(unit.Micros(3), "tool")
	if n.Two(0, 0) || n.Two(0, 1) || !n.Two(2, 0) || len(n.gpu) != 2 {
		t.Error("GPUs 0 and 2 are the two of the node")
	}
	n.Close("h")
	if len(f.Types) != 1 || len(f.Hosts) != 1 || f.Hosts[0].Name != "h" {
		t.Fatalf("%d types and hosts %v, want one node of h", len(f.Types), f.Hosts)
	}
	nt := f.Types[0]
	if err := nt.Check(); err != nil {
		t.Error(err)
	}
	if p := nt.Pairs; len(p) != 2 || p[0].A != 0 || p[0].Rate.Value != 10*unit.GBps || p[1].Rate.Value != 20*unit.GBps ||
		p[1].Latency.Value != unit.Micros(3) {
		t.Errorf("pairs %+v", p)
	}
	if nt.Devices[1].PCI != "" || len(f.Warnings) != 1 {
		t.Errorf("two GPUs of one address: %+v, warnings %v", nt.Devices, f.Warnings)
	}
}
