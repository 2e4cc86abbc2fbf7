package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// TreeFromMatrix builds the inside of a node so that the classes derived from
// it are those of a table that a driver printed: the GPUs and NICs of devs in
// their order, then NUMA domains, host bridges and PCIe switches above them,
// and the links between GPUs. The tree's origin is Assumed, for a table says
// how far apart devices are and not what lies between them.
//
// class[i][j] is the class from devs[i] to devs[j]; the zero Class, and a row
// or cell that is missing, means that nobody said. NVLink and xGMI cells hide
// the PCIe relation of their GPUs; such GPUs are placed by their relation to
// other devices and by affinity (GPUInfo.NUMA and Cores, NICInfo.NUMA), and two
// of them are put under one switch or bridge only where a third device shows
// it. A device of which nothing is known stays at the top, and where that holds
// for all of them the tree's origin is Unknown.
//
// PCIe classes of a real tree are an ultrametric. Where the table is not (A and
// B are near, B and C are near, A and C are far) the nearer relation is kept
// and a warning names the cells. Warnings carry no source.
func TreeFromMatrix(devs []Device, class [][]Class) (*NodeType, []Warning) {
	b := &treeBuilder{t: &NodeType{Tree: Assumed}, class: class, n: len(devs)}
	for _, d := range devs {
		d.Parent = -1
		b.t.Add(d)
	}
	b.keepMatrix()
	b.group()
	b.checkGroups()
	b.domains()
	b.place()
	if len(b.numas) == 0 {
		b.t.Tree = Unknown
	}
	b.joinGPUs()
	if more := b.warned - len(b.warns); more > 0 {
		b.warns = append(b.warns, Warning{Text: fmt.Sprintf("%d more cells of this matrix contradict the rest", more)})
	}
	return b.t, b.warns
}

// maxTreeWarnings bounds what one hostile matrix can say.
const maxTreeWarnings = 20

// treeLevels are the distances at which devices share something, nearest first.
var treeLevels = [...]ClassType{PIX, PXB, PHB, NODE}

type treeBuilder struct {
	t     *NodeType
	n     int
	class [][]Class
	// part[l][i] is the first device of the group that device i belongs to when
	// everything at treeLevels[l] or nearer is joined.
	part   [len(treeLevels)][]int
	numas  []treeDomain
	warns  []Warning
	warned int
}

func (b *treeBuilder) warnf(where, format string, args ...any) {
	b.warned++
	if b.warned <= maxTreeWarnings {
		b.warns = append(b.warns, Warning{Where: where, Text: fmt.Sprintf(format, args...)})
	}
}

func (b *treeBuilder) name(i int) string { return b.t.Devices[i].Name }

// cell is what the table says from i to j.
func (b *treeBuilder) cell(i, j int) Class {
	if i >= len(b.class) || j >= len(b.class[i]) {
		return Class{}
	}
	return b.class[i][j]
}

// rel is the PCIe relation of i and j, the nearer one where the halves of the
// table differ, and Apart where both hide it.
func (b *treeBuilder) rel(i, j int) ClassType {
	x, y := pcieClass(b.cell(i, j)), pcieClass(b.cell(j, i))
	switch {
	case x == Apart:
		return y
	case y == Apart:
		return x
	}
	return min(x, y)
}

func pcieClass(c Class) ClassType {
	switch c.Type {
	case PIX, PXB, PHB, NODE, SYS:
		return c.Type
	}
	return Apart
}

// keepMatrix keeps the table itself, under the names of the devices.
func (b *treeBuilder) keepMatrix() {
	m := b.t.matrixOf(identity(b.n), func(i, j int) Class {
		if i == j {
			return Class{Type: Self}
		}
		return b.cell(i, j)
	})
	b.t.Said = &m
}

// group joins devices level by level.
func (b *treeBuilder) group() {
	sets := NewPartition(b.n)
	for l, level := range treeLevels {
		for i := range b.n {
			for j := range i {
				if b.rel(i, j) == level {
					sets.Unite(i, j)
				}
			}
		}
		b.part[l] = sets.roots()
	}
}

// level is the nearest level at which i and j are in one group, SYS when none.
func (b *treeBuilder) level(i, j int) ClassType {
	for l, level := range treeLevels {
		if b.part[l][i] == b.part[l][j] {
			return level
		}
	}
	return SYS
}

// checkGroups warns of cells that the groups do not reproduce.
func (b *treeBuilder) checkGroups() {
	for i := range b.n {
		for j := range i {
			x, y := b.cell(j, i), b.cell(i, j)
			if p, q := pcieClass(x), pcieClass(y); p != q && p != Apart && q != Apart {
				b.warnf(b.name(j), "to %s it says %v, and %v the other way; kept the nearer", b.name(i), x, y)
			}
			if r := b.rel(i, j); r != Apart {
				if got := b.level(i, j); got < r {
					b.warnf(b.name(j), "to %s the matrix says %v, but by the devices near both they are %v apart; kept the nearer",
						b.name(i), Class{Type: r}, Class{Type: got})
				}
			}
		}
	}
}

// treeDomain is a NUMA domain to be: its devices in order, the affinity that
// names it, and its number, -1 when nobody said.
type treeDomain struct {
	members []int
	key     string
	index   int
	cores   string
}

// domains forms NUMA domains: the groups at NODE, joined where their affinity is
// the same and no cell says SYS.
func (b *treeBuilder) domains() {
	keys := b.affinities()
	apart := map[string]bool{}
	for _, members := range groupsOf(b.part[len(treeLevels)-1]) {
		d := treeDomain{members: members, index: -1}
		for _, i := range members {
			switch k := keys[i]; {
			case k == "" || k == d.key:
			case d.key == "":
				d.key = k
			default:
				b.warnf(b.name(i), "its affinity is %s, but the matrix puts it beside %s of %s; kept together", k,
					b.name(members[0]), d.key)
			}
		}
		if d.key == "" && len(members) == 1 && !b.related(members[0], func(r ClassType) bool { return r != Apart }) {
			continue
		}
		if !b.merge(&d, apart) {
			b.numas = append(b.numas, d)
		}
	}
	for i := range b.numas {
		d := &b.numas[i]
		for _, m := range d.members {
			if keys[m] == d.key {
				d.cores = cmp.Or(d.cores, b.t.CoresOf(m))
			}
		}
		if n, ok := strings.CutPrefix(d.key, "NUMA "); ok {
			d.index, _ = strconv.Atoi(n)
		}
	}
	b.numberDomains()
}

// merge adds d to a domain of the same affinity, if the matrix allows.
func (b *treeBuilder) merge(d *treeDomain, apart map[string]bool) bool {
	if d.key == "" {
		return false
	}
	for k := range b.numas {
		o := &b.numas[k]
		if o.key != d.key {
			continue
		}
		if x, y, far := b.anySYS(o.members, d.members); far {
			if !apart[d.key] {
				apart[d.key] = true
				b.warnf(b.name(x), "to %s the matrix says SYS, though the affinity on both sides is %s; kept in domains of their "+
					"own", b.name(y), d.key)
			}
			continue
		}
		o.members = append(o.members, d.members...)
		return true
	}
	return false
}

func (b *treeBuilder) anySYS(x, y []int) (int, int, bool) {
	for _, i := range x {
		for _, j := range y {
			if b.rel(i, j) == SYS {
				return i, j, true
			}
		}
	}
	return 0, 0, false
}

// related reports whether the table gives i such a PCIe relation to any device.
func (b *treeBuilder) related(i int, is func(ClassType) bool) bool {
	for j := range b.n {
		if j != i && is(b.rel(i, j)) {
			return true
		}
	}
	return false
}

// affinities names the NUMA domain of each device: by number, else by its list
// of cores, with the number of another device that has the same list.
func (b *treeBuilder) affinities() []string {
	keys := make([]string, b.n)
	byCores := map[string]string{}
	for i := range b.n {
		if n := b.t.NUMAOf(i); n >= 0 {
			keys[i] = "NUMA " + strconv.Itoa(n)
			if c := b.t.CoresOf(i); c != "" && byCores[c] == "" {
				byCores[c] = keys[i]
			}
		}
	}
	for i := range b.n {
		if c := b.t.CoresOf(i); keys[i] == "" && c != "" {
			keys[i] = cmp.Or(byCores[c], "cores "+c)
		}
	}
	return keys
}

// numberDomains lets the first domain of a number keep it and sorts the
// numbered ones to the front, so that numa1 is domain 1 wherever it appears.
func (b *treeBuilder) numberDomains() {
	seen := map[int]bool{}
	for i := range b.numas {
		d := &b.numas[i]
		if d.index >= 0 && seen[d.index] {
			d.index = -1
		}
		seen[d.index] = true
	}
	// One without a number (-1) sorts last: unsigned it is the greatest.
	slices.SortStableFunc(b.numas, func(x, y treeDomain) int { return cmp.Compare(uint(x.index), uint(y.index)) })
}

// MostNVLinks is the most NVLinks any GPU known so far has (Hopper, Blackwell).
// A row of a matrix whose counts add up to more goes through a switch.
const MostNVLinks = 18

// joinGPUs adds the links between GPUs that the cells name.
func (b *treeBuilder) joinGPUs() {
	sets := NewPartition(b.n)
	for i := range b.n {
		for j := range i {
			b.checkFast(j, i)
			if b.lanes(i, j) > 0 || b.lanes(j, i) > 0 {
				sets.Unite(i, j)
			}
		}
	}
	sw := -1
	for _, members := range groupsOf(sets.roots()) {
		if len(members) > 2 && b.overfull(members) {
			if sw < 0 {
				sw = b.t.Add(Device{Kind: NVSwitch, Index: -1, Parent: -1})
			}
			b.joinSwitch(sw, members)
			continue
		}
		for k, i := range members {
			for _, j := range members[k+1:] {
				b.joinPair(i, j)
			}
		}
	}
	for i := range b.n {
		for j := i + 1; j < b.n; j++ {
			if x, y := b.cell(i, j), b.cell(j, i); b.areGPUs(i, j) && (x.Type == XG || y.Type == XG) {
				b.t.Connect(Link{A: i, B: j, Kind: XGMI, Lanes: max(x.Links, y.Links)})
			}
		}
	}
}

func (b *treeBuilder) areGPUs(i, j int) bool {
	return b.t.Devices[i].Kind == GPU && b.t.Devices[j].Kind == GPU
}

// lanes is the number of NVLinks from i to j, 0 when the cell names another class.
func (b *treeBuilder) lanes(i, j int) int {
	if c := b.cell(i, j); c.Type == NV && b.areGPUs(i, j) {
		return c.Links
	}
	return 0
}

// checkFast warns of cells about i and j that cannot both be true.
func (b *treeBuilder) checkFast(i, j int) {
	x, y := b.cell(i, j), b.cell(j, i)
	fast := func(c Class) bool { return c.Type == NV || c.Type == XG }
	switch {
	case !fast(x) && !fast(y):
	case !b.areGPUs(i, j):
		b.warnf(b.name(i), "to %s it says %v, a link that only GPUs have; ignored", b.name(j), x)
	case x.Type == Apart || y.Type == Apart:
	case x != y:
		b.warnf(b.name(i), "to %s it says %v, and %v the other way; kept both", b.name(j), x, y)
	}
}

// overfull reports whether some GPU shows more links than it can have.
func (b *treeBuilder) overfull(members []int) bool {
	for _, i := range members {
		most := MostNVLinks
		if g := b.t.Devices[i].GPU; g != nil && g.Links > 0 {
			most = g.Links
		}
		sum := 0
		for _, j := range members {
			sum += b.lanes(i, j)
		}
		if sum > most {
			return true
		}
	}
	return false
}

// joinSwitch joins GPUs through the NVSwitch. A GPU's own count is the most its
// row shows: a peer with links down shows fewer.
func (b *treeBuilder) joinSwitch(sw int, members []int) {
	own := make([]int, len(members))
	for k, i := range members {
		there, back := 0, 0
		for _, j := range members {
			there, back = max(there, b.lanes(i, j)), max(back, b.lanes(j, i))
		}
		own[k] = cmp.Or(there, back)
		b.t.Connect(Link{A: i, B: sw, Kind: NVLink, Lanes: own[k]})
	}
	for k, i := range members {
		for l, j := range members[:k] {
			// Halves that differ were warned of already.
			x, want := b.cell(j, i), Class{NV, min(own[k], own[l])}
			if y := b.cell(i, j); x == y && x != want && x.Type != Apart {
				b.warnf(b.name(j), "to %s it says %v, but through the NVSwitch they have %v; kept the switch", b.name(i), x, want)
			}
		}
	}
}

// joinPair joins two GPUs directly, once when both directions agree.
func (b *treeBuilder) joinPair(i, j int) {
	x, y := b.lanes(i, j), b.lanes(j, i)
	switch {
	case x == 0 && y == 0:
	case x == y, x == 0 && b.cell(i, j).Type == Apart, y == 0 && b.cell(j, i).Type == Apart:
		b.t.Connect(Link{A: i, B: j, Kind: NVLink, Lanes: max(x, y)})
	default:
		if x > 0 {
			b.t.Connect(Link{A: i, B: j, Kind: NVLink, OneWay: true, Lanes: x})
		}
		if y > 0 {
			b.t.Connect(Link{A: j, B: i, Kind: NVLink, OneWay: true, Lanes: y})
		}
	}
}

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
	if len(members) == 1 && !b.related(members[0], func(r ClassType) bool { return r == NODE }) {
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

func (b *treeBuilder) connect(parent, child int, kind LinkKind) {
	b.t.Devices[child].Parent = parent
	b.t.Connect(Link{A: parent, B: child, Kind: kind})
}

// split cuts members into their groups at a level, in order.
func (b *treeBuilder) split(members []int, level ClassType) [][]int {
	at := b.part[slices.Index(treeLevels[:], level)]
	part := make([]int, len(members))
	for k, i := range members {
		part[k] = at[i]
	}
	groups := groupsOf(part)
	for _, g := range groups {
		for k := range g {
			g[k] = members[g[k]]
		}
	}
	return groups
}
