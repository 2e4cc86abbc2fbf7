package launch

import (
	"fmt"
	"slices"

	"busbar.dev/workload"
)

// writable reports what was chosen for a job that no file says.
func writable(j *workload.Job) error {
	if j.Framework == nil {
		return nil
	}
	core := slices.Contains([]string{"megatron", "nemo"}, j.Framework.Name)
	usual := workload.Loss(j.Framework.Loss)
	switch {
	case j.Precision.Low() && !core && j.Framework.Name != "torchtitan":
		return fmt.Errorf("precision %s: the files for %s train in bf16; megatron's, nemo's and torchtitan's say it",
			j.Precision,
			j.Framework.Title)
	case j.Optimizer != workload.AdamDefault && !(core && j.Optimizer == workload.AdamNarrow):
		return fmt.Errorf("optimizer=%s: the files for %s do not say it; megatron's and nemo's say optimizer=adam-bf16",
			j.Optimizer, j.Framework.Title)
	case j.HostLayers > 0 && !core:
		return fmt.Errorf("host.layers=%d: the files for %s do not say it; megatron's and nemo's do", j.HostLayers,
			j.Framework.Title)
	case j.Loss != usual && !(j.Loss == workload.LossWhole && usual == workload.LossDefault):
		return fmt.Errorf("loss=%s: the files for %s do not say it", j.Loss, j.Framework.Title)
	}
	return nil
}
