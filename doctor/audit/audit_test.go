package audit

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/finding"
	"busbar.dev/unit"
)

// machine is a synthetic node: two sockets, on each a PCIe switch with two GPUs
// and a NIC, NVLink through a switch. Nothing about it hurts.
func machine() *cluster.NodeType {
	t := &cluster.NodeType{Name: "good", Tree: cluster.Read}
	nv := t.Add(cluster.Device{Kind: cluster.NVSwitch, Index: -1, Parent: -1})
	for s := range 2 {
		sock := t.Add(cluster.Device{Kind: cluster.Socket, Index: s, Parent: -1})
		numa := t.Add(cluster.Device{Kind: cluster.NUMA, Index: s, Parent: sock})
		root := t.Add(cluster.Device{Kind: cluster.RootComplex, Index: -1, Parent: numa})
		t.Connect(cluster.Link{A: numa, B: root, Kind: cluster.OnDie})
		for i := range 2 {
			sw := t.Add(cluster.Device{Kind: cluster.PCISwitch, Index: -1, Parent: root})
			pcie := cluster.Link{
				Kind: cluster.PCIe, Lanes: 16, MaxLanes: 16, GTs: 32, MaxGTs: 32, Rate: cluster.FromSpec(63*unit.GBps, "test"),
			}
			join := func(a, b int) { l := pcie; l.A, l.B = a, b; t.Connect(l) }
			join(root, sw)
			g := t.Add(cluster.Device{Kind: cluster.GPU, Index: 2*s + i, Parent: sw, Model: cluster.FromRead("H100", "test")})
			n := t.Add(cluster.Device{
				Kind: cluster.NIC, Index: 2*s + i, Label: fmt.Sprintf("mlx5_%d", 2*s+i), Parent: sw,
				NIC: &cluster.NICInfo{
					Kind: cluster.RoCE,
					Ports: []cluster.Port{{
						Num: 1, Rate: cluster.FromRead(400*unit.Gbps, "test"), MTU: cluster.FromRead(9000, "test"), State: cluster.Up,
					}},
				},
			})
			join(sw, g)
			join(sw, n)
			t.Connect(cluster.Link{A: g, B: nv, Kind: cluster.NVLink, Lanes: 18})
		}
	}
	return t
}

// fabric is four nodes on two leaves and a spine, not oversubscribed.
func fabric(t *cluster.NodeType) *cluster.Cluster {
	c := &cluster.Cluster{Types: []*cluster.NodeType{t}}
	for i := range 4 {
		c.Hosts = append(c.Hosts, cluster.Host{Name: fmt.Sprintf("node%d", i)})
	}
	net := &c.Network
	net.Switches = []cluster.Switch{
		{Name: "leaf0", Rail: -1}, {Name: "leaf1", Rail: -1}, {Name: "spine0", Tier: cluster.Spine, Rail: -1},
	}
	rate := cluster.FromSpec(400*unit.Gbps, "test")
	for leaf := range 2 {
		for nic := range 4 {
			net.Links = append(net.Links, cluster.NetLink{
				A: cluster.End{Switch: leaf}, B: cluster.End{Switch: -1, Hosts: []cluster.Span{{First: 2 * leaf, N: 2}}, NIC: nic},
				Rate: rate,
			})
		}
		for p := range 8 {
			net.Links = append(net.Links, cluster.NetLink{
				A: cluster.End{Switch: 2, Port: 8*leaf + p + 1}, B: cluster.End{Switch: leaf, Port: 20 + p}, Rate: rate,
			})
		}
	}
	return c
}

func TestNothingHurtsOnAGoodCluster(t *testing.T) {
	if f := Run(fabric(machine())); len(f) > 0 {
		t.Errorf("findings on a cluster without fault: %+v", f)
	}
}

// Two ports of one adapter have a cable each; a slow one is told against its port.
func TestCableOfEachPort(t *testing.T) {
	for rate, want := range map[unit.Rate]bool{400 * unit.Gbps: false, 200 * unit.Gbps: true} {
		n := machine()
		info := n.Devices[n.Of(cluster.NIC)[1]].NIC
		info.Ports = append(info.Ports, info.Ports[0])
		c := fabric(n)
		for i := range 2 {
			l := c.Network.Links[1]
			l.A.Switch, l.B.Port, l.Rate = i, i+1, cluster.FromRead(rate, "test")
			c.Network.Links = append(c.Network.Links, l)
		}
		slow := slices.IndexFunc(Run(c), func(f finding.Finding) bool {
			return f.ID == "nic-cable-slow" && strings.Contains(f.Text, "can do 400 Gb/s and hang on cables of 200 Gb/s")
		})
		if slow >= 0 != want {
			t.Errorf("cables of %v told as slow: %v, want %v", rate, slow >= 0, want)
		}
	}
}

// GPUs without GPUDirect RDMA are not advised to force it, and a NIC beyond the host bridge is no finding for them.
func TestWithoutGPUDirect(t *testing.T) {
	for gdr, forced := range map[cluster.Tri]bool{cluster.No: false, cluster.Yes: true} {
		c := fabric(machine())
		n := c.Types[0]
		for _, g := range n.Of(cluster.GPU) {
			if n.Devices[g].GPU == nil {
				n.Devices[g].GPU = &cluster.GPUInfo{}
			}
			n.Devices[g].GPU.GDR = gdr
		}
		for _, k := range []string{"nic2", "nic3"} {
			n.Devices[n.ByName(k)].Kind = cluster.KindUnknown
		}
		list := Run(c)
		i := slices.IndexFunc(list, func(f finding.Finding) bool { return f.ID == "nic-other-socket" })
		if i < 0 || strings.Contains(list[i].Fix+list[i].Cause, "GPUDirect") != forced ||
			!forced && slices.ContainsFunc(list, func(f finding.Finding) bool { return f.ID == "nic-far" }) {
			t.Errorf("%v: %+v", gdr, list)
		}
	}
}

func TestFindings(t *testing.T) {
	dev := func(c *cluster.Cluster, name string) *cluster.Device {
		return &c.Types[0].Devices[c.Types[0].ByName(name)]
	}
	port := func(c *cluster.Cluster, name string) *cluster.Port { return &dev(c, name).NIC.Ports[0] }
	uplink := func(c *cluster.Cluster, name string) *cluster.Link {
		at := c.Types[0].ByName(name)
		for i := range c.Types[0].Links {
			if l := &c.Types[0].Links[i]; l.Kind == cluster.PCIe && l.B == at {
				return l
			}
		}
		return nil
	}
	drop := func(c *cluster.Cluster, names ...string) {
		for _, n := range names {
			dev(c, n).Kind = cluster.KindUnknown
		}
	}
	for _, tt := range []struct {
		name  string
		spoil func(c *cluster.Cluster)
		id    string
		sev   finding.Severity
		where string
		text  string
	}{
		{
			"shared NIC", func(c *cluster.Cluster) { drop(c, "nic1", "nic2", "nic3") }, "nic-shared", finding.Warn,
			"node[0-3]/mlx5_0", "12.5 GB/s each",
		},
		{
			"NIC on the other socket", func(c *cluster.Cluster) { drop(c, "nic2", "nic3") }, "nic-other-socket", finding.Warn,
			"node[0-3]/gpu2", "gpu2, gpu3",
		},
		{
			"no port up", func(c *cluster.Cluster) {
				for i := range 4 {
					port(c, fmt.Sprintf("nic%d", i)).State = cluster.Down
				}
			}, "all-ports-down", finding.Warn, "node[0-3]", "mlx5_0, mlx5_1, mlx5_2, mlx5_3",
		},
		{
			"no port of the fabric up", func(c *cluster.Cluster) {
				for i := range 4 {
					port(c, fmt.Sprintf("nic%d", i)).State = cluster.Down
				}
				c.Types[0].Add(cluster.Device{Kind: cluster.NIC, Name: "eno1", Index: -1, Parent: -1, NIC: &cluster.NICInfo{
					Kind: cluster.Ethernet, Ports: []cluster.Port{{Num: 1, State: cluster.Up}},
				}})
			}, "all-ports-down", finding.Warn, "node[0-3]", "mlx5_0, mlx5_1, mlx5_2, mlx5_3",
		},
		{
			"another firmware", func(c *cluster.Cluster) {
				for i, v := range []string{"28.39.1002", "28.39.1002", "28.41.1000", "28.39.1002"} {
					d := dev(c, fmt.Sprintf("nic%d", i))
					d.NIC.Firmware, d.Model = v, cluster.FromRead("ConnectX-7", "test")
				}
			}, "firmware-unlike", finding.Note, "node[0-3]", "mlx5_2 28.41.1000",
		},
		{
			"one path longer", func(c *cluster.Cluster) { drop(c, "nic3") }, "asymmetry-nic", finding.Warn, "node[0-3]/gpu3",
			"straggler",
		},
		{
			"PCIe narrow", func(c *cluster.Cluster) { uplink(c, "gpu1").Lanes = 8 }, "pcie-trained-low", finding.Warn,
			"node[0-3]/gpu1", "x8 at 32 GT/s, both ends could do x16",
		},
		{
			"idle GPU slow", func(c *cluster.Cluster) { uplink(c, "gpu1").GTs = 2.5 }, "pcie-trained-low", finding.Note,
			"node[0-3]/gpu1", "save power",
		},
		{"NIC slow slot", func(c *cluster.Cluster) {
			uplink(c, "nic1").GTs, uplink(c, "nic1").Rate.Value = 16,
				31.5*unit.GBps
		}, "pcie-trained-low", finding.Warn, "node[0-3]/mlx5_1", "16 GT/s"},
		{
			"PCIe under the NIC", func(c *cluster.Cluster) { uplink(c, "nic1").Rate.Value = 31.5 * unit.GBps }, "nic-pcie-bound",
			finding.Warn, "node[0-3]/mlx5_1", "31.5 GB/s",
		},
		{
			"unlike rates", func(c *cluster.Cluster) { port(c, "nic2").Rate.Value = 200 * unit.Gbps }, "nic-rates-unlike",
			finding.Warn, "node[0-3]/mlx5_2", "200 Gb/s",
		},
		{
			"MTU", func(c *cluster.Cluster) { port(c, "nic0").MTU.Value = 1500 }, "mtu-1500", finding.Warn, "node[0-3]/mlx5_0",
			"MTU 1500",
		},
		{
			"port down", func(c *cluster.Cluster) { port(c, "nic0").State = cluster.Init }, "port-init", finding.Warn,
			"node[0-3]/mlx5_0", "subnet manager",
		},
		{"NVLink unlike", func(c *cluster.Cluster) {
			for i := range c.Types[0].Links {
				if l := &c.Types[0].Links[i]; l.Kind == cluster.NVLink {
					l.Lanes = 9
					break
				}
			}
		}, "asymmetry-nvlink", finding.Warn, "node[0-3]/gpu0", "NV9"},
		{"odd node", func(c *cluster.Cluster) {
			o := machine()
			o.Name = "odd"
			o.Devices[o.ByName("gpu3")].Kind = cluster.KindUnknown
			c.Types = append(c.Types, o)
			c.Hosts[3].Type = 1
		}, "asymmetry-node", finding.Warn, "node3", "3 GPUs instead of 4"},
		{"oversubscribed", func(c *cluster.Cluster) {
			for i := range c.Network.Links {
				if l := &c.Network.Links[i]; !l.B.ToHosts() {
					l.Rate.Value /= 2
				}
			}
		}, "leaf-oversubscribed", finding.Warn, "leaf[0-1]", "2:1"},
		{
			"slow cable", func(c *cluster.Cluster) { c.Network.Links[5].Rate.Value = 100 * unit.Gbps }, "link-slow",
			finding.Warn, "spine0[2]–leaf0[21]", "100 Gb/s",
		},
		{
			"cable down", func(c *cluster.Cluster) { c.Network.Links[5].State = cluster.Down }, "link-down", finding.Error,
			"spine0[2]–leaf0[21]", "down",
		},
		{
			"cable missing", func(c *cluster.Cluster) { c.Network.Links = append(c.Network.Links[:5], c.Network.Links[6:]...) },
			"uplink-missing", finding.Warn, "leaf0", "7 cables up, most leaves have 8",
		},
		{"errors on a cable", func(c *cluster.Cluster) {
			c.Network.Links[5].Counters = map[string]uint64{"B.SymbolErrorCounter": 1234}
		}, "error-counters", finding.Warn, "leaf0[21]", "SymbolErrorCounter=1234"},
		{"errors on a NIC", func(c *cluster.Cluster) {
			c.Hosts[2].IDs = []cluster.Identity{{Device: "nic1", Port: 1, Counters: map[string]uint64{"symbol_error": 7}}}
		}, "error-counters", finding.Warn, "node2/mlx5_1", "symbol_error=7"},
		{"slow pair", func(c *cluster.Cluster) {
			t := c.Types[0]
			g := t.Of(cluster.GPU)
			for i, a := range g {
				for k, b := range g {
					if a == b {
						continue
					}
					r := 370 * unit.GBps
					if i == 0 && k == 2 {
						r = 90 * unit.GBps
					}
					t.Pairs = append(t.Pairs, cluster.Pair{A: a, B: b, Rate: cluster.FromMeasured(r, "test")})
				}
			}
		}, "pair-slow", finding.Warn, "node[0-3]/gpu0", "down to 90 GB/s from gpu0 to gpu2"},
		{"sick GPU", func(c *cluster.Cluster) {
			t := c.Types[0]
			g := t.Of(cluster.GPU)
			for _, a := range g {
				for _, b := range g {
					r := 370 * unit.GBps
					if a == g[3] || b == g[3] {
						r = 90 * unit.GBps
					}
					if a != b {
						t.Pairs = append(t.Pairs, cluster.Pair{A: a, B: b, Rate: cluster.FromMeasured(r, "test")})
					}
				}
			}
		}, "pair-slow", finding.Warn, "node[0-3]/gpu3", "6 of them with gpu3"},
		{"slow cable under a fast NIC", func(c *cluster.Cluster) {
			for i := range c.Network.Links {
				if l := &c.Network.Links[i]; l.B.ToHosts() && l.B.NIC == 2 {
					l.Rate.Value = 200 * unit.Gbps
				}
			}
		}, "nic-cable-slow", finding.Warn, "node[0-3]/mlx5_2", "hang on cables of 200 Gb/s"},
		{"a host that drops what it receives", func(c *cluster.Cluster) {
			c.Hosts[2].IDs = []cluster.Identity{{Device: "nic1", Port: 1, Counters: map[string]uint64{
				"rx_out_of_buffer": 2e6, "rx_discards_phy": 3e7, "tx_global_pause": 4000,
			}}}
		}, "host-overrun", finding.Warn, "node2/mlx5_1", "rx_discards_phy=30000000, rx_out_of_buffer=2000000"},
		{"loose host", func(c *cluster.Cluster) {
			c.Hosts = append(c.Hosts, cluster.Host{Name: "lost"})
		}, "host-unattached", finding.Warn, "lost", "no switch"},
	} {
		c := fabric(machine())
		tt.spoil(c)
		found := Run(c)
		ok := false
		for _, f := range found {
			if f.ID == tt.id && f.Severity == tt.sev && f.Where == tt.where && strings.Contains(f.Text, tt.text) && f.Fix != "" {
				ok = true
			}
		}
		if !ok {
			t.Errorf("%s: want %s %s at %s with %q; found %+v", tt.name, tt.sev, tt.id, tt.where, tt.text, found)
		}
	}
}

func TestWorstFirst(t *testing.T) {
	c := fabric(machine())
	c.Network.Links[5].State = cluster.Down
	c.Types[0].Devices[c.Types[0].ByName("nic0")].NIC.Ports[0].MTU.Value = 1500
	f := Run(c)
	if len(f) < 2 || f[0].Severity != finding.Error || !finding.Serious(f) {
		t.Errorf("%+v", f)
	}
}

// Hosts that Slurm gives no jobs are a note, those with one reason together.
func TestOutOfService(t *testing.T) {
	c := fabric(machine())
	for _, h := range []int{1, 2} {
		c.Hosts[h].Out = &cluster.Out{State: "drained", Reason: "XID 79 [root@2026-11-15T03:12:44]"}
	}
	found := Run(c)
	if len(found) != 1 {
		t.Fatalf("%v", found)
	}
	f := found[0]
	if f.ID != "node-unavailable" || f.Severity != finding.Note || f.Where != "node[1-2]" ||
		!strings.HasPrefix(f.Text, "drained in Slurm when its nodes were listed: XID 79 [root@") ||
		!strings.HasSuffix(f.Fix, "scontrol update nodename=node[1-2] state=resume") {
		t.Errorf("%+v", f)
	}
}

// A node that lacks what Slurm was told of it is a warning.
func TestFewerGPUsThanConfigured(t *testing.T) {
	c := fabric(machine())
	c.Hosts[1].Out = &cluster.Out{State: "drained", Reason: "gres/gpu count reported lower than configured (6 < 8)"}
	if f := Run(c); len(f) != 1 || f[0].Severity != finding.Warn || !strings.Contains(f[0].Text, "6 < 8") {
		t.Errorf("%+v", f)
	}
}

// What was not checked names what would say it.
func TestUncheckedRates(t *testing.T) {
	odd := machine()
	for _, n := range odd.Of(cluster.NIC)[1:3] {
		odd.Devices[n].NIC.Ports = nil
	}
	c := fabric(machine())
	c.Types = append(c.Types, odd)
	c.Hosts[1].Type, c.Hosts[3].Type = 1, 1
	list := strings.Join(Unchecked(c), "\n")
	if want := "rates of NICs (on the node: ibstat DEVICE for InfiniBand"; !strings.Contains(list,
		want) {
		t.Errorf("%q is missing in %q", want, list)
	}
	if list := Unchecked(fabric(machine())); strings.Contains(strings.Join(list, "\n"), "NICs") {
		t.Errorf("all rates are known: %q", list)
	}
}

// What one more source says of a node is no difference of the node: rates of NICs that are not known elsewhere, or
// only assumed there.
func TestUnknownRatesAreNoDifference(t *testing.T) {
	for name, rate := range map[string]cluster.Fact[unit.Rate]{
		"unknown": {}, "assumed": cluster.FromAssumed(100*unit.Gbps, "a rule"),
		"read": cluster.FromRead(100*unit.Gbps, "ibstat"),
	} {
		c := fabric(machine())
		known := machine()
		known.Name = "known"
		c.Types = append(c.Types, known)
		c.Hosts[3].Type = 1
		nic := &c.Types[0].Devices[c.Types[0].ByName("nic2")]
		nic.NIC.Ports[0].Rate = rate
		found := slices.ContainsFunc(Run(c), func(f finding.Finding) bool { return f.ID == "asymmetry-node" })
		if found != (name == "read") {
			t.Errorf("%s: told as a difference: %v", name, found)
		}
	}
}

// A ratio that somebody states is a property of the network, and what is worse than stated is a fault.
func TestStatedOversubscription(t *testing.T) {
	for stated, want := range map[float64]finding.Severity{0: finding.Warn, 1: finding.Warn, 2: finding.Note} {
		c := fabric(machine())
		for i := range c.Network.Links {
			if l := &c.Network.Links[i]; !l.B.ToHosts() {
				l.Rate.Value /= 2
			}
		}
		if stated > 0 {
			c.Network.Oversubscription = cluster.FromRead(stated, "as given")
		}
		list := Run(c)
		i := slices.IndexFunc(list, func(f finding.Finding) bool { return f.ID == "leaf-oversubscribed" })
		if i < 0 || list[i].Severity != want {
			t.Errorf("%g:1 stated: %+v", stated, list)
		}
		c.Warnings = append(c.Warnings, cluster.Warning{Text: cluster.Partial + ": 1 node is named as a neighbour"})
		if list := Run(c); slices.ContainsFunc(list, func(f finding.Finding) bool { return f.ID == "leaf-oversubscribed" }) ||
			!strings.Contains(strings.Join(Unchecked(c), " "), "the whole fabric") {
			t.Errorf("of a part of a fabric: %+v, unchecked %q", list, Unchecked(c))
		}
	}
}
