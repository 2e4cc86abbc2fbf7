package ncclxml

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
)

// Limits of NCCL's parser: 2.21 and later hold 256 elements, releases up to 2.20
// hold 32 inside another. The first is refused beyond, the second has not been
// met by any machine.
const (
	maxValue = 254
	maxNodes = 255
)

// Write writes t as a file for NCCL_TOPO_FILE, in RCCL's dialect when its GPUs
// are AMD's. tray picks one host of a node that is an NVLink domain of several,
// counted from 1; 0 refuses such a node. madeUp is the PCI domain of the addresses
// that are made up because t has none for its GPUs: NCCL finds GPUs by address, so
// that such a file fits no machine as it is. (It finds NICs by name.) It is an error
// when the format cannot say what t is.
func Write(w io.Writer, t *cluster.NodeType, tray int) (madeUp string, err error) {
	if err := t.Check(); err != nil {
		return "", err
	}
	p := printer{t: t, tray: tray}
	root, err := p.system()
	if err != nil {
		return "", fmt.Errorf("node type %s as NCCL topology XML: %w", t.Name, err)
	}
	var out strings.Builder
	root.print(&out, 0)
	_, err = io.WriteString(w, out.String())
	return p.madeUp, err
}

// printer turns a node type into elements.
type printer struct {
	t      *cluster.NodeType
	tray   int
	rccl   bool
	madeUp string        // PCI domain of the addresses of GPUs that were made up
	addr   []cluster.PCI // per device: its address in the file
	below  [][]int       // per device: what hangs on it; below the last what hangs on nothing
	up     []cluster.Link
	out    [][]cluster.Link // per device: links it reports
	dev    []int            // per device: of GPUs and the first net of NICs
	placed int              // devices that have their element
}

// plan collects what the elements need and refuses what the format cannot say.
func (p *printer) plan() error {
	n := len(p.t.Devices)
	p.below, p.up, p.out = make([][]int, n+1), make([]cluster.Link, n), make([][]cluster.Link, n)
	if p.t.Trays > 1 && (p.tray < 1 || p.tray > p.t.Trays) {
		return fmt.Errorf("it spans %d hosts and NCCL reads one host per file; pick one with Tray 1 to %d", p.t.Trays,
			p.t.Trays)
	}
	for i := range p.t.Devices {
		d := &p.t.Devices[i]
		switch {
		case !p.here(i):
		case d.Parent < 0 || p.t.Devices[d.Parent].Kind == cluster.Socket:
			p.below[n] = append(p.below[n], i)
		default:
			p.below[d.Parent] = append(p.below[d.Parent], i)
		}
	}
	if err := p.makers(); err != nil {
		return err
	}
	for _, l := range p.t.Links {
		if err := p.link(l); err != nil {
			return err
		}
	}
	p.number()
	p.addresses()
	return nil
}

// here reports whether a device belongs to the host that is written.
func (p *printer) here(d int) bool {
	return p.t.Trays <= 1 || p.t.Devices[d].Tray == p.tray-1 || p.t.Devices[d].Kind == cluster.NVSwitch
}

// makers settles the dialect by who made the GPUs.
func (p *printer) makers() error {
	first := ""
	for _, g := range p.t.Of(cluster.GPU) {
		d := &p.t.Devices[g]
		if d.GPU == nil || d.GPU.Vendor == "" {
			continue
		}
		first = cmp.Or(first, d.GPU.Vendor)
		if d.GPU.Vendor != first {
			return fmt.Errorf("%s is %s's and others are %s's; neither NCCL nor RCCL drives both", d.Name, d.GPU.Vendor, first)
		}
	}
	xgmi := slices.ContainsFunc(p.t.Links, func(l cluster.Link) bool { return l.Kind == cluster.XGMI })
	p.rccl = first == "amd" || first == "hygon" || xgmi
	if first == "intel" {
		return fmt.Errorf("its accelerators are Intel's; NCCL drives NVIDIA's and RCCL AMD's")
	}
	return nil
}

// link sorts a link to the device that reports it.
func (p *printer) link(l cluster.Link) error {
	if !p.here(l.A) || !p.here(l.B) {
		return nil
	}
	a, b := &p.t.Devices[l.A], &p.t.Devices[l.B]
	said := fmt.Sprintf("%s link %s–%s", l.Kind, a.Name, b.Name)
	switch {
	case b.Parent == l.A && (l.Kind == cluster.PCIe || l.Kind == cluster.OnDie):
		p.up[l.B] = l
		return nil
	case a.Parent == l.B && (l.Kind == cluster.PCIe || l.Kind == cluster.OnDie):
		p.up[l.A] = l
		return nil
	case l.Kind == cluster.SMP:
		return nil // NCCL joins all NUMA domains itself
	case l.Kind == cluster.NVLink && !p.rccl, l.Kind == cluster.XGMI && p.rccl, l.Kind == cluster.C2C && !p.rccl:
		return p.gpuLinks(l, said)
	case l.Kind == cluster.Direct && a.Kind == cluster.PCISwitch && b.Kind == cluster.PCISwitch:
		p.report(l)
		return nil
	}
	return fmt.Errorf("%s: %s has no word for it", said, p.target())
}

func (p *printer) target() string {
	if p.rccl {
		return "RCCL"
	}
	return "NCCL"
}

// report lists a link with A and, unless it is one-way, turned round with B.
func (p *printer) report(l cluster.Link) {
	p.out[l.A] = append(p.out[l.A], l)
	if !l.OneWay {
		l.A, l.B = l.B, l.A
		p.out[l.A] = append(p.out[l.A], l)
	}
}

// gpuLinks takes NVLinks, xGMI or chip-to-chip links.
func (p *printer) gpuLinks(l cluster.Link, said string) error {
	if p.t.Devices[l.A].Kind != cluster.GPU {
		l.A, l.B = l.B, l.A
	}
	a, b, chips := p.t.Devices[l.A].Kind, p.t.Devices[l.B].Kind, l.Kind == cluster.C2C
	switch {
	case a == cluster.NVSwitch && b == cluster.NVSwitch:
		return nil // a second level of switches, which no GPU sees: NCCL lists what is at the other end of a GPU's links
	case !chips && (l.Lanes < 1 || l.Lanes > maxCount):
		return fmt.Errorf("%s: %d links; the format needs their number", said, l.Lanes)
	case chips && !l.Rate.Known():
		return fmt.Errorf("%s: its rate is not known; NCCL needs it", said)
	case a == cluster.GPU && b == cluster.GPU && !chips:
		p.report(l)
	case a == cluster.GPU && !l.OneWay && (chips && p.t.Above(l.A, cluster.NUMA) == l.B ||
		l.Kind == cluster.NVLink && b == cluster.NVSwitch):
		p.out[l.A] = append(p.out[l.A], l)
	default:
		return fmt.Errorf("%s: %s knows such links between GPUs and, both ways, from a GPU to an NVSwitch or over C2C to its own CPU",
			said, p.target())
	}
	return nil
}

// number gives every GPU its dev: the index it has, where these are all
// different, else its place in the list. NICs give theirs to as many nets as they
// have, in their own order and not that of the tree.
func (p *printer) number() {
	p.dev = make([]int, len(p.t.Devices))
	gpus, nets := 0, 0
	seen := map[int]bool{-1: true}
	distinct := true
	for i := range p.t.Devices {
		switch d := &p.t.Devices[i]; {
		case !p.here(i):
		case d.Kind == cluster.GPU:
			distinct = distinct && !seen[d.Index]
			seen[d.Index] = true
			p.dev[i] = gpus
			gpus++
		case d.Kind == cluster.NIC:
			p.dev[i] = nets
			nets += max(len(p.ports(i)), 1)
		}
	}
	for _, g := range p.t.Of(cluster.GPU) {
		if distinct {
			p.dev[g] = p.t.Devices[g].Index
		}
	}
}

// addresses gives every pci element an address. Those that nobody knows are in
// a PCI domain that no device of the node has, on buses from 1 up.
func (p *printer) addresses() {
	p.addr = make([]cluster.PCI, len(p.t.Devices))
	used := map[string]bool{}
	for i := range p.t.Devices {
		domain, _, _ := strings.Cut(string(p.t.Devices[i].PCI), ":")
		used[domain] = true
	}
	domain := 0xfffe
	for used[strconv.FormatInt(int64(domain), 16)] {
		domain--
	}
	next := 0
	taken := map[cluster.PCI]bool{"": true}
	for i := range p.t.Devices {
		d := &p.t.Devices[i]
		if !p.here(i) || d.Kind == cluster.NVSwitch || d.Kind >= cluster.Socket && d.Kind <= cluster.RootComplex ||
			p.virtual(i) {
			continue
		}
		p.addr[i] = d.PCI
		if taken[d.PCI] {
			p.addr[i] = cluster.PCI(fmt.Sprintf("%x:%02x:%02x.0", domain, next/32+1, next%32))
			next++
			if d.Kind == cluster.GPU {
				p.madeUp = strconv.FormatInt(int64(domain), 16)
			}
		}
		taken[p.addr[i]] = true
	}
}

// virtual reports a NIC without a card, such as the loopback interface: it hangs
// on a NUMA domain and nobody knows an address, an id or a link of it.
func (p *printer) virtual(i int) bool {
	d := &p.t.Devices[i]
	l := &p.up[i]
	return d.Kind == cluster.NIC && d.PCI == "" && d.PCIID == nil && l.Lanes == 0 && l.GTs == 0 &&
		(d.Parent < 0 || p.t.Devices[d.Parent].Kind != cluster.RootComplex && p.t.Devices[d.Parent].Kind != cluster.PCISwitch)
}
