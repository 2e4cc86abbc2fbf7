package hardware

import (
	"fmt"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// hostMemory is the memory of one socket: channels of so many megatransfers, eight bytes each.
type hostMemory struct {
	name     string
	channels int
	mts      int
	source   string
}

func (m hostMemory) rate() unit.Rate { return unit.Rate(m.channels*m.mts) * 8e6 }

// unknownMemory is counted where nobody says which processor there is.
var unknownMemory = hostMemory{"DDR4", 6, 2666, "processor unknown"}

// HostMemory is the rate of the memory of all sockets of a node together, read and written, as
// data sheets have it.
func HostMemory(t *cluster.NodeType) cluster.Fact[unit.Rate] {
	sockets := t.Of(cluster.Socket)
	if len(sockets) == 0 {
		sockets = t.Of(cluster.NUMA)
		sockets = sockets[:min(len(sockets), 2)]
	}
	var sum unit.Rate
	var first hostMemory
	for i, d := range sockets {
		m := memoryOf(&t.Devices[d])
		if i == 0 {
			first = m
		}
		sum += m.rate()
	}
	if len(sockets) == 0 {
		first = unknownMemory
		sum = 2 * first.rate()
	}
	text := fmt.Sprintf("%d × %d channels of %s-%d: %s", max(1, len(sockets)), first.channels, first.name, first.mts, first.source)
	if first.source == unknownMemory.source {
		return cluster.FromAssumed(sum, text)
	}
	return cluster.FromSpec(sum, text)
}

// memoryOf picks the memory by vendor, family and model, as smpName picks links.
func memoryOf(d *cluster.Device) hostMemory {
	name := strings.ToLower(d.Model.Value)
	cpu := d.CPU
	if strings.Contains(name, "grace") {
		return hostMemory{"LPDDR5X", 8, 8000, "NVIDIA Grace CPU data sheet, 2023: 512 GB/s with 240 or 480 GB"}
	}
	if cpu == nil {
		return unknownMemory
	}
	switch {
	case cpu.Vendor == "GenuineIntel":
		return intelMemory(cpu.Model)
	case cpu.Vendor == "AuthenticAMD":
		switch f := cpu.Family; {
		case (f == 23 || f == 143) && cpu.Model < 0x30:
			return hostMemory{"DDR4", 8, 2666, "AMD EPYC 7001 data sheet, 2017"}
		case f == 23 || f == 143, (f == 25 || f == 175) && (cpu.Model < 0x10 || cpu.Model >= 0x20 && cpu.Model < 0x60):
			return hostMemory{"DDR4", 8, 3200, "AMD EPYC 7002 and 7003 data sheets, 2019 and 2021"}
		case f == 25 || f == 175:
			return hostMemory{"DDR5", 12, 4800, "AMD EPYC 9004 data sheet, 2022"}
		case f == 26 || f == 191:
			return hostMemory{"DDR5", 12, 6000, "AMD EPYC 9005 data sheet, 2024"}
		}
	case cpu.Arch == "ppc64" || cpu.Arch == "ppc64le":
		return hostMemory{"DDR4", 8, 2666, "IBM Power System AC922 technical overview, 2018"}
	}
	return unknownMemory
}

// intelMemory knows the server models of family 6.
func intelMemory(model int) hostMemory {
	switch model {
	case 45, 62:
		return hostMemory{"DDR3", 4, 1866, "Intel Xeon E5-2600 v2 data sheet, 2013"}
	case 63, 79, 86:
		return hostMemory{"DDR4", 4, 2400, "Intel Xeon E5-2600 v4 data sheet, 2016"}
	case 85:
		return hostMemory{"DDR4", 6, 2666, "Intel Xeon Scalable data sheet, 2017; 2933 in the second generation"}
	case 106, 108:
		return hostMemory{"DDR4", 8, 3200, "Intel 3rd Gen Xeon Scalable data sheet, 2021"}
	case 143:
		return hostMemory{"DDR5", 8, 4800, "Intel 4th Gen Xeon Scalable product brief, 2023"}
	case 207:
		return hostMemory{"DDR5", 8, 5600, "Intel 5th Gen Xeon Scalable product brief, 2023"}
	case 173, 174, 175:
		return hostMemory{"DDR5", 12, 6400, "Intel Xeon 6 product brief, 2024"}
	}
	return unknownMemory
}
