package cluster

// MostNVLinks is the most NVLinks any GPU known so far has (Hopper, Blackwell).
// A row of a matrix whose counts add up to more goes through a switch.
const MostNVLinks = 18

// joinGPUs adds the links between GPUs that the cells name.
func (b *treeBuilder) joinGPUs() {
	for i := range b.n {
		for j := range i {
			b.checkFast(j, i)
		}
	}
	part := make([]int, b.n)
	for i := range part {
		part[i] = -1
	}
	for i := range b.n {
		if part[i] < 0 {
			b.flood(part, i)
		}
	}
	sw := -1
	for _, members := range groupsOf(part) {
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
			if x, y := b.cell(i, j), b.cell(j, i); x.Type == XG || y.Type == XG {
				if b.areGPUs(i, j) {
					b.t.Connect(Link{A: i, B: j, Kind: XGMI, Lanes: max(x.Links, y.Links)})
				}
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

// flood marks everything that NVLink reaches from i.
func (b *treeBuilder) flood(part []int, i int) {
	part[i] = i
	for queue := []int{i}; len(queue) > 0; queue = queue[1:] {
		for j := range b.n {
			if part[j] < 0 && (b.lanes(queue[0], j) > 0 || b.lanes(j, queue[0]) > 0) {
				part[j] = i
				queue = append(queue, j)
			}
		}
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
		own[k] = there
		if there == 0 {
			own[k] = back
		}
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
