package clusterfile

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"busbar/cluster"
	"busbar/hardware"
	"busbar/unit"
)

// nodeType makes a node type from whichever of the three forms is used.
func (f *typeForm) nodeType(name string) (*cluster.NodeType, error) {
	short := f.GPUs != "" || f.NICs != "" || f.NVLink != "" || f.Sockets != 0 || f.GPUsPerSwitch != 0
	switch {
	case len(f.Devices) > 0 && short:
		return nil, errors.New("both devices and a short description (gpus, nics, …); give one")
	case len(f.Devices) > 0:
		d := cluster.TypeDoc{Name: name, Preset: f.Preset, Trays: f.Trays, Tree: f.Tree, Devices: f.Devices, Links: f.Links, Pairs: f.Pairs}
		return d.NodeType()
	case f.Preset != "" && short:
		return nil, errors.New("both preset and a short description; give one (busbar map PRESET -o yaml prints a preset in full, to edit)")
	case f.Preset != "":
		t, err := hardware.Node(f.Preset)
		if err != nil {
			return nil, err
		}
		t.Name = name
		return t, nil
	case !short:
		return nil, errors.New("expected preset, gpus, nics or devices")
	}
	return f.build(name)
}

// counted reads "8 x H100" or "8xH100" or "H100" (one).
func counted(s string) (int, string, error) {
	num, rest, ok := strings.Cut(s, "x")
	if n, err := strconv.Atoi(strings.TrimSpace(num)); ok && err == nil {
		if n < 1 || n > 1024 {
			return 0, "", fmt.Errorf("%q: expected 1 to 1024 of them", s)
		}
		return n, strings.TrimSpace(rest), nil
	}
	if strings.TrimSpace(s) == "" {
		return 0, "", errors.New("empty; expected e.g. 8 x H100")
	}
	return 1, strings.TrimSpace(s), nil
}

// building is a node type under construction from the short form.
type building struct {
	form    *typeForm
	t       *cluster.NodeType
	numa    []int
	gpus    []int
	gpu     hardware.GPUModel
	nics    int
	nicInfo cluster.NICInfo
}

func (f *typeForm) build(name string) (*cluster.NodeType, error) {
	b := &building{form: f, t: &cluster.NodeType{Name: name, Tree: cluster.Assumed}}
	gpus := 0
	if f.GPUs != "" {
		n, model, err := counted(f.GPUs)
		if err != nil {
			return nil, fmt.Errorf("gpus: %w", err)
		}
		g, ok := hardware.GPUByName(model)
		if !ok {
			return nil, fmt.Errorf("gpus: no GPU %q in the catalogue; busbar hardware gpu lists them", model)
		}
		gpus, b.gpu = n, g
	}
	if err := b.parseNICs(); err != nil {
		return nil, fmt.Errorf("nics: %w", err)
	}
	if err := b.hosts(); err != nil {
		return nil, err
	}
	b.place(gpus)
	if err := b.nvlink(); err != nil {
		return nil, fmt.Errorf("nvlink: %w", err)
	}
	return b.t, b.t.Check()
}

// parseNICs reads "8 x 400Gb/s infiniband".
func (b *building) parseNICs() error {
	if b.form.NICs == "" {
		return nil
	}
	n, rest, err := counted(b.form.NICs)
	if err != nil {
		return err
	}
	speed, kind, _ := strings.Cut(rest, " ")
	p, err := hardware.ParsePortSpeed(speed)
	if err != nil {
		return err
	}
	if kind != "" {
		p.Kind = cluster.NetKind(strings.TrimSpace(kind))
	}
	b.nics = n
	port := cluster.Port{Num: 1, Rate: cluster.FromSpec(p.Rate, format)}
	if b.form.MTU > 0 {
		port.MTU = cluster.FromSpec(b.form.MTU, format)
	}
	b.nicInfo = cluster.NICInfo{Kind: p.Kind, Ports: []cluster.Port{port}}
	return nil
}

// hosts adds sockets, one NUMA domain each, and the links between them.
func (b *building) hosts() error {
	n := b.form.Sockets
	if n == 0 {
		n = 2
	}
	if n < 1 || n > 16 {
		return fmt.Errorf("sockets: %d; expected 1 to 16", n)
	}
	for i := range n {
		s := b.t.Add(cluster.Device{Kind: cluster.Socket, Index: i, Parent: -1})
		d := cluster.Device{Kind: cluster.NUMA, Index: i, Parent: s}
		if c := b.form.CoresPer; c > 0 {
			d.CPU = &cluster.CPUInfo{Cores: fmt.Sprintf("%d-%d", i*c, (i+1)*c-1)}
		}
		id := b.t.Add(d)
		for _, o := range b.numa {
			b.t.Connect(cluster.Link{A: o, B: id, Kind: cluster.SMP})
		}
		b.numa = append(b.numa, id)
	}
	return nil
}

// place spreads GPUs and NICs evenly over the sockets. With at least as many
// NICs as GPUs each GPU has its NICs on its own PCIe switch; else NICs hang on
// root complexes of their own unless gpus_per_switch groups them.
func (b *building) place(gpus int) {
	group := b.form.GPUsPerSwitch
	if group == 0 && b.nics >= gpus && gpus > 0 {
		group = 1
	}
	switches := 0
	if group > 0 {
		switches = (gpus + group - 1) / group
	}
	var parents []int // one per PCIe switch
	for i := range switches {
		parents = append(parents, b.root(b.numa[i*len(b.numa)/switches], true))
	}
	for i := range gpus {
		parent := 0
		if group > 0 {
			parent = parents[i/group]
		} else {
			parent = b.root(b.numa[i*len(b.numa)/gpus], false)
		}
		g := b.t.Add(cluster.Device{
			Kind: cluster.GPU, Index: i, Parent: parent, Model: cluster.FromSpec(b.gpu.Title, format),
			GPU: &cluster.GPUInfo{Vendor: b.gpu.Vendor},
		})
		b.t.Connect(cluster.Link{A: parent, B: g, Kind: cluster.PCIe, Lanes: 16, GTs: hardware.PCIeSpeed(b.gpu.PCIeGen)})
		b.gpus = append(b.gpus, g)
	}
	for i := range b.nics {
		parent := 0
		if len(parents) > 0 {
			parent = parents[i*len(parents)/b.nics]
		} else {
			parent = b.root(b.numa[i*len(b.numa)/b.nics], false)
		}
		info := b.nicInfo
		info.Ports = append([]cluster.Port(nil), info.Ports...)
		n := b.t.Add(cluster.Device{Kind: cluster.NIC, Index: i, Parent: parent, NIC: &info})
		b.t.Connect(cluster.Link{A: parent, B: n, Kind: cluster.PCIe, Lanes: 16, GTs: nicSpeed(info.Ports[0].Rate.Value)})
	}
}

// nicSpeed is the PCIe generation a card of that rate needs for x16.
func nicSpeed(r unit.Rate) float64 {
	for gen := 3; gen < 7; gen++ {
		if gts := hardware.PCIeSpeed(gen); hardware.PCIeRate(gts, 16) > r {
			return gts
		}
	}
	return hardware.PCIeSpeed(7)
}

// root adds a root complex under a NUMA domain and, if asked, a switch under it;
// it returns where devices hang.
func (b *building) root(numa int, withSwitch bool) int {
	r := b.t.Add(cluster.Device{Kind: cluster.RootComplex, Index: -1, Parent: numa})
	b.t.Connect(cluster.Link{A: numa, B: r, Kind: cluster.OnDie})
	if !withSwitch {
		return r
	}
	s := b.t.Add(cluster.Device{Kind: cluster.PCISwitch, Index: -1, Parent: r})
	gen := max(b.gpu.PCIeGen, 4)
	b.t.Connect(cluster.Link{A: r, B: s, Kind: cluster.PCIe, Lanes: 16, GTs: hardware.PCIeSpeed(gen)})
	return s
}

// nvlink joins the GPUs.
func (b *building) nvlink() error {
	links, n := b.gpu.Links, len(b.gpus)
	kind := b.gpu.LinkKind
	if b.form.NVLink != "" && b.form.NVLink != "none" && links == 0 {
		return fmt.Errorf("%s has none", b.gpu.Name)
	}
	switch b.form.NVLink {
	case "", "none":
	case "switch":
		s := b.t.Add(cluster.Device{Kind: cluster.NVSwitch, Index: -1, Parent: -1})
		for _, g := range b.gpus {
			b.t.Connect(cluster.Link{A: g, B: s, Kind: kind, Lanes: links})
		}
	case "mesh":
		if n < 2 || links/(n-1) < 1 {
			return fmt.Errorf("mesh: %s has %d links, too few for %d GPUs; use switch, pairs or none", b.gpu.Name, links, n)
		}
		for i := range b.gpus {
			for k := range i {
				b.t.Connect(cluster.Link{A: b.gpus[k], B: b.gpus[i], Kind: kind, Lanes: links / (n - 1)})
			}
		}
	case "pairs":
		for i := 0; i+1 < n; i += 2 {
			b.t.Connect(cluster.Link{A: b.gpus[i], B: b.gpus[i+1], Kind: kind, Lanes: links})
		}
	default:
		return fmt.Errorf("%q; one of switch, mesh, pairs, none", b.form.NVLink)
	}
	return nil
}
