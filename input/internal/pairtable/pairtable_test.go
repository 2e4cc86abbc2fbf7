package pairtable

import (
	"fmt"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

func TestRow(t *testing.T) {
	for in, want := range map[string]string{
		"0 1.5 N/A":  "0 [1.5 NaN] true",
		"3 n/a":      "3 [NaN] true",
		"0 1 2 3":    "0 [] false", // more values than columns
		"0":          "0 [] false",
		"":           "0 [] false",
		"-1 2":       "0 [] false",
		"4096 2":     "0 [] false",
		"0 1 fast":   "0 [] false",
		"GPU0 1 2":   "0 [] false",
		"4095 1e3 2": "4095 [1000 2] true",
	} {
		n, v, ok := row(strings.Fields(in), 2)
		if got := fmt.Sprint(n, v, ok); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

func TestNumbers(t *testing.T) {
	for in, want := range map[string]string{
		"0 1 7": "[0 1 7] true",
		"":      "[] false",
		"0 x":   "[] false",
		"0 -1":  "[] false",
	} {
		ids, ok := Numbers(strings.Fields(in))
		if got := fmt.Sprint(ids, ok); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
	if _, ok := Numbers(strings.Fields(strings.Repeat("1 ", MaxDevices+1))); ok {
		t.Error("more numbers than devices can be")
	}
}

func TestNode(t *testing.T) {
	f := &cluster.Fragment{Format: "tool", Source: "log"}
	n := NewNode(f)
	n.Add(map[int]Device{0: {0, "A100", "0000:01:00.0", 3}, 2: {2, "", "0000:01:00.0", 4}})
	n.Pair(2, 0).Rate = cluster.FromMeasured(20*unit.GBps, "tool")
	n.Pair(0, 2).Rate = cluster.FromMeasured(10*unit.GBps, "tool")
	n.Pair(2, 0).Latency = cluster.FromMeasured(unit.Micros(3), "tool")
	if n.Two(0, 0) || n.Two(0, 1) || !n.Two(2, 0) || n.Len() != 2 {
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
