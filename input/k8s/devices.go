package k8s

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/board"
	"busbar.dev/input/internal/num"
	"busbar.dev/unit"
)

// Limits of belief: GPUs and NICs in one node, devices over all kinds of node.
const (
	maxGPUs    = 256
	maxNICs    = 64
	maxDevices = 100_000
)

// Resources that count GPUs, with the maker.
type gpuResource struct{ name, vendor string }

var gpuResources = []gpuResource{
	{"nvidia.com/gpu", "nvidia"},
	{"amd.com/gpu", "amd"},
	{"gpu.intel.com/i915", "intel"},
	{"gpu.intel.com/xe", "intel"},
	{"habana.ai/gaudi", "intel"},
}

func isGPU(resource string) bool {
	return strings.HasPrefix(resource, "nvidia.com/mig-") ||
		slices.ContainsFunc(gpuResources, func(r gpuResource) bool { return r.name == resource })
}

// Labels that name the GPU model, best first.
var modelLabels = []string{
	"nvidia.com/gpu.product", "amd.com/gpu.product-name", "beta.amd.com/gpu.product-name",
	"cloud.google.com/gke-accelerator", "k8s.amazonaws.com/accelerator",
}

// inside is what is known of a node's devices; equal ones share a type.
type inside struct {
	vendor, model, modelFrom string
	gpus                     int
	memory                   unit.Bytes
	sm                       int
	machine                  string
	efa, rdma                int
}

// types gives every node of which something is known a type.
func (o *objects) types() {
	seen := map[inside]int{}
	devices := 0
	for i := range o.nodes {
		in := o.look(&o.nodes[i])
		if in.gpus == 0 && in.efa == 0 && in.rdma == 0 {
			continue
		}
		at, ok := seen[in]
		if !ok {
			if devices += in.gpus + in.efa + in.rdma; devices > maxDevices {
				o.warn(&o.nodes[i], "more than %d devices in nodes that differ; what is in this one was skipped", maxDevices)
				continue
			}
			at = len(o.f.Types)
			seen[in] = at
			o.f.Types = append(o.f.Types, in.nodeType())
		}
		o.f.Hosts[i].Type = at
	}
	if n := &o.nodes[0]; len(o.f.Types)+len(o.f.Network.Switches) == 0 && len(n.capacity.Map()) > 0 {
		o.warn(n, "no capacity for GPUs (nvidia.com/gpu, amd.com/gpu): the node has none, or no device plugin runs on it")
	}
}

// look reads the devices of a node from its labels and capacities.
func (o *objects) look(n *node) inside {
	in := inside{machine: cmp.Or(n.label("node.kubernetes.io/instance-type"), n.label("nvidia.com/gpu.machine"))}
	o.lookGPUs(n, &in)
	if v := n.capacity.Get("vpc.amazonaws.com/efa").Str(); v != "" {
		in.efa = o.count(n, "vpc.amazonaws.com/efa", v, maxNICs)
	}
	for _, c := range n.capacity.Map() {
		if strings.HasPrefix(c.Key, "rdma/") {
			in.rdma += o.count(n, c.Key, c.Text, 16)
		}
	}
	if in.rdma > maxNICs {
		in.rdma = 0
	}
	return in
}

func (o *objects) lookGPUs(n *node, in *inside) {
	for _, r := range gpuResources {
		if v := n.capacity.Get(r.name).Str(); v != "" {
			in.vendor = r.vendor
			in.gpus = o.count(n, r.name, v, maxGPUs)
			break
		}
	}
	if v := n.label("nvidia.com/gpu.count"); v != "" {
		labelled := o.count(n, "nvidia.com/gpu.count", v, maxGPUs)
		if in.gpus != 0 && in.gpus != labelled { // of GPUs that are shared by time a node offers more
			o.warn(n, "capacity nvidia.com/gpu is %d, label nvidia.com/gpu.count %d; kept the label", in.gpus, labelled)
		}
		in.gpus, in.vendor = labelled, "nvidia"
	}
	for _, c := range n.capacity.Map() {
		if strings.HasPrefix(c.Key, "nvidia.com/mig-") && c.Text != "0" {
			o.warn(n, "capacity %s %s: MIG slices, which no GPU count here includes", c.Key, c.Text)
		}
	}
	if in.gpus == 0 {
		return
	}
	for _, k := range modelLabels {
		if v := n.label(k); v != "" {
			in.model, in.modelFrom = strings.TrimSuffix(v, "-SHARED"), "label "+k
			break
		}
	}
	if whole, slice, ok := strings.Cut(in.model, "-MIG-"); ok {
		o.warn(n, "%d MIG slices (%s) of %s are counted as GPUs", in.gpus, slice, whole)
		in.model = whole
	}
	in.memory = unit.Bytes(num.Or(n.label("nvidia.com/gpu.memory"), 1, 1<<24, 0)) * unit.MiB
	minor := num.Or(n.label("nvidia.com/gpu.compute.minor"), 0, 9, -1)
	if major := num.Or(n.label("nvidia.com/gpu.compute.major"), 1, 99, 0); major > 0 && minor >= 0 {
		in.sm = major*10 + minor
	}
}

// count reads a quantity. What is negative, no number or above the limit, as 1k is, counts as none, with a warning.
func (o *objects) count(n *node, what, s string, most int) int {
	v := num.Or(s, 0, most, -1)
	if v < 0 {
		o.warn(n, "%s is %s; expected a number of devices up to %d; not counted", what, s, most)
	}
	return max(v, 0)
}

func (in *inside) nodeType() *cluster.NodeType {
	t := &cluster.NodeType{Name: cmp.Or(in.machine, strings.TrimPrefix(fmt.Sprintf("%s:%d", in.model, in.gpus), ":"))}
	for i := range in.gpus {
		d := board.GPU(in.vendor, i)
		d.Model, d.GPU.SM = board.Fact(in.model, in.modelFrom), in.sm
		d.GPU.Memory = board.Fact(in.memory, "label nvidia.com/gpu.memory")
		t.Add(d)
	}
	for i := range in.efa + in.rdma {
		d := board.NIC("")
		if d.Index = i; i < in.efa {
			d.NIC.Kind = cluster.EFA
		}
		t.Add(d)
	}
	return t
}
