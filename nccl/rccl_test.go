package nccl_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/input/ncclxml"
	"busbar.dev/internal/test/corpus"
	"busbar.dev/nccl"
)

// rcclPlan plans for nodes of one of RCCL's own topology files.
func rcclPlan(t *testing.T, file string, nodes int, version string, env map[string]string) *nccl.Plan {
	t.Helper()
	text := []byte(nil)
	if strings.HasSuffix(file, ".txt") {
		text = rcclXML(t, file)
	} else {
		text = corpus.Open(t, "nccl-topo-xml/"+file)
	}
	frag, err := ncclxml.Read(file, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster.Cluster{Types: frag.Types}
	for i := range nodes {
		c.Hosts = append(c.Hosts, cluster.Host{Name: fmt.Sprintf("host%d", i)})
	}
	return rcclOn(t, c, nodes, version, env)
}

// rcclXML is the topology file of a list of what is in it, a line and a tab more for every level.
func rcclXML(t *testing.T, file string) []byte {
	t.Helper()
	list, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	var open []string
	end := func(depth int) {
		for ; len(open) > depth; open = open[:len(open)-1] {
			b.WriteString(open[len(open)-1])
		}
	}
	b.WriteString(`<system version="2">`)
	for _, line := range strings.Split(strings.TrimSpace(string(list)), "\n") {
		w := strings.Fields(line)
		if w[0] == "#" {
			continue
		}
		end(strings.Count(line, "\t"))
		switch w[0] {
		case "cpu":
			fmt.
				Fprintf(&b, `<cpu numaid="%s" affinity="ffffffff" arch="x86_64" vendor="AuthenticAMD" familyid="%s" modelid="%s">`,
					w[1], w[2], w[3])
			open = append(open, "</cpu>")
		case "pci":
			fmt.
				Fprintf(&b, `<pci busid="%s" class="%s" link_speed="%s GT/s PCIe" link_width="%s" vendor="%s" device="%s" subsystem_vendor="%s" subsystem_device="%s">`, busID(w[1]), w[2], w[3], w[4], w[5], w[6], w[5], w[6])
			open = append(open, "</pci>")
		case "gpu":
			gcn, without := strings.CutSuffix(w[2], "-nogdr")
			fmt.Fprintf(&b, `<gpu dev="%s" sm="104" gcn="%s" arch="38911" rank="%s" gdr="%s">`, w[1], gcn, w[1],
				map[bool]string{true: "0", false: "1"}[without])
			for _, link := range w[3:] {
				at := strings.LastIndex(link, ":")
				to, count := link[:at], link[at+1:]
				fmt.Fprintf(&b, `<xgmi target="%s" count="%s" tclass="0x038000"/>`, busID(to), count)
			}
			b.WriteString("</gpu>")
		case "net":
			fmt.Fprintf(&b, `<nic><net name="mlx5_%s" dev="%s" speed="%s" port="1" guid="0x%s" maxconn="262144" gdr="1"/></nic>`,
				w[1], w[1], w[2], w[1])
		}
	}
	end(0)
	b.WriteString("</system>")
	return []byte(b.String())
}

func busID(short string) string {
	if strings.Count(short, ":") == 2 { // with a domain
		return short
	}
	if !strings.Contains(short, ":") {
		short += ":00.0"
	}
	return "0000:" + short
}

func rcclOn(t *testing.T, c *cluster.Cluster, nodes int, version string, env map[string]string) *nccl.Plan {
	t.Helper()
	v, err := nccl.ParseVersion(version)
	if err != nil {
		t.Fatal(err)
	}
	l, err := nccl.Block(c, nodes, len(c.Types[0].Of(cluster.GPU)))
	if err != nil {
		t.Fatal(err)
	}
	p, err := new(nccl.Planner).Plan(c, l, v, env)
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

// TestRCCLTopologies compares with what RCCL's own topo_expl (2.21.5 of 2024-10-24, ROCm/rccl 0cbce2a, built for a CPU
// with empty headers of HIP) prints for its topologies of gfx90a and MI300, by its number at the end of the line:
// model, channels, its table and the sizes at which the choice changes. It was built without LL128, which is a choice
// of the build. Left out is 72, whose file has one address (a1) for a switch and a NIC, and 84, 85, 87 and 88, whose
// files are not published.
func TestRCCLTopologies(t *testing.T) {
	noLL128 := map[string]string{"NCCL_PROTO": "^LL128"}
	for _, c := range []struct {
		file                       string
		nodes                      int
		model, coll, p2p, perPeer  int
		ringLL, ring, treeLL, tree string // latency/bandwidth of all-reduces
		switches                   string
	}{
		// 52
		{
			"rccl-8p_90a.txt", 1, 20, 16, 16, 2, "23.2/2.5", "67.4/61.7", "23.2/2.2", "52.0/49.1",
			"ring ll 8, tree simple 131072, ring simple 4194304",
		},
		// 56
		{
			"rccl-16p1h.txt", 1, 24, 24, 32, 2, "57.0/16.1", "152.0/134.4", "57.0/15.1", "152.0/124.7",
			"ring ll 8, ring simple 2097152",
		},
		// 58
		{
			"rccl-8p_90a_1.txt", 1, 25, 16, 16, 2, "23.2/2.5", "67.4/61.7", "23.2/2.2", "52.0/49.1",
			"ring ll 8, tree simple 131072, ring simple 4194304",
		},
		// 59
		{
			"rccl-16p1h.txt", 4, 26, 32, 32, 2, "531.2/12.3", "2398.6/82.0", "164.8/12.9", "282.4/87.2",
			"tree ll 8, tree simple 1048576, ring simple 268435456",
		},
		// 60
		{
			"rccl-3p_pcie.txt", 4, -1, 4, 4, 1, "118.8/0.3", "221.8/8.2", "68.0/0.3", "123.0/7.1",
			"tree ll 8, tree simple 8192, ring simple 16777216",
		},
		// 61
		{
			"rccl-3p_pcie_1.txt", 4, -1, 4, 4, 1, "118.8/0.3", "221.8/8.2", "68.0/0.3", "123.0/7.1",
			"tree ll 8, tree simple 8192, ring simple 16777216",
		},
		// 64
		{
			"rccl-16p1h_vm.txt", 1, 24, 24, 32, 2, "57.0/16.1", "152.0/134.4", "57.0/15.1", "152.0/124.7",
			"ring ll 8, ring simple 2097152",
		},
		// 65
		{
			"rccl-16p1h_vm.txt", 4, 29, 32, 32, 2, "531.2/12.3", "2398.6/82.0", "164.8/12.9", "282.4/87.2",
			"tree ll 8, tree simple 1048576, ring simple 268435456",
		},
		// 66
		{
			"rccl-8p1h.txt", 1, 30, 16, 16, 2, "33.0/11.5", "80.0/144.0", "33.0/8.8", "80.0/124.7",
			"ring ll 8, ring simple 1048576",
		},
		// 67
		{
			"rccl-8p1h.txt", 4, 31, 16, 16, 2, "216.8/10.4", "891.4/130.1", "144.6/8.8", "143.2/52.9",
			"tree simple 8, ring simple 134217728",
		},
		// 69
		{
			"rccl-8p1h_n1.txt", 1, 30, 16, 16, 2, "33.0/11.5", "80.0/144.0", "33.0/8.8", "80.0/124.7",
			"ring ll 8, ring simple 1048576",
		},
		// 70
		{
			"rccl-8p1h_n1.txt", 4, 31, 16, 16, 2, "216.8/10.4", "891.4/130.1", "144.6/8.8", "143.2/52.9",
			"tree simple 8, ring simple 134217728",
		},
		// 71
		{
			"rccl-8p1h_1.txt", 1, 33, 16, 16, 2, "33.0/11.5", "80.0/144.0", "33.0/8.8", "80.0/124.7",
			"ring ll 8, ring simple 1048576",
		},
		// 73
		{
			"rccl-8p1h_2.txt", 1, 35, 16, 16, 2, "23.2/5.8", "67.4/144.0", "23.2/5.0", "52.0/114.7",
			"ring ll 8, tree simple 262144, ring simple 16777216",
		},
		// 74
		{
			"rccl-8p1h_3.txt", 4, 36, 16, 16, 2, "196.0/26.0", "499.4/130.1", "73.2/25.2", "141.6/121.0",
			"tree ll 8, tree simple 2097152, ring simple 268435456",
		},
		// 75
		{
			"rccl-8p1h_4.txt", 1, 33, 16, 16, 2, "33.0/11.5", "80.0/144.0", "33.0/8.8", "80.0/124.7",
			"ring ll 8, ring simple 1048576",
		},
		// 76
		{
			"rccl-8p1h_4.txt", 2, 37, 32, 32, 2, "102.0/26.9", "252.2/134.4", "48.2/25.2", "96.8/220.5",
			"tree ll 8, tree simple 524288",
		},
		// 77
		{
			"rccl-8p1h_5.txt", 1, 33, 16, 16, 2, "33.0/11.5", "80.0/144.0", "33.0/8.8", "80.0/124.7",
			"ring ll 8, ring simple 1048576",
		},
		// 78
		{
			"rccl-8p1h_5.txt", 2, 37, 32, 32, 2, "102.0/26.9", "252.2/134.4", "48.2/25.2", "96.8/220.5",
			"tree ll 8, tree simple 524288",
		},
		// 79
		{
			"rccl-topo_8p_940.xml", 1, 38, 56, 64, 8, "23.2/15.4", "46.4/192.0", "24.6/10.1", "0.0/0.0",
			"ring ll 8, ring simple 524288",
		},
		// 80
		{
			"rccl-4p_940.txt", 2, -1, 8, 8, 2, "70.0/2.2", "137.4/54.9", "40.4/3.8", "73.6/87.4", "tree ll 8, tree simple 65536",
		},
		// 81
		{
			"rccl-topo_8p_940.xml", 4, 40, 64, 64, 2, "142.0/13.9", "2739.0/173.4", "66.6/10.1", "149.2/99.1",
			"tree ll 8, tree simple 2097152, ring simple 1073741824",
		},
		// 82
		{
			"rccl-topo_8p_940vm.xml", 1, 38, 56, 64, 8, "23.2/15.4", "46.4/192.0", "24.6/10.1", "0.0/0.0",
			"ring ll 8, ring simple 524288",
		},
		// 83
		{
			"rccl-topo_8p_940vm.xml", 2, 40, 64, 64, 2, "76.0/14.3", "1375.0/179.2", "45.6/10.1", "99.2/18.5",
			"tree ll 8, tree simple 4194304, ring simple 536870912",
		},
		// 86
		{
			"rccl-topo_8p_940.xml", 5, 40, 64, 64, 2, "175.0/13.8", "3421.0/172.3", "66.6/10.1", "149.2/99.1",
			"tree ll 8, tree simple 2097152, ring simple 1073741824",
		},
	} {
		p := rcclPlan(t, c.file, c.nodes, "2.21", noLL128)
		if p.RCCL == nil {
			t.Fatalf("%s: no RCCL", c.file)
		}
		text := func(a nccl.Algo, pr nccl.Proto) string {
			e := p.Est[nccl.AllReduce][a][pr]
			return fmt.Sprintf("%.1f/%.1f", e.Latency, e.BW)
		}
		got := fmt.Sprint(p.RCCL.Model, p.Count(), p.P2PChannels, p.P2PPerPeer, text(nccl.Ring, nccl.LL),
			text(nccl.Ring, nccl.Simple), text(nccl.Tree, nccl.LL), text(nccl.Tree, nccl.Simple), switches(t, p))
		want := fmt.Sprint(c.model, c.coll, c.p2p, c.perPeer, c.ringLL, c.ring, c.treeLL, c.tree, c.switches)
		if got != want {
			t.Errorf("%s on %d nodes:\n%s\nwant\n%s", c.file, c.nodes, got, want)
		}
	}
}

// TestRCCLRings holds RCCL's rings on MI300X and later to what a mesh allows: every link is used as often as any other,
// between nodes every rail as well, whatever the number of nodes.
func TestRCCLRings(t *testing.T) {
	for _, preset := range []string{"mi300x-8", "mi325x-8", "mi355x-8"} {
		for _, nodes := range []int{1, 2, 3, 4, 5} {
			c, err := hardware.Preset(preset, nodes)
			if err != nil {
				t.Fatal(err)
			}
			p := rcclOn(t, c, nodes, "2.28", nil)
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
				t.Errorf("%s:%d: rings use %d links and %d NICs, want %d and %d", preset, nodes, len(inside), len(across), 56*nodes,
					8*nodes)
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
		if p := rcclOn(t, c, nodes, "2.22", nil); p.RCCL.Model != want {
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
	p := rcclOn(t, c, 2, "2.28", nil)
	for size, want := range map[int64]string{
		64 << 10: "ll", 1 << 20: "ll128", 32 << 20: "tree ll128", 64 << 20: "ring ll128", 128 << 20: "ring simple",
		1 << 30: "ring simple",
	} {
		ch, err := p.Choose(nccl.Call{Op: nccl.AllReduce, Bytes: size})
		if got := fmt.Sprintf("%s %s", ch.Algo, ch.Proto); err != nil || !strings.HasSuffix(got, want) {
			t.Errorf("%d bytes: %s, %v; want %s", size, got, err, want)
		}
	}
}
