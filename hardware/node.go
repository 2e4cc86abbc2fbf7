package hardware

import (
	"fmt"
	"strconv"
	"strings"
	"sync"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// nodeRow is a row of nodes.csv: the inside of a machine, without the models of
// its GPUs and NICs.
type nodeRow struct {
	Name     string         `csv:"name"`
	Origin   cluster.Origin `csv:"tree_origin"`
	Tree     tree           `csv:"tree"`
	Join     string         `csv:"join,optional"`
	GPUSlot  slot           `csv:"gpu_slot,optional"`
	Up       slot           `csv:"switch_slot,optional"` // from a root or switch to a switch
	CPU      string         `csv:"cpu"`
	CPUID    cpuSpec        `csv:"cpu_id"`
	CPULists []string       `csv:"cpulists"` // of a socket; + between its NUMA domains
	Memory   unit.Bytes     `csv:"numa_memory,optional"`
	GPUPCI   []string       `csv:"gpu_pci,optional"`
	NICPCI   []string       `csv:"nic_pci,optional"`
	NICNames []string       `csv:"nic_names,optional"`
	Source   string         `csv:"source"`
}

var nodeTable = sync.OnceValue(func() map[string]*nodeRow {
	return byName("nodes", func(r *nodeRow) string { return r.Name })
})

// node makes the devices and links of a preset's node, rates still to be filled in.
func (p *preset) node() *cluster.NodeType {
	gpu, nic := mustGPU(p.GPU), cardTable()[p.NIC]
	if special := specialNodes[p.Node]; special != nil {
		return special(gpu, nic)
	}
	row := nodeTable()[p.Node]
	switch {
	case row != nil:
	case p.cards > 0:
		return cardNode(gpu, p.cards)
	default: // a GPU by name: one host and nothing else
		t := newNode(cluster.Unknown)
		addChip(t, -1, gpu, "")
		return t
	}
	return row.node(gpu, nic)
}

func (r *nodeRow) node(gpu GPUModel, nic *card) *cluster.NodeType {
	b := &treeBuilder{row: r, t: newNode(r.Origin), gpu: gpu, nic: nic}
	b.add(-1, r.Tree)
	b.join()
	return b.t
}

// tree is what hangs on what: 2*socket(root(switch(gpu nic))).
type tree []branch

// branch is a device, or with an empty name a group, so many times.
type branch struct {
	count int
	name  string
	below tree
}

// UnmarshalText reads a tree.
func (t *tree) UnmarshalText(text []byte) error {
	rest, err := t.parse(string(text))
	if err == nil && rest != "" {
		err = fmt.Errorf("%q: a ) without (", text)
	}
	return err
}

// parse reads branches up to the end or a ) and returns what follows.
func (t *tree) parse(s string) (string, error) {
	for s = strings.TrimLeft(s, " "); s != "" && s[0] != ')'; s = strings.TrimLeft(s, " ") {
		b := branch{count: 1}
		word := s[:len(s)-len(strings.TrimLeft(s, "abcdefghijklmnopqrstuvwxyz0123456789*"))]
		s = s[len(word):]
		if count, name, ok := strings.Cut(word, "*"); ok {
			n, err := strconv.Atoi(count)
			if err != nil || n < 1 {
				return "", fmt.Errorf("%q: expected a count before *", word)
			}
			b.count, word = n, name
		}
		b.name = word
		if strings.HasPrefix(s, "(") {
			rest, err := b.below.parse(s[1:])
			if err != nil {
				return "", err
			}
			if rest == "" {
				return "", fmt.Errorf("%q: a ( without )", word)
			}
			s = rest[1:]
		} else if word == "" {
			return "", fmt.Errorf("%q: expected a device", s)
		}
		*t = append(*t, b)
	}
	return s, nil
}

// treeBuilder makes the devices of a tree, numbered in the order of its text.
type treeBuilder struct {
	row  *nodeRow
	t    *cluster.NodeType
	gpu  GPUModel
	nic  *card
	numa []int // of all sockets so far
}

func (b *treeBuilder) add(parent int, branches tree) {
	for _, x := range branches {
		for range x.count {
			b.add(b.device(parent, x.name), x.below)
		}
	}
}

// device adds a device and returns what its branches hang on. The lint of the
// tables builds every tree, so that a wrong name does not reach a user.
func (b *treeBuilder) device(parent int, name string) int {
	switch name {
	case "":
		return parent
	case "socket":
		cpu := b.row.CPUID
		cpu.name = b.row.CPU
		lists := b.row.CPULists[b.t.Count(cluster.Socket)]
		domains := addSocket(b.t, cpu, b.row.Memory, strings.Split(lists, "+")...)
		b.numa = append(b.numa, domains...)
		return domains[0]
	case "root":
		return addRoot(b.t, parent)
	case "switch":
		return addSwitch(b.t, parent, b.row.Up)
	case "gpu":
		return addGPU(b.t, parent, b.gpu, b.row.GPUSlot, at(b.row.GPUPCI, b.t.Count(cluster.GPU)))
	case "c2c":
		return addC2C(b.t, parent, b.gpu, superchipLinks)
	case "nic":
		k := b.t.Count(cluster.NIC)
		return addNIC(b.t, parent, b.nic, at(b.row.NICPCI, k), at(b.row.NICNames, k))
	}
	domain, err := strconv.Atoi(strings.TrimPrefix(name, "numa"))
	if err != nil {
		panic(fmt.Sprintf("hardware/data/nodes.csv: %s: no device is called %q", b.row.Name, name))
	}
	return b.numa[domain]
}

// join links the GPUs to each other.
func (b *treeBuilder) join() {
	how, links, _ := strings.Cut(b.row.Join, " ")
	switch how {
	case "":
	case "nvswitch":
		addNVSwitch(b.t, b.gpu.Links)
	case "cube":
		mesh(b.t, cluster.NVLink, cubeMesh()...)
	case "mesh":
		n, _ := strconv.Atoi(links)
		fullMesh(b.t, b.gpu.LinkKind, n)
	case "no": // peer access, which the driver refuses
		refusePeers(b.t)
	default:
		panic(fmt.Sprintf("hardware/data/nodes.csv: %s: GPUs are not joined by %q", b.row.Name, b.row.Join))
	}
}

// refusePeers says of all pairs of GPUs that the driver refuses peer access.
func refusePeers(t *cluster.NodeType) {
	gpus := t.Of(cluster.GPU)
	for _, x := range gpus {
		for _, y := range gpus {
			if x != y {
				t.Pairs = append(t.Pairs, cluster.Pair{A: x, B: y, P2P: cluster.No, Why: "not supported on GeForce cards of this generation"})
			}
		}
	}
}

// cubeMesh is the hybrid cube mesh of eight V100: GPU, GPU, links (NVIDIA DGX-1
// system architecture white paper, 2017).
func cubeMesh() [][3]int {
	return [][3]int{
		{0, 1, 1},
		{0, 2, 1},
		{0, 3, 2},
		{0, 4, 2},
		{1, 2, 2},
		{1, 3, 1},
		{1, 5, 2},
		{2, 3, 2},
		{2, 6, 1},
		{3, 7, 1},
		{4, 5, 1},
		{4, 6, 1},
		{4, 7, 2},
		{5, 6, 2},
		{5, 7, 1},
		{6, 7, 2},
	}
}
