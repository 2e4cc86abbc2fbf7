package predict

// margins are factors by class and family for small, middle and large messages, from cross-validation on published
// sweeps in which everything of a publisher was left out, as printed by `busbar calibrate --cross --publishers --figures`.
// See docs/accuracy.md. 0 is the factor of the family: nobody has measured such.
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
