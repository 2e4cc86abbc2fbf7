package ncclxml

import (
	"strings"

	"busbar.dev/cluster"
)

// addGPU adds a GPU. position is its place in PCI order on its host, which is
// its NVML index where the file does not give one.
func (b *builder) addGPU(l *leaf, position int) {
	d := cluster.Device{Kind: cluster.GPU, Index: l.index}
	if l.index < 0 {
		d.Index = position
	}
	info := &cluster.GPUInfo{Vendor: b.vendor(l.el)}
	if gpus := l.el.All("gpu"); len(gpus) > 0 {
		g := gpus[0]
		info.GDR = tri(g.Get("gdr"))
		if b.rccl {
			// Older RCCL wrote the number alone, and 910 for gfx90a.
			info.Arch, _, _ = strings.Cut(g.Get("gcn"), ":")
			switch s := info.Arch; {
			case s == "910":
				info.Arch = "gfx90a"
			case len(s) >= 3 && len(s) <= 4 && strings.Trim(s, "0123456789") == "":
				info.Arch = "gfx" + s
			}
		} else {
			info.SM = upTo(999, g, "sm")
		}
	}
	d.GPU = info
	b.addLeaf(l, d)
}

// vendor names the maker of a GPU by its PCI id, else by the dialect.
func (b *builder) vendor(e *element) string {
	if v := hexText(e.Get("vendor")); v == "1002" || v != "10de" && b.rccl {
		return "amd"
	}
	return "nvidia"
}

// idAttrs are the attributes for what a device answers on the bus, in the order of idParts.
var idAttrs = strings.Fields("class vendor device subsystem_vendor subsystem_device")

func idParts(id *cluster.PCIID) []*string {
	return []*string{&id.Class, &id.Vendor, &id.Device, &id.SubVendor, &id.SubDevice}
}

// pciID keeps what the device answers on the bus, nil when nothing.
func pciID(e *element) *cluster.PCIID {
	id := cluster.PCIID{}
	for i, name := range idAttrs {
		*idParts(&id)[i] = hexText(e.Get(name))
	}
	if id == (cluster.PCIID{}) {
		return nil
	}
	return &id
}
