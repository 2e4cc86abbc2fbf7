package cluster

import "fmt"

// maxTreeSMP is the number of NUMA domains above which the links between all
// pairs of them are left out: no machine has so many, but a matrix may say so.
const maxTreeSMP = 64

// place adds the devices of the tree above GPUs and NICs, with their links.
func (b *treeBuilder) place() {
	for _, d := range b.numas {
		n := Device{Kind: NUMA, Index: d.index, Parent: -1}
		if d.cores != "" {
			n.CPU = &CPUInfo{Cores: d.cores}
		}
		numa := b.t.Add(n)
		for _, members := range b.split(d.members, PHB) {
			b.placeBridge(numa, members)
		}
	}
	ids := b.t.Of(NUMA)
	if len(ids) > maxTreeSMP {
		b.warnf("", "%d NUMA domains; links between them are left out above %d", len(ids), maxTreeSMP)
		return
	}
	for i, x := range ids {
		for _, y := range ids[i+1:] {
			b.t.Connect(Link{A: x, B: y, Kind: SMP})
		}
	}
}

// placeBridge puts what shares a host bridge under one. A single device gets a
// bridge only if a cell says NODE, which means that others have their own.
func (b *treeBuilder) placeBridge(numa int, members []int) {
	if len(members) == 1 && !b.hasOwnBridge(members[0]) {
		b.connect(numa, members[0], PCIe)
		return
	}
	root := b.t.Add(Device{Kind: RootComplex, Index: -1, Parent: -1})
	b.connect(numa, root, OnDie)
	for _, g := range b.split(members, PXB) {
		b.placeSwitch(root, g)
	}
}

// placeSwitch puts a group of PXB or nearer below a bridge. Groups of PIX within
// it get a switch each, even those of one device: two devices right under the
// upper switch would be PIX.
func (b *treeBuilder) placeSwitch(root int, members []int) {
	if len(members) == 1 {
		b.connect(root, members[0], PCIe)
		return
	}
	top := b.t.Add(Device{Kind: PCISwitch, Index: -1, Parent: -1})
	b.connect(root, top, PCIe)
	groups := b.split(members, PIX)
	for _, g := range groups {
		at := top
		if len(groups) > 1 {
			at = b.t.Add(Device{Kind: PCISwitch, Index: -1, Parent: -1})
			b.connect(top, at, PCIe)
		}
		for _, i := range g {
			b.connect(at, i, PCIe)
		}
	}
}

func (b *treeBuilder) hasOwnBridge(i int) bool {
	for j := range b.n {
		if j != i && b.rel(i, j) == NODE {
			return true
		}
	}
	return false
}

func (b *treeBuilder) connect(parent, child int, kind LinkKind) {
	b.t.Devices[child].Parent = parent
	b.t.Connect(Link{A: parent, B: child, Kind: kind})
}

// split cuts members into their groups at a level, in order.
func (b *treeBuilder) split(members []int, level ClassType) [][]int {
	for l, x := range treeLevels {
		if x != level {
			continue
		}
		part := make([]int, len(members))
		for k, i := range members {
			part[k] = b.part[l][i]
		}
		groups := groupsOf(part)
		for _, g := range groups {
			for k := range g {
				g[k] = members[g[k]]
			}
		}
		return groups
	}
	panic(fmt.Sprintf("no level %v in a tree", level))
}
