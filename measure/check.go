package measure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/engine"
	"busbar.dev/engine/bench"
	"busbar.dev/finding"
	"busbar.dev/internal/failure"
	"busbar.dev/result"
	"busbar.dev/result/pairs"
)

// Check is the verdict on nodes.
type Check struct {
	By       string            `json:"by"`     // nccl, rdma or tcp: what the pairs were measured with
	ByWhy    string            `json:"by_why"` // why with nothing better, empty for nccl and rdma
	Nodes    []CheckNode       `json:"nodes"`
	Hostlist string            `json:"hostlist"` // of the unhealthy nodes, as Slurm writes them
	Findings []finding.Finding `json:"findings"`
	Expected string            `json:"expected"` // what nodes were compared with
	Notes    []string          `json:"notes"`
	Rounds   int               `json:"rounds"`
	Partners int               `json:"partners"` // that every node was measured with, at least, of those that answered
	Seconds  float64           `json:"seconds"`
}

// CheckNode is the verdict on a node.
type CheckNode struct {
	Host    string   `json:"host"`
	Verdict string   `json:"verdict"` // healthy, incomplete: what was tested is well, unhealthy, suspect: one of its pairs is slow, unreachable
	Reasons []string `json:"reasons"`
	Kinds   []string `json:"kinds,omitempty"` // of the findings behind the reasons
	// Untested is what was not tested of an incomplete node, and why.
	Untested []string `json:"untested,omitempty"`
	GPUs     int      `json:"gpus"`        // that were looked at
	Loaded   int      `json:"gpus_loaded"` // of them, that ran a product and a copy
	Ports    int      `json:"ports"`       // of RDMA, that were looked at
}

// Passed tells that nothing speaks against a node.
func (n *CheckNode) Passed() bool { return n.Verdict == "healthy" || n.Verdict == "incomplete" }

// Wrong reports nodes against which something speaks.
func (d *Check) Wrong() bool {
	return slices.ContainsFunc(d.Nodes, func(n CheckNode) bool { return !n.Passed() })
}

// Checker is how nodes are looked at: each by itself, then pairs of them.
type Checker struct {
	With   Programs
	Helper string // busbar-gpu; empty is searched
	NoLoad bool   // GPUs' state is read alone
	Plan   bench.PairPlan
	Rounds int // of disjoint pairs; 0 is as many as usual
	Expect Expectation
	Show   func(text string) // is told how far it is
	Told   func(CheckNode)   // on every rank of a job: the verdict on its own node; nil for nobody
	// By is what pairs of ranks are measured by: best, rdma or tcp; and Perftest the folder of perftest's programs.
	By, Perftest string
	// Hosts are reached by SSH, where the nodes are no ranks of a job.
	Hosts []string
	SSH   string

	first time.Duration // for a pair of the first round; 0 is the sweep's
}

// sumTime is how long a sum over all nodes may take, and ports to be read again.
const sumTime = 20 * time.Second

// AloneTime is the longest that the check of one node takes: it looks at itself, and at its ports again.
const AloneTime = lookTime + sumTime + 10*time.Second // to start, and to read the cluster

// Ranks checks the nodes of a job, one rank each. Rank 0 leads and has the verdict; the others follow, and have none.
func (c *Checker) Ranks(ctx context.Context, s *engine.Star) (*Check, error) {
	m := member{
		star: s, plan: c.Plan, rdma: NewPerftest(c.With, c.Perftest), look: c.look, told: c.Told,
		later: func() *Node {
			list, _ := hardwarePorts(c.With.Sys)
			return &Node{Ports: list}
		},
	}
	if s.Rank() != 0 {
		return nil, m.serve(ctx)
	}
	h := newHub(m)
	defer h.end()
	return c.lead(ctx, h)
}

// lead is the check as rank 0 leads it: each node by itself, pairs, and a sum over the nodes whose pairs all came to an
// end.
func (c *Checker) lead(ctx context.Context, h *hub) (*Check, error) {
	begin := time.Now()
	nodes := make([]*Node, len(h.members))
	var once, ported []int // one rank a host, and those with ports
	for r, m := range h.members {
		if nodes[r] = (&Node{}); !slices.ContainsFunc(once, func(o int) bool { return h.members[o].Host == m.Host }) {
			once = append(once, r)
		}
	}
	c.Show("nodes")
	for i, x := range h.askAll(ctx, once, lookTime, func(int) order { return order{Do: "look"} }) {
		if x.Node != nil {
			nodes[once[i]] = x.Node
		}
	}
	for r, n := range nodes {
		if n.Host = h.members[r].Host; len(n.Ports) > 0 {
			ported = append(ported, r)
		}
	}
	got, err := c.pairs(ctx, h)
	if err != nil {
		return nil, failure.Cannot(err)
	}
	c.Show("a sum over all nodes")
	if whole := got.whole(h); len(whole) > 1 {
		replies, why := h.together(ctx, whole, sumTime, func(int) order { return order{Do: "sum"} })
		for i, r := range replies {
			if why == "" && r.Wrong > 0 {
				nodes[whole[i]].found(finding.Finding{
					ID: "sum-wrong", Severity: finding.Error,
					Text: fmt.Sprintf("%d elements of a sum over all nodes were wrong there", r.Wrong),
				})
			}
		}
		if why != "" {
			got.notes = append(got.notes, "a sum over all nodes came to no end, though all pairs did: "+why)
		}
	}
	for i, x := range h.askAll(ctx, ported, sumTime, func(int) order { return order{Do: "later"} }) {
		if x.Node != nil { // for errors that traffic shows
			nodes[ported[i]].later = x.Node.Ports
		}
	}
	c.Show("")
	for r, n := range nodes {
		n.Away = h.away(r)
	}
	if text := bench.Crowded(h.members); text != "" {
		got.notes = append(got.notes, text)
	}
	d := c.judge(nodes, got)
	d.tell(ctx, h)
	d.Seconds = time.Since(begin).Seconds()
	return d, nil
}

// tell tells every rank the verdict on its node.
func (d *Check) tell(ctx context.Context, h *hub) {
	var here []int
	for r := range h.members {
		if h.away(r) == "" {
			here = append(here, r)
		}
	}
	h.askAll(ctx, here, sumTime, func(i int) order {
		at := slices.IndexFunc(d.Nodes, func(n CheckNode) bool { return n.Host == h.members[here[i]].Host })
		return order{Do: "verdict", Verdict: &d.Nodes[at]}
	})
}

// checkedPairs are what the pairs of a check showed.
type checkedPairs struct {
	sweep    *Sweep
	table    *pairs.Table
	by, why  string            // what they were measured by, and why by nothing better
	expected string            // what they were held against, beside each other
	findings []finding.Finding // beyond those of the table
	notes    []string
	rank     func(member int) int // of the table
}

// checkRails bounds the rounds of a check over all rails together; a port has a few partners at least.
const (
	checkRails    = 32
	checkPartners = 4
)

// pairs measures them by RDMA where all hosts have it, and else over TCP.
func (c *Checker) pairs(ctx context.Context, h *hub) (*checkedPairs, error) {
	m, why := c.overRDMA(ctx, h)
	switch {
	case m == nil && c.By == result.RDMA:
		return nil, errors.New("pairs cannot be measured by RDMA: " + why)
	case m == nil:
		x := &checkedPairs{why: why, rank: func(r int) int { return r }, sweep: h.overTCP(c.Show)}
		err := x.measure(ctx, Rounds(len(h.members), c.Rounds))
		x.by = h.by
		return x, err
	}
	rounds := cmp.Or(c.Rounds, max(checkPartners, checkRails/len(m.rails)))
	x := &checkedPairs{
		by: result.RDMA, sweep: m.sweep(c.Show), findings: m.absent, rank: func(e int) int { return m.ends[e].rank },
		expected: ", and the prediction of a stream by RDMA with its error bar",
	}
	if err := x.measure(ctx, m.rounds(rounds)); err != nil {
		return nil, err
	}
	for _, f := range m.document(x.table).Findings {
		if f.Kind == rdmaSlowRail {
			x.findings = append(x.findings, f)
		}
	}
	x.notes = m.notes
	return x, nil
}

func (x *checkedPairs) measure(ctx context.Context, rounds [][][2]int) (err error) {
	x.table, err = x.sweep.Measure(ctx, rounds)
	return err
}

// overRDMA asks hosts for their ports; nil where pairs are not measured by them, and why. A host without an active port
// where most have one is no reason: it is a finding.
func (c *Checker) overRDMA(ctx context.Context, h *hub) (*rails, string) {
	if c.By == "tcp" {
		return nil, "as was asked for"
	}
	hosts := map[string]bool{}
	for _, m := range h.members {
		hosts[m.Host] = true
	}
	if len(hosts) < max(2, len(h.members)) {
		return nil, "there are not two or more hosts with one rank each"
	}
	replies := h.claimPorts(ctx)
	with, came := 0, 0
	for r, x := range replies {
		switch {
		case x.lost:
			continue // it is unreachable, which others say
		case len(x.Ports) > 0:
			with++
		case !x.Portless || x.Failed == "":
			return nil, fmt.Sprintf("RDMA is not measured: %s: %s", h.members[r].Host, x.Failed)
		}
		came++
	}
	if with < 2 || 2*with <= came {
		return nil, fmt.Sprintf("%d of %d nodes have an active RDMA port", with, came)
	}
	m := &rails{hub: h, brief: true, expect: c.Expect}
	m.collect(replies)
	m.absent = slices.DeleteFunc(m.absent, func(f finding.Finding) bool { return replies[f.Ranks[0]].lost })
	return m, ""
}

// whole are the ranks whose pairs all came to an end.
func (x *checkedPairs) whole(h *hub) (list []int) {
	bad := map[int]bool{}
	for _, m := range x.table.Cells {
		if m.Failed != "" {
			bad[x.rank(m.From)], bad[x.rank(m.To)] = true, true
		}
	}
	for i := range x.table.Names {
		if x.sweep.out(i) {
			bad[x.rank(i)] = true
		}
	}
	for r := range h.members {
		if !bad[r] && h.away(r) == "" {
			list = append(list, r)
		}
	}
	return list
}

// judge joins what nodes say of themselves with what their pairs show. A finding about a node is a reason against it.
// Of a slow pair whose nodes are both well otherwise nothing says which one it is, and of what is about none in
// particular any may be the cause: those are suspect.
func (c *Checker) judge(nodes []*Node, got *checkedPairs) *Check {
	d := &Check{By: got.by, ByWhy: got.why, Rounds: got.sweep.Turns, Partners: got.table.Partners()}
	c.Expect.unknownHosts(nodes)
	c.Expect.countGPUs(nodes)
	c.Expect.judgePorts(nodes)
	c.Expect.slowGPUs(nodes)
	d.Findings = ownFindings(nodes)
	for _, f := range got.sweep.Findings(got.table) {
		for _, r := range f.Ranks {
			if host := got.table.Hosts[r]; !slices.Contains(f.Nodes, host) {
				f.Nodes = append(f.Nodes, host)
			}
		}
		d.Findings = append(d.Findings, f)
	}
	d.Findings = append(d.Findings, got.findings...)
	d.Notes = append(notesOf(nodes), got.notes...)
	d.Expected = c.Expect.heldAgainst(nodes) + got.expected

	reasons, kinds := map[string][]string{}, map[string][]string{}
	for _, f := range d.Findings {
		for _, host := range f.Nodes {
			if f.Severity != finding.Note {
				kind, _, _ := strings.Cut(cmp.Or(string(f.Kind), f.ID), ":")
				kinds[host] = append(kinds[host], kind)
			}
			if f.Severity != finding.Note && !pairs.OfPair(f.Kind) {
				reasons[host] = append(reasons[host], strings.Replace(f.Text, " of "+host, "", 1)) // whose name stands above
			}
		}
	}
	// Where rank 0 is the only one that answers, it is rather its fault than everybody's.
	alone := len(nodes) > 2 && !slices.ContainsFunc(nodes[1:], func(n *Node) bool { return n.Away == "" })
	if alone {
		reasons[nodes[0].Host] = append(reasons[nodes[0].Host], "no other node reaches it, where the check meets: its "+
			"network, its firewall, or the address that the others were given")
	}
	suspect := d.suspects(nodes, reasons)
	var bad []string
	for _, n := range nodes {
		if slices.ContainsFunc(d.Nodes, func(o CheckNode) bool { return o.Host == n.Host }) {
			continue
		}
		v := CheckNode{
			Host: n.Host, Verdict: "healthy", Reasons: append([]string{}, reasons[n.Host]...), GPUs: n.GPUs,
			Loaded: len(n.Loads), Ports: len(n.Ports),
		}
		switch {
		case n.Away != "":
			v.Verdict, v.Reasons = "unreachable", []string{n.Away}
		case len(v.Reasons) > 0:
			v.Verdict = "unhealthy"
		case len(suspect[n.Host]) > 0:
			v.Verdict, v.Reasons = "suspect", suspect[n.Host]
		default:
			if v.Untested = n.untested(got); len(v.Untested) > 0 {
				v.Verdict = "incomplete"
			}
		}
		if !v.Passed() {
			v.Kinds = slices.Compact(slices.Sorted(slices.Values(kinds[n.Host])))
		}
		if v.Verdict == "unhealthy" || v.Verdict == "unreachable" && !alone {
			bad = append(bad, n.Host)
		}
		d.Nodes = append(d.Nodes, v)
	}
	d.Hostlist = cluster.FormatSlurmHosts(bad)
	return d
}

// untested is what of a node was not tested. Where no GPU is known, only that nobody could look for some.
func (n *Node) untested(got *checkedPairs) []string {
	var alone []string
	if len(got.table.Hosts) > 1 && !slices.ContainsFunc(got.table.Cells, func(m pairs.Measure) bool {
		return m.Failed == "" && (got.table.Hosts[m.From] == n.Host || got.table.Hosts[m.To] == n.Host)
	}) {
		alone = []string{"no pair with another node was measured"}
	}
	if n.GPUs == 0 {
		return append(slices.DeleteFunc(slices.Clone(n.Notes), func(text string) bool {
			return !strings.HasPrefix(text, "GPUs were not checked")
		}), alone...)
	}
	list := slices.Clone(n.Notes)
	unloaded := func(text string) bool { return strings.HasPrefix(text, "products") }
	if len(n.Loads) == 0 && !slices.ContainsFunc(list, unloaded) {
		list = append(list, "products and memory were not measured, by --no-load or for want of busbar-gpu")
	}
	if got.by == "tcp" && len(n.Ports) > 0 && len(got.table.Names) > 1 {
		list = append(list, "RDMA between nodes was not measured: "+got.why)
	}
	return append(list, alone...)
}

// suspects are the findings that no node explains, by node.
func (d *Check) suspects(nodes []*Node, reasons map[string][]string) map[string][]string {
	suspect := map[string][]string{}
	for _, f := range d.Findings {
		hosts := f.Nodes
		if len(hosts) == 0 {
			for _, n := range nodes {
				hosts = append(hosts, n.Host)
			}
		}
		known := func(host string) bool { return len(reasons[host]) > 0 }
		if f.Severity == finding.Note || len(f.Nodes) > 0 && (!pairs.OfPair(f.Kind) || slices.ContainsFunc(hosts, known)) {
			continue
		}
		for _, host := range hosts {
			suspect[host] = append(suspect[host], f.Text)
		}
	}
	return suspect
}

// ownFindings are what nodes say of themselves, by the name that pairs know them by. Two ranks of a host find the same.
func ownFindings(nodes []*Node) []finding.Finding {
	list := []finding.Finding{}
	for _, n := range nodes {
		for _, f := range n.Findings {
			if len(f.Nodes) > 0 {
				f.Where = strings.Replace(f.Where, f.Nodes[0], n.Host, 1)
				f.Text = strings.Replace(f.Text, " of "+f.Nodes[0], " of "+n.Host, 1)
			}
			f.Nodes = []string{n.Host}
			if !slices.ContainsFunc(list, func(o finding.Finding) bool {
				return o.Nodes[0] == n.Host && o.ID == f.ID && o.Text == f.Text
			}) {
				list = append(list, f)
			}
		}
	}
	return list
}

// notesOf makes one note of those that several hosts have, with the hosts as a list.
func notesOf(nodes []*Node) []string {
	list := []string{}
	hosts := map[string][]string{}
	none := true
	for _, n := range nodes {
		none = none && n.GPUs == 0
		for _, text := range n.Notes {
			none = none && !strings.HasPrefix(text, "GPUs were not checked")
			if hosts[text] == nil {
				list = append(list, text)
			}
			if !slices.Contains(hosts[text], n.Host) {
				hosts[text] = append(hosts[text], n.Host)
			}
		}
	}
	for i, text := range list {
		list[i] = fmt.Sprintf("%s: %s", cluster.FormatSlurmHosts(hosts[text]), text)
	}
	if none {
		list = append(list, "no GPUs were checked: healthy says nothing about GPUs here")
	}
	return list
}

// heldAgainst says what nodes were held against.
func (x Expectation) heldAgainst(nodes []*Node) string {
	const always = "each GPU's own limits, and the median of all pairs"
	gpus, loads := 0, 0
	for _, n := range nodes {
		gpus += n.GPUs
		loads += len(n.Loads)
	}
	switch {
	case gpus == 0:
		return "the median of all pairs"
	case loads == 0:
		return always
	case x.Cluster != nil && x.Cluster.Calibration != nil:
		return "the calibrated prediction of products and memory with its error bar, " + always
	}
	return "the model's prediction of products and memory with its error bar, " + always
}
