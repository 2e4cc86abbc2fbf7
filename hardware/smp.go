package hardware

import (
	"fmt"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// smpLink is a generation of the link between CPU sockets.
type smpLink struct {
	name   string
	link   unit.Rate // one direction of one link
	links  int       // between two sockets on the boards that carry GPUs
	nccl   float64   // GB/s that NCCL counts for it, in its newest releases
	source string
	note   string
	origin cluster.Origin
}

// gt is the one-direction rate of a link that moves width bytes per transfer.
func gt(gts float64, width unit.Rate) unit.Rate { return unit.Rate(gts) * 1e9 * width }

func smpLinks() []smpLink {
	const amd = "GPU boards use three or four links; three are counted, the rest of the lanes being PCIe"
	return []smpLink{
		{"QPI 6.4 GT/s", gt(6.4, 2), 2, 6, "Intel, An Introduction to the Intel QuickPath Interconnect, 2009", "Nehalem, Westmere", cluster.Spec},
		{"QPI 8.0 GT/s", gt(8, 2), 2, 6, "Intel Xeon E5-2600 data sheet, 2012", "Sandy Bridge, Ivy Bridge", cluster.Spec},
		{"QPI 9.6 GT/s", gt(9.6, 2), 2, 6, "Intel Xeon E5-2600 v4 data sheet, 2016", "Haswell, Broadwell", cluster.Spec},
		{"UPI 10.4 GT/s", gt(10.4, 2), 3, 10, "Intel Xeon Scalable data sheet, 2017", "Skylake, Cascade Lake; two or three links by model, three counted", cluster.Spec},
		{"UPI 11.2 GT/s", gt(11.2, 2), 3, 10, "Intel 3rd Gen Xeon Scalable data sheet, 2021", "Ice Lake", cluster.Spec},
		{"UPI 16 GT/s", gt(16, 2), 4, 22, "Intel 4th Gen Xeon Scalable product brief, 2023", "Sapphire Rapids; three or four links by model, four counted", cluster.Spec},
		{"UPI 20 GT/s", gt(20, 2), 4, 40, "Intel 5th Gen Xeon Scalable product brief, 2023", "Emerald Rapids; three or four links by model, four counted", cluster.Spec},
		{"UPI 24 GT/s", gt(24, 2), 4, 40, "Intel Xeon 6 product brief, 2024", "Granite Rapids; four to six links by model, four counted", cluster.Assumed},
		{"xGMI Naples", gt(10.667, 2), 4, 16, "AMD EPYC 7001 data sheet, 2017", "four links of 16 lanes at 10.7 GT/s", cluster.Spec},
		{"xGMI Rome and Milan", gt(18, 2), 3, 16, "AMD EPYC 7002 data sheet, 2019", "16 lanes at 18 GT/s a link; " + amd, cluster.Assumed},
		{"xGMI Genoa and Turin", gt(32, 2), 3, 16, "AMD EPYC 9004 data sheet, 2022", "16 lanes at 32 GT/s a link; " + amd, cluster.Assumed},
		{"POWER8 X-bus", gt(4.8, 8), 1, 32, "IBM POWER8 systems technical overview, 2014", "", cluster.Spec},
		{"POWER9 X-bus", gt(16, 4), 1, 32, "IBM Power System AC922 technical overview, 2018: 64 GB/s each way", "", cluster.Spec},
		{
			"Grace to Grace", 100 * unit.GBps, 1, 6, "L. Fusco et al., Understanding data movement in tightly coupled heterogeneous systems: a case study with the Grace Hopper superchip, 2024",
			"coherent link between the superchips of one board", cluster.Spec,
		},
	}
}

func smpRows() []Interconnect {
	var rows []Interconnect
	for _, s := range smpLinks() {
		one := s.link * unit.Rate(s.links)
		rows = append(rows, Interconnect{
			Name: s.name, Family: "smp", Scope: "two sockets", Link: s.link, Links: s.links, OneWay: one, Duplex: 2 * one,
			Quoted: BothWays, Source: s.source,
			Note: joinNotes(s.note, fmt.Sprintf("NCCL counts %g GB/s for GPU traffic across it (%s)", s.nccl, docNCCL)),
		})
	}
	return rows
}

// quadrant is the data fabric between NUMA domains of one AMD socket: 64 bytes a
// cycle at 1.467 GHz.
const quadrant = 93.9 * unit.GBps

// smpFact is the rate between two NUMA domains with this CPU. The same socket is
// one die or package; far sockets are joined by the links of smpLinks.
func smpFact(cpu *cluster.CPUInfo, model string, sameSocket bool) cluster.Fact[unit.Rate] {
	if sameSocket {
		return cluster.FromAssumed(quadrant, "within a socket: taken as one port of an EPYC data fabric, 64 bytes a cycle at 1.467 GHz")
	}
	name := smpName(cpu, strings.ToLower(model))
	for _, s := range smpLinks() {
		if s.name != name {
			continue
		}
		f := cluster.FromSpec(s.link*unit.Rate(s.links), fmt.Sprintf("%s, %d links: %s", s.name, s.links, s.source))
		f.Origin = s.origin
		return f
	}
	return cluster.FromAssumed(gt(10.4, 2), "CPU model unknown: one UPI link at 10.4 GT/s")
}

// smpName picks the link by CPU vendor, family and model, elsewhere by the model's
// text. AMD families come in two spellings: the family proper (25) and NCCL's
// base + (extended<<4) (175).
func smpName(cpu *cluster.CPUInfo, model string) string {
	if cpu == nil {
		return ""
	}
	switch {
	case cpu.Vendor == "GenuineIntel" && cpu.Model > 0:
		return intelLink(cpu.Model)
	case cpu.Vendor == "AuthenticAMD":
		switch {
		case cpu.Family == 23 || cpu.Family == 143:
			if cpu.Model < 0x30 {
				return "xGMI Naples"
			}
			return "xGMI Rome and Milan"
		case cpu.Family == 25 || cpu.Family == 175:
			if cpu.Model < 0x10 || cpu.Model >= 0x20 && cpu.Model < 0x60 {
				return "xGMI Rome and Milan"
			}
			return "xGMI Genoa and Turin"
		case cpu.Family == 26 || cpu.Family == 191:
			return "xGMI Genoa and Turin"
		}
	case strings.Contains(model, "power8"):
		return "POWER8 X-bus"
	case cpu.Arch == "ppc64" || cpu.Arch == "ppc64le":
		return "POWER9 X-bus"
	case strings.Contains(model, "grace"):
		return "Grace to Grace"
	}
	return ""
}

// intelLink knows the server models of family 6.
func intelLink(model int) string {
	switch model {
	case 26, 44, 46, 47:
		return "QPI 6.4 GT/s"
	case 45, 62:
		return "QPI 8.0 GT/s"
	case 63, 79, 86:
		return "QPI 9.6 GT/s"
	case 85:
		return "UPI 10.4 GT/s"
	case 106, 108:
		return "UPI 11.2 GT/s"
	case 143:
		return "UPI 16 GT/s"
	case 207:
		return "UPI 20 GT/s"
	case 173, 174, 175:
		return "UPI 24 GT/s"
	}
	return ""
}
