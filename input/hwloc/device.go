package hwloc

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/board"
	"busbar.dev/internal/lines"
	"busbar.dev/unit"
)

// osdev tells whether an OSDev is a network interface or an RDMA device. hwloc 1 and 2 number the types, hwloc 3 has
// one bit for each.
func (m *machine) osdev(o *object) (net, fabric bool) {
	n, err := strconv.Atoi(o.Get("osdev_type"))
	if major, _, _ := strings.Cut(m.top.version, "."); err == nil && n >= 0 && len(major) == 1 && major >= "3" {
		fabric = n&(1<<5) != 0
		return !fabric && n&(1<<4) != 0, fabric
	}
	return n == 2, n == 3
}

// device makes the GPU or NIC that a PCI device is, or nil.
func (m *machine) device(o *object, fn *board.Func, onRoot bool) *cluster.Device {
	vendor := board.GPUVendor(fn.ID, onRoot)
	var nets, fabrics []*object
	for _, k := range o.Kids {
		if kindOf(k) != "OSDev" {
			continue
		}
		if net, fabric := m.osdev(k); net {
			nets = append(nets, k)
		} else if fabric {
			fabrics = append(fabrics, k)
		}
	}
	var d cluster.Device
	numa := m.board.NUMA(m.near(o))
	switch {
	case vendor != "":
		d = board.GPU(vendor, -1)
		d.GPU.NUMA = numa
		m.gpu(&d, o)
	// An interface on a USB controller is the management controller's.
	case len(nets)+len(fabrics) > 0 && !strings.HasPrefix(fn.ID.Class, "0c03"):
		d = board.NIC("")
		d.NIC.NUMA = numa
		m.nic(&d, fn.ID, nets, fabrics)
	default:
		return nil
	}
	d.PCI, d.PCIID = fn.Addr, new(fn.ID)
	if !d.Model.Known() {
		d.Model = board.Fact(info("PCIDevice", o), source)
	}
	return &d
}

// gpu fills in what the libraries behind hwloc said: CUDA and NVML for NVIDIA,
// RSMI for AMD, OpenCL for either.
func (m *machine) gpu(d *cluster.Device, o *object) {
	model := ""
	for _, k := range o.Kids {
		name := k.Get("name")
		// CUDA's and OpenCL's own numbers follow the environment of the process
		// that ran lstopo; those of NVML and RSMI do not.
		for _, lib := range []string{"nvml", "rsmi"} {
			if n, ok := lines.Numbered(name, lib); ok {
				d.Index = n
			}
		}
		model = cmp.Or(model, info("GPUModel", k))
		d.UUID = cmp.Or(info("NVIDIAUUID", k), d.UUID)
		for _, name := range strings.Fields("CUDAGlobalMemorySize RSMIVRAMSize LevelZeroHBMSize LevelZeroMemorySize " +
			"OpenCLGlobalMemorySize") {
			if !d.GPU.Memory.Known() {
				// hwloc 3 writes the unit ("16671616KiB"), older ones do not
				kib := strings.TrimRight(info(name, k), "kKiB")
				d.GPU.Memory = board.Fact(size(kib, unit.KiB), source+" "+name)
			}
		}
	}
	d.Model = board.Fact(model, source)
}

// nic fills in a NIC. hwloc does not say how fast its ports are.
func (m *machine) nic(d *cluster.Device, id cluster.PCIID, nets, fabrics []*object) {
	d.NIC.Kind = board.NetKind(id, slices.Concat(fabrics, nets)[0].Get("name"), len(fabrics) > 0, "")
	if len(fabrics) == 0 {
		d.Label = nets[0].Get("name")
		if len(nets) > 1 {
			for i, n := range nets {
				d.NIC.Ports = append(d.NIC.Ports, cluster.Port{Num: number(info("Port", n), i+1), Label: n.Get("name")})
			}
		}
		return
	}
	fab := fabrics[0]
	d.Label = fab.Get("name")
	d.UUID = board.GUID(info("NodeGUID", fab))
	for n := 1; n <= 16; n++ {
		if p, ok := port(d.NIC.Kind, fab, n); ok {
			d.NIC.Ports = append(d.NIC.Ports, p)
		}
	}
	for i, n := range nets {
		board.FreePort(d.NIC, number(info("Port", n), i+1)).Label = n.Get("name")
	}
}

// port reads the infos Port1State, Port1LID and Port1GID0.
func port(kind cluster.NetKind, fab *object, n int) (cluster.Port, bool) {
	key := fmt.Sprintf("Port%d", n)
	state := info(key+"State", fab)
	if state == "" {
		return cluster.Port{}, false
	}
	p := cluster.Port{Num: n, State: board.PortState(state)}
	if kind == cluster.InfiniBand || kind == cluster.OmniPath {
		// Over Ethernet the first GID is made of the interface's address.
		p.GUID = board.PortGUID(info(key+"GID0", fab))
		if lid, err := strconv.ParseUint(info(key+"LID", fab), 0, 16); err == nil {
			p.LID = int(lid)
		}
	}
	return p, true
}
