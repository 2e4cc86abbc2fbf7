package predict

// margins are factors by class for small, middle and large messages, from
// leave-one-machine-out cross-validation on published sweeps, as printed by
// `busbar calibrate --cross --figures`. See docs/accuracy.md.
var margins = map[string][3]float64{
	"multi-node-efa":             {1.15, 1.62, 2.25}, // points and machines: 28 of 3, 27 of 3, 24 of 3
	"multi-node-gpudirect-tcpx":  {3.99, 5.24, 2.04}, // points and machines: 6 of 1, 14 of 1, 12 of 1
	"multi-node-gpudirect-tcpxo": {3.29, 5.24, 2.08}, // points and machines: 13 of 1, 9 of 1, 9 of 1
	"multi-node-infiniband":      {1.75, 1.47, 1.17}, // points and machines: 39 of 2, 27 of 2, 79 of 8
	"multi-node-omnipath":        {2.33, 2.33, 2.33}, // points and machines: 0 of 0, 0 of 0, 1 of 1
	"multi-node-roce":            {1.80, 1.76, 1.39}, // points and machines: 6 of 1, 9 of 1, 20 of 4
	"multi-node-slingshot":       {1.90, 2.12, 1.36}, // points and machines: 13 of 1, 9 of 1, 3 of 1
	"multi-node-tcp":             {3.29, 5.74, 2.01}, // points and machines: 6 of 1, 9 of 1, 7 of 1
	"nvlink-rack":                {1.31, 1.31, 1.31}, // points and machines: 0 of 0, 0 of 0, 11 of 2
	"nvlink-single-node":         {1.25, 1.30, 1.27}, // points and machines: 450 of 5, 594 of 5, 365 of 10
	"pcie-single-node":           {1.29, 1.53, 1.64}, // points and machines: 110 of 3, 126 of 3, 66 of 3
}
