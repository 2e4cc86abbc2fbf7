package cluster

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// CUDAOrder lists the GPUs, as devices of a node, that a CUDA process sees under the variables CUDA_VISIBLE_DEVICES and
// CUDA_DEVICE_ORDER of env: the second one is its cuda:1. A variable that is not in env is unset; one that is empty
// hides every GPU. The list ends before the first entry that names no GPU. doubt says why the order may be another; ""
// where the rules leave none.
//
// One GPU has several names: its index (NVML's, what nvidia-smi prints), its PCI address, its UUID, and this ordinal,
// which the model does not keep.
func CUDAOrder(t *NodeType, env map[string]string) (gpus []int, doubt string) {
	all, doubt := numberedGPUs(t, env["CUDA_DEVICE_ORDER"])
	list, ok := env["CUDA_VISIBLE_DEVICES"]
	if !ok {
		return all, doubt
	}
	for entry := range strings.SplitSeq(list, ",") {
		at := visibleGPU(t, all, strings.TrimSpace(entry))
		if at < 0 {
			break
		}
		if slices.Contains(gpus, at) {
			return nil, doubt // CUDA then starts with none
		}
		gpus = append(gpus, at)
	}
	return gpus, doubt
}

// numberedGPUs lists all GPUs by PCI address, which is also the order of NVML's index. CUDA puts the fastest first,
// unless it is told not to, which differs only where GPUs do.
func numberedGPUs(t *NodeType, order string) (ids []int, doubt string) {
	ids = t.Of(GPU)
	pci, index := true, true
	models := map[string]bool{}
	for _, i := range ids {
		pci = pci && t.Devices[i].PCI != ""
		index = index && t.Devices[i].Index >= 0
		models[t.Devices[i].Model.Value] = true
	}
	slices.SortStableFunc(ids, func(i, k int) int {
		a, b := &t.Devices[i], &t.Devices[k]
		switch {
		case pci: // a domain above ffff has more digits
			return cmp.Or(len(a.PCI)-len(b.PCI), cmp.Compare(a.PCI, b.PCI))
		case index:
			return a.Index - b.Index
		}
		return 0
	})
	switch {
	case len(ids) < 2:
	case !pci && !index:
		doubt = "neither PCI addresses nor indexes of all GPUs are known; taken in the order of the source"
	case len(models) > 1 && order != "PCI_BUS_ID":
		doubt = "unlike GPUs, and CUDA puts the one first that it takes for the fastest; CUDA_DEVICE_ORDER=PCI_BUS_ID " +
			"makes it certain"
	}
	return ids, doubt
}

// visibleGPU is the GPU that an entry of CUDA_VISIBLE_DEVICES names, by its number or the beginning of its UUID, as far
// as that is unique; -1 none.
func visibleGPU(t *NodeType, all []int, entry string) int {
	if n, err := strconv.Atoi(entry); err == nil {
		if n < 0 || n >= len(all) {
			return -1
		}
		return all[n]
	}
	found := -1
	for _, i := range all {
		if strings.HasPrefix(entry, "GPU-") && strings.HasPrefix(strings.ToLower(t.Devices[i].UUID), strings.ToLower(entry)) {
			if found >= 0 {
				return -1
			}
			found = i
		}
	}
	return found
}
