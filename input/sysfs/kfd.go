package sysfs

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// AMD's compute driver describes its GPUs and the xGMI links between them in
// /sys/class/kfd/kfd/topology: one folder for each node (processors first), with
// lines of a name and a number.
const kfdNodes = "class/kfd/kfd/topology/nodes"

// maxKFD bounds nodes and the links of one; 64 partitions of GPUs are the most
// that exist.
const maxKFD = 256

// xgmiLink is the driver's type of a link over Infinity Fabric.
const xgmiLink = 11

// kfd adds the architecture of AMD GPUs and their xGMI links.
func (m *machine) kfd() {
	nodes := m.numbered(kfdNodes, "")
	device := map[uint64]int{}
	for _, n := range nodes[:min(len(nodes), maxKFD)] {
		p := m.properties(kfdNodes, strconv.Itoa(n))
		if p["simd_count"] == 0 {
			continue // a processor
		}
		// Partitions of one GPU count up in the function number, which no PCI
		// function answers to; the first of them stands for the GPU.
		loc := p["location_id"]
		addr := fmt.Sprintf("%04x:%02x:%02x.%x", p["domain"], loc>>8&0xff, loc>>3&0x1f, loc&7)
		at := m.t.ByPCI(cluster.PCI(addr))
		if at < 0 || m.t.Devices[at].GPU == nil {
			continue
		}
		device[uint64(n)] = at
		if v := p["gfx_target_version"]; v > 0 && v < 1e6 {
			m.t.Devices[at].GPU.Arch = fmt.Sprintf("gfx%d%x%x", v/10000, v/100%100, v%100)
		}
	}
	seen := map[[2]int]bool{}
	for _, n := range nodes[:min(len(nodes), maxKFD)] {
		if at, ok := device[uint64(n)]; ok {
			m.xgmi(n, at, device, seen)
		}
	}
}

// xgmi adds the links of one GPU.
func (m *machine) xgmi(node, at int, device map[uint64]int, seen map[[2]int]bool) {
	dir := path.Join(kfdNodes, strconv.Itoa(node), "io_links")
	links := m.numbered(dir, "")
	for _, n := range links[:min(len(links), maxKFD)] {
		p := m.properties(dir, strconv.Itoa(n))
		to, ok := device[p["node_to"]]
		key := [2]int{min(at, to), max(at, to)}
		if !ok || to == at || p["type"] != xgmiLink || hops(p["weight"]) > 1 || seen[key] {
			continue
		}
		seen[key] = true
		l := cluster.Link{A: key[0], B: key[1], Kind: cluster.XGMI}
		if bw := p["max_bandwidth"]; bw > 0 && bw < 1e7 {
			// The driver counts the links and takes their nominal speed.
			l.Rate = cluster.FromSpec(unit.Rate(bw)*1e6, "amdgpu kfd topology")
		}
		m.t.Connect(l)
	}
}

// hops is the number of xGMI links on a way, from the driver's weight: 15 for
// each, and 13 for each end that is a partition of a GPU.
func hops(weight uint64) uint64 {
	if weight%15 != 0 && weight >= 26 {
		weight -= 26
	}
	return (weight + 14) / 15
}

// properties reads a folder's file of names and numbers.
func (m *machine) properties(dir, name string) map[string]uint64 {
	all := map[string]uint64{}
	for line := range strings.Lines(m.attr(m.sys, dir, name, "properties")) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if v, err := strconv.ParseUint(value, 10, 64); err == nil && len(all) < 128 {
			all[key] = v
		}
	}
	return all
}
