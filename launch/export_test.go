package launch

import "busbar.dev/cluster"

// SetKinds makes a plan's nodes of other kinds.
func SetKinds(p *Plan, kinds ...*cluster.NodeType) { p.kinds = kinds }
