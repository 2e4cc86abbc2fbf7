package nccl

import "testing"

// TestBefore18 holds the estimates of releases before 2.18 to what their formulas give by hand: eight A100 on one node,
// and two such nodes whose ring has four channels of 24 GB/s (src/graph/tuning.cc of 2.8, 2.12 and 2.17).
func TestBefore18(t *testing.T) {
	one := Graph{
		Pattern: RingPattern, NChannels: 12, BwIntra: 21, BwInter: 21, TypeIntra: PathNVL, TypeInter: PathPIX,
		SameChannels: true,
	}
	two := Graph{Pattern: RingPattern, NChannels: 4, BwIntra: 24, BwInter: 24, TypeIntra: PathNVL, TypeInter: PathPIX}
	for _, x := range []struct {
		release string
		nodes   int
		algo    Algo
		proto   Proto
		lat, bw float32
	}{
		{"2.8.4", 1, Ring, Simple, 8.4 + 14*3.4, 235 * 8 / 14.},          // one GPU: 235 GB/s at most
		{"2.8.4", 1, Ring, LL128, 10 + 14*1.9, 12 * 16.9 * 8 / 14.},      // by collective up to 2.9
		{"2.10.3", 1, Ring, LL128, 10 + 14*1.9, 235 * .92 * 8 / 14.},     // 20 GB/s a channel since
		{"2.8.4", 2, Ring, Simple, 8.4 + 28*3.4 + 2*9.6, 96 * 16 / 30.},  // no work of the host in every step
		{"2.12.12", 2, Ring, Simple, 8.4 + 26*3.4 + 4*28, 96 * 16 / 30.}, // four steps over the network
		{"2.8.4", 2, Ring, LL, 3.6 + 28*.47*1.8 + 2*2.7, 22.5 * 16 / 30.},
	} {
		v, err := ParseVersion(x.release)
		if err != nil {
			t.Fatal(err)
		}
		g := one
		if x.nodes == 2 {
			g = two
		}
		c := &Comm{
			Version: v, NRanks: 8 * x.nodes, NNodes: x.nodes, MinCC: 80, MaxCC: 80, Arch: ArchX86, Vendor: AMD, MaxLocalRanks: 8,
		}
		table, err := NewTable(c, &Graphs{Ring: g, Tree: g})
		if err != nil {
			t.Fatal(err)
		}
		e := table.Est[AllReduce][x.algo][x.proto]
		if d := e.Latency - x.lat; d > .02 || d < -.02 {
			t.Errorf("%s, %d nodes, %v %v: %.2f us, want %.2f", x.release, x.nodes, x.algo, x.proto, e.Latency, x.lat)
		}
		if d := e.BW/x.bw - 1; d > .001 || d < -.001 {
			t.Errorf("%s, %d nodes, %v %v: %.2f GB/s, want %.2f", x.release, x.nodes, x.algo, x.proto, e.BW, x.bw)
		}
	}
	old := Comm{Version: Version{2, 8, 4}, rules: Oldest.rules(), NRanks: 16, NNodes: 2, Channels: 8, MinCC: 80}
	if a, b := (&Table{comm: &old}).plateau(65535), (&Table{comm: &old}).plateau(65536); a != 1 || b != 1.9 {
		t.Errorf("plateau of 2.8: %v and %v, want 1 and 1.9", a, b)
	}
}
