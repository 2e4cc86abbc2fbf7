package nvsmi

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/engine/device"
	"busbar.dev/input/internal/board"
	"busbar.dev/input/internal/gather"
	"busbar.dev/input/internal/warn"
	"busbar.dev/internal/lazyre"
)

// maxGPUs is the most GPUs a node may have.
const maxGPUs = 1024

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
}

// gpu is a GPU as read so far.
type gpu struct {
	cluster.Device
	line int
	up   cluster.Link // to what is above it
	down int          // of its NVLinks, those that are inactive
	// errors are those of its NVLinks that are not zero.
	errors string
	// state is what happened to its memory, of which retired pages after errors of one bit and of two.
	state   device.State
	retired int
}

func newGPU(line int) *gpu { return &gpu{Device: board.GPU("nvidia", -1), line: line} }

// same reports whether two GPUs of a node share one of their names.
func (g *gpu) same(o *gpu) bool {
	return g.UUID != "" && g.UUID == o.UUID || g.PCI != "" && g.PCI == o.PCI || g.Index >= 0 && g.Index == o.Index
}

// named reports whether anything tells the GPU from others.
func (g *gpu) named() bool { return g.Index >= 0 || g.UUID != "" || g.PCI != "" }

// noteGPU files a GPU under a host and returns it, or the one already known by one
// of its names. A UUID that differs under the same index shows that a nameless
// text went on to another machine.
func (v *inventory) noteGPU(host string, g *gpu) *gpu {
	n := v.latest[host]
	if n != nil {
		if i := slices.IndexFunc(n.gpus, g.same); i >= 0 {
			o := n.gpus[i]
			if host != "" || g.UUID == "" || o.UUID == "" || g.UUID == o.UUID {
				return o
			}
			n = nil
		}
	}
	if n == nil && len(v.nodes) < gather.MaxHosts {
		n = &node{host: host}
		v.nodes = append(v.nodes, n)
		if v.latest == nil {
			v.latest = map[string]*node{}
		}
		v.latest[host] = n
	}
	if n == nil || len(n.gpus) >= maxGPUs {
		v.over++
		return nil
	}
	n.gpus = append(n.gpus, g)
	return g
}

// reader goes through a text in which lines of several hosts may be mixed.
type reader struct {
	inventory
	heads gather.Headings
	at    map[string]*gpu // the GPU that further lines of a host speak of
}

func newReader(format string) *reader {
	return &reader{inventory: inventory{format: format}, at: map[string]*gpu{}}
}

// read hands the lines to take, and makes a fragment of the GPUs that it notes.
func (r *reader) read(name string, text io.Reader, take func(host, text string, num int) bool, missing string,
) (*cluster.Fragment, error) {
	if err := r.heads.Each(name, text, take); err != nil {
		return nil, err
	}
	return r.fragment(name, missing)
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
		n.missing(f)
		for _, g := range n.gpus {
			v.addGPU(f, t, n.host, g)
		}
		// The driver takes idle GPUs down to save power. The figures are kept as read.
		low, example := 0, ""
		for _, g := range n.gpus {
			if g.up.GTs > 0 && g.up.GTs < g.up.MaxGTs {
				low++
				example = cmp.Or(example,
					fmt.Sprintf("%d of %d", slices.Index(speeds, g.up.GTs), slices.Index(speeds, g.up.MaxGTs)))
			}
		}
		if low > 0 {
			f.Warnf(0, n.host, "%d of %d GPUs report a lower PCIe generation than they can do (%s): idle GPUs go down to save "+
				"power; read it again under load", low, len(n.gpus), example)
		}
		for i, g := range n.gpus { // what is wrong with the memory of GPUs, in busbar-gpu's words
			g.state.Index = i
			for _, x := range device.Findings(n.host, []device.State{g.state}) {
				warn.Found(f, g.line, x.Where, x.ID, x.Severity.String(), x.Fix, "%s", x.Text)
			}
		}
		f.AddNode(n.host, t)
	}
	if v.over > 0 {
		f.Warnf(0, "", "%d GPUs or hosts left out: at most %d GPUs a node and %d hosts", v.over, maxGPUs, gather.MaxHosts)
	}
}

// missing tells of GPUs that the list lacks: numbers left out, or links of others that end where one GPU would be.
func (n *node) missing(f *cluster.Fragment) {
	var ends []string
	down, links, last := 0, 0, 0
	for _, g := range n.gpus {
		if last = max(last, g.Index); g.down > 0 {
			ends = append(ends, fmt.Sprintf("%d of GPU %d", g.down, g.Index))
			down, links = down+g.down, g.GPU.Links
		}
	}
	if last >= len(n.gpus) {
		f.Warnf(0, n.host, "%d GPUs are listed, and GPU %d is one of them: the text is shortened, or of chosen GPUs",
			len(n.gpus), last)
	}
	if len(ends) < 2 || down != links {
		return
	}
	warn.Found(f, 0, n.host, "gpu-missing", "warn",
		"lspci and dmesg (Xid 79) for a GPU that fell off the bus; power-cycle "+
			"the node, else reseat or replace that GPU",
		"%d NVLinks inactive (%s), as many as one GPU has: a GPU that is not listed may "+
			"be missing", down, strings.Join(ends, ", "))
	for _, g := range n.gpus {
		g.down = 0
	}
}

func (v *inventory) addGPU(f *cluster.Fragment, t *cluster.NodeType, host string, g *gpu) {
	g.Model.Source, g.GPU.Memory.Source = v.format, v.format
	at := t.Add(g.Device)
	where := strings.Trim(host+"/"+t.Devices[at].Name, "/")
	switch {
	case g.down == 0:
	case g.down == g.GPU.Links: // as on a card without a bridge
		f.Warnf(g.line, where, "no NVLink of %d is active", g.down)
	default:
		warn.Found(f, g.line, where, "nvlink-inactive", "warn",
			"nvidia-smi -q, dmesg for Xid 74 and the fabric manager's log; "+
				"reset the GPU, else reseat or replace it", "%d of %d NVLinks inactive", g.down, g.GPU.Links)
	}
	if g.errors != "" {
		warn.Found(f, g.line, where, "nvlink-errors", "warn",
			"read them again after an hour under load (nvidia-smi nvlink -e); "+
				"if they grow, drain the node and have the GPU, its board or its cable checked",
			"NVLink errors since the driver was loaded: %s", g.errors)
	}
	// The tools say how fast the link to whatever is above the GPU is and not where it leads, so that it gets an end of
	// its own and the tree stays unknown; a source that knows the tree takes the figures over.
	up := cluster.Device{Kind: cluster.RootComplex, Index: -1, Parent: -1}
	switch {
	case g.up == (cluster.Link{}):
		return
	case g.up.Kind == cluster.C2C:
		g.up, up.Kind = cluster.Link{Kind: cluster.C2C}, cluster.NUMA
	default:
		g.up.Kind = cluster.PCIe
	}
	g.up.A, g.up.B = t.Add(up), at
	t.Devices[at].Parent = g.up.A
	t.Connect(g.up)
}

// speeds are the transfer rates per lane of PCIe's generations in GT/s, from the first; the zeroth is unknown.
var speeds = []float64{0, 2.5, 5, 8, 16, 32, 64, 128}

// uuid is GPU-8-4-4-4-12 hexadecimal digits and the two forms of MIG names. People often blot them out, and a blot must
// not tie two GPUs together.
const uuid = `[[:xdigit:]]{8}(?:-[[:xdigit:]]{4}){3}-[[:xdigit:]]{12}`

const uuids = `(?:GPU|MIG)-` + uuid + `|MIG-GPU-` + uuid + `(?:/[^)]{0,23})?`

var uuidForm = lazyre.New(`^(?:` + uuids + `)$`)

func validUUID(s string) bool { return uuidForm.MatchString(s) }
