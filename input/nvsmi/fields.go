package nvsmi

import (
	"strconv"
	"strings"

	"busbar.dev/cluster"
)

// fields are what is used of a GPU, under the names that nvidia-smi gives it: in the header of --query-gpu, as path of
// sections and key in -q, and as path of elements in -q -x.
var fields = map[string]string{
	"index": "index", "name": "name", "gpu_name": "name", "uuid": "uuid", "gpu_uuid": "uuid",
	"pci.bus_id": "pci", "gpu_bus_id": "pci", "memory.total": "memory", "compute_cap": "sm",
	"pcie.link.gen.current": "gen", "pcie.link.gen.gpucurrent": "gen",
	"pcie.link.gen.max": "genmax", "pcie.link.gen.gpumax": "gpumax",
	"pcie.link.width.current": "width", "pcie.link.width.max": "widthmax",
	"c2c.mode": "c2c", "hostname": "host",

	"Product Name": "name", "GPU UUID": "uuid", "FB Memory Usage/Total": "memory", "GPU C2C Mode": "c2c",
	"PCI/Bus Id": "pci", "PCI/Device Id": "id", "PCI/Sub System Id": "subid",
	"PCI/GPU Link Info/PCIe Generation/Current": "gen", "PCI/GPU Link Info/PCIe Generation/Max": "genmax",
	"PCI/GPU Link Info/Link Width/Current": "width", "PCI/GPU Link Info/Link Width/Max": "widthmax",
	"MIG Device/Index": "mig",

	"product_name": "name", "fb_memory_usage/total": "memory", "c2c_mode": "c2c",
	"pci/pci_bus_id": "pci", "pci/pci_device_id": "id", "pci/pci_sub_system_id": "subid",
	"pci/pci_gpu_link_info/pcie_gen/current_link_gen":      "gen",
	"pci/pci_gpu_link_info/pcie_gen/max_link_gen":          "genmax",
	"pci/pci_gpu_link_info/link_widths/current_link_width": "width",
	"pci/pci_gpu_link_info/link_widths/max_link_width":     "widthmax",
	"mig_devices/mig_device/index":                         "mig",
	"mig_devices/mig_device/uuid":                          "miguuid",

	"Model": "name", "Bus Location": "pci", // of /proc/driver/nvidia
}

// set takes the value of a field; false when it is none.
func (g *gpu) set(field, text string) bool {
	n, err := strconv.Atoi(strings.TrimSuffix(text, "x"))
	if err != nil {
		n = -1
	}
	switch field {
	case "index":
		if n < 0 || n >= maxGPUs {
			return false
		}
		g.index = n
	case "name":
		if text == "" || len(text) > 128 || text[0] == '[' || text == "Unknown" {
			return false
		}
		g.name = strings.Clone(text)
	case "uuid": // question marks stand for a GPU that no process has opened yet
		if !validUUID(text) {
			return false
		}
		g.uuid = strings.Clone(text)
	case "pci":
		p, err := cluster.ParsePCI(text)
		if err != nil || strings.Count(text, ":") != 2 {
			return false
		}
		g.pci = p
	case "memory":
		g.memory = mebibytes(text)
	case "sm":
		if v, err := strconv.ParseFloat(text, 64); err == nil && v >= 1 && v < 100 {
			g.sm = int(v*10 + 0.5)
		}
	case "gen":
		g.gen.now = small(n, 7)
	case "genmax":
		g.gen.most = small(n, 7)
	case "gpumax":
		if g.gen.most == 0 { // what the slot allows comes first
			g.gen.most = small(n, 7)
		}
	case "width":
		g.width.now = small(n, 32)
	case "widthmax":
		g.width.most = small(n, 32)
	case "c2c":
		g.c2c = text == "Enabled"
	case "id":
		g.id().Device, g.id().Vendor = splitID(text)
	case "subid":
		g.id().SubDevice, g.id().SubVendor = splitID(text)
	case "mig":
		if n >= 0 && len(g.slices) < 64 {
			g.slices = append(g.slices, cluster.Slice{Index: n})
		}
	case "miguuid":
		if k := len(g.slices) - 1; k >= 0 && validUUID(text) {
			g.slices[k].UUID = text
		}
	}
	return true
}

// small keeps a number between 1 and most, else 0.
func small(n, most int) int {
	if n < 1 || n > most {
		return 0
	}
	return n
}

func (g *gpu) id() *cluster.PCIID {
	if g.pciID == nil {
		g.pciID = &cluster.PCIID{}
	}
	return g.pciID
}

// splitID cuts "233510DE" (also "0x233510DE") into device 2335 and vendor 10de.
func splitID(s string) (device, vendor string) {
	s = strings.ToLower(strings.TrimPrefix(s, "0x"))
	if len(s) != 8 || strings.Trim(s, "0123456789abcdef") != "" {
		return "", ""
	}
	return s[:4], s[4:]
}
