package slurm

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/internal/switchtree"
	"busbar.dev/internal/test/corpus"
	"busbar.dev/internal/test/readertest"
)

func writeConf(t *testing.T, c *cluster.Cluster) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteConf(&b, c); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// What is written reads back as the same tree, for every real file.
func TestWriteReadsBack(t *testing.T) {
	for _, e := range corpus.Index(t, "Slurm topology.conf") {
		f, err := ReadConf(e.File, bytes.NewReader(corpus.Open(t, e.File)))
		if err != nil {
			t.Fatal(err)
		}
		c := cluster.Join(f)
		back, err := ReadConf("conf", strings.NewReader(writeConf(t, c)))
		if err != nil {
			t.Fatal(err)
		}
		if a, b := readertest.Sorted(readertest.Shape(c)), readertest.Sorted(readertest.Shape(&back.Cluster)); a != b {
			t.Errorf("%s:\n%.500s\nread back:\n%.500s", e.File, a, b)
		}
		var y bytes.Buffer
		if err := WriteYAML(&y, c); err != nil {
			t.Fatal(err)
		}
		back, err = ReadYAML("yaml", bytes.NewReader(y.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		if a, b := readertest.Sorted(readertest.Shape(c)), readertest.Sorted(readertest.Shape(&back.Cluster)); a != b {
			t.Errorf("%s as YAML:\n%.500s\nread back:\n%.500s", e.File, a, b)
		}
	}
}

// fabric makes a cluster of n hosts and switches given as "name tier".
func fabric(n int, switches ...string) *cluster.Cluster {
	c := &cluster.Cluster{}
	for i := range n {
		c.Hosts = append(c.Hosts, cluster.Host{Name: fmt.Sprintf("n%d", i), Type: -1})
	}
	for _, s := range switches {
		var sw cluster.Switch
		fmt.Sscan(s, &sw.Name, &sw.Tier)
		sw.Rail = -1
		c.Network.Switches = append(c.Network.Switches, sw)
	}
	return c
}

func hang(c *cluster.Cluster, sw string, first, n, nic int) {
	c.Network.Links = append(c.Network.Links, cluster.NetLink{
		A: cluster.End{Switch: c.Network.SwitchByName(sw), NIC: -1},
		B: cluster.End{Switch: -1, Hosts: []cluster.Span{{First: first, N: n}}, NIC: nic},
	})
}

func cable(c *cluster.Cluster, up, down string) {
	c.Network.Links = append(c.Network.Links, cluster.NetLink{
		A: cluster.End{Switch: c.Network.SwitchByName(up), NIC: -1},
		B: cluster.End{Switch: c.Network.SwitchByName(down), NIC: -1},
	})
}

// rails is two pods of four hosts with two rails and two spines over all.
func rails() *cluster.Cluster {
	c := fabric(8, "p0r0 0", "p0r1 0", "p1r0 0", "p1r1 0", "s0 1", "s1 1")
	for pod := range 2 {
		for rail := range 2 {
			leaf := fmt.Sprintf("p%dr%d", pod, rail)
			hang(c, leaf, pod*4, 4, rail)
			cable(c, "s0", leaf)
			cable(c, "s1", leaf)
		}
	}
	c.Network.Rails = 2
	return c
}

func TestWriteConf(t *testing.T) {
	fat := fabric(4, "l0 0", "l1 0", "s0 1", "s1 1")
	hang(fat, "l0", 0, 2, -1)
	hang(fat, "l1", 2, 2, -1)
	for _, s := range []string{"s0", "s1"} {
		cable(fat, s, "l0")
		cable(fat, s, "l1")
	}
	loose := fabric(4, "l0 0")
	hang(loose, "l0", 0, 2, -1)
	looseTop := fabric(5, "l0 0", "l1 0", "s 1")
	hang(looseTop, "l0", 0, 2, -1)
	hang(looseTop, "l1", 2, 2, -1)
	cable(looseTop, "s", "l0")
	cable(looseTop, "s", "l1")
	onSpine := fabric(3, "l0 0", "s 1")
	hang(onSpine, "l0", 0, 2, -1)
	hang(onSpine, "s", 2, 1, -1)
	cable(onSpine, "s", "l0")
	mesh := fabric(2, "a 0", "b 0")
	hang(mesh, "a", 0, 1, -1)
	hang(mesh, "b", 1, 1, -1)
	cable(mesh, "a", "b")
	down := fabric(2, "a 0", "b 0")
	hang(down, "a", 0, 1, -1)
	hang(down, "b", 1, 1, -1)
	cable(down, "a", "b")
	down.Network.Links[2].State = cluster.Down
	odd := fabric(2, "x 0", "y 0", "empty 0")
	odd.Network.Switches[0].Name = "MF0;sw 1:MQM/U1"
	odd.Network.Switches[1].Name = "MF0;sw_1:MQM/U1"
	hang(odd, "MF0;sw 1:MQM/U1", 0, 1, -1)
	hang(odd, "MF0;sw_1:MQM/U1", 1, 1, -1)

	partly := fabric(3, "l0 0", "l1 0")
	partly.Hosts[1].Name = "a b"
	hang(partly, "l0", 0, 1, -1)
	hang(partly, "l1", 1, 2, -1)

	tests := []struct {
		name string
		c    *cluster.Cluster
		want string
		note string
	}{
		{
			"rails", rails(), "SwitchName=railgroup1 Nodes=n[0-3]\nSwitchName=railgroup2 Nodes=n[4-7]\n" +
				"SwitchName=spinegroup1 Switches=railgroup[1-2]",
			"# railgroup1: rail group: stands for p0r[0-1]; every host below hangs on several of them",
		},
		{"fat tree", fat, "SwitchName=l0 Nodes=n[0-1]\nSwitchName=l1 Nodes=n[2-3]\nSwitchName=spinegroup1 " +
			"Switches=l[0-1]", "# spinegroup1: stands for s[0-1]"},
		{"no network", fabric(3), "SwitchName=all Nodes=n[0-2]", "# Nothing is known about the network"},
		{"loose hosts", loose, "SwitchName=l0 Nodes=n[0-1]\nSwitchName=unplaced Nodes=n[2-3]\nSwitchName=top " +
			"Switches=l0,unplaced", "# unplaced: no source says"},
		{"loose hosts under the top", looseTop, "SwitchName=l0 Nodes=n[0-1]\nSwitchName=l1 Nodes=n[2-3]\n" +
			"SwitchName=s Switches=l[0-1],unplaced\nSwitchName=unplaced Nodes=n4", ""},
		{
			"host on a spine", onSpine, "SwitchName=l0 Nodes=n[0-1]\nSwitchName=s Nodes=n2\nSwitchName=top Switches=l0,s",
			"# top: made up",
		},
		{
			"mesh", mesh, "SwitchName=a Nodes=n0\nSwitchName=b Nodes=n1\nSwitchName=top Switches=a,b",
			"# top: made up: cables join",
		},
		{"dead cable", down, "SwitchName=a Nodes=n0\nSwitchName=b Nodes=n1", "Slurm will not run one job across them"},
		{"odd names", odd, "SwitchName=MF0-sw-1-MQM-U1 Nodes=n0\nSwitchName=MF0-sw_1-MQM-U1 Nodes=n1", ""},
		{
			"a name that cannot be", partly, "SwitchName=l0 Nodes=n0\nSwitchName=l1 Nodes=n2",
			"# Left out, for names that Slurm cannot hold or that repeat: 1 hosts, \"a b\"",
		},
	}
	for _, tt := range tests {
		text := writeConf(t, tt.c)
		var b strings.Builder
		for l := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
			if !strings.HasPrefix(l, "#") {
				b.WriteString(l + "\n")
			}
		}
		if got := strings.TrimSpace(b.String()); got != tt.want {
			t.Errorf("%s:\n%s\nwant\n%s", tt.name, got, tt.want)
		}
		if !strings.Contains(text, tt.note) {
			t.Errorf("%s: no note %q in\n%s", tt.name, tt.note, text)
		}
		if _, err := ReadConf("x", strings.NewReader(text)); err != nil {
			t.Errorf("%s: reading back: %v", tt.name, err)
		}
	}
}

// A network with both: the conf holds the blocks, and
// the YAML both.
func TestWriteBoth(t *testing.T) {
	f, err := ReadConf("x",
		strings.NewReader("SwitchName=s1 Nodes=n[1-6]\nBlockName=b1 Nodes=n[1-2]\nBlockName=b2 Nodes=n[3-4]\n"))
	if err != nil {
		t.Fatal(err)
	}
	c := cluster.Join(f)
	if got := writeConf(t, c); !strings.Contains(got,
		"\nBlockName=b1 Nodes=n[1-2]\nBlockName=b2 Nodes=n[3-4]\nBlockSizes=2,4\n") ||
		!strings.Contains(got, "# In no block: n[5-6]") {
		t.Errorf("blocks:\n%s", got)
	}
	var y bytes.Buffer
	if err := WriteYAML(&y, c); err != nil {
		t.Fatal(err)
	}
	back, err := ReadYAML("y", bytes.NewReader(y.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if a, b := readertest.Sorted(readertest.Shape(c)), readertest.Sorted(readertest.Shape(&back.Cluster)); a != b {
		t.Errorf("%s\nread back\n%s\n%s", a, b, y.String())
	}
	y.Reset()
	if err := WriteYAML(&y, fabric(2)); err != nil || !strings.Contains(y.String(), "flat: true") {
		t.Errorf("%v\n%s", err, y.String())
	}
}

func TestWriteRefuses(t *testing.T) {
	bad := fabric(1)
	bad.Hosts[0].Name = "a,b"
	nameless := fabric(1)
	nameless.Hosts[0].Name = ""
	for _, tt := range []struct {
		c    *cluster.Cluster
		want string
	}{
		{&cluster.Cluster{}, "no hosts"},
		{bad, `no host has a name that Slurm can hold ("a,b")`},
		{nameless, `no host has a name`},
	} {
		if err := WriteConf(&bytes.Buffer{}, tt.c); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v; want %s", err, tt.want)
		}
	}
}

// A rack that is one NVLink domain of 18 hosts is a block of 18 nodes.
func TestWriteTrays(t *testing.T) {
	c, err := hardware.Preset("gb200-nvl72", 2)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Hosts) != 2 {
		t.Fatalf("%d hosts", len(c.Hosts))
	}
	text := writeConf(t, c)
	const want = `# Slurm topology.conf, written by busbar; for TopologyPlugin=topology/block
# Racks of several hosts are written host by host, "node0-t00" and so on; put in the names that the hosts have.
BlockName=node0 Nodes=node0-t[00-17]
BlockName=node1 Nodes=node1-t[00-17]
BlockSizes=18,36
`
	if text != want {
		t.Errorf("%swant\n%s", text, want)
	}
	var y bytes.Buffer
	if err := WriteYAML(&y, c); err != nil {
		t.Fatal(err)
	}
	conf, err := ReadConf("conf", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	yaml, err := ReadYAML("yaml", bytes.NewReader(y.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []*cluster.Fragment{conf, yaml} {
		domains := switchtree.Domains(&f.Cluster)
		if len(f.Hosts) != 36 || len(domains) != 2 || len(domains[1].Hosts) != 18 {
			t.Errorf("%s: %d hosts, %d domains", f.Source, len(f.Hosts), len(domains))
		}
	}
}
