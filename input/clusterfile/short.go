package clusterfile

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/internal/lazyre"
	"busbar.dev/unit"
)

// nodeType makes a node type from whichever of the three forms is used.
func (f *typeForm) nodeType(name string) (*cluster.NodeType, error) {
	short := f.GPUs != "" || f.NICs != "" || f.NVLink != "" || f.Sockets != 0 || f.GPUsPerSwitch != 0
	switch {
	case len(f.Devices) > 0 && short:
		return nil, errors.New("both devices and a short description (gpus, nics, …); give one")
	case len(f.Devices) > 0:
		d := cluster.TypeDoc{
			Name: name, Preset: f.Preset, Trays: f.Trays, Tree: f.Tree, Devices: f.Devices, Links: f.Links, Pairs: f.Pairs,
		}
		return d.NodeType()
	case f.Preset != "" && short:
		return nil, errors.New("both preset and a short description; give one (busbar map PRESET -o yaml prints a preset " +
			"in full, to edit)")
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

// number is "8 x H100", "8x H100", "8 × H100", "8 H100" or "8H100"'s first part.
var number = lazyre.New(`^\s*([+-]?\d+)\s*(?:[x×*]\s*|\s+)(\S.*)$`)

// backwards is "H100 x 8", which people write too.
var backwards = lazyre.New(`^(.*\S)\s*[x×*]\s*(\d+)\s*$`)

// counted reads "8 x H100", "8 H100" or "H100" (one).
func counted(s string) (int, string, error) {
	if m := number.FindStringSubmatch(s); m != nil {
		n, err := strconv.Atoi(m[1])
		if err != nil || n < 1 || n > 1024 {
			return 0, "", fmt.Errorf("%q: expected 1 to 1024 of them", s)
		}
		return n, strings.TrimSpace(m[2]), nil
	}
	if m := backwards.FindStringSubmatch(s); m != nil {
		return 0, "", fmt.Errorf("%q: the count comes first: %s x %s", s, m[2], m[1])
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
		g, err := gpuNamed(model)
		if err != nil {
			return nil, fmt.Errorf("gpus: %w", err)
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

// gpuNamed finds a GPU of the catalogue. A name with a memory size that the
// model does not have is another card, or a slip.
func gpuNamed(name string) (hardware.GPUModel, error) {
	g, ok := hardware.GPUByName(name)
	if ok {
		if m := memory.FindStringSubmatch(name); m == nil ||
			strings.Contains(strings.ToLower(g.Title+" "+g.Name+" "+strings.Join(g.Names, " ")), m[1]) {
			return g, nil
		}
	}
	key := letters(name)
	var near []string
	for _, g := range hardware.GPUs() {
		if k := letters(g.Name); key != "" && (strings.HasPrefix(k, key[:min(len(key), 4)]) || strings.HasPrefix(key, k)) {
			near = append(near, g.Name)
		}
	}
	if len(near) > 0 {
		return g, fmt.Errorf("no GPU %q in the catalogue; similar: %s", name, strings.Join(near[:min(len(near), 8)], ", "))
	}
	return g, fmt.Errorf("no GPU %q in the catalogue; `busbar hardware gpu` lists them", name)
}

// memory is the size in a GPU's name: 80 of A100-SXM4-80GB.
var memory = lazyre.New(`(?i)(\d+) ?GB\b`)

func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(s))
}

// maxPort is faster than any port sold: beyond it somebody wrote bytes for bits.
const maxPort = 1600 * unit.Gbps

// netKinds are the families a file may name, with the names people use for them.
var netKinds = map[string]cluster.NetKind{
	"infiniband": cluster.InfiniBand, "ib": cluster.InfiniBand, "roce": cluster.RoCE, "ethernet": cluster.Ethernet,
	"eth": cluster.Ethernet,
	"efa": cluster.EFA, "slingshot": cluster.Slingshot, "omnipath": cluster.OmniPath, "opa": cluster.OmniPath,
	"gpudirect-tcpx": cluster.TCPX, "tcpx": cluster.TCPX, "gpudirect-tcpxo": cluster.TCPXO, "tcpxo": cluster.TCPXO,
	"nvlink": cluster.NVLinkNet,
}

func netKind(s string) (cluster.NetKind, error) {
	if k, ok := netKinds[strings.ToLower(strings.TrimSpace(s))]; ok {
		return k, nil
	}
	return "", fmt.Errorf("%q is no network; one of infiniband, roce, ethernet, efa, slingshot, omnipath, "+
		"gpudirect-tcpx, nvlink", s)
}

// parseNICs reads "8 x 400Gb/s infiniband", "2 x 200 Gb/s" or "1 x HDR".
func (b *building) parseNICs() error {
	if b.form.NICs == "" {
		return nil
	}
	n, rest, err := counted(b.form.NICs)
	if err != nil {
		return err
	}
	f := strings.Fields(rest)
	speed, kind := f[0], f[1:]
	if len(kind) > 0 && strings.Trim(speed, "0123456789.") == "" {
		speed, kind = speed+kind[0], kind[1:] // 200 Gb/s, as we print it
	}
	p, err := hardware.ParsePortSpeed(speed)
	if err != nil {
		return err
	}
	if p.Rate > maxPort {
		return fmt.Errorf("%s is %s, more than any port; Gb/s (bits) meant?", speed, p.Rate.Bits())
	}
	if len(kind) > 0 {
		if p.Kind, err = netKind(strings.Join(kind, " ")); err != nil {
			return err
		}
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
	n := cmp.Or(b.form.Sockets, 2)
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
// NICs as GPUs each GPU has its NICs on its own PCIe switch; boards with an
// NVSwitch have a switch for every NIC and the GPUs it serves, as their servers are
// built. Else NICs hang on root complexes of their own unless gpus_per_switch
// groups them.
func (b *building) place(gpus int) {
	group := b.form.GPUsPerSwitch
	switch {
	case group != 0 || gpus == 0:
	case b.nics >= gpus:
		group = 1
	case b.nics >= 2 && gpus%b.nics == 0 && b.usualNVLink() == "switch":
		group = gpus / b.nics
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
	how := b.form.NVLink
	if how == "" {
		how = b.usualNVLink()
	}
	switch how {
	case "none":
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

// usualNVLink is how boards with these GPUs join them, for a file that does not
// say. Modules sit on boards with NVLink; cards have it only with a bridge.
func (b *building) usualNVLink() string {
	n, links := len(b.gpus), b.gpu.Links
	switch {
	case n < 2 || !b.gpu.Module():
		return "none"
	case b.gpu.LinkKind == cluster.NVLink && links >= 12 && n > 4:
		return "switch"
	case links/(n-1) >= 1:
		return "mesh"
	}
	return "pairs"
}
