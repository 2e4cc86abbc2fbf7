package board

import (
	"cmp"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/lazyre"
	"busbar.dev/unit"
)

// PCI vendors that matter here.
const (
	vendorAMD      = "1002"
	vendorNVIDIA   = "10de"
	vendorIntel    = "8086"
	vendorHabana   = "1da3"
	vendorAmazon   = "1d0f"
	vendorHPE      = "17db" // Cray's Cassini
	vendorCornelis = "434e"
)

// serverVGA are display chips by AMD (then ATI) that servers have for their
// console, by device id: ES1000 and Rage XL.
const serverVGA = " 515e 5969 4752 4753 4754 4758 "

// GPUVendor tells whether a PCI function is an accelerator, and whose: nvidia,
// amd or intel; empty when it is none. onRootBus says that no bridge is above
// it.
//
// Display class alone does not make a GPU: nearly every server has an ASPEED or
// Matrox VGA chip in its management controller (often as card0), Intel desktop
// processors have graphics and a neural unit on the root bus, and old boards
// carry an ATI console chip under AMD's vendor id.
func GPUVendor(id cluster.PCIID, onRootBus bool) string {
	if len(id.Class) < 4 {
		return ""
	}
	base, class := id.Class[:2], id.Class[:4]
	if base != "03" && base != "12" {
		return ""
	}
	switch id.Vendor {
	case vendorNVIDIA:
		return "nvidia"
	case vendorAMD:
		if !strings.Contains(serverVGA, " "+id.Device+" ") {
			return "amd"
		}
	case vendorIntel:
		if class == "0302" || class == "0380" || !onRootBus {
			return "intel"
		}
	case vendorHabana:
		return "intel"
	}
	return ""
}

// IsNVSwitch tells whether a PCI function is an NVSwitch.
func IsNVSwitch(id cluster.PCIID) bool {
	return id.Vendor == vendorNVIDIA && strings.HasPrefix(id.Class, "0680")
}

// IsBridge tells whether a PCI function has a bus below it.
func IsBridge(id cluster.PCIID) bool { return strings.HasPrefix(id.Class, "0604") }

// NetKind tells the family of a NIC. driver is its driver or the name of its device, which begins alike. rdma says that
// the operating system has an RDMA device for it, layer is that device's link layer where known.
func NetKind(id cluster.PCIID, driver string, rdma bool, layer string) cluster.NetKind {
	switch {
	case id.Vendor == vendorHPE || strings.HasPrefix(driver, "cxi"):
		return cluster.Slingshot
	case id.Vendor == vendorAmazon && strings.HasPrefix(id.Device, "efa") || strings.HasPrefix(driver, "efa"),
		strings.HasPrefix(driver, "rdmap"): // what EFA's devices are called
		return cluster.EFA
	case strings.HasPrefix(driver, "hfi1") || id.Vendor == vendorCornelis || strings.HasPrefix(id.Class, "0208") ||
		id.Vendor == vendorIntel && (id.Device == "24f0" || id.Device == "24f1"):
		return cluster.OmniPath
	case !rdma, strings.HasPrefix(driver, "i40"), strings.HasPrefix(driver, "cxgb4"): // what is RDMA there is iWARP
		return cluster.Ethernet
	case layer == "InfiniBand":
		return cluster.InfiniBand
	case layer == "Ethernet":
		return cluster.RoCE
	}
	// Without a link layer the class tells: Mellanox firmware answers 0207 for a
	// port set to InfiniBand and 0200 for Ethernet; 0c06 is the older InfiniBand class.
	if strings.HasPrefix(id.Class, "0207") || strings.HasPrefix(id.Class, "0c06") {
		return cluster.InfiniBand
	}
	if strings.HasPrefix(id.Class, "02") {
		return cluster.RoCE
	}
	return ""
}

var guid = lazyre.New(`^(?:0x)?([0-9a-f]{16})$`)

// GUID writes a GUID as InfiniBand tools do, 0x506b4b03003ceee8, from
// "506b:4b03:003c:eee8". One of all zeros, and anything else, is none.
func GUID(s string) string {
	m := guid.FindStringSubmatch(strings.ToLower(strings.ReplaceAll(strings.TrimSpace(s), ":", "")))
	if m == nil || strings.Trim(m[1], "0") == "" {
		return ""
	}
	return "0x" + m[1]
}

// PortGUID is the lower half of a GID.
func PortGUID(gid string) string {
	hex := strings.ReplaceAll(strings.TrimSpace(gid), ":", "")
	if len(hex) != 32 {
		return ""
	}
	return GUID(hex[16:])
}

// portRate is a number, and behind it perhaps lanes and the speed of each.
var portRate = lazyre.New(`^([\d.]+)(?:$| (?:[^(]*\(\s*(\d{1,2})X(?: (\S{0,5}))?\))?)`)

// PortRate reads what the kernel writes of a port, "400 Gb/sec (4X NDR)": its rate, 0 where it is none, and "4xNDR".
// Tools that print the rate alone leave out what follows the number.
func PortRate(s string) (rate unit.Rate, speed string) {
	m := portRate.FindStringSubmatch(s)
	if m == nil {
		return 0, ""
	}
	if v, err := strconv.ParseFloat(m[1], 64); err == nil && v > 0 && v <= 1e5 {
		rate = unit.Rate(v) * unit.Gbps
	}
	if m[2] != "" {
		speed = m[2] + "x" + cmp.Or(m[3], "SDR") // the kernel names every speed but the first
	}
	return rate, speed
}

// PortState reads the number in front of "4: ACTIVE".
func PortState(s string) cluster.State {
	num, _, _ := strings.Cut(strings.TrimSpace(s), ":")
	switch num {
	case "1":
		return cluster.Down
	case "2", "3", "5": // initialising, armed, active but deferred
		return cluster.Init
	case "4":
		return cluster.Up
	}
	return cluster.StateUnknown
}
