package predict

import (
	"busbar.dev/coll"
	"busbar.dev/unit"
)

// sizes are the size classes in the order of the table.
var sizes = [3]string{"small", "middle", "large"}

// Sizes are the size classes, from small to large.
func Sizes() [3]string { return sizes }

// LargestMeasured is the greatest number of ranks of a public measurement: 96 DGX-2 nodes (docs/accuracy.md).
const LargestMeasured = 1536

// Margin is how far off a prediction of such a call may be, as a factor: nine of
// ten measurements are expected between time/margin and time×margin. It is the
// model's error on machines of the same class that it had not seen when its figures
// were fitted. A class without measurements gets the widest margin there is, and so
// do more ranks than anybody has published.
func (p *Predictor) Margin(op coll.Op) float64 {
	if p.Plan.RCCL != nil {
		return rcclMargin(op.Bytes, len(p.Plan.Nodes))
	}
	class := p.class()
	if p.Card && len(p.Plan.Nodes) > 1 || p.Plan.NRanks > LargestMeasured {
		class = "" // nodes of cards without links of their own, and so many ranks: nobody has published any
	}
	return calibratedMargin(marginOf(class, op.Bytes), p.Cluster.Calibration, class, op)
}

// rcclMargin is that of RCCL, whose figures were fitted on nothing: twice the error on the few published sweeps of AMD's GPUs
// (three machines of one node, four of several; docs/accuracy.md).
func rcclMargin(size unit.Bytes, nodes int) float64 {
	switch c := SizeClass(size); {
	case c == sizes[2] && nodes == 1:
		return 1.25
	case c == sizes[2]:
		return 1.5
	}
	return 2.5
}

// class is Class, worked out once.
func (p *Predictor) class() string {
	if p.className == "" {
		p.className = p.Class()
	}
	return p.className
}

func marginOf(class string, size unit.Bytes) float64 {
	at := 0
	for i, s := range sizes {
		if s == SizeClass(size) {
			at = i
		}
	}
	for _, name := range []string{class, Family(class)} {
		if m, ok := margins[name]; ok && m[at] > 0 && class != "" {
			return m[at]
		}
	}
	widest := 1.0
	for _, m := range margins {
		widest = max(widest, m[at])
	}
	return widest
}

// Measured tells whether measurements stand behind the margins of a class.
func Measured(class string) bool {
	_, ok := margins[class]
	return ok
}
