package step

import "busbar.dev/workload"

// Peak is the dense rate of products in a precision as the data sheet has it, in FLOP/s.
func (g *GPU) Peak(p workload.Precision) float64 { return g.peak(p) }
