package cluster

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"busbar.dev/unit"
)

// fragment wraps a node as one source's word.
func fragment(source, host string, t *NodeType) *Fragment {
	f := &Fragment{Format: source, Source: source + ".txt"}
	f.AddNode(host, t)
	return f
}

func hasWarning(t *testing.T, c *Cluster, parts ...string) {
	t.Helper()
	for _, w := range c.Warnings {
		all := true
		for _, p := range parts {
			all = all && strings.Contains(w.String(), p)
		}
		if all {
			return
		}
	}
	t.Errorf("no warning with %q in %v", parts, c.Warnings)
}

func TestJoinNodeFromOneFileFabricFromAnother(t *testing.T) {
	node := fragment("nvidia-smi topo -m", "", twoSocket(true))
	fabric := &Fragment{Format: "ibnetdiscover", Source: "fabric.txt"}
	thin := &NodeType{}
	// The fabric lists the NICs in another order than the node does.
	for _, l := range []string{"mlx5_1", "mlx5_0"} {
		thin.Add(Device{
			Kind: NIC, Index: -1, Label: l, Parent: -1,
			NIC: &NICInfo{Kind: InfiniBand, Ports: []Port{{Num: 1, Rate: FromRead(200*unit.Gbps, "ibnetdiscover")}}},
		})
	}
	fabric.Types = []*NodeType{thin}
	fabric.Hosts = []Host{{Name: "gpu1", Type: 0}, {Name: "gpu2", Type: 0}}
	fabric.Network = Network{
		Kind:     InfiniBand,
		Switches: []Switch{{Name: "leaf", GUID: "aa", Rail: -1}},
		Links:    []NetLink{{A: End{Switch: 0, Port: 1}, B: End{Switch: -1, Hosts: []Span{{0, 2}}, NIC: 0}}},
	}
	c := Join(node, fabric)
	if s := c.Summary(); s.Nodes != 2 || s.GPUs != 12 || s.NICs != 4 || s.NodeTypes != 1 {
		t.Fatalf("summary %+v", s)
	}
	// NIC 0 of the fabric is mlx5_1, which is number 1 of the joined node.
	if got := c.Network.Links[0].B.NIC; got != 1 {
		t.Errorf("the fabric's first NIC became number %d of the joined node, want 1 (mlx5_1)", got)
	}
	r := NewRoutes(c)
	if sw, _ := r.Leaf(1, c.Types[0].ByName("nic1")); sw != 0 {
		t.Errorf("mlx5_1 of the second host is on switch %d, want 0", sw)
	}
	if sw, _ := r.Leaf(1, c.Types[0].ByName("nic0")); sw != -1 {
		t.Errorf("mlx5_0 is on switch %d, want none", sw)
	}
}

func TestJoinContradictionNamesBothSources(t *testing.T) {
	a, b := twoSocket(true), twoSocket(true)
	b.Tree = Assumed
	for i := range b.Links {
		if b.Links[i].Kind == NVLink {
			b.Links[i].Lanes = 10
		}
	}
	b.Devices[b.ByName("nic0")].NIC.Ports[0].Rate = FromRead(100*unit.Gbps, "ibstat")
	c := Join(fragment("sysfs", "", a), fragment("ibstat", "", b))
	hasWarning(t, c, "sysfs.txt (sysfs)", "ibstat.txt (ibstat)", "12 nvlink", "10")
	hasWarning(t, c, "port rate", "25 GB/s", "12.5 GB/s")
	if c.Types[0].Links[len(c.Types[0].Links)-1].Lanes != 12 {
		t.Error("the better-known source was not kept")
	}
}

func TestJoinComparesSaidMatrix(t *testing.T) {
	a, b := twoSocket(true), twoSocket(true)
	b.Tree = Assumed
	m := b.Matrix()
	m.Class[0][6], m.Class[6][0] = "SYS", "SYS" // gpu0–nic0 is PIX in the tree
	b.Said = &m
	c := Join(fragment("sysfs", "", a), fragment("nvidia-smi topo -m", "", b))
	hasWarning(t, c, "contradicts", "gpu0–nic0 is SYS there, PIX here")
}

// gpu is a node of one GPU.
func gpu(d Device) *NodeType {
	d.Kind, d.Parent = GPU, -1
	t := &NodeType{}
	t.Add(d)
	return t
}

// One GPU, many names: PCI address, UUID, index and MIG slice end on one device.
func TestJoinOneGPUManyNames(t *testing.T) {
	byPCI := gpu(Device{Index: -1, PCI: "0000:07:00.0"})
	byPCI.Tree = Read
	both := gpu(Device{Index: 3, PCI: "0000:07:00.0", UUID: "GPU-1"})
	byUUID := gpu(Device{Index: -1, UUID: "GPU-1", GPU: &GPUInfo{Slices: []Slice{{UUID: "MIG-1", Profile: "3g.40gb"}}}})
	byIndex := gpu(Device{Index: 3, Model: FromRead("A100", "nvidia-smi")})
	c := Join(fragment("sysfs", "", byPCI), fragment("smi", "", both), fragment("smi -L", "", byUUID),
		fragment("topo", "", byIndex))
	if n := c.Summary().GPUs; n != 1 {
		t.Fatalf("%d GPUs, want one", n)
	}
	d := c.Types[0].Devices[0]
	if d.PCI != "0000:07:00.0" || d.Index != 3 || d.Model.Value != "A100" || len(d.GPU.Slices) != 1 {
		t.Errorf("%+v", d)
	}
	if ids := c.Hosts[0].IDs; len(ids) != 1 || ids[0].UUID != "GPU-1" {
		t.Errorf("identities %+v", ids)
	}
	if len(c.Warnings) > 0 {
		t.Errorf("warnings %v", c.Warnings)
	}
}

// A source with only the address and one with only the index are tied together
// by one that has both, wherever it stands among the arguments.
func TestJoinTiesNamesTogether(t *testing.T) {
	topo := gpu(Device{Index: 2})
	topo.Tree = Assumed
	c := Join(
		fragment("topo", "", topo),
		fragment("log", "", gpu(Device{Index: -1, PCI: "0000:07:00.0"})),
		fragment("table", "", gpu(Device{Index: 2, PCI: "0000:07:00.0"})),
	)
	if n := c.Summary().GPUs; n != 1 {
		t.Errorf("%d GPUs, want one", n)
	}
}

func TestJoinKeepsGPUsWithDifferentAddressesApart(t *testing.T) {
	one, two := &NodeType{Tree: Read}, &NodeType{}
	one.Add(Device{Kind: GPU, Index: 0, Parent: -1, PCI: "0000:07:00.0"})
	two.Add(Device{Kind: GPU, Index: 0, Parent: -1, PCI: "0000:0b:00.0"})
	c := Join(fragment("a", "", one), fragment("b", "", two))
	if n := c.Summary().GPUs; n != 2 {
		t.Errorf("%d GPUs, want 2: the same index with other addresses is another GPU", n)
	}
}

func TestJoinSameTypeOnce(t *testing.T) {
	var frags []*Fragment
	for _, h := range []string{"a", "b.example.org", "b"} {
		n := twoSocket(true)
		n.Devices[n.ByName("gpu0")].UUID = "GPU-" + h
		frags = append(frags, fragment("sysfs", h, n))
	}
	frags[2].Types[0].Devices[frags[2].Types[0].ByName("gpu0")].UUID = "GPU-b.example.org"
	c := Join(frags...)
	if s := c.Summary(); s.Nodes != 2 || s.NodeTypes != 1 {
		t.Errorf("summary %+v; want 2 nodes (b and b.example.org are one) of one type", s)
	}
}

func TestJoinNetworkByGUIDAndPort(t *testing.T) {
	sw := func(name string) Fragment {
		return Fragment{
			Format: name,
			Cluster: Cluster{Network: Network{Switches: []Switch{
				{Name: name, GUID: "aa", Rail: -1}, {Name: "spine", GUID: "bb", Tier: Spine, Rail: -1},
			}}},
		}
	}
	a, b := sw("leaf3"), sw("S-aa")
	a.Network.Links = []NetLink{{
		A: End{Switch: 0, Port: 2}, B: End{Switch: 1, Port: 9}, Rate: FromRead(25*unit.GBps, "x"),
	}}
	b.Network.Links = []NetLink{{
		A: End{Switch: 1, Port: 9}, B: End{Switch: 0, Port: 2}, Counters: map[string]uint64{"B.SymbolErrorCounter": 1234},
	}}
	c := Join(&a, &b)
	if len(c.Network.Switches) != 2 || len(c.Network.Links) != 1 {
		t.Fatalf("%d switches, %d links", len(c.Network.Switches), len(c.Network.Links))
	}
	if n := c.Network.Links[0].Counters["A.SymbolErrorCounter"]; n != 1234 {
		t.Errorf("counters %v; want 1234 on end A (leaf3)", c.Network.Links[0].Counters)
	}
}

func TestDocumentRoundTrip(t *testing.T) {
	c := railCluster(2)
	c.Hosts[1].IDs = []Identity{
		{Device: "gpu0", UUID: "GPU-x"},
		{Device: "nic0", Port: 1, GUID: "ab", LID: 4, Counters: map[string]uint64{"symbol_error": 3}},
	}
	c.Types[0].Pairs = []Pair{{
		A: 4, B: 5, Rate: FromMeasured(unit.Rate(274e9), "p2p"), P2P: Yes, Latency: FromMeasured(unit.Micros(1.5), "p2p"),
	}}
	c.Warnings = []Warning{{Source: "a", Where: "b", Text: "c"}}
	data, err := json.Marshal(c.Document())
	if err != nil {
		t.Fatal(err)
	}
	var d Document
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	back, err := d.Cluster()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c, back); diff != "" {
		t.Errorf("JSON does not round-trip (-want +got):\n%s", diff)
	}
}

func TestDocumentErrorsNameThePlace(t *testing.T) {
	for _, tt := range []struct{ doc, want string }{
		{`{"version":9}`, "version 9"},
		{`{"version":1,"types":[{"name":"a","devices":[{"kind":"gpu","name":"g","parent":"x"}]}]}`, `types[0] a: devices[0] g: parent: no device "x"`},
		{`{"version":1,"types":[{"name":"a","devices":[{"kind":"gpu","name":"g"},{"kind":"gpu","name":"g"}]}]}`, `name "g" is empty or taken`},
		{`{"version":1,"types":[{"name":"a","devices":[{"kind":"gpu","name":"g"}],"links":[{"a":"g","b":"h"}]}]}`, `links[0]: no device "h"`},
		{`{"version":1,"nodes":[{"hosts":"n[1-2","type":""}]}`, "nodes[0]: hosts:"},
		{`{"version":1,"nodes":[{"hosts":"n","type":"z"}]}`, `no node type "z"`},
		{`{"version":1,"nodes":[{"hosts":"n,n"}]}`, `"n" is listed twice`},
		{`{"version":1,"network":{"links":[{"a":{"switch":"s"},"b":{"hosts":"n"}}]}}`, `no switch "s"`},
	} {
		var d Document
		err := json.Unmarshal([]byte(tt.doc), &d)
		if err == nil {
			_, err = d.Cluster()
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", tt.doc, err, tt.want)
		}
	}
}

// A scheduler's tree beside the cables is kept, with its hosts by name, through the written form too; a rack whose
// nodes have the same leaves but for a missing cable is no contradiction.
func TestJoinKeepsSchedulerTree(t *testing.T) {
	cables := &Fragment{Format: "cables"}
	node := &NodeType{}
	for i := range 2 {
		node.Add(Device{Kind: NIC, Index: i, Parent: -1, NIC: &NICInfo{}})
	}
	cables.Types = []*NodeType{node}
	cables.Network.Switches = []Switch{
		{Name: "leaf0", GUID: "1", Tier: Leaf, Rail: -1}, {Name: "leaf1", GUID: "2", Tier: Leaf, Rail: -1},
	}
	for h, name := range []string{"n1", "n2", "n3", "n4"} {
		cables.Hosts = append(cables.Hosts, Host{Name: name})
		for nic := range 2 {
			if name == "n4" && nic == 1 {
				continue
			}
			cables.Network.Links = append(cables.Network.Links, NetLink{
				A: AtSwitch(nic, h+1), B: End{Switch: -1, Hosts: []Span{{h, 1}}, NIC: nic},
			})
		}
	}
	slurm := &Fragment{Format: "Slurm topology.conf"}
	slurm.Network.Switches = []Switch{
		{Name: "rack1", Tier: Leaf, Rail: -1}, {Name: "rack2", Tier: Leaf, Rail: -1}, {Name: "core", Tier: Spine, Rail: -1},
	}
	for _, name := range []string{"n3", "n4", "n1", "n2"} {
		slurm.Hosts = append(slurm.Hosts, Host{Name: name, Type: -1})
	}
	for i := range 2 {
		slurm.Network.Links = append(slurm.Network.Links,
			NetLink{A: AtSwitch(i, 0), B: End{Switch: -1, Hosts: []Span{{2 * i, 2}}, NIC: -1}},
			NetLink{A: AtSwitch(2, 0), B: AtSwitch(i, 0)})
	}
	want := "[{rack1 core [n3 n4]} {rack2 core [n1 n2]} {core  []}]"
	c := Join(cables, slurm)
	if got := fmt.Sprint(c.Network.Scheduler); got != want || len(c.Network.Switches) != 2 || len(c.Warnings) > 0 {
		t.Errorf("%s, %d switches, %v; want %s and two", got, len(c.Network.Switches), c.Warnings, want)
	}
	back, err := c.Document().Cluster()
	if err != nil || fmt.Sprint(back.Network.Scheduler) != want {
		t.Errorf("%v %v after it was written", err, back)
	}
	if alone := Join(slurm); alone.Network.Scheduler != nil || len(alone.Network.Switches) != 3 {
		t.Errorf("alone it is the network: %v", alone.Network)
	}
	d := c.Document()
	d.Network.Scheduler[0].Up = "roof"
	if _, err := d.Cluster(); err == nil || !strings.Contains(err.Error(), `no switch "roof"`) {
		t.Errorf("%v", err)
	}
}

// TestJoinLoneAdapters: what a file without a host name says holds for nodes, and not for an adapter of a fabric that
// carries no host's name. Where there are such alone, they are the nodes.
func TestJoinLoneAdapters(t *testing.T) {
	machine := &Fragment{Source: "preset"}
	kind := &NodeType{Name: "dgx", Tree: Read}
	kind.Add(Device{Kind: GPU, Index: 0, Parent: -1})
	machine.AddNode("", kind)
	for names, want := range map[string][2]int{
		"n1 n2 ca-0000000000000003":               {2, 2},
		"ca-0000000000000003 ca-0000000000000004": {2, 2},
	} {
		fabric := &Fragment{Source: "fabric"}
		for name := range strings.FieldsSeq(names) {
			fabric.Hosts = append(fabric.Hosts, Host{Name: name, Type: -1})
		}
		if s := Join(fabric, machine).Summary(); s.Nodes != want[0] || s.GPUs != want[1] {
			t.Errorf("%s: %d nodes with %d GPUs", names, s.Nodes, s.GPUs)
		}
	}
}
