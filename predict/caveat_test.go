package predict

import (
	"strings"
	"testing"

	"busbar.dev/coll"
	"busbar.dev/hardware"
	"busbar.dev/nccl"
	"busbar.dev/unit"
)

// Which GPUs a job gets is told where NCCL's choice hangs on it, and only there.
func TestCaveat(t *testing.T) {
	for _, c := range []struct {
		preset      string
		nodes, gpus int
		want        string
	}{
		{"baskerville", 2, 2, "(gpu0, gpu1; NODE to the NIC); on the last ones (SYS) NCCL chooses tree simple on 2 " +
			"channels instead of ring simple on 2 channels at 1.32 GB"},
		{"baskerville", 1, 2, ""},
		{"baskerville", 2, 4, ""},
		{"dgx-h100", 2, 4, ""},
	} {
		cl, err := hardware.Preset(c.preset, 4)
		if err != nil {
			t.Fatal(err)
		}
		l, err := nccl.Block(cl, c.nodes, c.gpus)
		if err != nil {
			t.Fatal(err)
		}
		p, err := New(cl, l, nccl.Newest, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := p.Caveat(Query{Kind: coll.AllReduce, Type: coll.BFloat16, Sizes: []unit.Bytes{8, 1320 * unit.MB}})
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s %dx%d: %q, want %q", c.preset, c.nodes, c.gpus, got, c.want)
		}
	}
}
