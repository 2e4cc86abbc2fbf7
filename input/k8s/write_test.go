package k8s

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/internal/switchtree"
	"busbar.dev/internal/test/readertest"
)

func writeLabels(t *testing.T, c *cluster.Cluster) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteLabels(&b, c); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// all is a cluster with every kind of label.
func all() string {
	var objs []string
	for i := range 12 {
		objs = append(objs, obj(fmt.Sprintf("n%02d", i),
			fmt.Sprintf(nv+"leaf=leaf%d", i/3), fmt.Sprintf(nv+"spine=spine%d", i/6), nv+"core=core", nv+"tier-4=site",
			fmt.Sprintf(nv+"accelerator=nvl%d", i/2),
			fmt.Sprintf("cloud.provider.com/topology-block=b%d", i/6),
			fmt.Sprintf("cloud.provider.com/topology-rack=r%d", i/3%2),
			"topology.kubernetes.io/region=us", fmt.Sprintf("topology.kubernetes.io/zone=us%d", i/6)))
	}
	return stream(objs...)
}

func TestWriteReadsBack(t *testing.T) {
	f, err := Read("x", strings.NewReader(all()))
	if err != nil {
		t.Fatal(err)
	}
	c := cluster.Join(f)
	text := writeLabels(t, c)
	back, err := Read("back", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if a, b := readertest.Sorted(readertest.Shape(c)), readertest.Sorted(readertest.Shape(&back.Cluster)); a != b {
		t.Errorf("%s\nread back\n%s\n%.2000s", a, b, text)
	}
}

// pods makes two pods of two hosts with two rails, spines over both and an
// accelerator domain without a label key.
func pods() *cluster.Cluster {
	c := &cluster.Cluster{}
	n := &c.Network
	for i := range 5 {
		c.Hosts = append(c.Hosts, cluster.Host{Name: fmt.Sprintf("n%d", i), Type: -1})
	}
	link := func(sw int, first, count int) {
		n.Links = append(n.Links, cluster.NetLink{
			A: cluster.End{Switch: sw, NIC: -1},
			B: cluster.End{Switch: -1, NIC: -1, Hosts: []cluster.Span{{First: first, N: count}}},
		})
	}
	for i := range 4 {
		n.Switches = append(n.Switches, cluster.Switch{Name: fmt.Sprintf("rail%d-leaf%d", i%2, i/2), Rail: i % 2})
		link(i, i/2*2, 2)
	}
	for s := range 2 {
		n.Switches = append(n.Switches, cluster.Switch{Name: fmt.Sprintf("MF0;spine %d:x", s), Tier: cluster.Spine, Rail: -1})
		for i := range 4 {
			n.Links = append(n.Links, cluster.NetLink{
				A: cluster.End{Switch: 4 + s, NIC: -1}, B: cluster.End{Switch: i, NIC: -1},
			})
		}
	}
	n.Switches = append(n.Switches, cluster.Switch{Name: "rack 1", Domain: true, Rail: -1})
	link(6, 0, 4)
	return c
}

func TestWriteLabels(t *testing.T) {
	text := writeLabels(t, pods())
	for _, want := range []string{
		"# railgroup1 stands for rail[0-1]-leaf0\n", "# spinegroup1 stands for MF0;spine 0:x,MF0;spine 1:x\n",
		"# No source says where these are: n4\n",
		"---\napiVersion: v1\nkind: Node\nmetadata:\n  name: \"n3\"\n  labels:\n    " +
			"accelerator.topograph.run/domain: \"rack-1\"\n    fabric.topograph.run/tier-0: \"railgroup2\"\n    " +
			"fabric.topograph.run/tier-1: \"spinegroup1\"\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	back, err := Read("x", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	want := readertest.Flush(`
		railgroup1 tier=0 hosts=n[0-1]
		spinegroup1 tier=1 under=railgroup[1-2]
		railgroup2 tier=0 hosts=n[2-3]
		rack-1 group tier=0 hosts=n[0-3]`)
	if got := readertest.Shape(&back.Cluster); got != want {
		t.Errorf("%swant\n%s", got, want)
	}
}

func TestWriteRefuses(t *testing.T) {
	for _, name := range []string{"", "a_b", "-a", "a-", "a..b", "a.-b", "a-.b", strings.Repeat("a", 254)} {
		c := &cluster.Cluster{Hosts: []cluster.Host{{Name: name}}}
		if err := WriteLabels(&bytes.Buffer{}, c); err == nil {
			t.Errorf("host %q was written", name)
		}
	}
	if err := WriteLabels(&bytes.Buffer{}, &cluster.Cluster{}); err == nil {
		t.Error("no hosts were written")
	}
	c := pods()
	c.Hosts[0].Name, c.Hosts[1].Name = "NODE0", "no_node"
	text := writeLabels(t, c)
	if !strings.Contains(text, `name: "node0"`) ||
		!strings.Contains(text, `# Left out, for names that no node can have or that repeat: 1 hosts, "no_node"`) {
		t.Errorf("%s", text)
	}
}

// kubectl, where it is installed, takes what was written.
func TestLiveKubectl(t *testing.T) {
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("no kubectl here")
	}
	f, err := Read("x", strings.NewReader(all()))
	if err != nil {
		t.Fatal(err)
	}
	c := cluster.Join(f)
	cmd := exec.CommandContext(t.Context(), kubectl, "label", "--local", "-f", "-", "busbar.test/seen=yes", "-o", "json")
	cmd.Stdin = strings.NewReader(writeLabels(t, c))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	back, err := Read("kubectl", bytes.NewReader(out))
	if err != nil {
		t.Fatalf("%v\n%.500s", err, out)
	}
	if a, b := readertest.Sorted(readertest.Shape(c)), readertest.Sorted(readertest.Shape(&back.Cluster)); a != b {
		t.Errorf("%s\nthrough kubectl\n%s", a, b)
	}
}

// A rack that is one NVLink domain of 18 hosts is an accelerator domain of 18
// nodes.
func TestWriteTrays(t *testing.T) {
	c, err := hardware.Preset("gb200-nvl72", 2)
	if err != nil {
		t.Fatal(err)
	}
	text := writeLabels(t, c)
	var want strings.Builder
	want.WriteString(`# Node labels, written by busbar; use with kubectl apply --server-side -f FILE
# Racks of several hosts are written host by host, "node0-t00" and so on; put in the names that the hosts have.
# railgroup1 stands for rail[0-3]-leaf0
# railgroup2 stands for rail[0-3]-leaf1
`)
	for i := range 36 {
		fmt.Fprintf(&want, `---
apiVersion: v1
kind: Node
metadata:
  name: "node%d-t%02d"
  labels:
    accelerator.topograph.run/domain: "node%d"
    fabric.topograph.run/tier-0: "railgroup%d"
    fabric.topograph.run/tier-1: "spine"
`, i/18, i%18, i/18, i/18+1)
	}
	if text != want.String() {
		t.Errorf("%.1500s\nwant\n%.1500s", text, want.String())
	}
	back, err := Read("x", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	domains := switchtree.Domains(&back.Cluster)
	if len(back.Hosts) != 36 || len(domains) != 2 || len(domains[0].Hosts) != 18 || len(back.Warnings) > 0 {
		t.Errorf("%d hosts, %d domains, %v", len(back.Hosts), len(domains), back.Warnings)
	}
}

// TestWriteTopology: levels that all labelled nodes have, the widest first, which map reads back; a network of which
// nothing is known has none.
func TestWriteTopology(t *testing.T) {
	c := pods()
	const head = "# Levels for Kueue, written by busbar; busbar map -o kube writes the labels of nodes.\napiVersion: " +
		"kueue.x-k8s.io/v1beta2\nkind: Topology\nmetadata:\n  name: busbar\nspec:\n  levels:\n"
	const want = head + "    - nodeLabel: fabric.topograph.run/tier-1\n    - nodeLabel: fabric.topograph.run/tier-0\n" +
		"    - nodeLabel: accelerator.topograph.run/domain\n    - nodeLabel: kubernetes.io/hostname\n"
	var b bytes.Buffer
	if err := WriteTopology(&b, c); err != nil || b.String() != want {
		t.Errorf("%v\n%swant\n%s", err, b.String(), want)
	}
	if _, err := Read("x", strings.NewReader(writeLabels(t, c)+"---\n"+b.String())); err != nil {
		t.Error(err)
	}
	c.Network.Links = c.Network.Links[:len(c.Network.Links)-1] // the rack's
	c.Network.Links = append(c.Network.Links, cluster.NetLink{
		A: cluster.End{Switch: 6, NIC: -1},
		B: cluster.End{Switch: -1, NIC: -1, Hosts: []cluster.Span{{First: 0, N: 2}}},
	})
	b.Reset()
	if err := WriteTopology(&b, c); err != nil || strings.Contains(b.String(), Accelerator) {
		t.Errorf("two of four nodes have a domain: %v\n%s", err, b.String())
	}
	if err := WriteTopology(&b, &cluster.Cluster{Hosts: []cluster.Host{{Name: "a"}}}); err == nil {
		t.Error("levels of nothing")
	}
}

// TestLongNames: a name that is too long for a label is what topograph makes of it, and a long name of letters that no
// label has stays apart from others.
func TestLongNames(t *testing.T) {
	for name, want := range map[string]string{
		strings.Repeat("a", 63): strings.Repeat("a", 63), "MF0;spine 1": "MF0-spine-1",
		strings.Repeat("a", 64): "xdb007849f35ebbe5",
	} {
		if got := labelValue(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
