package cluster

import (
	"slices"
	"strings"
	"testing"
)

// Of two matrices the first is kept; links that a source without a matrix names
// are believed, and the matrix that has none of them is told of.
func TestJoinMatrixAgainstLinks(t *testing.T) {
	node := func(class ClassType, linked bool) *NodeType {
		n := &NodeType{Tree: Assumed}
		top := n.Add(Device{Kind: RootComplex, Index: -1, Parent: -1})
		for i := range 2 {
			g := n.Add(Device{Kind: GPU, Index: i, Parent: top})
			n.Connect(Link{A: top, B: g, Kind: PCIe})
		}
		if linked {
			n.Connect(Link{A: 1, B: 2, Kind: NVLink, Lanes: 4})
		}
		if class != Apart {
			m := n.Matrix()
			m.Class[0][1], m.Class[1][0] = Class{Type: class, Links: 4}.String(), Class{Type: class, Links: 4}.String()
			n.Said = &m
		}
		return n
	}
	between := func(c *Cluster) string { return c.Types[0].Matrix().Class[0][1] }

	c := Join(fragment("one", "h", node(PHB, false)), fragment("two", "h", node(NV, true)))
	hasWarning(t, c, "two.txt (two) contradicts one.txt (one), which is kept", "NV4 there, PHB here")
	if got := between(c); got != "PHB" {
		t.Errorf("GPUs are %s of each other; the first matrix says PHB", got)
	}
	c = Join(fragment("one", "h", node(PHB, false)), fragment("two", "h", node(Apart, true)))
	hasWarning(t, c, "one.txt (one) contradicts two.txt (two), which is kept", "PHB there, NV4 here")
	if got := between(c); got != "NV4" {
		t.Errorf("GPUs are %s of each other; a source has four links between them", got)
	}
}

// GPUs with addresses and none in common: a preset's give way, other models are
// another machine, and parts of one node add up, with a word.
func TestJoinGPUsWithoutCommonAddress(t *testing.T) {
	node := func(preset, model string, from Origin, pci ...PCI) *NodeType {
		n := &NodeType{Preset: preset, Tree: from}
		for i, a := range pci {
			n.Add(Device{Kind: GPU, Index: i, Parent: -1, PCI: a, Model: Fact[string]{Value: model, Origin: from}})
		}
		return n
	}
	first := node("", "NVIDIA H100", Read, "0000:1a:00.0", "0000:40:00.0")
	for _, tc := range []struct {
		name string
		with *NodeType
		gpus int
		warn []string
	}{
		{
			"preset", node("dgx-h100", "NVIDIA H100", Spec, "0000:1b:00.0", "0000:43:00.0"), 2,
			[]string{"2 GPUs have other addresses", "taken as the same"},
		},
		{
			"other model", node("", "NVIDIA A100", Read, "0000:07:00.0", "0000:0f:00.0"), 2,
			[]string{"2 GPUs (NVIDIA H100)", "2 GPUs (NVIDIA A100)", "two different machines under one name; kept the first"},
		},
		{"other part", node("", "NVIDIA H100", Read, "0000:9a:00.0"), 3, []string{"no address in common; kept all"}},
	} {
		c := Join(fragment("one", "h", first), fragment("two", "h", tc.with))
		if got := c.Summary().GPUs; got != tc.gpus {
			t.Errorf("%s: %d GPUs, want %d", tc.name, got, tc.gpus)
		}
		hasWarning(t, c, tc.warn...)
	}
}

// Sockets that only one source counts (Slurm's Sockets=2) are all kept beside the NUMA domains of another (nvidia-smi
// topo -m), and contain them where there is one way to do it.
func TestJoinSocketsAndNUMA(t *testing.T) {
	for _, tc := range []struct {
		sockets, domains int
		want             []string // the socket of each NUMA domain
	}{
		{2, 2, []string{"socket0", "socket1"}},
		{1, 4, []string{"socket0", "socket0", "socket0", "socket0"}},
		{2, 4, []string{"", "", "", ""}},
	} {
		tree := &NodeType{Tree: Assumed}
		for i := range tc.domains {
			tree.Add(Device{Kind: NUMA, Index: i, Parent: -1})
		}
		counts := &NodeType{}
		for i := range tc.sockets {
			counts.Add(Device{Kind: Socket, Index: i, Parent: -1})
		}
		got := Join(fragment("topo", "h", tree), fragment("slurm", "h", counts)).Types[0]
		var in []string
		for _, d := range got.Of(NUMA) {
			name := ""
			if s := got.Above(d, Socket); s >= 0 {
				name = got.Devices[s].Name
			}
			in = append(in, name)
		}
		if got.Count(Socket) != tc.sockets || !slices.Equal(in, tc.want) {
			t.Errorf("%d sockets and %d NUMA domains: %d sockets, the domains in %q, want %q", tc.sockets, tc.domains,
				got.Count(Socket), in, tc.want)
		}
	}
}

// What differs in every device of many nodes is one warning, which names the source that said it and not the one that
// it was merged into.
func TestManyAlikeAreOneWarning(t *testing.T) {
	node := func(label, uuid string) *NodeType {
		n := &NodeType{}
		n.Add(Device{Kind: NIC, Index: -1, Parent: -1, Label: label, UUID: uuid, NIC: &NICInfo{}})
		return n
	}
	tree := &Fragment{Source: "topo.txt"}
	fabric, other := &Fragment{Source: "fabric.txt"}, &Fragment{Source: "ibstat.txt"}
	for _, host := range []string{"n1", "n2", "n3", "n4", "n5"} {
		bare := node("mlx5_0", "")
		bare.Tree = Read
		tree.AddNode(host, bare)
		fabric.AddNode(host, node("mlx5_0", "0x"+host))
		other.AddNode(host, node("mlx5_0", "0xff"))
	}
	list := Join(tree, fabric, other).Warnings
	if len(list) != 1 || !strings.Contains(list[0].Text, "UUID 0xn1 in fabric.txt, 0xff in ibstat.txt") ||
		!strings.Contains(list[0].Text, "4 more on n[1-5]") {
		t.Errorf("%+v", list)
	}
}

// What a source says of a device that only an earlier one has is added to the joined cluster, not to that source.
func TestJoinLeavesFragmentsAsTheyAre(t *testing.T) {
	nic := func(info NICInfo) *NodeType {
		n := &NodeType{}
		n.Add(Device{Kind: NIC, Index: -1, Parent: -1, Label: "mlx5_0", NIC: &info})
		return n
	}
	tree := &NodeType{Tree: Read}
	tree.Add(Device{Kind: GPU, Index: 0, Parent: -1})
	second, third := nic(NICInfo{Kind: InfiniBand}), nic(NICInfo{Driver: "mlx5_core", Ports: []Port{{Num: 1, State: Up}}})
	c := Join(fragment("tree", "h", tree), fragment("second", "h", second), fragment("third", "h", third))
	if got := c.Types[0].Devices[1].NIC; got.Kind != InfiniBand || got.Driver != "mlx5_core" || len(got.Ports) != 1 {
		t.Errorf("joined: %+v", got)
	}
	if said := second.Devices[0].NIC; said.Driver != "" || len(said.Ports) > 0 {
		t.Errorf("the second source says %+v after it was joined", said)
	}
}
