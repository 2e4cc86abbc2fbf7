package nvsmi

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/gather"
	"busbar.dev/input/internal/warn"
	"busbar.dev/internal/lazyre"
	"busbar.dev/unit"
)

// maxGPUs is the most GPUs a node may have.
const maxGPUs = 4096

// inventory collects the GPUs of the nodes that a text describes, under the
// host names it gives, in the order of the text.
type inventory struct {
	format string
	nodes  []*node
	latest map[string]*node // by host; of several nameless nodes the last
	over   int              // GPUs and hosts left out
	warns  warn.List
}

// node is the GPUs of one machine.
type node struct {
	host string
	gpus []*gpu
	byID map[string]*gpu // by ids, once there are many
}

// gpu is what a text says of a GPU. The zero value of a field, and -1 for
// index, mean that it does not say.
type gpu struct {
	line       int
	index      int
	name       string
	uuid       string
	pci        cluster.PCI
	pciID      *cluster.PCIID
	memory     unit.Bytes
	sm         int
	slices     []cluster.Slice
	links      int // NVLinks listed
	down       int // of those inactive
	speeds     []float64
	gen, width pcieState
	c2c        bool
}

// pcieState is a generation or a width: now, and at most. 0 unknown.
type pcieState struct{ now, most int }

func (v *inventory) node(host string) *node {
	if n := v.latest[host]; n != nil {
		return n
	}
	if len(v.nodes) >= gather.MaxHosts {
		v.over++
		return nil
	}
	n := &node{host: host}
	v.nodes = append(v.nodes, n)
	if v.latest == nil {
		v.latest = map[string]*node{}
	}
	v.latest[host] = n
	return n
}

func (g *gpu) ids() []string {
	var ids []string
	if g.uuid != "" {
		ids = append(ids, g.uuid)
	}
	if g.pci != "" {
		ids = append(ids, "pci "+string(g.pci))
	}
	if g.index >= 0 {
		ids = append(ids, "index "+strconv.Itoa(g.index))
	}
	return ids
}

// noteGPU files a GPU under a host and returns it, or the one already known by one
// of its names. A UUID that differs under the same index shows that a nameless
// text went on to another machine.
func (v *inventory) noteGPU(host string, g gpu) *gpu {
	n := v.node(host)
	if n == nil {
		return nil
	}
	for _, id := range g.ids() {
		o := n.find(id)
		if o == nil {
			continue
		}
		if host == "" && g.uuid != "" && o.uuid != "" && g.uuid != o.uuid {
			delete(v.latest, host)
			return v.noteGPU(host, g)
		}
		n.merge(o, &g)
		return o
	}
	if len(n.gpus) >= maxGPUs {
		v.over++
		return nil
	}
	n.gpus = append(n.gpus, &g)
	n.name(&g)
	return &g
}

// find looks a GPU up by one of its ids.
func (n *node) find(id string) *gpu {
	if n.byID != nil {
		return n.byID[id]
	}
	for _, g := range n.gpus {
		if slices.Contains(g.ids(), id) {
			return g
		}
	}
	return nil
}

// name makes a GPU findable. Few nodes have many GPUs and many nodes have few,
// so that an index is built only for the former.
func (n *node) name(g *gpu) {
	if len(n.gpus) <= 16 {
		return
	}
	all := []*gpu{g}
	if n.byID == nil {
		n.byID, all = map[string]*gpu{}, n.gpus
	}
	for _, g := range all {
		for _, id := range g.ids() {
			n.byID[id] = g
		}
	}
}

// merge fills what o does not know yet.
func (n *node) merge(o, g *gpu) {
	if o.index < 0 {
		o.index = g.index
	}
	o.name = cmp.Or(o.name, g.name)
	o.uuid = cmp.Or(o.uuid, g.uuid)
	o.pci = cmp.Or(o.pci, g.pci)
	o.memory = cmp.Or(o.memory, g.memory)
	n.name(o)
}

// fragment is the whole of a text; missing says what to look for in one without GPUs.
func (v *inventory) fragment(name, missing string) (*cluster.Fragment, error) {
	f := &cluster.Fragment{Format: v.format, Source: name}
	if v.addTo(f); len(f.Types) == 0 {
		return nil, fmt.Errorf("%s: %s", name, missing)
	}
	v.warns.AddTo(f, "")
	return f, nil
}

// addTo writes the nodes into a fragment.
func (v *inventory) addTo(f *cluster.Fragment) {
	for _, n := range v.nodes {
		if len(n.gpus) == 0 {
			continue
		}
		t := &cluster.NodeType{}
		for _, g := range n.gpus {
			v.addGPU(f, t, n.host, g)
		}
		warnIdle(f, n)
		f.AddNode(n.host, t)
	}
	if v.over > 0 {
		f.Warnf(0, "", "%d GPUs or hosts left out: at most %d GPUs a node and %d hosts", v.over, maxGPUs, gather.MaxHosts)
	}
}

func (v *inventory) addGPU(f *cluster.Fragment, t *cluster.NodeType, host string, g *gpu) {
	d := cluster.Device{
		Kind: cluster.GPU, Index: g.index, PCI: g.pci, Parent: -1, UUID: g.uuid, PCIID: g.pciID,
		GPU: &cluster.GPUInfo{Vendor: "nvidia", SM: g.sm, Slices: g.slices, Links: g.links},
	}
	if g.name != "" {
		d.Model = cluster.FromRead(g.name, v.format)
	}
	if g.memory > 0 {
		d.GPU.Memory = cluster.FromRead(g.memory, v.format)
	}
	at := t.Add(d)
	where := strings.Trim(host+"/"+t.Devices[at].Name, "/")
	if g.down > 0 {
		f.Warnf(g.line, where, "%d of %d NVLinks inactive", g.down, g.links)
	}
	for _, s := range g.speeds {
		if s != g.speeds[0] {
			f.Warnf(g.line, where, "its NVLinks run at different speeds: %v GB/s and %v GB/s", g.speeds[0], s)
			break
		}
	}
	v.addUplink(t, at, g)
}

// addUplink records the link to whatever is above the GPU. The tools say how
// fast it is and not where it leads, so that it gets an end of its own and the
// tree stays unknown; a source that knows the tree takes the figures over.
func (v *inventory) addUplink(t *cluster.NodeType, at int, g *gpu) {
	l := cluster.Link{
		B: at, Kind: cluster.PCIe, Lanes: g.width.now, MaxLanes: g.width.most, GTs: genSpeed(g.gen.now),
		MaxGTs: genSpeed(g.gen.most),
	}
	up := cluster.Device{Kind: cluster.RootComplex, Index: -1, Parent: -1}
	if g.c2c {
		l = cluster.Link{B: at, Kind: cluster.C2C}
		up.Kind = cluster.NUMA
	} else if g.gen == (pcieState{}) && g.width == (pcieState{}) {
		return
	}
	l.A = t.Add(up)
	t.Devices[at].Parent = l.A
	t.Connect(l)
}

// genSpeed is the transfer rate per lane of a PCIe generation in GT/s, 0 unknown.
func genSpeed(gen int) float64 {
	if gen < 1 || gen > 7 {
		return 0
	}
	return [...]float64{2.5, 5, 8, 16, 32, 64, 128}[gen-1]
}

// warnIdle says once per node that a lower generation may only mean rest: the
// driver takes idle GPUs down to save power. The figures are kept as read.
func warnIdle(f *cluster.Fragment, n *node) {
	var low []string
	for _, g := range n.gpus {
		if g.gen.now > 0 && g.gen.now < g.gen.most {
			low = append(low, fmt.Sprintf("%d of %d", g.gen.now, g.gen.most))
		}
	}
	if len(low) > 0 {
		f.Warnf(0, n.host, "%d of %d GPUs report a lower PCIe generation than they can do (%s): idle GPUs go down to save "+
			"power; read it again under load", len(low), len(n.gpus), low[0])
	}
}

// uuid is GPU-8-4-4-4-12 hexadecimal digits and the two forms of MIG names. People often blot them out, and a blot must
// not tie two GPUs together.
const uuid = `[[:xdigit:]]{8}(?:-[[:xdigit:]]{4}){3}-[[:xdigit:]]{12}`

var uuidForm = lazyre.New(`^(?:(?:GPU|MIG)-` + uuid + `|MIG-GPU-` + uuid + `(?:/.{0,23})?)$`)

func validUUID(s string) bool { return uuidForm.MatchString(s) }
