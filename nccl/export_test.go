package nccl

import "slices"

// ParsePath is parsePath.
func ParsePath(s string) (PathType, bool) { return parsePath(s) }

// ParseOp reads all_reduce and NCCL's AllReduce.
func ParseOp(s string) (Op, error) {
	i, err := find("collective", s, opNames)
	return Op(i), err
}

// Heads are the ranks that reduce in the switch, by node; nil without NVLS.
func (p *Plan) Heads() [][]int {
	if p.NVLSChannels == 0 {
		return nil
	}
	var all [][]int
	for _, n := range p.Nodes {
		var heads []int
		for _, order := range n.View.Graphs.NVLS.Intra {
			if r := n.Ranks[order[0]]; !slices.Contains(heads, r) {
				heads = append(heads, r)
			}
		}
		all = append(all, heads)
	}
	return all
}
