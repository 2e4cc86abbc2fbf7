package hardware

import (
	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// AssumedHostMemory is the size of a node's own memory where nobody gives it: what the smaller configurations of
// servers with eight GPUs have (AWS's p4d 1.1 TB, NVIDIA's DGX A100 1 or 2 TB, by their data sheets).
const AssumedHostMemory = unit.TB

// HostMemorySize is how much memory of its own a node has, as far as it is known.
func HostMemorySize(t *cluster.NodeType) cluster.Fact[unit.Bytes] {
	var size cluster.Fact[unit.Bytes]
	for _, i := range t.Of(cluster.NUMA) {
		if cpu := t.Devices[i].CPU; cpu != nil && cpu.Memory.Value > 0 {
			sum := size.Value + cpu.Memory.Value
			size = cpu.Memory
			size.Value = sum
		}
	}
	return size
}
