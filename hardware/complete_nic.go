package hardware

import (
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

func (f *filler) nic(i int, d *cluster.Device) {
	m, known := nicModel(d)
	if d.NIC == nil {
		d.NIC = &cluster.NICInfo{}
	}
	n := d.NIC
	if known {
		set(&d.Model, cluster.FromSpec(m.Name, "PCI id"))
		if slices.Contains(m.Also, d.Model.Value) { // a part number
			d.Model.Value, d.Model.Source = m.Name, d.Model.Source+": "+d.Model.Value
		}
		fill(&n.GDR, m.GDR)
	}
	if n.Kind == "" {
		n.Kind = nicKind(d, m)
	}
	if len(n.Ports) == 0 && known && m.Rate > 0 {
		n.Ports = []cluster.Port{{Num: 1}}
	}
	for k := range n.Ports {
		f.port(i, &n.Ports[k], m)
	}
}

// port fills the rate of a port: from its speed, else the fastest its card can
// do. A port that is down has no rate.
func (f *filler) port(i int, p *cluster.Port, m NICModel) {
	var speed PortSpeed
	if p.Speed != "" {
		speed, _ = ParsePortSpeed(p.Speed)
	}
	if m.Rate > 0 {
		set(&p.Max, cluster.FromSpec(m.Rate, m.Source))
	}
	switch {
	case p.Rate.Known():
		if m.Rate > 0 && p.Rate.Value > m.Rate*1.02 {
			f.warn(i, "%s says %s; a port of %s does at most %s (%s)", p.Rate.Source, p.Rate.Value.Bits(), m.Name, m.Rate.Bits(), m.Source)
		}
		if most := max(speed.Rate, speed.Nominal); most > 0 && p.Rate.Value > most*1.02 {
			f.warn(i, "%s says %s; %s carries at most %s", p.Rate.Source, p.Rate.Value.Bits(), p.Speed, most.Bits())
		}
	case speed.Rate > 0:
		p.Rate = cluster.FromSpec(speed.Rate, "speed "+p.Speed)
	case p.State == cluster.Down:
	case m.Rate > 0:
		p.Rate = cluster.FromAssumed(m.Rate, "port speed unknown; the fastest of "+m.Name)
	}
}

func nicModel(d *cluster.Device) (NICModel, bool) {
	if d.PCIID != nil {
		if m, ok := NICByPCI(d.PCIID.Vendor, d.PCIID.Device); ok {
			return m, true
		}
	}
	if d.Model.Known() {
		return NICByName(d.Model.Value)
	}
	return NICModel{}, false
}

// nicKind tells the family of network: from the card where it speaks only one,
// else from what its ports say, else from the name the system gave it.
func nicKind(d *cluster.Device, m NICModel) cluster.NetKind {
	rdma := strings.HasPrefix(d.Label, "mlx") || strings.HasPrefix(d.Label, "roce") || strings.HasPrefix(d.Label, "rocep")
	ether := cluster.Ethernet
	if rdma {
		ether = cluster.RoCE
	}
	switch m.Kind {
	case "":
	case "ethernet":
		return ether
	default:
		return cluster.NetKind(m.Kind)
	}
	for _, p := range d.NIC.Ports {
		switch strings.ToLower(p.Layer) {
		case "infiniband":
			return cluster.InfiniBand
		case "ethernet":
			return ether
		}
		if s, err := ParsePortSpeed(p.Speed); p.Speed != "" && err == nil && s.Kind != "" {
			return s.Kind
		}
	}
	if d.PCIID != nil && strings.HasPrefix(d.PCIID.Class, "0207") {
		return cluster.InfiniBand
	}
	if d.PCIID != nil && strings.HasPrefix(d.PCIID.Class, "0200") {
		return ether
	}
	return kindByLabel(d.Label)
}

// kindByLabel knows the names that drivers give their devices.
func kindByLabel(label string) cluster.NetKind {
	for _, p := range []struct {
		stem string
		kind cluster.NetKind
	}{
		{"rdmap", cluster.EFA},
		{"efa", cluster.EFA},
		{"hfi1", cluster.OmniPath},
		{"cxi", cluster.Slingshot},
		{"hsn", cluster.Slingshot},
		{"roce", cluster.RoCE},
		{"bnxt_re", cluster.RoCE},
		{"irdma", cluster.RoCE},
		{"ib", cluster.InfiniBand},
		{"eth", cluster.Ethernet},
		{"en", cluster.Ethernet},
		{"bond", cluster.Ethernet},
	} {
		if strings.HasPrefix(label, p.stem) {
			return p.kind
		}
	}
	return ""
}

// feeds is the slowest PCIe generation whose 16 lanes carry a rate, at least 3.
func feeds(rate unit.Rate) int {
	for gen := 3; gen < 7; gen++ {
		if PCIeRate(PCIeSpeed(gen), 16) >= rate {
			return gen
		}
	}
	return 7
}
