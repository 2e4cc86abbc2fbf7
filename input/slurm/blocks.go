package slurm

import (
	"cmp"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/num"
	"busbar.dev/internal/switchtree"
)

// sizes reads the numbers of nodes in which topology/block plans.
func (tr *treeReader) sizes(line int, name string, texts []string) {
	var list []int
	for _, text := range texts {
		list = append(list, num.Int(text))
	}
	if err := cluster.CheckBlockSizes(list); err != nil {
		tr.f.Warnf(line, "", "%s: %v; Slurm refuses that, and it was skipped", name, err)
		return
	}
	tr.f.Network.BlockSizes = list
}

// unsaidSizes is how many sizes Slurm takes where none are given: the first block's and its doubles. Those beyond all
// blocks are left out.
const unsaidSizes = 5

// defaultSizes are those that Slurm takes where blocks are there and sizes are not.
func (tr *treeReader) defaultSizes() {
	n := &tr.f.Network
	switch {
	case !tr.blocks:
		n.BlockSizes = nil
	case n.BlockSizes == nil:
		first, blocks := 0, 0
		for _, s := range tr.tree.Switches {
			if s.Domain && len(s.Hosts) > 0 {
				blocks++
				first = cmp.Or(first, len(s.Hosts))
			}
		}
		for k := 0; k < unsaidSizes && blocks > 0 && 1<<k < 2*blocks; k++ {
			n.BlockSizes = append(n.BlockSizes, first<<k)
		}
	}
}

// Blocks are the base blocks of topology/block, in the order in which Slurm numbers them: who is in each, by name.
func Blocks(c *cluster.Cluster) (names []string, of map[string]int) {
	of = map[string]int{}
	for _, d := range switchtree.Domains(c) {
		if s := &c.Network.Switches[d.Switch]; s.Label == "" {
			for _, h := range d.Hosts {
				of[c.Hosts[h].Name] = len(names)
			}
			names = append(names, s.Name)
		}
	}
	return names, of
}
