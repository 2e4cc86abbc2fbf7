package workload

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"busbar.dev/internal/failure"
)

// Choices are what the owner of a job chooses beside its degrees. What is empty is as the framework has it.
type Choices struct {
	Optimizer  Optimizer
	Loss       Loss
	Dispatcher Dispatcher
	Overlap    string // of tokens on their way to experts with another micro-batch's passes: yes, no; "" is as the recipe
	// HostLayers is the layers of a rank whose activations go to the host's memory until the backward pass
	// (Megatron-Core's cpu_offloading_num_layers).
	HostLayers int
}

// Optimizer is what updates parameters.
type Optimizer string

// Optimizers. AdamNarrow keeps moments in 16 bits and of float32 weights what 16-bit ones lack (Megatron-Core's
// precision-aware optimizer with bf16 moments, Transformer Engine's FusedAdam with store_param_remainders); AdamBytes
// keeps moments in 8 bits (bitsandbytes); AdamForeach is PyTorch's AdamW with foreach kernels, one for every operation.
const (
	AdamDefault Optimizer = ""
	AdamNarrow  Optimizer = "adam-bf16"
	AdamBytes   Optimizer = "adam-8bit"
	AdamForeach Optimizer = "adam-foreach"
	Momentum    Optimizer = "sgd"
)

// keeps is the bytes a parameter of a float32 copy of 16-bit weights, and of moments beside float32 weights.
func (o Optimizer) keeps() (copied, moments float64) {
	switch o {
	case AdamNarrow:
		return 2, 2 * Adam
	case AdamBytes:
		return 4, Adam
	case Momentum:
		return 4, 4
	}
	return 4, 4 * Adam
}

// passes is how many times as many bytes the update moves as if it read and wrote each once: foreach kernels read and
// write 20 numbers for a parameter (torch/optim/adamw.py: decay, two moments, their root, quotient, sum and step) where
// one kernel does 7.
func (o Optimizer) passes() float64 {
	if o == AdamForeach {
		return 20.0 / 7
	}
	return 1
}

// Loss is how the loss treats the scores of words.
type Loss string

// Losses. LossInPlace writes gradients over scores (Transformer Engine's and flash-attention's cross-entropy);
// LossChunked computes some tokens at a time (Liger, torchtitan's chunked loss).
const (
	LossDefault Loss = ""
	LossWhole   Loss = "whole"
	LossInPlace Loss = "in-place"
	LossChunked Loss = "chunked"
)

// lossChunks is how many chunks a loss computes that is chunked (torchtitan's ChunkedLossWrapper).
const lossChunks = 8

// Dispatcher is how tokens go to experts.
type Dispatcher string

// Dispatchers. AllGather brings every token to all ranks that share experts, AllToAll a copy to each of its experts,
// DeepEP and HybridEP one copy to every NVLink domain that has some.
const (
	DispatchDefault Dispatcher = ""
	AllToAll        Dispatcher = "alltoall"
	AllGather       Dispatcher = "allgather"
	DeepEP          Dispatcher = "deepep"
	HybridEP        Dispatcher = "hybridep"
)

// choices are the keys that Choose takes, and what goes with them.
var choices = []struct {
	key, values string
	set         func(c *Choices, value string)
}{
	{"optimizer", "adam-bf16, adam-8bit, adam-foreach, sgd", func(c *Choices, v string) { c.Optimizer = Optimizer(v) }},
	{"loss", "whole, in-place, chunked", func(c *Choices, v string) { c.Loss = Loss(v) }},
	{"dispatcher", "allgather, alltoall, deepep, hybridep", func(c *Choices, v string) { c.Dispatcher = Dispatcher(v) }},
	{"experts.overlap", "yes, no", func(c *Choices, v string) { c.Overlap = v }},
	{"host.layers", "", func(c *Choices, v string) { c.HostLayers, _ = strconv.Atoi(v) }},
}

// IsChoice reports whether a text KEY=VALUE is about a job and not its cluster.
func IsChoice(text string) bool {
	key, _, _ := strings.Cut(text, "=")
	for _, x := range choices {
		if x.key == key {
			return true
		}
	}
	return false
}

// Choose sets what a text KEY=VALUE says.
func (c *Choices) Choose(text string) error {
	key, value, _ := strings.Cut(text, "=")
	for _, x := range choices {
		if x.key != key {
			continue
		}
		n, err := strconv.Atoi(value)
		switch {
		case x.values == "" && (err != nil || n < 1 || n > 1<<16):
			return fmt.Errorf("%s=%.40q; expected a number of layers", key, value)
		case x.values != "" && !strings.Contains(", "+x.values+",", ", "+value+",") || strings.Contains(value, ","):
			return fmt.Errorf("%s=%.40q; expected one of %s", key, value, x.values)
		}
		x.set(c, value)
		return nil
	}
	return fmt.Errorf("%.40q; expected a key such as optimizer=adam-bf16", text)
}

// hostLayers is how many layers of a rank leave nothing on the GPU: one of those that go to the host is on its way.
func (j *Job) hostLayers(layers int) int { return max(0, min(j.HostLayers, layers)-1) }

// checkChoices reports choices that the job has no use for.
func (j *Job) checkChoices() error {
	s := j.Split.filled()
	layers := int(j.Model.Dims.Layers)
	switch {
	case j.HostLayers > 0 && (s.PP > 1 || j.Recompute == Full || j.Offloads()):
		return failure.In("set",
			fmt.Errorf("host.layers=%d with pp=%d, recompute %s, offload %s; it goes without pipelines, "+
				"full recomputation and offloading (Megatron-Core)", j.HostLayers, s.PP, cmp.Or(j.Recompute, None),
				cmp.Or(j.Offload, OnGPU)))
	case j.HostLayers >= max(layers, 1):
		return failure.In("set", fmt.Errorf("host.layers=%d; the model has %d layers, of which the last stays", j.HostLayers,
			layers))
	case j.Dispatcher+Dispatcher(j.Overlap) != "" && j.Model.Dims.Experts == 0:
		return failure.In("set", fmt.Errorf("dispatcher, experts.overlap: %s has no experts", j.Model.Name))
	case j.Model.Replicated() && j.Choices != Choices{}:
		return failure.In("set",
			fmt.Errorf("optimizer, loss, dispatcher, experts.overlap and host.layers are not modelled for %s",
				j.Model.Name))
	}
	return nil
}
