package launch

import (
	"fmt"
	"strings"

	"busbar.dev/workload"
)

// mesh is the plan's groups for PyTorch, the slowest dimension first.
func (w *writer) mesh() (string, string) {
	s := w.p.Job.Parallel
	if reason := w.jobless(); reason != "" {
		return "", reason
	}
	type dim struct {
		name string
		size int
	}
	replicas := []dim{{"dp", s.DP}}
	if s.ZeRO > 0 && s.Shard > 1 && s.Shard < s.DP && s.DP%s.Shard == 0 && s.CP == 1 {
		replicas = []dim{{"dp_replicate", s.DP / s.Shard}, {"dp_shard", s.Shard}}
	}
	dims := append([]dim{{"pp", s.PP}}, replicas...)
	if s.Order == workload.TensorPipelineData {
		dims = append(replicas, dim{"pp", s.PP})
	}
	dims = append(dims, dim{"cp", s.CP}, dim{"tp", s.TP})
	var names, sizes []string
	for _, d := range dims {
		if d.size > 1 || d.name == "dp" {
			names = append(names, fmt.Sprintf("%q", d.name))
			sizes = append(sizes, fmt.Sprint(d.size))
		}
	}
	return w.header("The plan's groups of ranks as a PyTorch device mesh (2.2 and later); the last dimension's ranks "+
		"are neighbours.") + fmt.Sprintf(`from torch.distributed.device_mesh import init_device_mesh

mesh = init_device_mesh("cuda", (%s,), mesh_dim_names=(%s,))
`, strings.Join(sizes, ", "), strings.Join(names, ", ")), ""
}
