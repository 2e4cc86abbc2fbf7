package ibstat

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/board"
	"busbar.dev/input/internal/num"
	"busbar.dev/input/internal/warn"
	"busbar.dev/internal/natural"
	"busbar.dev/unit"
)

// Limits that hold before anything is allocated.
const (
	maxCards = 1 << 16 // of all nodes together
	maxPorts = 64      // of one adapter
	maxName  = 64      // of an adapter; the kernel's limit
)

// card is an adapter as read so far.
type card struct {
	cluster.Device
	vendor string // PCI or IEEE number, as four or more digits
	part   string // vendor's part number
	stated int    // ports it says it has; 0 unknown
	lanes  int    // of the port at hand
	// managers are the LIDs of the subnet managers that its ports answer to.
	managers []string
	line     int
}

func newCard(label string, line int) *card { return &card{Device: board.NIC(label), line: line} }

// hosts collects cards into nodes.
type hosts struct {
	nodes []map[string]*card
	count int
}

// addCard gives a finished card to the node at hand, or begins a further one when the
// node has another card of that name.
func (h *hosts) addCard(c *card) {
	if c == nil {
		return
	}
	if h.count++; h.count > maxCards {
		return
	}
	if len(h.nodes) == 0 {
		h.nodes = append(h.nodes, map[string]*card{})
	}
	node := h.nodes[len(h.nodes)-1]
	have := node[c.Label]
	switch {
	case have == nil:
		node[c.Label] = c
	case have.same(c):
		have.mergeCard(c)
	default:
		h.nodes = append(h.nodes, map[string]*card{c.Label: c})
	}
}

// same reports whether two blocks under one name can be about one card.
func (c *card) same(d *card) bool {
	if c.UUID != "" && d.UUID != "" {
		return c.UUID == d.UUID
	}
	for _, p := range d.NIC.Ports {
		if q := c.port(p.Num); q != nil && q.GUID != "" && p.GUID != "" && q.GUID != p.GUID {
			return false
		}
	}
	return true
}

// mergeCard adds the ports of another block about the card; the later word on a port stands.
func (c *card) mergeCard(d *card) {
	c.managers = append(c.managers, d.managers...)
	c.stated = max(c.stated, d.stated)
	for _, p := range d.NIC.Ports {
		if q := c.port(p.Num); q != nil {
			*q = p
		} else if len(c.NIC.Ports) < maxPorts {
			c.NIC.Ports = append(c.NIC.Ports, p)
		}
	}
}

func (c *card) port(num int) *cluster.Port {
	for i := range c.NIC.Ports {
		if c.NIC.Ports[i].Num == num {
			return &c.NIC.Ports[i]
		}
	}
	return nil
}

// addPort begins a port; one that is not kept when the number is none or there are too many.
func (c *card) addPort(text string) *cluster.Port {
	n := num.Or(text, 1, maxPorts, 0)
	if n == 0 {
		return new(cluster.Port)
	}
	if p := c.port(n); p != nil {
		return p
	}
	c.lanes = 0
	c.NIC.Ports = append(c.NIC.Ports, cluster.Port{Num: n})
	return c.port(n)
}

// addTo gives every node as a type of its own, cards in natural order.
func (h *hosts) addTo(f *cluster.Fragment) {
	for _, node := range h.nodes {
		t := &cluster.NodeType{Name: "node"}
		managers := map[string][]string{} // NICs by subnet manager
		for i, label := range slices.SortedFunc(maps.Keys(node), natural.Compare) {
			c := node[label]
			for _, lid := range c.managers {
				managers[lid] = append(managers[lid], label)
			}
			if n := len(c.NIC.Ports); c.stated > 0 && n > 0 && c.stated != n {
				f.Warnf(c.line, c.Label, "says it has %d ports and shows %d; give the whole output of %s", c.stated, n, f.Format)
			}
			c.Name = "nic" + strconv.Itoa(i)
			c.finish(f.Format)
			t.Devices = append(t.Devices, c.Device)
		}
		if len(managers) > 1 {
			var each []string
			for _, lid := range slices.SortedFunc(maps.Keys(managers), natural.Compare) {
				each = append(each, "LID "+lid+": "+cluster.FormatHosts(slices.Compact(managers[lid])))
			}
			warn.Found(f, 0, cluster.FormatHosts(t.Titles()), "subnets-differ", "note",
				"see that every node numbers its NICs alike; name in NCCL_IB_HCA only those of the fabric that is meant",
				"the NICs answer to %d subnet managers, so they are on fabrics that do not reach each other, or on rails "+
					"apart (%s)", len(managers), strings.Join(each, "; "))
		}
		f.AddNode("", t)
	}
}

// finish completes the device of a card that is read to its end.
func (c *card) finish(source string) {
	c.NIC.Kind = c.kind()
	if !c.Model.Known() && c.vendor == mellanox && c.part != "" {
		c.Model = cluster.FromRead("MT"+c.part, source) // as ibstat writes it
	}
	slices.SortFunc(c.NIC.Ports, func(a, b cluster.Port) int { return a.Num - b.Num })
	for i := range c.NIC.Ports {
		p := &c.NIC.Ports[i]
		if p.State == cluster.Down {
			p.Rate, p.Speed = cluster.Fact[unit.Rate]{}, ""
		}
	}
}

// mellanox is the maker's IEEE number, which ibv_devinfo prints as vendor_id.
const mellanox = "02c9"

// kind tells the family of networks by the driver's name for the device and the
// link layer of the first port that is not down.
func (c *card) kind() cluster.NetKind {
	driver := ""
	switch {
	case strings.HasPrefix(c.Label, "hfi1_"):
		driver = "hfi1"
	case strings.HasPrefix(c.Label, "efa_") || c.vendor == "1d0f":
		driver = "efa"
	case strings.HasPrefix(c.Label, "cxi"):
		driver = "cxi"
	}
	layer := ""
	for _, p := range c.NIC.Ports {
		if layer == "" || p.State != cluster.Down {
			layer = p.Layer
		}
		if p.State != cluster.Down {
			break
		}
	}
	return board.NetKind(cluster.PCIID{}, driver, true, layer)
}
