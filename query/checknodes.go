package query

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/engine/health"
	"busbar.dev/finding"
	"busbar.dev/internal/words"
)

// nodeName is the name of this host in Slurm or, by the Job of --emit kube, in Kubernetes: a pod's host name is its own.
func nodeName(getenv func(string) string) string {
	return cmp.Or(getenv("BUSBAR_NODE"), getenv("SLURMD_NODENAME"))
}

// host is which host of the description a node is, or -1.
func (x expectation) host(l *checkLocal) int {
	for _, name := range []string{l.Node, l.Host} {
		short, _, _ := strings.Cut(name, ".")
		for _, name := range []string{name, short} {
			if i := x.cluster.HostIndex(name); name != "" && i >= 0 {
				return i
			}
		}
	}
	return -1
}

// named tells that the description names the hosts of a site. One node, and node0, node1, … stand for any: presets and counts make such names.
func (x expectation) named() bool {
	if len(x.cluster.Hosts) < 2 {
		return false
	}
	for i, h := range x.cluster.Hosts {
		if h.Name != "node"+strconv.Itoa(i) {
			return true
		}
	}
	return false
}

// node is what the description says of a host: under its name or, where it names none or the host has an address only, of all its nodes if they are alike.
func (x expectation) node(l *checkLocal) *cluster.NodeType {
	if x.cluster == nil || len(x.cluster.Hosts) == 0 {
		return nil
	}
	if i := x.host(l); i >= 0 {
		return x.cluster.TypeOf(i)
	}
	if _, err := netip.ParseAddr(l.Host); err != nil && x.named() {
		return nil
	}
	first := x.cluster.TypeOf(0)
	for i := range x.cluster.Hosts {
		t := x.cluster.TypeOf(i)
		if t == nil || t.Count(cluster.GPU) != first.Count(cluster.GPU) || t.Count(cluster.NIC) != first.Count(cluster.NIC) {
			return nil
		}
	}
	return first
}

// unknownHosts finds nodes that the description says nothing of: nobody knows what they should have, so that they cannot be called healthy.
func (x expectation) unknownHosts(locals []checkLocal) {
	if x.cluster == nil {
		return
	}
	for i := range locals {
		l := &locals[i]
		if l.Away != "" || !l.Asked || x.node(l) != nil {
			continue
		}
		name, names := l.Host, make([]string, len(x.cluster.Hosts))
		for i, h := range x.cluster.Hosts {
			names[i] = h.Name
		}
		if l.Node != "" && l.Node != l.Host {
			name += " (" + l.Node + ")"
		}
		text := fmt.Sprintf("%s is not among the hosts of the cluster's description, %s", name, cluster.FormatSlurmHosts(names))
		if x.host(l) >= 0 {
			text = name + " is among the hosts of the cluster's description, which does not say what it has"
		}
		l.Findings = append(l.Findings, finding.Finding{
			ID: "host-unknown", Severity: finding.Error, Confidence: 1, Where: l.Host, Nodes: []string{l.Host}, Text: text,
			Fix: "Write the description anew with busbar map, or give the one of this node's cluster with -c.",
		})
	}
}

// countGPUs finds nodes with fewer GPUs than the description has or, without one, than most nodes with GPUs of the same model.
func (x expectation) countGPUs(locals []checkLocal) {
	usual := usualGPUs(locals)
	for i := range locals {
		l := &locals[i]
		known := func(f finding.Finding) bool {
			return f.ID == health.GPUMissing || strings.HasPrefix(f.ID, "gpu-driver-")
		}
		if l.Away != "" || !l.Asked || slices.ContainsFunc(l.Findings, known) {
			continue
		}
		want, from := usual[l.Model], "most nodes have"
		if x.cluster != nil {
			t := x.node(l)
			if t == nil {
				continue
			}
			want, from = t.Count(cluster.GPU), "the cluster's description has"
		}
		if has := l.GPUs + l.Hidden; has < want {
			l.Findings = append(l.Findings, finding.Finding{
				ID: health.GPUMissing, Severity: finding.Error, Confidence: 1, Where: l.Host, Nodes: []string{l.Host},
				Text: fmt.Sprintf("%d of %s of %s were found; %s %[2]s", has, words.Plural(want, "GPU"), l.Host, from),
				Fix:  "Look at nvidia-smi -L, lspci and dmesg: a GPU that fell off the bus, a driver that is not loaded, or a description that is not this node's.",
			})
		}
	}
}

// usualGPUs is how many GPUs of a model two thirds of at least three nodes have.
func usualGPUs(locals []checkLocal) map[string]int {
	nodes, by := map[string]int{}, map[string]map[int]int{}
	for _, l := range locals {
		if l.Away != "" || !l.Asked || l.Model == "" {
			continue
		}
		nodes[l.Model]++
		if by[l.Model] == nil {
			by[l.Model] = map[int]int{}
		}
		by[l.Model][l.GPUs+l.Hidden]++
	}
	usual := map[string]int{}
	for model, counts := range by {
		for n, k := range counts {
			if nodes[model] >= 3 && 3*k >= 2*nodes[model] {
				usual[model] = n
			}
		}
	}
	return usual
}
