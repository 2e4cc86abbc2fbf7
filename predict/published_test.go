package predict

import (
	"math"
	"strings"
	"testing"

	"busbar.dev/coll"
	"busbar.dev/hardware"
	"busbar.dev/nccl"
	"busbar.dev/unit"
)

// All-reduces on Gaudi come from published runs, never above what its links carry; everything else says what is
// missing.
func TestPublished(t *testing.T) {
	for _, x := range []struct {
		preset     string
		nodes, per int
		kind       coll.Kind
		size       unit.Bytes
		busBW      float64 // 0: refused
		want       string
	}{
		{"hls-gaudi2", 1, 8, coll.AllReduce, 32 * unit.MiB, 258.2, "OpenShift"},
		{"hls-gaudi2", 1, 8, coll.AllReduce, 256 * unit.MiB, 258.2, "OpenShift"},
		{"hls-gaudi2", 1, 8, coll.AllReduce, 8 * unit.GiB, 258.2, "OpenShift"},
		{"hls-gaudi2", 2, 8, coll.AllReduce, 64 * unit.MiB, 205.9, "two nodes"},
		{"gaudi3-8", 1, 8, coll.AllReduce, unit.GiB, 513, "Collectives Performance"},
		{"gaudi3-8", 1, 8, coll.AllReduce, 128 * unit.MiB, 0, "below 256 MiB"},
		{"gaudi3-8", 1, 8, coll.AllGather, unit.GiB, 0, "a sweep of all_gather"},
		{"gaudi3-8", 2, 8, coll.AllReduce, unit.GiB, 0, "other layouts"},
		{"hls-gaudi2", 1, 4, coll.AllReduce, unit.GiB, 0, "other layouts"},
	} {
		c, err := hardware.Preset(x.preset, x.nodes)
		if err != nil {
			t.Fatal(err)
		}
		l, err := nccl.Block(c, x.nodes, x.per)
		if err != nil {
			t.Fatal(err)
		}
		if !OnlyPublished(c, l) {
			t.Errorf("%s: nothing published", x.preset)
		}
		a, source, err := AskPublished(c, l, Side{}, Query{Kind: x.kind, Sizes: []unit.Bytes{x.size}})
		if x.busBW == 0 {
			if err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("%+v: %v", x, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := a.Rows[0].BusBW.GBps(); math.Abs(got-x.busBW) > 0.1 || a.Rows[0].run.Margin < 1.5 ||
			!strings.Contains(source, x.want) {
			t.Errorf("%+v: %.1f GB/s ×%g, %s", x, got, a.Rows[0].run.Margin, source)
		}
	}
	h100, err := hardware.Preset("dgx-h100", 1)
	if err != nil {
		t.Fatal(err)
	}
	if l, err := nccl.Block(h100, 1, 8); err != nil || OnlyPublished(h100, l) {
		t.Errorf("dgx-h100 has rules: %v", err)
	}
}
