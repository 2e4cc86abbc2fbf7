package sysfs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/board"
	"busbar.dev/internal/test/readertest"
	"busbar.dev/unit"
)

// pciLines writes one PCI function: its folder, the link to it and attributes.
func pciLines(where, class, vendor, device string, more ...string) string {
	addr := path.Base(where)
	var b strings.Builder
	dir := "sys/devices/" + where
	fmt.Fprintf(&b, "sys/bus/pci/devices/%s -> ../../../devices/%s\n", addr, where)
	fmt.Fprintf(&b, "%s/class = 0x%s\n%s/vendor = 0x%s\n%s/device = 0x%s\n", dir, class, dir, vendor, dir, device)
	for _, m := range more {
		name, value, _ := strings.Cut(m, "=")
		fmt.Fprintf(&b, "%s/%s = %s\n", dir, name, value)
	}
	return b.String()
}

// synthetic is made up. It imitates a two-socket H100 server: a switch with two
// GPUs and a NIC on socket 0, a RoCE NIC and a console chip on socket 1, a bond,
// a veth, the management controller's USB interface, and soft RoCE.
func synthetic() string {
	up := []string{
		"current_link_speed=32.0 GT/s PCIe", "current_link_width=16", "max_link_speed=32.0 GT/s PCIe", "max_link_width=16",
		"numa_node=0", "local_cpulist=0-3",
	}
	low := []string{
		"current_link_speed=16.0 GT/s PCIe", "current_link_width=8", "max_link_speed=64.0 GT/s PCIe", "max_link_width=16",
		"numa_node=0", "local_cpulist=0-3",
	}
	far := []string{"numa_node=1", "local_cpulist=4-7", "current_link_speed=Unknown", "current_link_width=0"}
	const sw = "pci0000:10/0000:10:01.0/0000:11:00.0/"
	text := pciLines("pci0000:10/0000:10:01.0", "060400", "8086", "352a", up...) +
		pciLines("pci0000:10/0000:10:01.0/0000:11:00.0", "060400", "1000", "c030", up...) +
		pciLines(sw+"0000:12:00.0", "060400", "1000", "c030", up...) +
		pciLines(sw+"0000:12:01.0", "060400", "1000", "c030", up...) +
		pciLines(sw+"0000:12:02.0", "060400", "1000", "c030", up...) +
		pciLines(sw+"0000:12:00.0/0000:13:00.0", "030200", "10de", "2330", low...) +
		pciLines(sw+"0000:12:01.0/0000:14:00.0", "030200", "10de", "2330", up...) +
		pciLines(sw+"0000:12:02.0/0000:15:00.0", "020700", "15b3", "1021", up...) +
		pciLines("pci0000:80/0000:80:01.0", "060400", "8086", "352a", far...) +
		pciLines("pci0000:80/0000:80:01.0/0000:81:00.0", "020000", "15b3", "101d", far...) +
		pciLines("pci0000:80/0000:80:02.0", "060400", "8086", "352a", far...) +
		pciLines("pci0000:80/0000:80:02.0/0000:82:00.0", "030000", "1a03", "2000", far...) +
		pciLines("pci0000:80/0000:80:14.0", "0c0330", "8086", "1bcd", far...)
	const ib = "sys/devices/" + sw + "0000:12:02.0/0000:15:00.0"
	const eth = "sys/devices/pci0000:80/0000:80:01.0/0000:81:00.0"
	return text + `
proc/sys/kernel/hostname = node7
proc/cpuinfo = processor	: 0|vendor_id	: AuthenticAMD|cpu family	: 25|model		: 17|model name	: AMD EPYC 9654 96-Core Processor|
proc/modules = nvidia_uvm 1 0 - Live|nvidia_peermem 16384 0 - Live|
proc/driver/nvidia/gpus/0000:13:00.0/information = Model: 		 NVIDIA H100 80GB HBM3|IRQ:   		 1|GPU UUID: 	 GPU-0a|Bus Location: 	 0000:13:00.0|
proc/driver/nvidia/gpus/0000:14:00.0/information = Model: 		 NVIDIA H100 80GB HBM3|GPU UUID: 	 GPU-????????-????|
sys/devices/system/cpu/cpu0/topology/physical_package_id = 0
sys/devices/system/cpu/cpu3/topology/physical_package_id = 0
sys/devices/system/cpu/cpu4/topology/physical_package_id = 1
sys/devices/system/cpu/cpu10/topology/core_id = 1
sys/devices/system/node/node0/cpulist = 0-3
sys/devices/system/node/node0/meminfo = Node 0 MemTotal:       1048576 kB|Node 0 MemFree: 1 kB
sys/devices/system/node/node1/cpumap = 000000f0
sys/devices/system/node/possible = 0-1
sys/class/net/ib0 -> ../../devices/` + strings.TrimPrefix(ib, "sys/devices/") + `/net/ib0
` + ib + `/net/ib0/mtu = 2044
` + ib + `/net/ib0/statistics/rx_dropped = 9
` + ib + `/driver -> ../../../../../../../bus/pci/drivers/mlx5_core
sys/class/infiniband/mlx5_0 -> ../../devices/` + strings.TrimPrefix(ib, "sys/devices/") + `/infiniband/mlx5_0
` + ib + `/infiniband/mlx5_0/node_guid = 946d:ae03:0012:3456
` + ib + `/infiniband/mlx5_0/fw_ver = 28.41.1000
` + ib + `/infiniband/mlx5_0/hca_type = MT4129
` + ib + `/infiniband/mlx5_0/ports/1/rate = 400 Gb/sec (4X NDR)
` + ib + `/infiniband/mlx5_0/ports/1/state = 4: ACTIVE
` + ib + `/infiniband/mlx5_0/ports/1/link_layer = InfiniBand
` + ib + `/infiniband/mlx5_0/ports/1/lid = 0x1a
` + ib + `/infiniband/mlx5_0/ports/1/gids/0 = fe80:0000:0000:0000:946d:ae03:0012:3457
` + ib + `/infiniband/mlx5_0/ports/1/counters/symbol_error = 12
` + ib + `/infiniband/mlx5_0/ports/1/counters/link_downed = 0
` + ib + `/infiniband/mlx5_0/ports/1/counters/port_xmit_wait = 999999
` + ib + `/infiniband/mlx5_0/ports/1/hw_counters/out_of_sequence = 3
sys/class/net/eth0 -> ../../devices/` + strings.TrimPrefix(eth, "sys/devices/") + `/net/eth0
` + eth + `/net/eth0/mtu = 9000
` + eth + `/net/eth0/carrier = 1
` + eth + `/net/eth0/speed = 100000
` + eth + `/net/eth0/dev_port = 0
` + eth + `/net/eth0/phys_port_name = p0
` + eth + `/net/eth0/statistics/rx_crc_errors = 7
sys/class/net/eth0_0 -> ../../devices/` + strings.TrimPrefix(eth, "sys/devices/") + `/net/eth0_0
` + eth + `/net/eth0_0/phys_port_name = pf0vf0
sys/class/infiniband/mlx5_1 -> ../../devices/` + strings.TrimPrefix(eth, "sys/devices/") + `/infiniband/mlx5_1
` + eth + `/infiniband/mlx5_1/ports/1/rate = 100 Gb/sec (4X EDR)
` + eth + `/infiniband/mlx5_1/ports/1/state = 4: ACTIVE
` + eth + `/infiniband/mlx5_1/ports/1/link_layer = Ethernet
sys/class/infiniband/rxe0 -> ../../devices/` + strings.TrimPrefix(eth, "sys/devices/") + `/infiniband/rxe0
sys/class/infiniband/scif0 -> ../../devices/scif_dma_0/infiniband/scif0
sys/class/net/lo -> ../../devices/virtual/net/lo
sys/class/net/bond0 -> ../../devices/virtual/net/bond0
sys/class/net/veth1 -> ../../devices/virtual/net/veth1
sys/class/net/usb0 -> ../../devices/pci0000:80/0000:80:14.0/usb1/1-1/1-1:1.0/net/usb0
sys/class/net/bonding_masters = bond0
`
}

func read(t *testing.T, fsys fs.FS) (*cluster.Fragment, *cluster.NodeType) {
	t.Helper()
	f, err := Read("", fsys)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Types[0].Check(); err != nil {
		t.Error(err)
	}
	return f, f.Types[0]
}

func TestMachine(t *testing.T) {
	f, ty := read(t, grow(synthetic()))
	if f.Hosts[0].Name != "node7" || len(f.Warnings) > 0 {
		t.Errorf("host %q, warnings %v", f.Hosts[0].Name, f.Warnings)
	}
	m := ty.Matrix()
	got := fmt.Sprint(m.Names, m.Class)
	if want := "[gpu0 gpu1 nic0 nic1] [[X PIX PIX SYS] [PIX X PIX SYS] [PIX PIX X SYS] [SYS SYS SYS X]]"; got != want {
		t.Errorf("matrix %s; want %s", got, want)
	}
	if want := "mlx5_0 0000:15:00.0 infiniband mlx5_core 1:ib0 up 400 Gb/s 4xNDR\nmlx5_1 0000:81:00.0 roce  1:eth0 up " +
		"100 Gb/s 4xEDR\n"; nicsOf(ty) != want {
		t.Errorf("NICs\n%swant\n%s", nicsOf(ty), want)
	}
	gpu := ty.Devices[ty.ByName("gpu0")]
	if gpu.PCI != "0000:13:00.0" || gpu.Model.Value != "NVIDIA H100 80GB HBM3" || gpu.UUID != "GPU-0a" ||
		gpu.GPU.NUMA.Value != 0 || gpu.GPU.Cores != "0-3" || gpu.GPU.Vendor != "nvidia" || gpu.PCIID.Class != "030200" {
		t.Errorf("gpu0 is %+v %+v", gpu, gpu.GPU)
	}
	if u := ty.Devices[ty.ByName("gpu1")].UUID; u != "" {
		t.Errorf("gpu1 has UUID %q", u)
	}
	for _, l := range ty.Links {
		// The GPU trained to x8 at 16 GT/s; both ends could do x16 at the port's 32.
		if ty.Devices[l.B].Name == "gpu0" && (l.Lanes != 8 || l.GTs != 16 || l.MaxLanes != 16 || l.MaxGTs != 32) {
			t.Errorf("gpu0's link is %+v", l)
		}
		if ty.Devices[l.B].Name == "nic1" && (l.Lanes != 0 || l.GTs != 0) {
			t.Errorf("nic1's link is %+v", l)
		}
	}
	socket, numa := ty.Devices[ty.ByName("socket1")], ty.Devices[ty.ByName("numa0")]
	if socket.CPU.Family != 175 || socket.CPU.Model != 17 || socket.CPU.Vendor != "AuthenticAMD" ||
		socket.CPU.Cores != "4" || numa.CPU.Cores != "0,3" || numa.CPU.Memory.Value != unit.GiB {
		t.Errorf("socket1 %+v, numa0 %+v", socket.CPU, numa.CPU)
	}
}

func TestNIC(t *testing.T) {
	_, ty := read(t, grow(synthetic()))
	ib := ty.Devices[ty.ByName("nic0")]
	p := ib.NIC.Ports[0]
	if ib.UUID != "0x946dae0300123456" || p.GUID != "0x946dae0300123457" || p.LID != 0x1a ||
		ib.NIC.Firmware != "28.41.1000" || ib.NIC.GDR != cluster.Yes {
		t.Errorf("nic0 is %+v %+v", ib, ib.NIC)
	}
	if fmt.Sprint(p.Counters) != "map[out_of_sequence:3 symbol_error:12]" || p.MTU.Known() {
		t.Errorf("nic0 counts %v, MTU %v", p.Counters, p.MTU)
	}
	eth := ty.Devices[ty.ByName("nic1")]
	p = eth.NIC.Ports[0]
	if p.MTU.Value != 9000 || fmt.Sprint(p.Counters) != "map[rx_crc_errors:7]" || eth.NIC.NUMA.Value != 1 ||
		len(eth.NIC.Ports) != 1 {
		t.Errorf("nic1 is %+v", eth.NIC)
	}
}

// A NIC without an RDMA device, on Hyper-V's bus and on virtio, and a port that
// is down.
func TestOtherInterfaces(t *testing.T) {
	_, ty := read(t, grow(pciLines("pci0000:00/0000:00:03.0", "020000", "1af4", "1041", "numa_node=-1")+`
sys/devices/system/node/node0/cpulist = 0-3
sys/class/net/eth0 -> ../../devices/pci0000:00/0000:00:03.0/virtio2/net/eth0
sys/devices/pci0000:00/0000:00:03.0/virtio2/driver -> ../../../../bus/virtio/drivers/virtio_net
sys/devices/pci0000:00/0000:00:03.0/virtio2/net/eth0/device -> ../../../virtio2
sys/devices/pci0000:00/0000:00:03.0/virtio2/net/eth0/speed = -1
sys/devices/pci0000:00/0000:00:03.0/virtio2/net/eth0/mtu = 1400
sys/devices/pci0000:00/0000:00:03.0/virtio2/net/eth0/operstate = up
sys/class/net/eth1 -> ../../devices/LNXSYSTM:00/VMBUS:00/f8b3781a/net/eth1
sys/devices/LNXSYSTM:00/VMBUS:00/f8b3781a/net/eth1/speed = 40000
sys/devices/LNXSYSTM:00/VMBUS:00/f8b3781a/net/eth1/operstate = down
`))
	want := "eth0 0000:00:03.0 ethernet virtio_net 1: up\neth1  ethernet  1: down\n"
	if got := nicsOf(ty); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	for _, i := range ty.Of(cluster.NIC) {
		if at := ty.Above(i, cluster.NUMA); at < 0 || ty.Devices[i].NIC.NUMA.Value != 0 {
			t.Errorf("%s is outside the only NUMA domain", ty.Devices[i].Label)
		}
	}
}

// TestXGMI imitates the compute driver's view of two AMD GPUs and a processor.
func TestXGMI(t *testing.T) {
	const nodes = "sys/class/kfd/kfd/topology/nodes/"
	_, ty := read(t, grow(pciLines("pci0000:00/0000:00:01.0/0000:03:00.0", "038000", "1002", "740f",
		"mem_info_vram_total=68702699520", "unique_id=8f1a0b2c3d4e5f60")+
		pciLines("pci0000:00/0000:00:02.0/0000:26:00.0", "038000", "1002", "740f", "product_name=AMD Instinct MI210")+`
sys/devices/system/node/node0/cpulist = 0-3
`+nodes+`0/properties = cpu_cores_count 4|simd_count 0|
`+nodes+`1/properties = simd_count 416|gfx_target_version 90010|location_id 768|domain 0|
`+nodes+`2/properties = simd_count 416|gfx_target_version 90402|location_id 9728|domain 0|
`+nodes+`1/io_links/0/properties = type 2|node_from 1|node_to 0|weight 20|max_bandwidth 32000|
`+nodes+`1/io_links/1/properties = type 11|node_from 1|node_to 2|weight 15|max_bandwidth 50000|
`+nodes+`2/io_links/1/properties = type 11|node_from 2|node_to 1|weight 15|max_bandwidth 50000|
`))
	a, b := ty.Devices[ty.ByName("gpu0")], ty.Devices[ty.ByName("gpu1")]
	if a.GPU.Arch != "gfx90a" || b.GPU.Arch != "gfx942" || a.GPU.Memory.Value != 68702699520 ||
		a.UUID != "GPU-8f1a0b2c3d4e5f60" || b.Model.Value != "AMD Instinct MI210" {
		t.Errorf("gpu0 %+v %+v, gpu1 %+v", a, a.GPU, b)
	}
	n := 0
	for _, l := range ty.Links {
		if l.Kind == cluster.XGMI {
			n++
			if l.Rate.Value != 50*unit.GBps {
				t.Errorf("xGMI at %v", l.Rate.Value)
			}
		}
	}
	if n != 1 {
		t.Errorf("%d xGMI links; want 1", n)
	}
	for w, want := range map[uint64]uint64{13: 1, 15: 1, 30: 2, 41: 1, 56: 2, 0: 0} {
		if got := hops(w); got != want {
			t.Errorf("weight %d is %d hops; want %d", w, got, want)
		}
	}
}

func TestIncomplete(t *testing.T) {
	gpu := pciLines("pci0000:40/0000:40:01.0/0000:41:00.0", "030200", "10de", "2330")
	two := "sys/devices/system/node/node0/cpulist = 0-3\nsys/devices/system/node/node1/cpulist = 4-7\n"
	for name, tc := range map[string]struct{ text, err, warn string }{
		"empty":         {"", "no /sys", ""},
		"not a machine": {"readme = hello", "no /sys", ""},
		"nothing in it": {"sys/kernel/x = 1", "neither CPUs", ""},
		"no GPU, no IB": {two, "", ""},
		"no NUMA": {"sys/devices/system/cpu/cpu0/topology/physical_package_id = -1\nproc/meminfo = MemTotal: 2048 " +
			"kB", "", ""},
		"GPU without NUMA": {gpu + two, "", "distance to the others is unknown"},
		"unreadable": {
			gpu + two + "sys/bus/pci/devices/0000:42:00.0 -> ../../../devices/pci0000:40/0000:42:00.0", "",
			"do not tell what they are",
		},
		"no links": {two + "sys/bus/pci/devices/0000:41:00.0/class = 0x030200\nsys/bus/pci/devices/0000:41:00.0/vendor = " +
			"0x10de\n" +
			"sys/bus/pci/devices/0000:41:00.0/device = 0x2330", "", "shows no links"},
	} {
		f, err := Read("h", grow(tc.text))
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: error %v; want %q", name, err, tc.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := fmt.Sprint(f.Warnings); !strings.Contains(got, tc.warn) || tc.warn == "" && got != "[]" {
			t.Errorf("%s: warnings %v; want %q", name, got, tc.warn)
		}
	}
}

// bounded counts what is read from each file and answers for ever.
type bounded struct {
	linkFS
	most *int
}

type endless struct {
	fs.File
	n    int
	most *int
}

func (e *endless) Read(p []byte) (int, error) {
	e.n += len(p)
	*e.most = max(*e.most, e.n)
	return copy(p, bytes.Repeat([]byte("1"), len(p))), nil
}

func (b bounded) Open(name string) (fs.File, error) {
	f, err := b.linkFS.Open(name)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || info.IsDir() {
		return f, err
	}
	return &endless{File: f, most: b.most}, nil
}

func TestEndlessFiles(t *testing.T) {
	most := 0
	if _, err := Read("", bounded{grow(synthetic()), &most}); err != nil && errors.Is(err, fs.ErrInvalid) {
		t.Fatal(err)
	}
	if most == 0 || most > 2*maxAttr {
		t.Errorf("read %d bytes of one file", most)
	}
}

func TestParseRate(t *testing.T) {
	for in, want := range map[string]string{
		"400 Gb/sec (4X NDR)": "400 Gb/s 4xNDR", "2.5 Gb/sec (1X)": "2.5 Gb/s 1xSDR", "10 Gb/sec (4X SDR)": "10 Gb/s 4xSDR",
		"800 Gb/sec (8X NDR)": "800 Gb/s 8xNDR", "": "0 b/s ", "-1 Gb/sec": "0 b/s ", "x": "0 b/s ",
	} {
		r, s := board.PortRate(in)
		if got := r.Bits() + " " + s; got != want {
			t.Errorf("board.PortRate(%q) = %q; want %q", in, got, want)
		}
	}
}

// FuzzRead builds a small tree from the input: each line is a path (from a list
// of likely ones, or its own text) and what is there.
func FuzzRead(f *testing.F) {
	f.Add(synthetic())
	f.Add("sys/bus/pci/devices/0000:01:00.0 -> ../../../devices/pci0000:00/0000:01:00.0/0000:01:00.0")
	f.Add("sys/devices/system/node/node0/cpulist = 0-4000000000\n" +
		"sys/devices/system/cpu/cpu1/topology/physical_package_id = 99999999999")
	f.Add("mlx5_0/ports/1/rate = 400 Gb/sec (4X NDR)\nmlx5_0/ports/999/rate = -1")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<16 || strings.Count(text, "\n") > 500 {
			return
		}
		tree := grow(text)
		if _, err := count(tree); err != nil {
			return
		}
		frag, err := Read("fuzz", tree)
		if err != nil {
			return
		}
		readertest.Check(t, frag)
	})
}
