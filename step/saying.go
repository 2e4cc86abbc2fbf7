package step

import (
	"fmt"
	"strings"

	"busbar.dev/workload"
)

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
