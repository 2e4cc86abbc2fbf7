package query

import (
	"testing"

	"busbar.dev/cluster"
)

// TestCountedGPU: a number behind a GPU's name is GPUs of one machine; behind a machine it is machines.
func TestCountedGPU(t *testing.T) {
	for word, want := range map[string][2]int{
		"rtx4090:4": {1, 4}, "1xrtx4090:4": {4, 1}, "4xrtx4090:2": {2, 4}, "dgx-h100:2": {2, 8}, "h200:1": {1, 1},
	} {
		c, err := LoadCluster(t.Context(), Env{}, word)
		if err != nil || len(c.Hosts) != want[0] || c.TypeOf(0).Count(cluster.GPU) != want[1] {
			t.Errorf("%s: %v, %v; want %d nodes of %d GPUs", word, c, err, want[0], want[1])
		}
	}
	if c, err := LoadAtLeast(t.Context(), Env{}, "rtx4090", 2); err != nil || len(c.Hosts) != 2 {
		t.Errorf("two machines with one GPU: %v, %v", c, err)
	}
}

// TestOtherNICs: --nic changes NICs that are known, too: a preset with another network takes longer.
func TestOtherNICs(t *testing.T) {
	ask := func(nic string) float64 {
		t.Helper()
		d, err := Predict{Cluster: "dgx-h100:2", Size: "1G", NIC: nic}.Run(t.Context(), Env{})
		if err != nil {
			t.Fatalf("--nic %s: %v", nic, err)
		}
		return d.Rows[0].Time.Seconds()
	}
	own, slow, one := ask(""), ask("10GbE"), ask("1x400G")
	if slow < 10*own || one < 2*own {
		t.Errorf("its own NICs %.4g s, 10GbE %.4g s, one of them %.4g s; want both slower", own, slow, one)
	}
}
