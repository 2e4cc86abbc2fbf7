package k8s

import (
	"math"
	"slices"
	"strings"

	"busbar.dev/input/internal/num"
	"busbar.dev/internal/yamldoc"
)

// FreeNodes lists the nodes of "kubectl get nodes -o json" (or yaml) that are ready, may be scheduled on, and have all
// of their GPUs free. Pods are counted where the text has them: kubectl get nodes,pods -A -o json.
func FreeNodes(text string) ([]string, error) {
	docs, err := yamldoc.Parse(text, skipped...)
	if err != nil {
		return nil, err
	}
	x := free{used: map[string]bool{}}
	for i := range docs {
		x.object(&docs[i], 0)
	}
	return slices.DeleteFunc(x.names, func(n string) bool { return x.used[n] }), nil
}

type free struct {
	names []string
	used  map[string]bool // nodes with a pod that has a GPU
}

func (x *free) object(v *yamldoc.Value, depth int) {
	for _, item := range v.Get("items").List() {
		if depth < maxLists {
			x.object(&item, depth+1)
		}
	}
	switch v.Get("kind").Str() {
	case "Node":
		if usable(v) {
			x.names = append(x.names, v.Get("metadata", "name").Str())
		}
	case "Pod":
		phase := v.Get("status", "phase").Str()
		if node := v.Get("spec", "nodeName").Str(); node != "" && phase != "Succeeded" && phase != "Failed" && takesGPU(v) {
			x.used[node] = true
		}
	}
}

// usable reports a node that is ready, not cordoned, and offers GPUs or does not say.
func usable(v *yamldoc.Value) bool {
	if v.Get("metadata", "name").Str() == "" || v.Get("spec", "unschedulable").Str() == "true" {
		return false
	}
	for _, c := range v.Get("status", "conditions").List() {
		if c.Get("type").Str() == "Ready" && c.Get("status").Str() != "True" {
			return false
		}
	}
	for _, taint := range v.Get("spec", "taints").List() {
		// Nodes with GPUs mostly have a taint of their own, which their jobs tolerate.
		if key := taint.Get("key").Str(); strings.HasPrefix(key, "node.kubernetes.io/") ||
			strings.HasPrefix(key, "node-role.kubernetes.io/") {
			return false
		}
	}
	offered := v.Get("status", "allocatable")
	for _, c := range offered.Map() {
		if isGPU(c.Key) && num.Or(c.Text, 1, math.MaxInt, 0) > 0 {
			return true
		}
	}
	return len(offered.Map()) == 0
}

func takesGPU(v *yamldoc.Value) bool {
	for _, kind := range []string{"containers", "initContainers"} {
		for _, container := range v.Get("spec", kind).List() {
			for _, r := range []string{"requests", "limits"} {
				for _, c := range container.Get("resources", r).Map() {
					if isGPU(c.Key) && c.Text != "0" {
						return true
					}
				}
			}
		}
	}
	return false
}
