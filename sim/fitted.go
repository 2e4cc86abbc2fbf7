package sim

// Fitted are the figures as fitted on the published sweeps of truth/collectives
// (all that are neither anomalous nor of grade C), by `busbar calibrate --figures`.
func Fitted() *Figures {
	return &Figures{
		// volta
		8, 0.95, 1.6, 3, 3, 7, 10, 3.5, 0.8, 0.7, 20,
		// ampere
		8, 0.95, 1.6, 3, 5, 8, 12, 3.5, 0.79, 0.7, 20,
		// hopper
		4.5, 0.85, 1.4, 2.5, 6, 14, 20, 2.5, 0.82, 0.7, 20,
		// blackwell
		8, 1.2, 1.6, 3, 8, 18, 30, 3, 0.76, 0.7, 20,
		// common
		1, 1, 4, 6, 12, 5, 1, 2, 0.3, 0.8, 0.7, 30,
		0.97, 0.95, 0.93, 0.8, 0.3, 0.9, 0.9,
		2, 20, 60, 60, 5, 5,
	}
}
