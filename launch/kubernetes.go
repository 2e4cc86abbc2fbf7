package launch

import (
	"fmt"
	"strings"

	"busbar.dev/cluster"
)

// mostLeaves bounds the jobs of a set.
const mostLeaves = 64

// oneJob is why one indexed Job says all that a JobSet with a job for every leaf switch would; "" where it does not:
// the pods of each job get the ranks that the plan has below its leaf, so that rings cross between leaves as seldom as
// they can.
func (w *writer) oneJob() string {
	leaves := len(w.Plan.Leaves)
	switch {
	case len(w.Hosts) == 1:
		return "there is one node; job.yaml starts it"
	case leaves == 0:
		return "which nodes share a leaf switch is not known, or the order of ranks comes back to a leaf; job.yaml " +
			"starts the same ranks"
	case leaves == 1 && w.Plan.Rails > 1:
		return fmt.Sprintf("all nodes are below the same %d leaf switches (rails); job.yaml says the same", w.Plan.Rails)
	case leaves == 1:
		return "all nodes are below one leaf switch; job.yaml says the same"
	case leaves > mostLeaves:
		return fmt.Sprintf("%d leaf switches; a set has %d jobs at most here", leaves, mostLeaves)
	}
	return ""
}

// Program is the script of the framework that pods start; "" is a word to replace.
func (w *writer) Program() string {
	if w.Framework == nil {
		return ""
	}
	return "/plan/" + w.Framework.Name + ".sh"
}

// RDMA tells that nodes reach each other by NICs which pods have from a device plugin.
func (w *writer) RDMA() bool {
	for _, t := range w.Plan.kinds {
		for i := range t.Devices {
			if nic := t.Devices[i].NIC; nic != nil && nic.Kind != cluster.Ethernet && len(w.Hosts) > 1 {
				return true
			}
		}
	}
	return false
}

// pods are those of one job.
type pods struct {
	*writer
	Master string // address of the first pod
	First  int    // number of the job's first node
	Near   bool   // there is one job, whose pods prefer one leaf
	Below  []Host
}

// Pods are those of a job of all nodes.
func (w *writer) Pods() pods { return pods{w, w.Name() + "-0." + w.Name(), 0, true, w.Hosts} }

// PodsBelow are those of the job of a leaf switch.
func (w *writer) PodsBelow(leaf int) pods {
	first := 0
	for _, n := range w.Plan.Leaves[:leaf] {
		first += n
	}
	hosts := w.Hosts[first : first+w.Plan.Leaves[leaf]]
	return pods{w, w.Name() + "-leaf0-0-0." + w.Name(), first, false, hosts}
}

// Spec is their specification, its lines moved to the right.
func (p pods) Spec(by int) string {
	text, _ := fill("pods.yaml", p)
	pad := strings.Repeat(" ", by)
	return pad + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+pad)
}
