package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/unit"
)

// One GPU has many names: its index (NVML's, what nvidia-smi prints), its PCI
// address, its UUID, and the ordinal a process knows it by; a MIG slice stands for
// part of it. The model keeps the first three. This file translates ordinals, which
// exist only in the environment of a process.

// GPURef is a GPU of a node, or one MIG slice of it.
type GPURef struct {
	GPU   int // index into NodeType.Devices
	Slice int // index into its GPUInfo.Slices; -1 for the whole GPU
}

// Ordinals is what a process sees: GPUs[1] is its cuda:1.
type Ordinals struct {
	GPUs []GPURef
	// Notes say what hid GPUs from the process.
	Notes []string
	// Doubt says why the order may be another; "" where the rules leave none.
	Doubt string
}

func (o *Ordinals) notef(format string, args ...any) {
	o.Notes = append(o.Notes, fmt.Sprintf(format, args...))
}

// CUDAOrder lists the GPUs that a CUDA process sees under the variables
// CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER of env. A variable that is not in
// env is unset; one that is empty hides every GPU. ids are the host's, for UUIDs
// that a joined cluster keeps there; nil where the devices have their own.
//
// The list ends before the first entry that names no GPU, and a GPU named twice
// leaves none (seen with driver 580). Where a MIG slice is visible CUDA shows the
// first one and nothing else.
func CUDAOrder(t *NodeType, ids []Identity, env map[string]string) Ordinals {
	var o Ordinals
	all := o.enumerate(t, env["CUDA_DEVICE_ORDER"])
	o.GPUs = all
	if list, ok := env["CUDA_VISIBLE_DEVICES"]; ok {
		o.GPUs = o.pick(t, ids, list, all)
	}
	for _, r := range o.GPUs {
		n := len(gpuSlices(t, r.GPU))
		if n == 0 {
			continue
		}
		if r.Slice < 0 {
			r.Slice = 0
		}
		if len(o.GPUs) > 1 || n > 1 {
			o.notef("CUDA shows a process one MIG slice and nothing beside it: slice %d of %s", r.Slice, t.Devices[r.GPU].Name)
		}
		o.GPUs = []GPURef{r}
		break
	}
	return o
}

// enumerate lists all GPUs as CUDA numbers them: by PCI address, or the fastest
// first, which is the default and differs only where GPUs do.
func (o *Ordinals) enumerate(t *NodeType, order string) []GPURef {
	all := o.byAddress(t)
	if order == "PCI_BUS_ID" {
		return all
	}
	models := map[string]bool{}
	for _, r := range all {
		models[t.Devices[r.GPU].Model.Value] = true
	}
	switch {
	case len(all) < 2 || len(models) == 1 && !models[""]:
		return all
	case len(models) == 1:
		o.doubt("nobody said which GPUs these are; taken as equal")
		return all
	}
	o.doubt("unlike GPUs, and CUDA puts the one first that it takes for the fastest; CUDA_DEVICE_ORDER=PCI_BUS_ID makes " +
		"it certain")
	for _, f := range []Dtype{FP32, FP16, BF16} {
		known := func(r GPURef) bool { return peakOf(t, r, f) > 0 }
		if !slices.ContainsFunc(all, func(r GPURef) bool { return !known(r) }) {
			slices.SortStableFunc(all, func(a, b GPURef) int { return cmp.Compare(peakOf(t, b, f), peakOf(t, a, f)) })
			break
		}
	}
	return all
}

func (o *Ordinals) doubt(s string) {
	if o.Doubt != "" {
		s = o.Doubt + "; " + s
	}
	o.Doubt = s
}

// peakOf is a GPU's dense peak in a format, 0 unknown.
func peakOf(t *NodeType, r GPURef, f Dtype) unit.FLOPS {
	if g := t.Devices[r.GPU].GPU; g != nil {
		return g.Peak[f].Value
	}
	return 0
}

// byAddress lists the GPUs by PCI address, which is also the order of NVML's
// index.
func (o *Ordinals) byAddress(t *NodeType) []GPURef {
	ids := t.Of(GPU)
	pci, index := true, true
	for _, i := range ids {
		pci = pci && t.Devices[i].PCI != ""
		index = index && t.Devices[i].Index >= 0
	}
	switch {
	case pci:
		slices.SortStableFunc(ids, func(a, b int) int { return comparePCI(t.Devices[a].PCI, t.Devices[b].PCI) })
	case index:
		slices.SortStableFunc(ids, func(a, b int) int { return t.Devices[a].Index - t.Devices[b].Index })
	case len(ids) > 1:
		o.doubt("neither PCI addresses nor indexes of all GPUs are known; taken in the order of the source")
	}
	out := make([]GPURef, len(ids))
	for k, i := range ids {
		out[k] = GPURef{i, -1}
	}
	return out
}

// comparePCI orders addresses; a domain above ffff has more digits.
func comparePCI(a, b PCI) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(string(a), string(b))
}

// pick applies the list of CUDA_VISIBLE_DEVICES.
func (o *Ordinals) pick(t *NodeType, ids []Identity, list string, all []GPURef) []GPURef {
	const name = "CUDA_VISIBLE_DEVICES"
	out := []GPURef{}
	seen := map[GPURef]bool{}
	kind := byte(0)
	for k, entry := range strings.Split(list, ",") {
		if k > len(all)+64 {
			break
		}
		entry = strings.TrimSpace(entry)
		number := entry[:numberEnd(entry)]
		r, how, ok := visible(t, ids, entry, number, all)
		if ok && kind != 0 && how != kind {
			ok = false // CUDA does not read on where indexes turn into UUIDs
		}
		if !ok {
			if entry != "" {
				o.notef("%s: entry %d (%q) names no GPU; it and what follows are hidden", name, k+1, entry)
			} else if k == 0 {
				o.notef("%s hides every GPU", name)
			}
			return out
		}
		if seen[r] {
			o.notef("%s: entry %d (%q) names a GPU again; CUDA then starts with none", name, k+1, entry)
			return []GPURef{}
		}
		kind, seen[r] = how, true
		out = append(out, r)
		if how == '#' && number != entry {
			o.notef("%s: entry %d (%q): CUDA reads %s and no further", name, k+1, entry, number)
			break
		}
	}
	return out
}

// numberEnd is the length of the number that a text begins with: CUDA takes 0abc
// for 0.
func numberEnd(s string) int {
	n := len(s) - len(strings.TrimLeft(s, "+-"))
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// visible resolves one entry, number being the part that can be an index: how is
// '#' for an index, 'G' or 'M' for a UUID.
func visible(t *NodeType, ids []Identity, entry, number string, all []GPURef) (r GPURef, how byte, ok bool) {
	if strings.HasPrefix(entry, "GPU-") || strings.HasPrefix(entry, "MIG-") {
		r, ok := byUUID(t, ids, entry)
		if !ok || !slices.ContainsFunc(all, func(a GPURef) bool { return a.GPU == r.GPU }) {
			return GPURef{}, 0, false
		}
		return r, entry[0], true
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 || n >= len(all) {
		return GPURef{}, 0, false
	}
	return all[n], '#', true
}

// byUUID finds a GPU or a slice by its UUID or the beginning of it, as far as
// that is unique.
func byUUID(t *NodeType, ids []Identity, id string) (found GPURef, ok bool) {
	stem, rest, _ := strings.Cut(id, "-")
	if rest == "" {
		return found, false
	}
	n := 0
	for _, i := range t.Of(GPU) {
		if stem == "GPU" && hasUUIDPrefix(uuidOf(t, ids, i), id) {
			found, n = GPURef{i, -1}, n+1
		}
		for k, s := range gpuSlices(t, i) {
			if stem == "MIG" && hasUUIDPrefix(s.UUID, id) {
				found, n = GPURef{i, k}, n+1
			}
		}
	}
	return found, n == 1
}

// hasUUIDPrefix compares hexadecimal digits in either case; the stem is exact.
func hasUUIDPrefix(id, prefix string) bool {
	return len(id) >= len(prefix) && id[:4] == prefix[:4] && strings.EqualFold(id[:len(prefix)], prefix)
}

func uuidOf(t *NodeType, ids []Identity, gpu int) string {
	for _, id := range ids {
		if id.Device == t.Devices[gpu].Name && id.UUID != "" {
			return id.UUID
		}
	}
	return t.Devices[gpu].UUID
}

func gpuSlices(t *NodeType, gpu int) []Slice {
	if g := t.Devices[gpu].GPU; g != nil {
		return g.Slices
	}
	return nil
}
