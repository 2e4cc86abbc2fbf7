// Package audit finds what will hurt on a cluster, from the model alone: each
// finding has a reason and a fix.
//
// It looks at node types, not nodes: a finding that holds for every node of a
// type is one finding whose Where is a hostlist. It measures nothing and knows
// no job; what a given collective will suffer is the predictor's business.
package audit

import (
	"cmp"
	_ "embed" // for the rules
	"fmt"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/finding"
	"busbar.dev/internal/csvtable"
)

// Run audits a cluster. The findings come most severe first and in a fixed order.
func Run(c *cluster.Cluster) []finding.Finding {
	a := &auditor{c: c, hosts: make([][]string, len(c.Types))}
	for _, h := range c.Hosts {
		if h.Type >= 0 && h.Type < len(a.hosts) {
			a.hosts[h.Type] = append(a.hosts[h.Type], h.Name)
		}
	}
	for i, t := range c.Types {
		if len(a.hosts[i]) == 0 {
			continue
		}
		n := newNode(t, cluster.FormatHosts(a.hosts[i]), len(c.Hosts))
		n.list = a.hosts[i]
		a.nodeNICs(n)
		a.nodeSymmetry(n)
		a.nodeLinks(n)
		a.nodePairs(n)
	}
	a.mergeShared()
	a.said()
	a.unlikeNodes()
	a.counters()
	a.outOfService()
	a.network()
	slices.SortStableFunc(a.found, func(x, y finding.Finding) int {
		return cmp.Or(finding.BySeverity(x, y), telling(x.ID)-telling(y.ID))
	})
	return a.found
}

// Unchecked lists what the rules ask for and no source says, with what says it: a cluster of which little is known has
// few findings.
func Unchecked(c *cluster.Cluster) []string {
	var models, tree, rates bool
	for _, t := range c.Types {
		tree = tree || t.Tree == cluster.Assumed
		for i := range t.Devices {
			d := &t.Devices[i]
			models = models || d.Kind == cluster.GPU && !d.Model.Known()
			rates = rates || d.Kind == cluster.NIC && (d.NIC == nil || !d.NIC.Rate().Known())
		}
	}
	bare := slices.ContainsFunc(c.Hosts, func(h cluster.Host) bool { return h.Type < 0 })
	var list []string
	for _, x := range []struct {
		lacks bool
		text  string
	}{
		{bare, "the inside of hosts (busbar map on a node)"},
		{models, "GPU models (nvidia-smi -L)"},
		{rates, "rates of NICs (on the node: ibstat DEVICE for InfiniBand, ethtool INTERFACE for Ethernet; busbar map " +
			"reads both)"},
		{tree, "the PCIe tree, which is assumed (busbar map on the node)"},
		{len(c.Hosts) > 1 && len(c.Network.Links) == 0, "the network (ibnetdiscover, scontrol show topology)"},
		{partial(c), "uplinks and oversubscription (a scan of the whole fabric)"},
		{c.Network.TrunksUnknown(), "rates between switches (ibnetdiscover)"},
	} {
		if x.lacks {
			list = append(list, x.text)
		}
	}
	return list
}

// partial reports that a text shows a part of a network only, so that what is not there tells nothing.
func partial(c *cluster.Cluster) bool {
	return slices.ContainsFunc(c.Warnings,
		func(w cluster.Warning) bool { return strings.Contains(w.Text, cluster.Partial) })
}

const namedEach = 4 // more devices are named as a range

type auditor struct {
	c     *cluster.Cluster
	hosts [][]string // per type
	found []finding.Finding
	// shared are GPUs that share NICs, by node type.
	shared groups[sharing, sharedNIC]
}

func (a *auditor) addFinding(id string, s finding.Severity, where, text, fix string) {
	a.found = append(a.found, finding.Finding{ID: id, Severity: s, Where: where, Text: text, Fix: fix})
}

//go:embed rules.csv
var ruleTable string

// rule is what is said of a fault, a row of rules.csv.
type rule struct {
	Rule     string           `csv:"rule"`
	Severity finding.Severity `csv:"severity"`
	Text     string           `csv:"text"`
	Fix      string           `csv:"fix"`
}

var rules = csvtable.Once[rule]("rules.csv", ruleTable)

// say adds what a rule says of a place.
func (a *auditor) say(name, where string, args ...any) {
	r := rules()[slices.IndexFunc(rules(), func(r rule) bool { return r.Rule == name })]
	id, _, _ := strings.Cut(name, "/")
	a.addFinding(id, r.Severity, where, fmt.Sprintf(r.Text, args...), r.Fix)
}

// said are findings of the sources themselves, each with what says it.
func (a *auditor) said() {
	for _, w := range a.c.Warnings {
		if s, err := finding.ParseSeverity(w.Severity); err == nil && w.ID != "" {
			a.found = append(a.found, finding.Finding{
				ID: w.ID, Severity: s, Where: w.Where, Text: w.Text, Fix: w.Fix,
				Evidence: []finding.Quote{{File: w.Source, Text: w.Text}},
			})
		}
	}
}

// node is a type with what the rules ask of it again and again.
type node struct {
	t          *cluster.NodeType
	hosts      string // hostlist
	list       []string
	clusterLen int
	gpus, nics []int
	rails      []int
	near       map[int][]int // GPU → nearest NICs
	class      map[int]cluster.Class
}

func newNode(t *cluster.NodeType, hosts string, clusterLen int) *node {
	n := &node{
		t: t, hosts: hosts, clusterLen: clusterLen, gpus: t.Of(cluster.GPU), nics: t.Of(cluster.NIC), rails: t.Rails(),
		near: map[int][]int{}, class: map[int]cluster.Class{},
	}
	for _, g := range t.Nearest() {
		n.near[g.GPU], n.class[g.GPU] = g.NICs, g.Class
	}
	return n
}

func (n *node) where(d int) string { return n.hosts + "/" + n.t.Devices[d].Title() }

// nearestOf lists the NICs nearest to any of some GPUs.
func (n *node) nearestOf(gpus []int) []int {
	var all []int
	for _, g := range gpus {
		all = append(all, n.near[g]...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// chipToChip reports a GPU that its processor reaches without PCIe, as on Grace.
func (n *node) chipToChip(g int) bool {
	return slices.ContainsFunc(n.t.Links,
		func(l cluster.Link) bool { return l.Kind == cluster.C2C && (l.A == g || l.B == g) })
}

// names lists devices for people: "gpu0, gpu1, gpu2", and many as "gpu[0-7]".
func (n *node) names(ids []int) string {
	s := make([]string, len(ids))
	for i, d := range ids {
		s[i] = n.t.Devices[d].Title()
	}
	if len(s) > namedEach {
		return cluster.FormatHosts(s)
	}
	return strings.Join(s, ", ")
}
