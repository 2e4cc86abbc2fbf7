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

// rcclMargin is that of RCCL, whose figures were fitted on nothing: twice the error on the few published sweeps of
// AMD's GPUs (three machines of one node, four of several; docs/accuracy.md).
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

// margins are factors by class and family for small, middle and large messages, from cross-validation on published
// sweeps in which everything of a publisher was left out, as printed by `make fit
// FIT="-cross -publishers -figures"`. See docs/accuracy.md. 0 is the factor of the family: nobody has measured such.
var margins = map[string][3]float64{
	"multi-node-efa":             {1.67, 2.03, 1.84}, // points and machines: 32 of 3, 29 of 4, 25 of 4
	"multi-node-gpudirect-tcpx":  {2.47, 3.00, 2.11}, // points and machines: 1 of 1, 14 of 1, 12 of 1
	"multi-node-gpudirect-tcpxo": {2.28, 3.00, 2.14}, // points and machines: 13 of 1, 9 of 1, 9 of 1
	"multi-node-infiniband":      {1.61, 3.00, 1.57}, // points and machines: 169 of 5, 112 of 5, 101 of 11
	"multi-node-omnipath":        {0.00, 0.00, 2.28}, // points and machines: 0 of 0, 0 of 0, 1 of 1
	"multi-node-roce":            {1.82, 2.06, 1.66}, // points and machines: 54 of 6, 68 of 7, 130 of 14
	"multi-node-slingshot":       {2.04, 2.51, 1.79}, // points and machines: 13 of 1, 14 of 1, 8 of 2
	"multi-node-tcp":             {2.42, 3.00, 2.08}, // points and machines: 2 of 1, 9 of 1, 7 of 1
	"nvlink-rack":                {0.00, 0.00, 1.48}, // points and machines: 0 of 0, 0 of 0, 11 of 2
	"nvlink-single-node":         {1.52, 1.71, 1.23}, // points and machines: 625 of 10, 758 of 10, 492 of 23
	"pcie-single-node":           {1.65, 1.53, 1.49}, // points and machines: 199 of 7, 192 of 7, 103 of 7
	"xgmi-multi-node-roce":       {0.00, 2.32, 1.57}, // points and machines: 0 of 0, 2 of 1, 22 of 3
	"xgmi-single-node":           {1.89, 2.04, 1.36}, // points and machines: 39 of 2, 27 of 2, 37 of 4
	"cards":                      {1.77, 1.63, 1.59}, // points and machines: 199 of 7, 192 of 7, 103 of 7
	"one-node":                   {1.59, 1.81, 1.22}, // points and machines: 664 of 12, 785 of 12, 540 of 29
	"several-rdma":               {1.69, 2.33, 1.68}, // points and machines: 268 of 15, 225 of 18, 287 of 35
	"several-tcp":                {2.79, 3.00, 2.59}, // points and machines: 16 of 3, 32 of 3, 28 of 3
}
