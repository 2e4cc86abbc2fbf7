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
	Name string   `json:"name" csv:"name"`                             // ConnectX-7
	Also []string `json:"also,omitempty" csv:"also,optional"`          // other names in tools: MT2910
	PCI  []string `json:"pci_ids" csv:"pci_ids"`                       // vendor:device
	Kind string   `json:"kind,omitempty" csv:"kind,optional"`          // family of network it speaks; "" where it speaks several
	Max  string   `json:"speed,omitempty" csv:"fastest_port,optional"` // fastest port speed
	// Rate is the fastest port in one direction; the card as a whole may not feed
	// two such ports.
	Rate    unit.Rate   `json:"rate_GBps,omitzero" csv:"port_Gbps,optional"`
	PCIeGen int         `json:"pcie_gen" csv:"pcie_gen"`
	Lanes   int         `json:"pcie_lanes" csv:"pcie_lanes"`
	GDR     cluster.Tri `json:"gdr,omitempty" csv:"gdr"`
	Source  string      `json:"source" csv:"source"`
	Note    string      `json:"note,omitempty" csv:"note,optional"`
}

var nicRows = sync.OnceValue(func() []NICModel { return load[NICModel]("nics") })

// NICs lists the network cards of the catalogue.
func NICs() []NICModel {
	list := slices.Clone(nicRows())
	for i := range list {
		list[i] = list[i].clone()
	}
	return list
}

// nicName is a spelling of a card's name, prepared for look-ups.
type nicName struct {
	key   string
	model NICModel
}

// nicTable is the catalogue prepared for look-ups, built once and never changed.
var nicTable = sync.OnceValue(func() []nicName {
	var names []nicName
	for _, m := range nicRows() {
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
