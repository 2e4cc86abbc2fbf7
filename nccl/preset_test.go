package nccl_test

import (
	"fmt"
	"testing"

	"busbar/hardware"
	"busbar/nccl"
)

func think(t *testing.T, preset string, nodes, gpus int, version string, env map[string]string) *nccl.Plan {
	t.Helper()
	c, err := hardware.Preset(preset, nodes)
	if err != nil {
		t.Fatal(err)
	}
	l, err := nccl.Block(c, nodes, gpus)
	if err != nil {
		t.Fatal(err)
	}
	v, err := nccl.ParseVersion(version)
	if err != nil {
		t.Fatal(err)
	}
	p, err := nccl.Think(c, l, v, env)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestShow(t *testing.T) {
	for _, c := range []struct {
		preset      string
		nodes, gpus int
		v           string
	}{{"dgx-h100", 2, 8, "2.19.3"}, {"dgx-h100", 2, 8, "2.18"}, {"dgx-h100", 2, 8, "2.22"}, {"dgx-b200", 1, 8, "2.25"}, {"dgx-h100", 1, 8, "2.22"}, {"baskerville", 2, 2, "2.20"}, {"baskerville", 4, 1, "2.20"}, {"baskerville", 1, 4, "2.18"}} {
		p := think(t, c.preset, c.nodes, c.gpus, c.v, nil)
		fmt.Println(c, p.Count(), p.NVLSChannels, p.P2PChannels, p.P2PPerPeer, p.Graphs.Ring.NChannels, p.Graphs.Ring.BwIntra, p.Graphs.Ring.TypeInter, p.Graphs.Ring.CrossNIC, "tree", p.Graphs.Tree.BwIntra, p.Graphs.Tree.BwInter, p.Graphs.Tree.Pattern)
		for i := range min(9, p.Count()) {
			fmt.Println("  ", p.Ring(i), p.NIC(0, i), p.Tree(i)[0])
		}
	}
}
