package sim

// Fitted are the figures as fitted on the published sweeps of truth/collectives
// (all that are neither anomalous nor of grade C), by `busbar calibrate --figures`.
func Fitted() *Figures {
	return &Figures{
		// volta
		9.108, 1.45, 1.6, 0.5034, 7.078, 7, 10, 0.2958, 0.8, 0.7, 20,
		// ampere
		9.573, 0.7415, 2.161, 1.189, 14.57, 45.42, 120, 3.609, 0.741, 0.7, 20,
		// hopper
		4.738, 0.7642, 1.706, 5.773, 15.26, 74.98, 120, 0.1676, 0.8159, 0.6828, 6.361,
		// blackwell
		7.92, 1.192, 3.852, 6.698, 20.76, 80, 120, 0.2159, 0.7473, 0.4979, 9.957,
		// common
		0.04885, 0.07923, 3.461, 4.261, 23.43, 5, 1.5, 0.9425, 0.6129,
		1.046, 127, 283.6, 4.35, 0.6817, 0.9, 0.8211, 94.69, 0.8714,
		0.9884, 0.9861, 0.454, 0.8932, 0.3836, 0.4, 0.4, 2.151, 59.44,
		394, 51.38, 157.8, 0.2122, 5,
	}
}
