package predict

// margins are factors by class for small, middle and large messages, from
// leave-one-machine-out cross-validation on published sweeps, as printed by
// `busbar calibrate --cross --figures`. See docs/accuracy.md.
var margins = map[string][3]float64{
	"multi-node-efa":             {1.21, 1.69, 2.27}, // points and machines: 28 of 3, 27 of 3, 24 of 3
	"multi-node-gpudirect-tcpx":  {3.99, 6.11, 2.04}, // points and machines: 6 of 1, 14 of 1, 12 of 1
	"multi-node-gpudirect-tcpxo": {3.76, 6.11, 2.03}, // points and machines: 13 of 1, 9 of 1, 9 of 1
	"multi-node-infiniband":      {1.75, 1.54, 1.16}, // points and machines: 39 of 2, 27 of 2, 79 of 8
	"multi-node-omnipath":        {2.33, 2.33, 2.33}, // points and machines: 0 of 0, 0 of 0, 1 of 1
	"multi-node-roce":            {1.77, 1.69, 1.39}, // points and machines: 6 of 1, 9 of 1, 20 of 4
	"multi-node-slingshot":       {1.88, 2.42, 1.35}, // points and machines: 13 of 1, 9 of 1, 3 of 1
	"multi-node-tcp":             {3.76, 6.50, 1.99}, // points and machines: 6 of 1, 9 of 1, 7 of 1
	"nvlink-rack":                {1.28, 1.28, 1.28}, // points and machines: 0 of 0, 0 of 0, 11 of 2
	"nvlink-single-node":         {1.32, 1.36, 1.14}, // points and machines: 450 of 5, 594 of 5, 365 of 10
	"pcie-single-node":           {1.30, 1.52, 1.64}, // points and machines: 110 of 3, 126 of 3, 66 of 3
}
