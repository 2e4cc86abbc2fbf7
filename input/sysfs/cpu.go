package sysfs

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/board"
	"busbar.dev/input/internal/num"
	"busbar.dev/internal/lazyre"
	"busbar.dev/unit"
)

// numbered lists the entries stem0, stem1, … of a folder under /sys by number.
func (t *tree) numbered(dir, stem string) []int {
	var list []int
	for _, name := range t.natural(path.Join(t.sys, dir)) {
		rest, ok := strings.CutPrefix(name, stem)
		if n, err := strconv.Atoi(rest); ok && err == nil && n >= 0 && n < 1<<16 && strconv.Itoa(n) == rest {
			list = append(list, n)
		}
	}
	return list
}

// cpus maps the logical CPUs that are online to their package. One that is
// offline has no topology.
func (m *machine) cpus() map[int]int {
	list := map[int]int{}
	for _, n := range m.numbered("devices/system/cpu", "cpu") {
		dir := path.Join(m.sys, "devices/system/cpu/cpu"+strconv.Itoa(n), "topology")
		id, ok := m.number(dir, "physical_package_id")
		if !ok {
			continue
		}
		// Kernels on arm64 answer -1 where firmware says nothing of packages.
		list[n] = max(id, 0)
	}
	return list
}

func (m *machine) sockets(cpus map[int]int) []board.Socket {
	info, model := m.cpuInfo()
	at := map[int]int{}
	var list []board.Socket
	for _, n := range slices.Sorted(maps.Keys(cpus)) {
		id := cpus[n]
		k, ok := at[id]
		if !ok {
			k = len(list)
			at[id] = k
			list = append(list, board.Socket{Index: id, Model: model, Info: info})
		}
		list[k].CPUs = list[k].CPUs.With(n)
	}
	return list
}

// cpuInfo reads the first processor of /proc/cpuinfo.
func (m *machine) cpuInfo() (cluster.CPUInfo, string) {
	get := keyed(m.attr(m.proc, "cpuinfo"))
	info := cluster.CPUInfo{Vendor: get["vendor_id"]}
	model := get["model name"]
	switch {
	case info.Vendor != "":
		info.Arch = "x86_64"
		info.Family, info.Model = board.Family(num.Int(get["cpu family"])), num.Int(get["model"])
	case get["CPU implementer"] != "":
		info.Arch = "arm64"
	case strings.HasPrefix(get["cpu"], "POWER"):
		info.Arch = "ppc64"
		model = get["cpu"]
	}
	return info, model
}

// keyed reads lines of a key and a value. Of a key that comes again, the first counts.
func keyed(text string) map[string]string {
	get := map[string]string{}
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(line, ":")
		key = strings.TrimSpace(key)
		if _, seen := get[key]; ok && !seen && len(get) < 64 {
			get[key] = strings.TrimSpace(value)
		}
	}
	return get
}

// domains lists the NUMA nodes. A kernel built without NUMA has no folder for
// them; then the machine is one domain.
func (m *machine) domains(cpus map[int]int) []board.Domain {
	var list []board.Domain
	var online board.CPUs
	for n := range cpus {
		online = online.With(n)
	}
	for _, n := range m.numbered("devices/system/node", "node") {
		dir := path.Join(m.sys, "devices/system/node/node"+strconv.Itoa(n))
		set, err := board.ParseList(m.attr(dir, "cpulist"))
		if err != nil || set.Empty() {
			set, _ = board.ParseMask(m.attr(dir, "cpumap"))
		}
		if len(cpus) > 0 {
			set = set.And(online)
		}
		list = append(list, board.Domain{Index: n, CPUs: set, Memory: memTotal(m.attr(dir, "meminfo"))})
	}
	if len(list) == 0 && len(cpus) > 0 {
		list = append(list, board.Domain{CPUs: online, Memory: memTotal(m.attr(m.proc, "meminfo"))})
	}
	return list
}

var memory = lazyre.New(`MemTotal:\s*(\d{1,15}) kB`)

// memTotal finds "MemTotal: 134204252 kB", behind "Node 0" or not.
func memTotal(text string) unit.Bytes {
	m := memory.FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	v, _ := strconv.ParseInt(m[1], 10, 64)
	return unit.Bytes(v) * unit.KiB
}
