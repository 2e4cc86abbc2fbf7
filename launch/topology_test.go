package launch_test

import (
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/input/ncclxml"
	"busbar.dev/launch"
)

// real is a node whose devices have addresses, with two GPUs and two NICs below a switch each; flat is the same as a
// virtual machine shows it, without the switches.
func real(flat bool) *cluster.NodeType {
	n := &cluster.NodeType{Name: "vm", Tree: cluster.Read}
	socket := n.Add(cluster.Device{Kind: cluster.Socket, Parent: -1})
	numa := n.Add(cluster.Device{Kind: cluster.NUMA, Parent: socket, CPU: &cluster.CPUInfo{Arch: "x86_64", Cores: "0-7"}})
	n.Connect(cluster.Link{A: socket, B: numa, Kind: cluster.OnDie})
	for i, bus := range []string{"1", "2"} {
		root := n.Add(cluster.Device{Kind: cluster.RootComplex, Parent: numa})
		n.Connect(cluster.Link{A: numa, B: root, Kind: cluster.OnDie})
		at := root
		if !flat {
			at = n.Add(cluster.Device{Kind: cluster.PCISwitch, Parent: root, PCI: cluster.PCI("0000:" + bus + "0:00.0")})
			n.Connect(cluster.Link{A: root, B: at, Kind: cluster.PCIe, Lanes: 16, GTs: 16})
		}
		gpu := n.Add(cluster.Device{
			Kind: cluster.GPU, Parent: at, Index: i, PCI: cluster.PCI("0000:" + bus + "1:00.0"), GPU: &cluster.GPUInfo{},
		})
		if flat && i == 1 { // everything of the second hangs elsewhere too
			at = n.ByName("root0")
		}
		nic := n.Add(cluster.Device{
			Kind: cluster.NIC, Parent: at, Label: "mlx5_" + string(rune('0'+i)), PCI: cluster.PCI("0000:" + bus + "2:00.0"),
			NIC: &cluster.NICInfo{Kind: cluster.InfiniBand},
		})
		n.Connect(cluster.Link{A: n.Devices[gpu].Parent, B: gpu, Kind: cluster.PCIe, Lanes: 16, GTs: 16})
		n.Connect(cluster.Link{A: at, B: nic, Kind: cluster.PCIe, Lanes: 16, GTs: 16})
	}
	return n
}

func TestMisread(t *testing.T) {
	wrong, reason := launch.Misread(real(false), real(true))
	if reason != "" || !strings.Contains(wrong, "mlx5_0") || !strings.Contains(wrong, "PIX") {
		t.Errorf("%q %q", wrong, reason)
	}
	if wrong, reason := launch.Misread(real(false), real(false)); wrong != "" ||
		!strings.Contains(reason, "NCCL's own detection is right") {
		t.Errorf("the same: %q %q", wrong, reason)
	}
	other := real(true)
	other.Devices[other.ByName("gpu1")].PCI = "0000:99:00.0"
	if wrong, reason := launch.Misread(real(false), other); wrong != "" ||
		!strings.Contains(reason, "no GPU at 0000:21:00.0") {
		t.Errorf("another machine: %q %q", wrong, reason)
	}
	preset, err := hardware.Node("azure-ndv4")
	if err != nil {
		t.Fatal(err)
	}
	if wrong, reason := launch.Misread(preset, real(true)); wrong != "" || reason == "" {
		t.Errorf("a preset: %q %q", wrong, reason)
	}
}

// The file is read back as the node is, and the plan and nccl.env name it.
func TestTopologies(t *testing.T) {
	p := below(t, "gpu[1-2]", false, 0, 1)
	if files, left := p.Topologies(nil); len(files) != 0 || len(left) != 1 ||
		!strings.Contains(left[0].Reason, "--detected") {
		t.Errorf("%v %v", files, left)
	}
	launch.SetKinds(p, real(false))
	files, left := p.Topologies(real(true))
	if len(files) != 1 || files[0].Name != "topo-0.xml" || len(left) != 0 {
		t.Fatalf("%v %v", files, left)
	}
	f, err := ncclxml.Read("topo-0.xml", strings.NewReader(files[0].Text))
	if err != nil {
		t.Fatal(err)
	}
	c := cluster.Join(f)
	if _, reason := launch.Misread(real(false), c.Types[0]); !strings.Contains(reason, "is right") {
		t.Errorf("read back: %s\n%s", reason, files[0].Text)
	}
	if p.Types[0].Topology != "topo-0.xml" || p.Check() != nil {
		t.Errorf("%+v %v", p.Types[0], p.Check())
	}
	if env, _ := fileOf(t, p, "nccl.env"); !strings.Contains(env, "\nNCCL_TOPO_FILE=/shared/run/topo-0.xml\n") {
		t.Errorf("%s", env)
	}
}
