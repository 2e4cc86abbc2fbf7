package sysfs

import (
	"path"
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
		id := fn.ID
		fn.Device = &cluster.Device{
			Kind: cluster.GPU, Index: -1, PCI: fn.Addr, PCIID: &id,
			GPU: &cluster.GPUInfo{Vendor: vendor, Cores: fn.cpus, NUMA: m.affinity(fn)},
		}
		switch vendor {
		case "nvidia":
			m.nvidia(fn)
		case "amd":
			m.amd(fn)
		}
		list = append(list, fn)
	}
	return list
}

// nvidia adds what the driver says in /proc. Its "Device Minor" is the number of
// the device file, which is not the NVML index, so it is left alone.
func (m *machine) nvidia(fn *function) {
	text := m.attr(m.proc, "driver/nvidia/gpus", string(fn.Addr), "information")
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(key) {
		case "Model":
			if value != "" && value != "Unknown" {
				fn.Device.Model = cluster.FromRead(value, "/proc/driver/nvidia")
			}
		case "GPU UUID":
			// Question marks stand for a GPU that no process has opened yet.
			if strings.HasPrefix(value, "GPU-") && !strings.Contains(value, "?") {
				fn.Device.UUID = value
			}
		}
	}
}

// amd adds what the amdgpu driver says beside the PCI attributes.
func (m *machine) amd(fn *function) {
	if s := m.word(fn.dir, "product_name"); s != "" {
		fn.Device.Model = cluster.FromRead(s, "amdgpu")
	}
	if v, ok := m.number(fn.dir, "mem_info_vram_total"); ok && v > 0 {
		fn.Device.GPU.Memory = cluster.FromRead(unit.Bytes(v), "amdgpu")
	}
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
	nvidia := false
	for _, g := range gpus {
		nvidia = nvidia || g.Device.GPU.Vendor == "nvidia"
	}
	if !nvidia || !m.anyModule(peerModules) {
		return
	}
	for _, d := range nics.all {
		switch d.NIC.Kind {
		case cluster.InfiniBand, cluster.RoCE, cluster.EFA, cluster.OmniPath:
			d.NIC.GDR = cluster.Yes
		}
	}
}

func (m *machine) anyModule(names []string) bool {
	loaded := m.attr(m.proc, "modules")
	for _, n := range names {
		if m.isDir(path.Join(m.sys, "module", n)) || strings.HasPrefix(loaded, n+" ") ||
			strings.Contains(loaded, "\n"+n+" ") {
			return true
		}
	}
	return false
}
