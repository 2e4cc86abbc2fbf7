package hardware

import (
	"slices"
	"strings"
	"sync"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// NICModel is one row of the catalogue of network cards.
type NICModel struct {
	Name string   `json:"name"`            // ConnectX-7
	Also []string `json:"also,omitempty"`  // other names in tools: MT2910
	PCI  []string `json:"pci_ids"`         // vendor:device
	Kind string   `json:"kind,omitempty"`  // family of network it speaks; "" where it speaks several
	Max  string   `json:"speed,omitempty"` // fastest port speed
	// Rate is the fastest port in one direction; the card as a whole may not feed
	// two such ports.
	Rate    unit.Rate   `json:"rate_GBps"`
	PCIeGen int         `json:"pcie_gen"`
	Lanes   int         `json:"pcie_lanes"`
	GDR     cluster.Tri `json:"gdr,omitempty"`
	Source  string      `json:"source"`
	Note    string      `json:"note,omitempty"`
}

// NICs lists the network cards of the catalogue. Identifiers are those of the
// PCI ID repository, 2026-08.
func NICs() []NICModel {
	const vpi = "InfiniBand or Ethernet by firmware setting"
	const manual = "NVIDIA adapter cards user manual and product brief: "
	g := unit.Gbps
	yes, no := cluster.Yes, cluster.No
	return []NICModel{
		{"ConnectX-3", []string{"MT27500", "mlx4"}, []string{"15b3:1003", "15b3:1004"}, "", "4xFDR", 56 * g, 3, 8, yes, manual + "ConnectX-3, 2013", vpi},
		{"ConnectX-3 Pro", []string{"MT27520"}, []string{"15b3:1007"}, "", "4xFDR", 56 * g, 3, 8, yes, manual + "ConnectX-3 Pro, 2014", vpi},
		{"Connect-IB", []string{"MT27600", "MT4113"}, []string{"15b3:1011", "15b3:1012"}, "infiniband", "4xFDR", 56 * g, 3, 16, yes, manual + "Connect-IB, 2013", ""},
		{"ConnectX-4", []string{"MT27700", "MT4115"}, []string{"15b3:1013", "15b3:1014"}, "", "4xEDR", 100 * g, 3, 16, yes, manual + "ConnectX-4, 2016", vpi},
		{"ConnectX-4 Lx", []string{"MT27710", "MT4117"}, []string{"15b3:1015", "15b3:1016"}, "ethernet", "50GbE", 50 * g, 3, 8, yes, manual + "ConnectX-4 Lx, 2016", "mostly 2×25GbE"},
		{"ConnectX-5", []string{"MT27800", "MT4119"}, []string{"15b3:1017", "15b3:1018"}, "", "4xEDR", 100 * g, 3, 16, yes, manual + "ConnectX-5, 2017", vpi},
		{"ConnectX-5 Ex", []string{"MT28800", "MT4121"}, []string{"15b3:1019", "15b3:101a"}, "", "4xEDR", 100 * g, 4, 16, yes, manual + "ConnectX-5 Ex, 2017", vpi},
		{"ConnectX-6", []string{"MT28908", "MT4123"}, []string{"15b3:101b", "15b3:101c"}, "", "4xHDR", 200 * g, 4, 16, yes, manual + "ConnectX-6, 2020", vpi},
		{"ConnectX-6 Dx", []string{"MT2892", "MT4125"}, []string{"15b3:101d"}, "ethernet", "200GbE", 200 * g, 4, 16, yes, manual + "ConnectX-6 Dx, 2020", "mostly 2×100GbE"},
		{"ConnectX-6 Lx", []string{"MT2894", "MT4127"}, []string{"15b3:101f"}, "ethernet", "50GbE", 50 * g, 4, 8, yes, manual + "ConnectX-6 Lx, 2020", "mostly 2×25GbE"},
		{"ConnectX-7", []string{"MT2910", "MT4129"}, []string{"15b3:1021"}, "", "4xNDR", 400 * g, 5, 16, yes, manual + "ConnectX-7, 2022", vpi},
		{"ConnectX-8", []string{"CX8", "MT4131"}, []string{"15b3:1023"}, "", "4xXDR", 800 * g, 6, 16, yes, "NVIDIA InfiniBand adapters page, 2026: 800 Gb/s; " + docNetwork26 + ", table of adapters", vpi},
		{"BlueField-2", []string{"MT42822"}, []string{"15b3:a2d6"}, "", "200GbE", 200 * g, 4, 16, yes, "NVIDIA BlueField-2 data sheet, 2021", vpi},
		{"BlueField-3", []string{"MT43244"}, []string{"15b3:a2dc"}, "", "4xNDR", 400 * g, 5, 16, yes, "NVIDIA BlueField-3 data sheet, 2022", vpi},
		{
			"EFA",
			[]string{"Elastic Fabric Adapter"},
			[]string{"1d0f:efa0", "1d0f:efa1", "1d0f:efa2", "1d0f:efa3", "1d0f:efa4"},
			"efa", "", 0, 4, 8, yes,
			docNetworking + ", section EFA", "100 Gb/s up to EFA v2, 200 with v3, 400 with v4: the rate is the instance's; efa0 is what p4d shows",
		},
		{"ENA", []string{"Elastic Network Adapter"}, []string{"1d0f:ec20"}, "ethernet", "", 0, 3, 8, no, "PCI ID repository, 2026-08", "the rate is the instance's"},
		{"Slingshot Cassini", []string{"Cassini 1", "Cray Cassini"}, []string{"17db:0501"}, "slingshot", "200 Gb/s", 200 * g, 4, 16, yes, "HPE Slingshot 11 QuickSpecs, 2022", ""},
		{"Slingshot Cassini-2", []string{"Cassini 2"}, []string{"1590:0371", "1590:0372"}, "slingshot", "400 Gb/s", 400 * g, 5, 16, yes, "HPE Slingshot 400 announcement, 2024", ""},
		{"Omni-Path HFI 100", []string{"Omni-Path HFI Silicon 100 Series", "hfi1"}, []string{"8086:24f0", "8086:24f1"}, "omnipath", "100 Gb/s", 100 * g, 3, 16, yes, "Intel Omni-Path host fabric adapter 100 series product brief, 2016", ""},
		{"Omni-Path CN5000", []string{"CN5000"}, []string{"434e:0001"}, "omnipath", "400 Gb/s", 400 * g, 5, 16, yes, "Cornelis CN5000 data sheet, 2025", ""},
		{"gVNIC", []string{"Compute Engine Virtual Ethernet"}, []string{"1ae0:0042"}, "ethernet", "", 0, 3, 16, no, "Google Cloud documentation, gVNIC, 2024", "the rate is the machine type's, up to 200 Gb/s a card; carries GPUDirect-TCPX on A3"},
	}
}

// nicName is a spelling of a card's name, prepared for look-ups.
type nicName struct {
	key   string
	model NICModel
}

// nicTable is the catalogue prepared for look-ups, built once and never changed.
var nicTable = sync.OnceValue(func() []nicName {
	var names []nicName
	for _, m := range NICs() {
		for _, n := range append([]string{m.Name}, m.Also...) {
			names = append(names, nicName{nicKey(n), m})
		}
	}
	return names
})

// NICByPCI finds a network card by what it answers on the bus.
func NICByPCI(vendor, device string) (NICModel, bool) {
	id := pciKey(vendor, device)
	for _, n := range nicTable() {
		if slices.Contains(n.model.PCI, id) {
			return n.model.clone(), true
		}
	}
	return NICModel{}, false
}

// NICByName finds a network card whose name, or other name, occurs in the text:
// "Mellanox MT2910 Family [ConnectX-7]". The longest name that occurs wins.
func NICByName(name string) (NICModel, bool) {
	if len(name) > 200 {
		return NICModel{}, false
	}
	text := nicKey(name) + " "
	best, length := NICModel{}, 0
	for _, n := range nicTable() {
		if len(n.key) > length && strings.Contains(text, n.key+" ") {
			best, length = n.model, len(n.key)
		}
	}
	return best.clone(), length > 0
}

// clone is a copy that the caller may change.
func (m NICModel) clone() NICModel {
	m.Also, m.PCI = slices.Clone(m.Also), slices.Clone(m.PCI)
	return m
}

// nicKey spells a name with single spaces, so that ConnectX-6 does not hide in
// ConnectX-6 Dx and EFA not in another word.
func nicKey(s string) string {
	return " " + strings.Join(strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	}), " ")
}
