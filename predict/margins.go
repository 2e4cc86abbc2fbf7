package predict

// margins are factors by class and family for small, middle and large messages, from cross-validation on published
// sweeps in which everything of a publisher was left out, as printed by `busbar calibrate --cross --publishers --figures`.
// See docs/accuracy.md. 0 is the factor of the family: nobody has measured such.
var margins = map[string][3]float64{
	"multi-node-efa":             {1.80, 2.21, 2.00}, // points and machines: 32 of 3, 29 of 4, 25 of 4
	"multi-node-gpudirect-tcpx":  {2.74, 3.00, 2.35}, // points and machines: 1 of 1, 14 of 1, 12 of 1
	"multi-node-gpudirect-tcpxo": {2.57, 3.00, 2.38}, // points and machines: 13 of 1, 9 of 1, 9 of 1
	"multi-node-infiniband":      {1.72, 3.00, 1.76}, // points and machines: 169 of 5, 112 of 5, 101 of 11
	"multi-node-omnipath":        {0.00, 0.00, 2.61}, // points and machines: 0 of 0, 0 of 0, 1 of 1
	"multi-node-roce":            {1.96, 2.25, 1.80}, // points and machines: 54 of 6, 68 of 7, 130 of 14
	"multi-node-slingshot":       {2.27, 2.80, 1.95}, // points and machines: 13 of 1, 14 of 1, 8 of 2
	"multi-node-tcp":             {2.68, 3.00, 2.31}, // points and machines: 2 of 1, 9 of 1, 7 of 1
	"nvlink-rack":                {0.00, 0.00, 1.63}, // points and machines: 0 of 0, 0 of 0, 11 of 2
	"nvlink-single-node":         {1.59, 1.93, 1.29}, // points and machines: 625 of 10, 758 of 10, 492 of 23
	"pcie-single-node":           {1.77, 1.66, 1.56}, // points and machines: 199 of 7, 192 of 7, 103 of 7
	"xgmi-multi-node-roce":       {0.00, 2.59, 1.71}, // points and machines: 0 of 0, 2 of 1, 22 of 3
	"xgmi-single-node":           {2.06, 2.28, 1.47}, // points and machines: 39 of 2, 27 of 2, 37 of 4
	"cards":                      {1.93, 1.82, 1.71}, // points and machines: 199 of 7, 192 of 7, 103 of 7
	"one-node":                   {1.67, 2.02, 1.27}, // points and machines: 664 of 12, 785 of 12, 540 of 29
	"several-rdma":               {1.80, 2.55, 1.83}, // points and machines: 268 of 15, 225 of 18, 287 of 35
	"several-tcp":                {3.00, 3.00, 3.00}, // points and machines: 16 of 3, 32 of 3, 28 of 3
}
