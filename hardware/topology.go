package hardware

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// topology is how leaves are joined where they are not below spines: a word and its sizes.
type topology struct {
	kind  string
	sizes []int
}

// topologies are the words that Description.Topology knows, with what their sizes are.
var topologies = map[string]struct {
	least, most int
	sizes       string
}{
	"torus": {1, 5, "leaves by dimension: torus:4x4x4"},
	"hyperx": {1, 4, "leaves by dimension, all of a row joined (flattened butterfly; HammingMesh between boards): " +
		"hyperx:4x4"},
	"dragonfly":  {1, 1, "leaves of a group: dragonfly:4"},
	"dragonfly+": {1, 1, "leaves of a group, which has spines: dragonfly+:4"},
	"rail-only":  {0, 0, "none: rail-only"},
	"planes":     {0, 0, "none: planes"},
}

// parseTopology reads a word such as torus:4x4; nothing is leaves below spines.
func parseTopology(text string) (t topology, err error) {
	if text == "" {
		return t, nil
	}
	word, sizes, _ := strings.Cut(text, ":")
	known, ok := topologies[word]
	if !ok {
		names := slices.Sorted(maps.Keys(topologies))
		return t, fmt.Errorf("network: topology %.60q; expected one of %s", text, strings.Join(names, ", "))
	}
	t.kind = word
	if sizes != "" {
		for _, s := range strings.Split(sizes, "x") {
			n, err := strconv.Atoi(s)
			if err != nil || n < 1 || n > 1<<16 {
				return t, fmt.Errorf("network: topology %.60q; expected %s", text, known.sizes)
			}
			t.sizes = append(t.sizes, n)
		}
	}
	if len(t.sizes) < known.least || len(t.sizes) > known.most {
		return t, fmt.Errorf("network: topology %.60q; expected %s", text, known.sizes)
	}
	return t, nil
}

// TopologyGroup is how many leaves of a topology belong together, and what those are: a group of a dragonfly, a layer
// of a torus or a hyperx; 0 where it has no groups.
func TopologyGroup(text string) (each int, says string) {
	t, err := parseTopology(text)
	if err != nil || len(t.sizes) == 0 {
		return 0, ""
	}
	says, each = "one group", 1
	if t.kind == "torus" || t.kind == "hyperx" { // the last size counts the groups
		t.sizes = t.sizes[:len(t.sizes)-1]
		says = "one " + strings.Trim(strings.ReplaceAll(fmt.Sprint(t.sizes), " ", "x"), "[]") + " layer"
		if len(t.sizes) == 1 {
			says = "one row"
		}
	}
	for _, n := range t.sizes {
		each = min(each*n, 1<<20)
	}
	return each, says
}

// check refuses more leaves than the sizes have room for.
func (t *topology) check(leaves int) error {
	switch t.kind {
	case "torus", "hyperx":
		room := 1
		for _, n := range t.sizes {
			room *= n
		}
		if leaves > room {
			return fmt.Errorf("network: %d leaves; %s has room for %d", leaves, t.kind, room)
		}
	}
	return nil
}

// lateral adds the links between leaves, or between the spines of groups.
func (b *layout) lateral(t topology) error {
	leaves := len(b.c.Network.Switches)
	if err := t.check(leaves); err != nil {
		return err
	}
	// As many ports go to other switches as to nodes, divided by the ratio.
	up := float64(min(b.perLeaf, len(b.c.Hosts))*b.ports) / math.Max(1, b.d.Oversubscription)
	switch t.kind {
	case "torus":
		b.torus(t.sizes, leaves, up)
	case "hyperx":
		b.hyperX(t.sizes, leaves, up)
	case "dragonfly":
		b.dragonfly(t.sizes[0], leaves, up)
	case "dragonfly+":
		b.dragonflyPlus(t.sizes[0], leaves, up)
	default: // rails or planes, each a network of its own
		b.apart(t.kind == "rail-only", leaves, up)
	}
	return nil
}

// trunk adds a link of so many ports' worth between two switches; less than a port is one cable that runs slower.
func (b *layout) trunk(upper, lower int, ports float64) {
	cables := max(1, int(math.Ceil(ports-1e-9)))
	b.c.Network.Links = append(b.c.Network.Links, cluster.NetLink{
		A: cluster.AtSwitch(upper, 0), B: cluster.AtSwitch(lower, 0), Count: cables, Lanes: b.lanes, Speed: b.speed,
		Rate: b.shared(cables, ports), Max: b.rate,
	})
}

// shared is the rate of each of some cables that together carry so many ports' worth.
func (b *layout) shared(cables int, ports float64) cluster.Fact[unit.Rate] {
	rate := b.rate
	if rate.Known() && float64(cables) > ports+1e-9 {
		rate.Value *= unit.Rate(ports / float64(cables))
		rate.Source = fmt.Sprintf("%d cables share %.4g ports' worth: %s", cables, ports, rate.Source)
	}
	return rate
}

// torus joins every leaf to the next in each dimension, the last to the first. Sizes come with the fastest dimension
// first.
func (b *layout) torus(sizes []int, leaves int, up float64) {
	each := up / float64(2*len(sizes))
	for i := range leaves {
		stride := 1
		for _, n := range sizes {
			at := i / stride % n
			next := i + stride
			if at == n-1 {
				next = i - at*stride
			}
			if next < leaves && next != i && (n > 2 || at == 0) {
				width := each
				if n == 2 {
					width *= 2 // both directions are one neighbour
				}
				b.trunk(i, next, width)
			}
			stride *= n
		}
	}
}

// hyperX joins every leaf to all others of its row in each dimension.
func (b *layout) hyperX(sizes []int, leaves int, up float64) {
	peers := 0
	for _, n := range sizes {
		peers += n - 1
	}
	each := up / float64(max(peers, 1))
	for i := range leaves {
		stride := 1
		for _, n := range sizes {
			for at := i/stride%n + 1; at < n; at++ {
				if k := i + (at-i/stride%n)*stride; k < leaves {
					b.trunk(i, k, each)
				}
			}
			stride *= n
		}
	}
}

// dragonfly joins all leaves of a group, and groups pair by pair. Ports are shared as Kim et al. balance them (ISCA
// 2008): for p ports to nodes, 2p-1 to the group and p to others; with fewer in all, in that ratio.
func (b *layout) dragonfly(per, leaves int, up float64) {
	groups := (leaves + per - 1) / per
	local, global := up*2/3, up/3
	if groups == 1 {
		local, global = up, 0
	}
	if per == 1 {
		local, global = 0, up
	}
	for i := range leaves {
		for k := i + 1; k < min(leaves, (i/per+1)*per); k++ {
			b.trunk(i, k, local/float64(per-1))
		}
	}
	// The cables of a pair of groups are dealt out to leaves in turn.
	turn := make([]int, groups)
	for g := range groups {
		for h := g + 1; h < groups; h++ {
			size := func(g int) int { return min(per, leaves-g*per) }
			a, c := g*per+turn[g]%size(g), h*per+turn[h]%size(h)
			turn[g]++
			turn[h]++
			b.trunk(a, c, global*float64(per)/float64(groups-1))
		}
	}
}

// dragonflyPlus puts a group's leaves below its spines, whose other half of ports goes to those of all other groups
// (Shpiner et al., HiPINEB 2017).
func (b *layout) dragonflyPlus(per, leaves int, up float64) {
	n := &b.c.Network
	groups := (leaves + per - 1) / per
	first := len(n.Switches)
	for g := range groups {
		size := min(per, leaves-g*per)
		boxes := max(1, int(math.Ceil(2*up*float64(size)/float64(b.sw.Ports))))
		n.Switches = append(n.Switches, b.box("group"+strconv.Itoa(g)+"-spine", cluster.Spine, boxes))
		for k := range size {
			b.trunk(first+g, g*per+k, up)
		}
	}
	for g := range groups {
		for h := g + 1; h < groups; h++ {
			b.trunk(first+g, first+h, up*float64(per)/float64(groups-1))
		}
	}
}

// apart gives the leaves of every rail or plane spines of their own, where it has several, and nothing joins rails.
func (b *layout) apart(rails bool, leaves int, up float64) {
	n := &b.c.Network
	word := "plane"
	if rails {
		word = "rail"
	}
	for r := range b.rails {
		var own []int
		for i := range leaves {
			if b.rails == 1 || n.Switches[i].Rail == r {
				own = append(own, i)
			}
		}
		if len(own) < 2 {
			continue
		}
		n.Switches = append(n.Switches, b.box(fmt.Sprintf("%s%d-spine", word, r), cluster.Spine,
			max(1, int(math.Ceil(up*float64(len(own))/float64(b.sw.Ports))))))
		for _, leaf := range own {
			b.trunk(len(n.Switches)-1, leaf, up)
		}
	}
}
