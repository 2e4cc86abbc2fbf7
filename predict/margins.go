package predict

// margins are factors by class for small, middle and large messages, from
// leave-one-machine-out cross-validation on published sweeps, as printed by
// `busbar calibrate --cross --figures`. See docs/accuracy.md.
var margins = map[string][3]float64{
	"multi-node-efa":             {1.15, 1.64, 2.29}, // points and machines: 28 of 3, 27 of 3, 24 of 3
	"multi-node-gpudirect-tcpx":  {3.93, 5.18, 2.04}, // points and machines: 6 of 1, 14 of 1, 12 of 1
	"multi-node-gpudirect-tcpxo": {3.24, 5.18, 2.08}, // points and machines: 13 of 1, 9 of 1, 9 of 1
	"multi-node-infiniband":      {1.79, 1.47, 1.16}, // points and machines: 39 of 2, 27 of 2, 79 of 8
	"multi-node-omnipath":        {2.33, 2.33, 2.33}, // points and machines: 0 of 0, 0 of 0, 1 of 1
	"multi-node-roce":            {1.73, 1.64, 1.39}, // points and machines: 6 of 1, 9 of 1, 20 of 4
	"multi-node-slingshot":       {1.83, 2.01, 1.36}, // points and machines: 13 of 1, 9 of 1, 3 of 1
	"multi-node-tcp":             {3.24, 5.73, 2.01}, // points and machines: 6 of 1, 9 of 1, 7 of 1
	"nvlink-rack":                {1.30, 1.30, 1.30}, // points and machines: 0 of 0, 0 of 0, 11 of 2
	"nvlink-single-node":         {1.21, 1.35, 1.18}, // points and machines: 450 of 5, 594 of 5, 365 of 10
	"pcie-single-node":           {1.30, 1.53, 1.65}, // points and machines: 110 of 3, 126 of 3, 66 of 3
}
