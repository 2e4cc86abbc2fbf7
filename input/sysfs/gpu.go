package sysfs

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/board"
	"busbar.dev/unit"
)

// gpus marks the functions that are GPUs and returns them. Virtual functions of
// a GPU (vGPU hosts have dozens) are not GPUs of their own.
func (m *machine) gpus(b *bus) []*function {
	var list []*function
	for _, fn := range b.order {
		vendor := board.GPUVendor(fn.ID, fn.top)
		if vendor == "" || fn.shadow || fn.Device != nil {
			continue
		}
		fn.Device = new(board.GPU(vendor, -1))
		fn.Device.PCI, fn.Device.PCIID = fn.Addr, new(fn.ID)
		fn.Device.GPU.Cores, fn.Device.GPU.NUMA = fn.cpus, m.affinity(fn)
		switch vendor {
		case "nvidia":
			// "Device Minor" is the number of the device file, which is not the NVML index, so it is left alone.
			said := keyed(m.attr(m.proc, "driver/nvidia/gpus", string(fn.Addr), "information"))
			if model := said["Model"]; model != "Unknown" {
				fn.Device.Model = board.Fact(model, "/proc/driver/nvidia")
			}
			// Question marks stand for a GPU that no process has opened yet.
			if id := said["GPU UUID"]; strings.HasPrefix(id, "GPU-") && !strings.Contains(id, "?") {
				fn.Device.UUID = id
			}
		case "amd":
			m.amd(fn)
		}
		list = append(list, fn)
	}
	return list
}

// amd adds what the amdgpu driver says beside the PCI attributes.
func (m *machine) amd(fn *function) {
	fn.Device.Model = board.Fact(m.word(fn.dir, "product_name"), "amdgpu")
	vram, _ := m.number(fn.dir, "mem_info_vram_total")
	fn.Device.GPU.Memory = board.Fact(unit.Bytes(max(vram, 0)), "amdgpu")
	if id := m.word(fn.dir, "unique_id"); len(id) == 16 {
		if _, err := strconv.ParseUint(id, 16, 64); err == nil {
			fn.Device.UUID = "GPU-" + id // as rocminfo writes it
		}
	}
}

// peerModules let a NIC reach GPU memory: NVIDIA's under its two names, and the
// one of Amazon's EFA.
var peerModules = []string{"nvidia_peermem", "nv_peer_mem", "efa_nv_peermem"}

// direct records GPUDirect RDMA. A loaded module proves it; its absence proves
// nothing, since newer kernels do the same over dma-buf without one.
func (m *machine) direct(nics *nicList, gpus []*function) {
	isNVIDIA := func(g *function) bool { return g.Device.GPU.Vendor == "nvidia" }
	loaded := "\n" + m.attr(m.proc, "modules")
	if !slices.ContainsFunc(gpus, isNVIDIA) || !slices.ContainsFunc(peerModules, func(n string) bool {
		return m.isDir(path.Join(m.sys, "module", n)) || strings.Contains(loaded, "\n"+n+" ")
	}) {
		return
	}
	for _, d := range nics.all {
		switch d.NIC.Kind {
		case cluster.InfiniBand, cluster.RoCE, cluster.EFA, cluster.OmniPath:
			d.NIC.GDR = cluster.Yes
		}
	}
}
