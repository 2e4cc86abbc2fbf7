package hardware

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// processor is a row of processors.csv: a generation of server processors.
type processor struct {
	Name     string   `csv:"name"`
	Vendor   string   `csv:"vendor,optional"`
	Families ranges   `csv:"families,optional"`
	Models   ranges   `csv:"models,optional"`
	Arch     []string `csv:"arch,optional"`
	NameHas  string   `csv:"name_has,optional"`
	SMP      string   `csv:"smp_link"`
	Memory   string   `csv:"memory,optional"` // DDR5
	Channels int      `csv:"channels,optional"`
	MTs      int      `csv:"MTps,optional"`
	Source   string   `csv:"source"` // of the memory
}

var processors = sync.OnceValue(func() []processor { return load[processor]("processors") })

// ranges are numbers and stretches of numbers: 0-15|32-95.
type ranges [][2]int

// UnmarshalText reads what the table writes.
func (r *ranges) UnmarshalText(text []byte) error {
	for part := range strings.SplitSeq(string(text), "|") {
		first, last, stretch := strings.Cut(part, "-")
		if !stretch {
			last = first
		}
		a, err := strconv.Atoi(first)
		b, err2 := strconv.Atoi(last)
		if err != nil || err2 != nil || b < a {
			return fmt.Errorf("%q; expected numbers such as 0-15|32-95", text)
		}
		*r = append(*r, [2]int{a, b})
	}
	return nil
}

// has reports whether a number is in the ranges; empty ranges hold every number.
func (r ranges) has(n int) bool {
	return len(r) == 0 || slices.ContainsFunc(r, func(s [2]int) bool { return n >= s[0] && n <= s[1] })
}

// processorOf finds the generation of a processor, nil when no row fits.
func processorOf(cpu *cluster.CPUInfo, name string) *processor {
	if cpu == nil {
		cpu = &cluster.CPUInfo{}
	}
	name = strings.ToLower(name)
	rows := processors()
	for i := range rows {
		p := &rows[i]
		if (p.Vendor == "" || p.Vendor == cpu.Vendor) && p.Families.has(cpu.Family) && p.Models.has(cpu.Model) &&
			(len(p.Arch) == 0 || slices.Contains(p.Arch, cpu.Arch)) && strings.Contains(name, p.NameHas) {
			return p
		}
	}
	return nil
}

// quadrant is the data fabric between NUMA domains of one AMD socket: 64 bytes a
// cycle at 1.467 GHz.
const quadrant = 93.9 * unit.GBps

// smpFact is the rate between two NUMA domains with this CPU. The same socket is
// one die or package; sockets are joined by the links of their generation.
func smpFact(cpu *cluster.CPUInfo, model string, sameSocket bool) cluster.Fact[unit.Rate] {
	if sameSocket {
		return cluster.FromAssumed(quadrant,
			"within a socket: taken as one port of an EPYC data fabric, 64 bytes a cycle at 1.467 GHz")
	}
	if cpu != nil {
		if p := processorOf(cpu, model); p != nil {
			l := nodeLink(p.SMP)
			return cluster.Fact[unit.Rate]{
				Value: l.OneWay, Origin: l.Origin, Source: fmt.Sprintf("%s, %d links: %s", l.Name, l.Links, l.Source),
			}
		}
	}
	return cluster.FromAssumed(20.8*unit.GBps, "CPU model unknown: one UPI link at 10.4 GT/s")
}

// unknownMemory is counted where nobody says which processor there is.
var unknownMemory = processor{Memory: "DDR4", Channels: 6, MTs: 2666, Source: "processor unknown"}

// memoryRate is the rate of the memory of one socket: channels of eight bytes.
func (p *processor) memoryRate() unit.Rate { return unit.Rate(p.Channels*p.MTs) * 8e6 }

// HostMemory is the rate of the memory of all sockets of a node together, read and written, as
// data sheets have it.
func HostMemory(t *cluster.NodeType) cluster.Fact[unit.Rate] {
	sockets := t.Of(cluster.Socket)
	if len(sockets) == 0 {
		sockets = t.Of(cluster.NUMA)
		sockets = sockets[:min(len(sockets), 2)]
	}
	var sum unit.Rate
	first := &unknownMemory
	for i, d := range sockets {
		p := processorOf(t.Devices[d].CPU, t.Devices[d].Model.Value)
		if p == nil || p.Memory == "" {
			p = &unknownMemory
		}
		if i == 0 {
			first = p
		}
		sum += p.memoryRate()
	}
	if len(sockets) == 0 {
		sum = 2 * first.memoryRate()
	}
	text := fmt.Sprintf("%d × %d channels of %s-%d: %s", max(1, len(sockets)), first.Channels, first.Memory, first.MTs,
		first.Source)
	if first == &unknownMemory {
		return cluster.FromAssumed(sum, text)
	}
	return cluster.FromSpec(sum, text)
}
