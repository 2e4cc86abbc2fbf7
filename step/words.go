package step

import (
	"fmt"
	"strings"

	"busbar.dev/unit"
	"busbar.dev/workload"
)

// Limit says what a step's time is made of most, and what would help.
type Limit struct {
	Kind string `json:"kind"` // compute, pipeline, network, memory, host
	Text string `json:"text"`
}

// Limit names the largest part beyond products themselves.
func (r *Result) Limit(j *workload.Job) Limit {
	s := j.Split
	worst := -1
	for i := range r.Traffic {
		if worst < 0 || r.Traffic[i].Exposed > r.Traffic[worst].Exposed {
			worst = i
		}
	}
	share := func(x unit.Span) float64 { return float64(100 * x / r.Step) }
	switch {
	case worst >= 0 && r.Traffic[worst].Exposed > 0.1*r.Step && r.Traffic[worst].Exposed >= r.Bubble:
		t := &r.Traffic[worst]
		if t.Limit == "" { // nothing crosses a link between ranks: the host keeps what is waited for
			return Limit{"host", fmt.Sprintf("%.0f%% of the step waits for what host memory keeps (--offload %s)",
				share(t.Exposed), j.Offload)}
		}
		return Limit{
			"network",
			fmt.Sprintf("%.0f%% of the step waits for %s over %s ranks: %s", share(t.Exposed), t.What, t.Group, t.Limit),
		}
	case r.Bubble > 0.1*r.Step:
		return Limit{"pipeline", fmt.Sprintf("%.0f%% of the step is the pipeline bubble: %d micro-batches over %d stages; "+
			"%s would help", share(r.Bubble), j.Micros(), s.PP, busier(j))}
	case r.Host+r.Optimizer > 0.15*r.Step:
		return Limit{"host", fmt.Sprintf("%.0f%% of the step is the optimizer update and host work; larger batches would "+
			"help", share(r.Host+r.Optimizer))}
	}
	return Limit{
		"compute", fmt.Sprintf("%.0f%% of the step is compute; %.0f%% of communication is overlapped", share(r.Compute),
			hidden(r)),
	}
}

func hidden(r *Result) float64 {
	if r.Comm <= 0 {
		return 100
	}
	return 100 * max(0, 1-float64(r.Exposed/r.Comm))
}

// busier is what keeps a pipeline's stages busier.
func busier(j *workload.Job) string {
	if j.Pipeline().Schedule.Splits() {
		return "more micro-batches"
	}
	return "more micro-batches, more virtual stages (vpp), or --schedule zero-bubble"
}

// shardSetting is full sharding inside nodes, as --parallel says it.
const shardSetting = "zero=3,shard=node in --parallel"

// frameworkWords are how a framework's own users write what a flag of busbar step stands for.
var frameworkWords = map[string]map[string]string{
	"ddp": {
		"--compress bf16":      "model.register_comm_hook(None, default_hooks.bf16_compress_hook)",
		"zero=1 in --parallel": "ZeroRedundancyOptimizer",
		"--kernels compiled":   "torch.compile(model)",
	},
	"fsdp": {
		shardSetting:         "fully_shard with a mesh of two dimensions, init_device_mesh(\"cuda\", (nodes, GPUs per node))",
		"--kernels compiled": "torch.compile(model)",
	},
}

// inWords adds how the job's framework calls a change.
func (c *Change) inWords(j *workload.Job) {
	if j.Framework == nil {
		return
	}
	name, _, _ := strings.Cut(j.Framework.ID, "@")
	if own := frameworkWords[name][c.Setting]; own != "" {
		c.Text += fmt.Sprintf(" (in PyTorch: %s)", own)
	}
}

// shardsUpdate says why dividing the update helps: mostly by what replicas exchange, or by the update itself.
func shardsUpdate(now, then *Result) string {
	if now.Exposed-then.Exposed > now.Optimizer-then.Optimizer {
		return "reduce-scatter gradients instead of all-reducing them, and gather the new parameters after the update"
	}
	return "shard the optimizer update over data-parallel ranks"
}
