package hardware

import (
	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// otherGPURows lists links between accelerators that are not NVLink, and the
// links between a CPU and its GPU.
func otherGPURows() []Interconnect {
	xgmi := func(name string, link float64, links int, source, note string) Interconnect {
		l := unit.Rate(link) * unit.GBps
		return Interconnect{
			Name: name, Family: "xgmi", Scope: "all links of a GPU", Link: l, Links: links,
			OneWay: l * unit.Rate(links), Duplex: 2 * l * unit.Rate(links), Quoted: BothWays, Source: source,
			Note: joinNotes("two GPUs alone share one link: the peer-to-peer rate is that of Link", note),
		}
	}
	gaudi := func(name string, gbit float64, links int, scope, source, note string) Interconnect {
		l := unit.Rate(gbit) * unit.Gbps
		one := l * unit.Rate(links)
		return Interconnect{
			Name: name, Family: "gaudi", Scope: scope, Link: l, Links: links, OneWay: one, Duplex: 2 * one,
			Quoted: OneDirection, Source: source, Note: note,
		}
	}
	const gaudi2 = "Habana HLS-Gaudi2 data sheet, 2023-10; " + docNetworking + ", section Gaudi2"
	const gaudi3 = "Intel Gaudi 3 AI accelerator white paper, 2024"
	return []Interconnect{
		xgmi("Infinity Fabric MI100", 46, 3, "AMD Instinct MI100 data sheet, 2020: 276 GB/s peer to peer over three links", ""),
		xgmi("Infinity Fabric MI210", 50, 3, "AMD Instinct MI210 data sheet, 2022: up to 300 GB/s over three links", ""),
		xgmi("Infinity Fabric MI250X", 50, 7, docNetworking+", table Infinity Fabric", "the two dies of one module are joined by four links, 200 GB/s one direction"),
		xgmi("Infinity Fabric MI300A", 64, 6, "AMD CDNA 3 white paper, 2023: two links to each of three neighbours", "two links join a pair of APUs: 256 GB/s duplex"),
		xgmi("Infinity Fabric MI300X", 64, 7, docNetworking+", table Infinity Fabric", ""),
		xgmi("Infinity Fabric MI325X", 64, 7, "AMD Instinct MI325X data sheet, 2024; "+docNetwork26+", table Infinity Fabric", ""),
		xgmi("Infinity Fabric MI350X", 76.8, 7, "AMD Instinct MI350X data sheet, 2025: 153.6 GB/s a link; "+docNetwork26+", table Infinity Fabric", "the 2026 table rounds to 76.5; MI355X alike"),
		gaudi("Gaudi2 intra-node", 100, 21, "one card to the other seven", gaudi2, "three ports of 100GbE to each of seven cards"),
		gaudi("Gaudi2 inter-node", 100, 24, "node", gaudi2, "three ports of each of eight cards; the 2024 cross-comparison lists it as 2400 Gb/s"),
		gaudi("Gaudi3 intra-node", 200, 21, "one card to the other seven", gaudi3, "three ports of 200GbE to each of seven cards"),
		gaudi("Gaudi3 inter-node", 200, 24, "node", gaudi3, "three ports of each of eight cards"),
		{
			Name: "NVLink-C2C GH200", Family: "c2c", Scope: "Grace to its GPU", Link: 45 * unit.GBps, Links: 10, OneWay: 450 * unit.GBps, Duplex: 900 * unit.GBps,
			Quoted: BothWays, Source: "NVIDIA GH200 data sheet, 2023", Note: "the driver reports 10 links of 44.712 GB/s",
		},
		{
			Name: "NVLink-C2C GB200", Family: "c2c", Scope: "Grace to each of its two GPUs", Link: 45 * unit.GBps, Links: 5, OneWay: 225 * unit.GBps, Duplex: 450 * unit.GBps,
			Quoted: BothWays, Source: "NVIDIA GB200 NVL72 data sheet, 2024: 900 GB/s for the two GPUs of a superchip", Note: "the driver reports 5 links of 44.712 GB/s a GPU",
		},
	}
}

// xgmiLink is one direction of one Infinity Fabric link on an AMD architecture.
func xgmiLink(arch string) (unit.Rate, string) {
	name := ""
	switch arch {
	case "gfx908":
		name = "Infinity Fabric MI100"
	case "gfx90a":
		name = "Infinity Fabric MI250X"
	case "gfx940", "gfx941", "gfx942":
		name = "Infinity Fabric MI300X"
	case "gfx950":
		name = "Infinity Fabric MI350X"
	default:
		return 0, ""
	}
	r, _ := InterconnectByName(name)
	return r.Link, r.Source
}

// Latencies of one traversal of a link inside a node. None of them is published
// by a maker; they are of the size that latency tests show, and say so.
func linkLatency(k cluster.LinkKind) (cluster.Fact[unit.Time], bool) {
	assume := func(ns unit.Time, why string) (cluster.Fact[unit.Time], bool) {
		return cluster.FromAssumed(ns*unit.Nanosecond, why), true
	}
	switch k {
	case cluster.PCIe:
		return assume(150, "a PCIe switch passes a packet in 100–150 ns")
	case cluster.NVLink:
		return assume(300, "no published figure; half of what two GPUs behind an NVSwitch show")
	case cluster.XGMI:
		return assume(350, "no published figure; taken a little above NVLink")
	case cluster.C2C:
		return assume(200, "no published figure")
	case cluster.SMP:
		return assume(100, "a load from the far socket takes some 60–130 ns more than a near one")
	case cluster.OnDie:
		return assume(50, "on the die")
	case cluster.Gaudi, cluster.Direct:
		return assume(500, "no published figure; two Ethernet ports back to back")
	}
	return cluster.Fact[unit.Time]{}, false
}
