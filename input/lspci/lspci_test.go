package lspci

import (
	"fmt"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/input/ibstat"
	"busbar.dev/internal/test/readertest"
)

var whole = readertest.Reader{Match: Match, Read: Read}

// Made up, in the layout of pciutils 3.9: a switch with a GPU and a NIC behind a root port, a GPU behind another.
const text = `00:00.0 Host bridge: Intel Corporation Device 09a2 (rev 04)
16:02.0 PCI bridge: Intel Corporation Device 352a (rev 30) (prog-if 00 [Normal decode])
	NUMA node: 1
	Bus: primary=16, secondary=17, subordinate=1b, sec-latency=0
	Capabilities: [40] Express (v2) Root Port (Slot+), MSI 00
		LnkCap:	Port #1, Speed 32GT/s, Width x16, ASPM not supported
		LnkSta:	Speed 32GT/s, Width x16
17:00.0 PCI bridge: Broadcom / LSI PEX890xx Gen 5 Switch (rev b0)
	Bus: primary=17, secondary=18, subordinate=1b, sec-latency=0
18:00.0 PCI bridge: Broadcom / LSI PEX890xx Gen 5 Switch (rev b0)
	Bus: primary=18, secondary=19, subordinate=19, sec-latency=0
18:01.0 PCI bridge: Broadcom / LSI PEX890xx Gen 5 Switch (rev b0)
	Bus: primary=18, secondary=1a, subordinate=1a, sec-latency=0
19:00.0 Infiniband controller [0207]: Mellanox Technologies MT2910 Family [ConnectX-7] [15b3:1021]
	NUMA node: 1
	LnkCap:	Port #0, Speed 32GT/s, Width x16, ASPM not supported
	LnkSta:	Speed 32GT/s, Width x8 (downgraded)
	LnkSta2: Current De-emphasis Level: -6dB
19:00.1 Infiniband controller [0207]: Mellanox Technologies MT28908 Family [ConnectX-6 Virtual Function] [15b3:101c]
1a:00.0 3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev a1)
	NUMA node: 1
	LnkSta:	Speed 2.5GT/s (downgraded), Width x16 (ok)
29:02.0 PCI bridge: Intel Corporation Device 352a (rev 30)
	NUMA node: 0
	Bus: primary=29, secondary=2a, subordinate=2a, sec-latency=0
	Capabilities: [40] Express (v2) Root Port (Slot+), MSI 00
2a:00.0 3D controller: NVIDIA Corporation Device 2330 (rev a1)
	NUMA node: 0
2b:00.0 USB controller: Intel Corporation Device 1234
`

// A device that reads as nothing but ones is off the bus; its other functions are no devices.
func TestOffTheBus(t *testing.T) {
	const gpu = "%s:00.0 VGA compatible controller: NVIDIA Corporation Device 2230 (rev %s)\n%[1]s:00.1 Audio device: " +
		"NVIDIA Corporation Device 1aef (rev %[2]s)\n"
	f := whole.Text(t, fmt.Sprintf(gpu+gpu, "3b", "a1", "5e", "ff"))
	var lost []string
	for _, w := range f.Warnings {
		if w.ID == "off-bus" {
			lost = append(lost, w.Where)
		}
	}
	if len(lost) != 1 || lost[0] != "gpu1" {
		t.Error(lost)
	}
}

func TestRead(t *testing.T) {
	f := whole.Text(t, "$ sudo lspci -vv\n"+text)
	ty := f.Types[0]
	if len(f.Hosts) != 1 || ty.Tree != cluster.Read || len(f.Warnings) != 0 {
		t.Errorf("%d hosts, tree %v, %v", len(f.Hosts), ty.Tree, f.Warnings)
	}
	m := ty.Matrix()
	if got := strings.Join(m.Names, " "); got != "gpu0 gpu1 nic0" || m.Class[0][2] != "PIX" ||
		m.Class[0][1] != "SYS" {
		t.Errorf("%s: %v", got, m.Class)
	}
	nic := ty.Devices[ty.Of(cluster.NIC)[0]]
	if nic.Model.Value != "ConnectX-7" || nic.NIC.Kind != cluster.InfiniBand || nic.NIC.NUMA.Value != 1 ||
		nic.PCIID.Device != "1021" {
		t.Errorf("%+v, %+v", nic, nic.NIC)
	}
	gpus := ty.Of(cluster.GPU)
	if d := ty.Devices[gpus[0]]; d.Model.Value != "H100 SXM5 80GB" || d.PCI != "0000:1a:00.0" {
		t.Errorf("%+v", d)
	}
	if d := ty.Devices[gpus[1]]; d.Model.Known() || d.PCIID == nil || d.PCIID.Device != "2330" ||
		d.PCIID.Vendor != "10de" {
		t.Errorf("%+v", d)
	}
	for _, l := range ty.Links {
		switch b := ty.Devices[l.B]; {
		case b.Name == "nic0" && (l.Lanes != 8 || l.MaxLanes != 16 || l.GTs != 32):
			t.Errorf("%+v", l)
		case b.Name == "gpu0" && l.GTs != 2.5:
			t.Errorf("%+v", l)
		}
	}
	if f := whole.Text(t, text+text); len(f.Hosts) != 1 || len(f.Types[0].Devices) != len(ty.Devices) {
		t.Errorf("the list twice is %d nodes", len(f.Hosts))
	}
	other := strings.Replace(text, "1a:00.0 3D controller: NVIDIA", "1a:00.0 Ethernet controller: Intel", 1)
	if _, err := Read("x", strings.NewReader(text+other)); err == nil || !strings.Contains(err.Error(), "another device") {
		t.Errorf("lists of two machines: %v", err)
	}
}

// Without the bridges nobody knows what is behind which.
func TestUnknownTree(t *testing.T) {
	part := text[strings.Index(text, "17:00.0"):]
	plain := "17:00.0 3D controller: NVIDIA Corporation GA100 (rev a1)\n18:00.0 Ethernet controller: Intel Corporation " +
		"X710\n"
	for _, text := range []string{part, plain} {
		f := whole.Text(t, text)
		m := f.Types[0].Matrix()
		if text == part && m.Class[0][2] != "PIX" {
			t.Errorf("behind one switch: %v", m.Class)
		}
		if last := 1; m.Class[0][last] != "?" || f.Types[0].Tree == cluster.Read ||
			len(f.Warnings) == 0 || !strings.Contains(f.Warnings[0].Text, "distance to the others is unknown") {
			t.Errorf("%v, %v, %v", m.Class, f.Types[0].Tree, f.Warnings)
		}
	}
	for _, none := range []string{"", "00:00.0 Host bridge: Intel Corporation Device 09a2\n", "the 3D controller: none"} {
		if _, err := Read("x", strings.NewReader(none)); err == nil ||
			!strings.HasPrefix(err.Error(), "x: no GPU and no NIC") {
			t.Errorf("%q: %v", none, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	whole.Fuzz(f, nil, text, "17:20.0 3D controller: NVIDIA no such address")
}

// NICs that another source names are those that lspci lists, where there are as many.
func TestNamedNICs(t *testing.T) {
	list := whole.Text(t, "4b:00.0 Infiniband controller: Mellanox Technologies [ConnectX-6]\n"+
		"5b:00.0 Infiniband controller: Mellanox Technologies [ConnectX-6]\n6b:00.0 Ethernet controller: Intel Corporation "+
		"X710\n")
	links := "link mlx5_0/1 state ACTIVE physical_state LINK_UP\nlink mlx5_1/1 state DOWN physical_state DISABLED\n"
	for text, want := range map[string]int{links: 3, links + "link mlx5_2/1 state ACTIVE physical_state LINK_UP\n": 6} {
		named, err := ibstat.RDMA.Read("y", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		c := cluster.Join(list, named)
		if got := c.Types[0].Count(cluster.NIC); got != want || len(c.Warnings) == 0 {
			t.Errorf("%d NICs, want %d; %v", got, want, c.Warnings)
		}
	}
}

// In a virtual machine the virtual functions are the NICs; beside the device that they are part of they are none.
func TestVirtualFunctions(t *testing.T) {
	const vf = "0102:00:00.0 Infiniband controller [0207]: Mellanox Technologies X [ConnectX-6 Virtual Function] " +
		"[15b3:101c]\n"
	for text, want := range map[string]int{
		vf: 1, vf + strings.NewReplacer("0102:", "0103:", " Virtual Function", "").Replace(vf): 1,
	} {
		if got := whole.Text(t, text).Types[0].Count(cluster.NIC); got != want {
			t.Errorf("%q: %d NICs, want %d", text, got, want)
		}
	}
}
