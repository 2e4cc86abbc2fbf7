package step

import (
	"fmt"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/nccl"
)

// GPUOf is the GPU of the catalogue that the first rank of a layout runs on.
func GPUOf(c *cluster.Cluster, l nccl.Layout) (hardware.GPUModel, error) {
	name := strings.TrimSpace(c.TypeOf(l[0].Host).Devices[l[0].GPU].Model.Value)
	if name == "" {
		return hardware.GPUModel{}, fmt.Errorf("%s does not say which GPUs it has; name them with --gpu", c.Name)
	}
	m, ok := hardware.GPUByName(name)
	if !ok {
		return m, fmt.Errorf("GPU %q is not in the catalogue (busbar hardware lists it); name its like with --gpu", name)
	}
	return m, nil
}

// SlowestGPU is the GPU that a job on a layout is priced by: where the layout has several models, that with the slowest
// products and the least memory of any, since every rank waits for all. note says so then.
func SlowestGPU(c *cluster.Cluster, l nccl.Layout) (slow hardware.GPUModel, note string, err error) {
	if slow, err = GPUOf(c, l); err != nil {
		return slow, "", err
	}
	seen := map[[2]int]bool{}
	names := []string{slow.Title}
	memory := slow.Memory
	for i, r := range l {
		key := [2]int{c.Hosts[r.Host].Type, r.GPU}
		if seen[key] {
			continue
		}
		seen[key] = true
		m, err := GPUOf(c, l[i:])
		if err != nil {
			return slow, "", err
		}
		memory = min(memory, m.Memory)
		if !slices.Contains(names, m.Title) {
			names = append(names, m.Title)
		}
		if m.Peak[cluster.BF16] < slow.Peak[cluster.BF16] || m.Peak[cluster.BF16] == slow.Peak[cluster.BF16] && m.HBM < slow.HBM {
			slow = m
		}
	}
	if len(names) == 1 {
		return slow, "", nil
	}
	slow.Memory = memory
	return slow, fmt.Sprintf("GPUs differ (%s): all are taken for %s with %.0f GB, since every rank waits for the slowest", strings.Join(names, ", "), slow.Title, float64(memory)/1e9), nil
}
