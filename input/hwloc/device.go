package hwloc

import (
	"fmt"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/board"
	"busbar.dev/unit"
)

// osKind is what the operating system uses a device for.
type osKind uint8

const (
	osOther osKind = 1 << iota
	osNet
	osFabric
)

// osdev tells what an OSDev is. hwloc 1 and 2 number the types, hwloc 3 has one
// bit for each.
func (m *machine) osdev(o *object) osKind {
	n, err := strconv.Atoi(o.attr.get("osdev_type"))
	if err != nil || n < 0 {
		return osOther
	}
	if major, _, _ := strings.Cut(m.top.version, "."); len(major) == 1 && major >= "3" {
		switch {
		case n&(1<<5) != 0:
			return osFabric
		case n&(1<<4) != 0:
			return osNet
		}
		return osOther
	}
	switch n {
	case 2:
		return osNet
	case 3:
		return osFabric
	}
	return osOther
}

// device makes the GPU or NIC that a PCI device is, or nil.
func (m *machine) device(o *object, fn *board.Func, onRoot bool) *cluster.Device {
	vendor := board.GPUVendor(fn.ID, onRoot)
	var nets, fabrics []*object
	for _, k := range o.kids {
		if k.kind != "OSDev" {
			continue
		}
		switch m.osdev(k) {
		case osNet:
			nets = append(nets, k)
		case osFabric:
			fabrics = append(fabrics, k)
		}
	}
	id := fn.ID
	d := &cluster.Device{Index: -1, PCI: fn.Addr, PCIID: &id}
	numa := m.board.NUMA(m.near(o), source)
	switch {
	case vendor != "":
		m.gpu(d, o, vendor)
		d.GPU.NUMA = numa
	// An interface on a USB controller is the management controller's.
	case len(nets)+len(fabrics) > 0 && !strings.HasPrefix(id.Class, "0c03"):
		m.nic(d, o, nets, fabrics)
		d.NIC.NUMA = numa
	default:
		return nil
	}
	return d
}

// gpu fills in what the libraries behind hwloc said: CUDA and NVML for NVIDIA,
// RSMI for AMD, OpenCL for either.
func (m *machine) gpu(d *cluster.Device, o *object, vendor string) {
	d.Kind = cluster.GPU
	d.GPU = &cluster.GPUInfo{Vendor: vendor}
	model := ""
	for _, k := range o.kids {
		name := k.attr.get("name")
		// CUDA's and OpenCL's own numbers follow the environment of the process
		// that ran lstopo; those of NVML and RSMI do not.
		for _, lib := range []string{"nvml", "rsmi"} {
			if n, err := strconv.Atoi(strings.TrimPrefix(name, lib)); err == nil && strings.HasPrefix(name, lib) && n >= 0 &&
				n < 1<<16 {
				d.Index = n
			}
		}
		if v := k.info.get("GPUModel"); v != "" && model == "" {
			model = v
		}
		if v := k.info.get("NVIDIAUUID"); v != "" {
			d.UUID = v
		}
		for _, name := range []string{
			"CUDAGlobalMemorySize", "RSMIVRAMSize", "LevelZeroHBMSize", "LevelZeroMemorySize", "OpenCLGlobalMemorySize",
		} {
			if v := kib(k.info.get(name)); v > 0 && !d.GPU.Memory.Known() {
				d.GPU.Memory = cluster.FromRead(v, source+" "+name)
			}
		}
	}
	if model == "" {
		model = o.info.get("PCIDevice")
	}
	if model != "" {
		d.Model = cluster.FromRead(model, source)
	}
}

// kib reads a size in KiB; hwloc 3 says so ("16671616KiB"), older ones do not.
func kib(s string) unit.Bytes {
	s = strings.TrimSuffix(strings.TrimSuffix(s, "KiB"), "kB")
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil || v <= 0 || v > 1<<50 {
		return 0
	}
	return unit.Bytes(v) * unit.KiB
}

// nic fills in a NIC. hwloc does not say how fast its ports are.
func (m *machine) nic(d *cluster.Device, o *object, nets, fabrics []*object) {
	d.Kind = cluster.NIC
	d.NIC = &cluster.NICInfo{Kind: board.NetKind(*d.PCIID, "", len(fabrics) > 0, "")}
	if v := o.info.get("PCIDevice"); v != "" {
		d.Model = cluster.FromRead(v, source)
	}
	if len(fabrics) == 0 {
		d.Label = nets[0].attr.get("name")
		if len(nets) > 1 {
			for i, n := range nets {
				d.NIC.Ports = append(d.NIC.Ports, cluster.Port{Num: number(n.info.get("Port"), i+1), Label: n.attr.get("name")})
			}
		}
		return
	}
	fab := fabrics[0]
	d.Label = fab.attr.get("name")
	d.UUID = board.GUID(fab.info.get("NodeGUID"))
	for n := 1; n <= 16; n++ {
		if p, ok := port(d.NIC.Kind, fab, n); ok {
			d.NIC.Ports = append(d.NIC.Ports, p)
		}
	}
	for i, n := range nets {
		nameInterface(d.NIC, n.attr.get("name"), number(n.info.get("Port"), i+1))
	}
}

// port reads the infos Port1State, Port1LID and Port1GID0.
func port(kind cluster.NetKind, fab *object, n int) (cluster.Port, bool) {
	key := fmt.Sprintf("Port%d", n)
	state := fab.info.get(key + "State")
	if state == "" {
		return cluster.Port{}, false
	}
	p := cluster.Port{Num: n, State: board.PortState(state)}
	if kind == cluster.InfiniBand || kind == cluster.OmniPath {
		// Over Ethernet the first GID is made of the interface's address.
		p.GUID = board.PortGUID(fab.info.get(key + "GID0"))
		if lid, err := strconv.ParseUint(fab.info.get(key+"LID"), 0, 16); err == nil {
			p.LID = int(lid)
		}
	}
	return p, true
}

// nameInterface gives a port the name of its network interface.
func nameInterface(n *cluster.NICInfo, name string, num int) {
	for i := range n.Ports {
		if n.Ports[i].Num == num && n.Ports[i].Label == "" {
			n.Ports[i].Label = name
			return
		}
	}
	n.Ports = append(n.Ports, cluster.Port{Num: num, Label: name})
}
