package cluster

import (
	"fmt"
	"strconv"
	"strings"
)

// FindGPU resolves any name of a GPU of a node: the model's own ("gpu3"), the
// index of nvidia-smi ("3", "GPU3", "GPU 3"), a PCI address in any spelling, a
// UUID or the unique beginning of one ("GPU-…", "MIG-…"), a MIG slice as
// nvidia-smi numbers it ("0:1"), and the number a process uses ("cuda:1",
// "hip:1", "local:1"), which needs the process's order (see CUDAOrder). ids are
// the host's identities, for UUIDs that a joined cluster keeps there.
func FindGPU(t *NodeType, ids []Identity, name string, order []GPURef) (GPURef, error) {
	name = strings.TrimSpace(name)
	if kind, num, ok := strings.Cut(name, ":"); ok && isOrdinalKind(kind) {
		return byOrdinal(name, num, order)
	}
	if strings.HasPrefix(name, "GPU-") || strings.HasPrefix(name, "MIG-") {
		return byUUID(t, ids, name)
	}
	if i := t.ByName(name); i >= 0 && t.Devices[i].Kind == GPU {
		return GPURef{i, -1}, nil
	}
	number := strings.TrimSpace(strings.TrimPrefix(strings.ToLower(name), "gpu"))
	if n, err := strconv.Atoi(number); err == nil {
		return byIndex(t, name, n, -1)
	}
	if g, s, ok := strings.Cut(number, ":"); ok && !strings.ContainsAny(s, ":.") {
		n, err1 := strconv.Atoi(g)
		k, err2 := strconv.Atoi(s)
		if err1 == nil && err2 == nil && k >= 0 {
			return byIndex(t, name, n, k)
		}
	}
	if p, err := ParsePCI(name); err == nil {
		if i := t.ByPCI(p); i >= 0 && t.Devices[i].Kind == GPU {
			return GPURef{i, -1}, nil
		}
		return GPURef{}, fmt.Errorf("no GPU at PCI address %s; %s", p, listGPUs(t))
	}
	return GPURef{}, fmt.Errorf("no GPU %q; %s", name, listGPUs(t))
}

func isOrdinalKind(s string) bool {
	switch strings.ToLower(s) {
	case "cuda", "hip", "local":
		return true
	}
	return false
}

func byOrdinal(name, num string, order []GPURef) (GPURef, error) {
	n, err := strconv.Atoi(num)
	if err != nil || n < 0 || n >= len(order) {
		return GPURef{}, fmt.Errorf("no GPU %q; the process sees %d", name, len(order))
	}
	return order[n], nil
}

// byIndex finds a GPU by NVML's index and, with slice ≥ 0, a MIG slice of it.
func byIndex(t *NodeType, name string, index, slice int) (GPURef, error) {
	for _, i := range t.Of(GPU) {
		if t.Devices[i].Index != index {
			continue
		}
		if slice < 0 {
			return GPURef{i, -1}, nil
		}
		for k, s := range gpuSlices(t, i) {
			if s.Index == slice {
				return GPURef{i, k}, nil
			}
		}
		return GPURef{}, fmt.Errorf("no MIG slice %q; %s has %d", name, t.Devices[i].Name, len(gpuSlices(t, i)))
	}
	return GPURef{}, fmt.Errorf("no GPU %q; %s", name, listGPUs(t))
}

func listGPUs(t *NodeType) string {
	ids := t.Of(GPU)
	if len(ids) == 0 {
		return "the node has none"
	}
	return fmt.Sprintf("the node has %d, %s to %s", len(ids), t.Devices[ids[0]].Name, t.Devices[ids[len(ids)-1]].Name)
}

// GPUOfRank finds where a rank runs when ranks fill the nodes one after another,
// perNode on each: the position of its node, and the GPU that its local id means
// to it.
func GPUOfRank(rank, perNode int, order []GPURef) (node int, gpu GPURef, err error) {
	if rank < 0 || perNode < 1 {
		return 0, GPURef{}, fmt.Errorf("rank %d of %d a node; expected a rank from 0 and at least one a node", rank, perNode)
	}
	gpu, err = byOrdinal(fmt.Sprintf("rank %d", rank), strconv.Itoa(rank%perNode), order)
	return rank / perNode, gpu, err
}
