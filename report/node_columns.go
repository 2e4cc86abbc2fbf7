package report

import (
	"fmt"

	"busbar.dev/cluster"
)

// column is a place for one GPU and, above it, one NIC box; either may be absent.
type column struct {
	gpu  int   // -1 none
	nics []int // several when equal NICs are drawn as one stack
	x, w float64
}

// spans are the columns that a device and everything on it take: from and to,
// the last one excluded.
type spans struct{ from, to int }

// plan is a node's devices dealt into columns.
type plan struct {
	t     *cluster.NodeType
	of    [][]int
	top   []int
	up    []int
	cols  []column
	span  []spans
	depth []int // PCIe switches between a device and the CPU
	deep  int   // rows of PCIe switches
}

// newPlan walks the tree and gives every GPU and NIC a column, so that what hangs
// on one switch, one NUMA domain, one socket stands side by side.
func newPlan(t *cluster.NodeType) *plan {
	p := &plan{t: t, up: uplinks(t), span: make([]spans, len(t.Devices)), depth: make([]int, len(t.Devices))}
	p.of, p.top = children(t)
	p.group(p.top, 0)
	// A GPU or NIC that hangs on something unusual (on another GPU) still gets a
	// column of its own.
	for d := range t.Devices {
		if p.span[d].from != p.span[d].to {
			continue
		}
		switch t.Devices[d].Kind {
		case cluster.GPU:
			p.pairs([]int{d}, nil)
		case cluster.NIC:
			p.pairs(nil, [][]int{{d}})
		}
	}
	return p
}

// group places devices that hang on the same thing: GPUs and NICs paired in
// columns, everything else one after the other.
func (p *plan) group(ids []int, depth int) {
	var gpus, nics []int
	for _, d := range ids {
		switch p.t.Devices[d].Kind {
		case cluster.GPU:
			gpus = append(gpus, d)
		case cluster.NIC:
			nics = append(nics, d)
		}
	}
	placed := false
	from := len(p.cols)
	if len(gpus) == 0 && depth > 0 {
		// NICs beside switches with GPUs: they find a place above those GPUs.
		for _, d := range ids {
			if p.t.Devices[d].Kind == cluster.PCISwitch {
				p.container(d, depth)
			}
		}
		nics = p.above(nics, from)
	}
	for _, d := range ids {
		switch p.t.Devices[d].Kind {
		case cluster.GPU, cluster.NIC:
			if !placed && len(gpus)+len(nics) > 0 {
				p.pairs(gpus, p.stacks(nics, len(gpus)))
				placed = true
			}
		case cluster.NVSwitch:
		default:
			if p.span[d].from == p.span[d].to {
				p.container(d, depth)
			}
		}
	}
}

// above puts NICs over the GPUs of the columns made since from that have none,
// and returns the NICs that found no place. It is all or nothing, so that
// equal switches look alike.
func (p *plan) above(nics []int, from int) []int {
	var free []int
	for i := from; i < len(p.cols); i++ {
		if p.cols[i].gpu >= 0 && len(p.cols[i].nics) == 0 {
			free = append(free, i)
		}
	}
	stacks := p.stacks(nics, len(free))
	if len(stacks) > len(free) {
		return nics
	}
	for i, s := range stacks {
		p.cols[free[i]].nics = s
		for _, n := range s {
			p.span[n] = spans{free[i], free[i] + 1}
		}
	}
	return nil
}

// within reports whether a device hangs on another, however far below it.
func (p *plan) within(d, holder int) bool {
	for d = p.t.Devices[d].Parent; d >= 0; d = p.t.Devices[d].Parent {
		if d == holder {
			return true
		}
	}
	return false
}

func (p *plan) container(d, depth int) {
	from := len(p.cols)
	p.depth[d] = depth
	below := depth
	if p.t.Devices[d].Kind == cluster.PCISwitch {
		below = depth + 1
	}
	p.group(p.of[d], below)
	// A NUMA domain with nothing on it still exists; an empty PCIe switch has
	// nothing to tell here.
	if len(p.cols) == from {
		if k := p.t.Devices[d].Kind; k != cluster.NUMA && k != cluster.Socket {
			return
		}
		p.cols = append(p.cols, column{gpu: -1})
	}
	p.span[d] = spans{from, len(p.cols)}
	if p.t.Devices[d].Kind == cluster.PCISwitch {
		p.deep = max(p.deep, depth+1)
	}
}

// pairs makes the columns of GPUs and NIC stacks that share a parent.
func (p *plan) pairs(gpus []int, stacks [][]int) {
	for i := range max(len(gpus), len(stacks)) {
		c := column{gpu: -1}
		if i < len(gpus) {
			c.gpu = gpus[i]
			p.span[c.gpu] = spans{len(p.cols), len(p.cols) + 1}
		}
		if i < len(stacks) {
			c.nics = stacks[i]
			for _, n := range c.nics {
				p.span[n] = spans{len(p.cols), len(p.cols) + 1}
			}
		}
		p.cols = append(p.cols, c)
	}
}

// stacks deals NICs into boxes: one each, or, where there are several equal ones
// for every GPU (four EFA cards a GPU), that many in a box.
func (p *plan) stacks(nics []int, gpus int) [][]int {
	per := 1
	switch {
	case gpus > 0 && len(nics) > gpus && len(nics)%gpus == 0:
		per = len(nics) / gpus
	case gpus == 0 && len(nics) > 4:
		per = len(nics)
	}
	for _, n := range nics {
		if per > 1 && p.nicLook(n) != p.nicLook(nics[0]) {
			per = 1
		}
	}
	var out [][]int
	for i := 0; i < len(nics); i += per {
		out = append(out, nics[i:min(i+per, len(nics))])
	}
	return out
}

// nicLook is equal for NICs that look the same in the picture.
func (p *plan) nicLook(d int) string {
	dev := &p.t.Devices[d]
	s := dev.Model.Value
	if dev.NIC != nil {
		s += fmt.Sprint(dev.NIC.Kind, dev.NIC.Rate().Value)
		for _, port := range dev.NIC.Ports {
			s += port.State.String()
		}
	}
	if up := p.up[d]; up >= 0 {
		l := &p.t.Links[up]
		s += linkName(l) + trainedLow(l)
	}
	return s
}

// holder is the nearest thing above a device that is drawn as a box: a switch, a
// NUMA domain (through its root complex), or nothing.
func (p *plan) holder(d int) int {
	up := p.t.Devices[d].Parent
	for up >= 0 {
		switch p.t.Devices[up].Kind {
		case cluster.PCISwitch, cluster.NUMA, cluster.RootComplex, cluster.Socket:
			return up
		}
		up = p.t.Devices[up].Parent
	}
	return -1
}
