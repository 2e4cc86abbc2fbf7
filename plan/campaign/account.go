package campaign

import "busbar.dev/unit"

// Account is how much of a run's time goes into steps that count, and how often to save.
type Account struct {
	Goodput
	Tokens  float64     `json:"tokens_per_s"`
	Each    unit.Span   `json:"mtbf_gpu_s"`
	Bytes   unit.Volume `json:"checkpoint_bytes"`
	Storage float64     `json:"storage_GBps,omitempty"`
	Pool    *Staffed    `json:"pool,omitempty"`
	Sources []string    `json:"sources"` // of values that were not given
	Text    string      `json:"text"`
}

// Staffed is how many nodes a job has over time, where that was asked about. Shares add up to 1.
type Staffed struct {
	Pool
	Staffing
	PerNode float64 `json:"per_node"` // useful work for each node that is held, spares too, over that without failures
}

// Cost is what steps and tokens cost.
type Cost struct {
	Currency string `json:"currency"`
	Step     Bill   `json:"per_step"`
	Million  Bill   `json:"per_million_tokens"`
	Priced   bool   `json:"priced,omitempty"` // a price was given
}
