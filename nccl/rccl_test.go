package nccl_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/input/ncclxml"
	"busbar.dev/internal/corpus"
	"busbar.dev/nccl"
)

// rcclPlan plans for nodes of one of RCCL's own topology files.
func rcclPlan(t *testing.T, file string, nodes int, version string) *nccl.Plan {
	t.Helper()
	frag, err := ncclxml.Read(file, bytes.NewReader(corpus.Open(t, "nccl-topo-xml/"+file)))
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster.Cluster{Types: frag.Types}
	for i := range nodes {
		c.Hosts = append(c.Hosts, cluster.Host{Name: fmt.Sprintf("host%d", i)})
	}
	return rcclOn(t, c, nodes, version)
}

func rcclOn(t *testing.T, c *cluster.Cluster, nodes int, version string) *nccl.Plan {
	t.Helper()
	v, err := nccl.ParseVersion(version)
	if err != nil {
		t.Fatal(err)
	}
	l, err := nccl.Block(c, nodes, len(c.Types[0].Of(cluster.GPU)))
	if err != nil {
		t.Fatal(err)
	}
	p, err := new(nccl.Planner).Plan(c, l, v, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// switches are the sizes from which RCCL takes another algorithm or protocol for all-reduces of 8 bytes to 4 GiB.
func switches(t *testing.T, p *nccl.Plan) string {
	t.Helper()
	var list []string
	last := ""
	for size := int64(8); size <= 4<<30; size *= 2 {
		ch, err := p.Choose(nccl.Call{Op: nccl.AllReduce, Bytes: size})
		if err != nil {
			t.Fatal(err)
		}
		if now := fmt.Sprintf("%s %s", ch.Algo, ch.Proto); now != last {
			list, last = append(list, fmt.Sprintf("%s %d", now, size)), now
		}
	}
	return strings.Join(list, ", ")
}

// TestRCCLTopologies compares with what RCCL's own topo_expl (2.21.5 of 2024-10-24, built for a CPU) prints for its topologies:
// model, channels, its table and the sizes at which the choice changes.
func TestRCCLTopologies(t *testing.T) {
	for _, c := range []struct {
		file                       string
		nodes                      int
		model, coll, p2p, perPeer  int
		ringLL, ring, treeLL, tree string // latency/bandwidth of all-reduces
		switches                   string
	}{
		{"rccl-topo_8p_940.xml", 1, 38, 56, 64, 8, "23.2/15.4", "46.4/192.0", "24.6/10.1", "0.0/0.0", "ring ll 8, ring simple 524288"},
		{"rccl-topo_8p_940.xml", 4, 40, 64, 64, 2, "142.0/13.9", "2739.0/173.4", "66.6/10.1", "149.2/99.1", "tree ll 8, tree simple 2097152, ring simple 1073741824"},
		{"rccl-topo_8p_940vm.xml", 2, 40, 64, 64, 2, "76.0/14.3", "1375.0/179.2", "45.6/10.1", "99.2/18.5", "tree ll 8, tree simple 4194304, ring simple 536870912"},
	} {
		p := rcclPlan(t, c.file, c.nodes, "2.21")
		if p.RCCL == nil {
			t.Fatalf("%s: no RCCL", c.file)
		}
		text := func(a nccl.Algo, pr nccl.Proto) string {
			e := p.Est[nccl.AllReduce][a][pr]
			return fmt.Sprintf("%.1f/%.1f", e.Latency, e.BW)
		}
		got := fmt.Sprint(p.RCCL.Model, p.Count(), p.P2PChannels, p.P2PPerPeer, text(nccl.Ring, nccl.LL), text(nccl.Ring, nccl.Simple), text(nccl.Tree, nccl.LL), text(nccl.Tree, nccl.Simple), switches(t, p))
		want := fmt.Sprint(c.model, c.coll, c.p2p, c.perPeer, c.ringLL, c.ring, c.treeLL, c.tree, c.switches)
		if got != want {
			t.Errorf("%s on %d nodes:\n%s\nwant\n%s", c.file, c.nodes, got, want)
		}
	}
}

// TestRCCLRings holds RCCL's rings on MI300X and later to what a mesh allows: every link is used as often as any other, between
// nodes every rail as well, whatever the number of nodes.
func TestRCCLRings(t *testing.T) {
	for _, preset := range []string{"mi300x-8", "mi325x-8", "mi355x-8"} {
		for _, nodes := range []int{1, 2, 3, 4, 5} {
			c, err := hardware.Preset(preset, nodes)
			if err != nil {
				t.Fatal(err)
			}
			p := rcclOn(t, c, nodes, "2.28")
			want := 40
			if nodes == 1 {
				want = 38
			}
			if p.RCCL.Model != want {
				t.Errorf("%s:%d takes model %d, want %d", preset, nodes, p.RCCL.Model, want)
			}
			inside, across := map[[2]int]int{}, map[int]int{}
			for k := range p.Count() {
				ring := p.Ring(k)
				if len(ring) != 8*nodes {
					t.Fatalf("%s:%d ring %d has %d ranks", preset, nodes, k, len(ring))
				}
				for i, r := range ring {
					next := ring[(i+1)%len(ring)]
					if r/8 == next/8 {
						inside[[2]int{r, next}]++
						continue
					}
					across[r]++
					if r%8 != next%8 {
						t.Errorf("%s:%d ring %d leaves rail %d for %d", preset, nodes, k, r%8, next%8)
					}
				}
			}
			if len(inside) != 56*nodes || nodes > 1 && len(across) != 8*nodes {
				t.Errorf("%s:%d: rings use %d links and %d NICs, want %d and %d", preset, nodes, len(inside), len(across), 56*nodes, 8*nodes)
			}
			for e, n := range inside {
				if nodes > 1 && n != p.Count()/8 {
					t.Errorf("%s:%d: link %v carries %d rings, want %d", preset, nodes, e, n, p.Count()/8)
				}
			}
		}
	}
}

// TestRCCLFrontier finds RCCL's model of the nodes of Frontier and LUMI-G, alone and among others.
func TestRCCLFrontier(t *testing.T) {
	for nodes, want := range map[int]int{1: 35, 4: 36} {
		c, err := hardware.Preset("frontier", nodes)
		if err != nil {
			t.Fatal(err)
		}
		if p := rcclOn(t, c, nodes, "2.22"); p.RCCL.Model != want {
			t.Errorf("%d nodes take model %d, want %d", nodes, p.RCCL.Model, want)
		}
	}
}

// TestRCCLRanges checks the protocols that RCCL 2.28 takes between two nodes of MI355X, by its size ranges.
func TestRCCLRanges(t *testing.T) {
	c, err := hardware.Preset("mi355x-8", 2)
	if err != nil {
		t.Fatal(err)
	}
	p := rcclOn(t, c, 2, "2.28")
	for size, want := range map[int64]string{64 << 10: "ll", 1 << 20: "ll128", 32 << 20: "tree ll128", 64 << 20: "ring ll128", 128 << 20: "ring simple", 1 << 30: "ring simple"} {
		ch, err := p.Choose(nccl.Call{Op: nccl.AllReduce, Bytes: size})
		if got := fmt.Sprintf("%s %s", ch.Algo, ch.Proto); err != nil || !strings.HasSuffix(got, want) {
			t.Errorf("%d bytes: %s, %v; want %s", size, got, err, want)
		}
	}
}
