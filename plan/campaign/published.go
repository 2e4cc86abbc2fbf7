package campaign

import "busbar.dev/unit"

// Figure is a published figure with who says it.
type Figure[T any] struct {
	Value  T
	Source string
}

// Interruptions of Llama 3's pretraining: 419 unexpected ones in 54 days on 16,384 GPUs.
const (
	llamaDays  = 54
	llamaGPUs  = 16384
	llamaStops = 419
	llama3     = "Grattafiori et al. 2024, The Llama 3 Herd of Models (arXiv 2407.21783), "
)

// MTBF is the mean time between unexpected interruptions of one GPU with its share of the host and the
// network, where nobody says another.
func MTBF() Figure[unit.Span] {
	return Figure[unit.Span]{
		llamaDays * unit.Day * llamaGPUs / llamaStops,
		llama3 + "section 3.3.4 and table 5: 419 unexpected interruptions in 54 days on 16,384 H100",
	}
}

// Restarting is the time of a restart without the reading of a checkpoint.
func Restarting() Figure[unit.Span] {
	return Figure[unit.Span]{10 * unit.Minute, "assumed, of the order that Jiang et al. 2024, MegaScale (arXiv " +
		"2402.15627), section 6.3, report for detection and diagnosis"}
}

// Losing is the share of interruptions after which a node is away: the others restart on the same nodes.
func Losing() Figure[float64] {
	return Figure[float64]{0.78, llama3 + "section 3.3.4: about 78% of unexpected interruptions are confirmed or " +
		"suspected hardware issues"}
}

// Repairing is how long such a node is away.
func Repairing() Figure[unit.Span] {
	return Figure[unit.Span]{unit.Day, "assumed"}
}

// Copying is the rate at which a GPU's part of a checkpoint is copied to its host's memory before it is written.
func Copying() Figure[unit.Rate] {
	return Figure[unit.Rate]{20e9, "assumed, of the order of PCIe 4.0 with 16 lanes into pinned memory"}
}

// Storage is the rate at which checkpoints are written and read for each GPU of a job.
func Storage() Figure[unit.Rate] {
	return Figure[unit.Rate]{2e12 / llamaGPUs, llama3 + "section 3.3.1: storage that sustains 2 TB/s, for 16,384 GPUs"}
}
