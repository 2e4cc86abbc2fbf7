package hardware

import (
	"fmt"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// cloudRows lists networks of one maker: EFA, GPUDirect-TCPX, Slingshot, Omni-Path.
func cloudRows() []Interconnect {
	row := func(family, name, scope string, gbit float64, links int, source, note string) Interconnect {
		l := unit.Rate(gbit) * unit.Gbps
		one := l * unit.Rate(links)
		return Interconnect{
			Name: name, Family: family, Scope: scope, Link: l, Links: links, OneWay: one, Duplex: 2 * one,
			Quoted: OneDirection, Source: source, Note: note,
		}
	}
	const ec2 = "Amazon EC2 documentation, accelerated computing network specifications, 2026"
	const gcp = "Google Cloud documentation, GPUDirect-TCPX and TCPXO, 2025"
	const opa = docNetworking + ", section OmniPath"
	rows := []Interconnect{
		row("efa", "EFA v1", "p4d node", 100, 4, docNetworking+", section EFA; "+ec2, "some 340 Gb/s of the 400 reach an all-reduce"),
		row("efa", "EFA v2", "p5 node", 100, 32, docNetworking+", section EFA; "+ec2, ""),
		row("efa", "EFA v3", "p5en node", 200, 16, ec2+"; "+docNetwork26, ""),
		row("efa", "EFA v4", "p6-b200 node", 400, 8, ec2+"; "+docNetwork26, "p6-b300 has 16 interfaces: 6.4 Tb/s"),
		row("tcpx", "GPUDirect-TCPX", "a3-highgpu node", 200, 4, gcp+"; "+docNetworking+", cross-comparison", ""),
		row("tcpx", "GPUDirect-TCPXO", "a3-megagpu node", 200, 8, gcp, ""),
		row("slingshot", "Slingshot 10", "port", 100, 1, "HPE Slingshot interconnect data sheet, 2020", "ConnectX-5 cards on Slingshot switches"),
		row("slingshot", "Slingshot 11", "port", 200, 1, docNetworking+", section HPE Slingshot; HPE Slingshot 11 QuickSpecs", ""),
		row("slingshot", "Slingshot 11 x4", "node", 200, 4, docNetworking+", cross-comparison", "as Frontier and LUMI build it"),
		row("slingshot", "Slingshot 400", "port", 400, 1, "HPE Slingshot 400 announcement, 2024", "Cassini-2"),
		row("omni-path", "Omni-Path 100", "port", 100, 1, opa+"; Cornelis CN-100HFA specifications", "a site with four ports a node reports 135 Gb/s in use"),
		row("omni-path", "Omni-Path 200", "port", 200, 1, opa, "named in the cited section; Intel withdrew its own"),
		row("omni-path", "Omni-Path 400", "port", 400, 1, opa+": announced for Q3 2024; Cornelis CN5000 data sheet, 2025", ""),
		row("omni-path", "Omni-Path 200 x8 (MI250 node)", "node", 200, 8, docNetworking+", cross-comparison", ""),
		row("omni-path", "Omni-Path 400 x8 (MI300X node)", "node", 400, 8, docNetworking+", cross-comparison", "listed as coming in Q3 2024"),
	}
	return rows
}

// ethernetSpeeds are the port speeds in Gb/s.
func ethernetSpeeds() []int { return []int{1, 10, 25, 40, 50, 100, 200, 400, 800} }

func ethernetRows() []Interconnect {
	std := map[int]string{
		1: "IEEE 802.3ab, 1999", 10: "IEEE 802.3ae, 2002", 25: "IEEE 802.3by, 2016", 40: "IEEE 802.3ba, 2010", 50: "IEEE 802.3cd, 2018",
		100: "IEEE 802.3ba, 2010", 200: "IEEE 802.3bs, 2017", 400: "IEEE 802.3bs, 2017", 800: "IEEE 802.3df, 2024",
	}
	var rows []Interconnect
	for _, g := range ethernetSpeeds() {
		r := unit.Rate(g) * unit.Gbps
		note := "RoCE v2 runs over it at the same rate"
		if g < 10 {
			note = ""
		}
		rows = append(rows, Interconnect{
			Name: fmt.Sprintf("Ethernet %dG", g), Family: "ethernet", Scope: "port", OneWay: r, Duplex: 2 * r,
			Quoted: OneDirection, Source: std[g], Note: note,
		})
	}
	return rows
}

// adapterLatency is the time a network card of a family adds at one end.
func adapterLatency(kind cluster.NetKind, speed string) cluster.Fact[unit.Time] {
	assume := func(us float64, why string) cluster.Fact[unit.Time] { return cluster.FromAssumed(unit.Micros(us), why) }
	switch kind {
	case cluster.InfiniBand:
		if p, err := ParsePortSpeed(speed); err == nil {
			if g, ok := ibByName(p.Gen); ok {
				return g.latencyFact()
			}
		}
		return assume(0.6, "InfiniBand of unknown generation; taken as HDR's 0.6 µs")
	case cluster.RoCE:
		return assume(0.8, "RoCE adds a little to InfiniBand's 0.6 µs")
	case cluster.EFA:
		return assume(7.5, "no published figure; some 15 µs end to end in public MPI tests")
	case cluster.Slingshot:
		return assume(0.75, "some 1.8 µs end to end, less the switch's 0.35 µs")
	case cluster.OmniPath:
		return assume(0.5, "some 1 µs end to end in public MPI tests")
	case cluster.TCPX, cluster.TCPXO:
		return assume(10, "no published figure; a TCP stack at either end")
	case cluster.Ethernet:
		return assume(10, "a TCP stack at either end")
	}
	return cluster.Fact[unit.Time]{}
}
