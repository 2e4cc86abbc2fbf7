package campaign

import "busbar.dev/unit"

// Figure is a published number with who says it.
type Figure struct {
	Value  float64
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
// network, in seconds, where nobody says another.
func MTBF() Figure {
	return Figure{
		float64(llamaDays*unit.Day) * llamaGPUs / llamaStops,
		llama3 + "section 3.3.4 and table 5: 419 unexpected interruptions in 54 days on 16,384 H100",
	}
}

// Restarting is the time of a restart without the reading of a checkpoint, in seconds.
func Restarting() Figure {
	return Figure{float64(10 * unit.Minute), "assumed, of the order that Jiang et al. 2024, MegaScale (arXiv 2402.15627), section 6.3, report for detection and diagnosis"}
}

// Storage is the rate at which checkpoints are written and read for each GPU of a job, in bytes/s.
func Storage() Figure {
	return Figure{2e12 / llamaGPUs, llama3 + "section 3.3.1: storage that sustains 2 TB/s, for 16,384 GPUs"}
}
