package query

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/engine/bench"
	"busbar.dev/finding"
	"busbar.dev/internal/failure"
	"busbar.dev/result"
	"busbar.dev/result/pairs"
	"busbar.dev/unit"
)

// Check looks at nodes before a job starts on them: each by itself, then every pair, then all together.
type Check struct {
	Size   Size   `default:"4M" placeholder:"SIZE" help:"Message size for bandwidth (default 4M over TCP, 64M over NCCL)."`
	Warm   int    `short:"w" name:"warmup" default:"2" least:"0" help:"Warm-up iterations per pair (default 2)."`
	Iters  int    `name:"iters" default:"10" least:"1" help:"Measured iterations per pair (default 10)."`
	Helper string `name:"busbar-gpu" placeholder:"PATH" help:"The program busbar-gpu, which reads GPUs' state (default: beside busbar, or in PATH). GPUs are only checked with it."`
	Hosts  string `placeholder:"HOSTLIST" help:"Check these hosts through ssh and NCCL, by busbar-gpu on each (default: the ranks of this job, over TCP)."`
	SSH    string `name:"ssh" default:"ssh -o BatchMode=yes" placeholder:"COMMAND" help:"With --hosts: what reaches a host (default ssh -o BatchMode=yes)."`
	// Cluster is what the nodes are: its calibration says what their GPUs and pairs do when they are well.
	Cluster  string `short:"c" names:"cluster" placeholder:"CLUSTER" help:"The cluster that is checked: GPUs, and pairs by NCCL or RDMA, are compared with its predictions, with its calibration where it has one. A node with fewer GPUs, or fewer or slower active RDMA ports, is unhealthy, and so is one whose name the cluster does not have. RDMA ports do not count for a Slurm job on one node (default: GPUs as the catalogue has them, ports as most nodes have them)."`
	By       string `default:"best" enum:"best,rdma,tcp" help:"What pairs of a job's ranks are measured by: best is RDMA where every host has perftest and most have an active port, else TCP (default best)."`
	Perftest string `placeholder:"DIR" help:"Folder of the perftest programs on every host (default: PATH)."`
	Rounds   int    `least:"1" placeholder:"N" help:"Rounds of disjoint pairs, which is how many others each node is measured with (default all up to 128 nodes, 64 of more)."`
	NoLoad   bool   `name:"no-load" help:"Do not run products and copies on GPUs; read their state alone."`
}

// CheckDoc is the answer to Check.
type CheckDoc struct {
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
	Verdict string   `json:"verdict"` // healthy, unhealthy, suspect: one of its pairs is slow, unreachable
	Reasons []string `json:"reasons"`
	GPUs    int      `json:"gpus"`        // that were looked at
	Loaded  int      `json:"gpus_loaded"` // of them, that ran a product and a copy
	Ports   int      `json:"ports"`       // of RDMA, that were looked at
}

// Wrong reports nodes that are not healthy.
func (d *CheckDoc) Wrong() bool {
	return slices.ContainsFunc(d.Nodes, func(n CheckNode) bool { return n.Verdict != "healthy" })
}

// checkLocal is what a node says of itself.
type checkLocal struct {
	Host     string            `json:"host"`
	GPUs     int               `json:"gpus"`
	Findings []finding.Finding `json:"findings"`
	Notes    []string          `json:"notes"`
	Wrong    int               `json:"wrong"` // elements of a sum over all nodes
	Measured []checkGPU        `json:"measured"`
	Away     string            `json:"-"`      // why it does not answer
	Asked    bool              `json:"asked"`  // its GPUs were looked for
	Hidden   int               `json:"hidden"` // GPUs that this process may not use
	Model    string            `json:"model"`
	Node     string            `json:"node"` // its name in Slurm or Kubernetes, where they say it
	// Ports are those of RDMA, Later what they were at the end.
	Ports     []checkPort `json:"ports"`
	PortsRead bool        `json:"ports_read"`
	Later     []checkPort `json:"-"`
}

// RunOn checks the nodes of a job, one rank each, over TCP.
func (q Check) RunOn(ctx context.Context, env Env, with Programs, on Ranks[*CheckDoc]) (doc *CheckDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	p := bench.PairPlan{Warm: q.Warm, Iters: q.Iters, Small: 8}
	if p.Large, err = q.Size.bytes(); err != nil {
		return nil, fmt.Errorf("--size: %w", err)
	}
	x, err := q.expects(ctx, env)
	if err != nil {
		return nil, err
	}
	run, err := q.rdmaInCheck(with)
	if err != nil {
		return nil, err
	}
	t := on.task()
	valid := func(n int) error {
		if n == 1 { // it has no pairs, and is looked at by itself
			return nil
		}
		return p.Validate(n)
	}
	t.Valid, t.Memory, t.Advice = valid, func(int) unit.Bytes { return p.Memory() }, "a smaller --size or fewer nodes"
	t.Same = fmt.Sprint("check", p)
	t.Star = func(s *engine.Star, keep func([]byte) error) error {
		w := checkWorker{q: &q, star: s, plan: p, with: with, rdma: run}
		if s.Rank() != 0 {
			return w.serve(ctx)
		}
		h := newCheckHub(w)
		if doc, err = q.lead(ctx, env, h, x); err != nil {
			return err
		}
		h.end()
		return on.answer(doc, keep)
	}
	err = on.run(ctx, t)
	return doc, err
}

// lead is the check as rank 0 leads it: each node by itself, pairs, and a sum over the nodes whose pairs all came to an end.
func (q *Check) lead(ctx context.Context, env Env, h *checkHub, x expectation) (*CheckDoc, error) {
	begin := time.Now()
	n := len(h.members)
	orders := map[int]checkOrder{}
	hosts := map[string]bool{}
	for r := range n {
		if host := h.members[r].Host; !hosts[host] { // once a host
			hosts[host], orders[r] = true, checkOrder{Do: "local"}
		}
	}
	env.progress("nodes")
	locals := make([]checkLocal, n)
	for r, x := range h.ask(ctx, orders, checkLocalTime) {
		if x.Local != nil {
			locals[r] = *x.Local
		}
	}
	got, err := q.pairs(ctx, env, h, x)
	if err != nil {
		return nil, failure.Cannot(err)
	}
	env.progress("a sum over all nodes")
	note := h.sumWhole(ctx, got.whole(h), locals)
	h.portsLater(ctx, locals)
	env.progress("")
	for r := range locals {
		locals[r].Host, locals[r].Away = h.members[r].Host, h.lost[r]
	}
	for _, f := range got.findings {
		for _, r := range f.Ranks {
			locals[r].Findings = append(locals[r].Findings, f)
		}
	}
	doc := newCheckDoc(got.by, locals, got.table, x)
	doc.ByWhy = got.why
	if got.by == result.RDMA {
		doc.Expected += ", and the prediction of a stream by RDMA with its error bar"
	}
	for _, f := range got.findings {
		if len(f.Ranks) == 0 { // of all
			doc.suspectAll(f)
		}
	}
	for _, text := range append(got.notes, note, bench.Crowded(h.members)) {
		if text != "" {
			doc.Notes = append(doc.Notes, text)
		}
	}
	doc.Rounds, doc.Partners, doc.Seconds = got.turns.turns, got.table.Partners(), time.Since(begin).Seconds()
	return doc, nil
}

// checkLocalTime is how long a node may take to look at itself, and checkSumTime how long a sum over all.
const (
	checkLocalTime = 30 * time.Second
	checkSumTime   = 20 * time.Second
)

// sumWhole adds a vector over the nodes whose pairs all came to an end; what else there is to say of it is a note.
func (h *checkHub) sumWhole(ctx context.Context, list []int, locals []checkLocal) string {
	if len(list) < 2 {
		return ""
	}
	wrong, why := h.sum(ctx, list, checkSumTime)
	if why != "" {
		return "a sum over all nodes came to no end, though all pairs did: " + why
	}
	for r, n := range wrong {
		locals[r].Wrong = n
	}
	return ""
}

// portsLater reads ports again, for errors that traffic shows.
func (h *checkHub) portsLater(ctx context.Context, locals []checkLocal) {
	orders := map[int]checkOrder{}
	for r, l := range locals {
		if len(l.Ports) > 0 && h.lost[r] == "" {
			orders[r] = checkOrder{Do: "ports"}
		}
	}
	if len(orders) == 0 {
		return
	}
	for r, x := range h.ask(ctx, orders, checkSumTime) {
		if x.Local != nil {
			locals[r].Later = x.Local.Ports
		}
	}
}

// local is what this node says of itself.
func (q *Check) local(ctx context.Context, with Programs) checkLocal {
	host, _ := os.Hostname()
	r := with.Health(host, q.Helper).Read(ctx)
	l := checkLocal{Host: host, GPUs: len(r.GPUs), Findings: r.Findings, Notes: r.Notes, Asked: true, Hidden: r.Hidden, Node: nodeName(os.Getenv)}
	if len(r.GPUs) > 0 {
		l.Model = r.GPUs[0].Name
	}
	l.Ports, l.PortsRead = checkPorts(with.Sys)
	if q.NoLoad || r.By != "busbar-gpu" || len(r.GPUs) == 0 {
		return l
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	team, _, err := (&GPURanks{Helper: q.Helper}).workers(ctx, with, nil, nil, false)
	if err != nil {
		l.Notes = append(l.Notes, fmt.Sprintf("products and memory were not measured: %v", err))
		return l
	}
	defer team.End()
	var notes []string
	l.Measured, notes = measureGPUs(ctx, team, r.GPUs)
	l.Notes = append(l.Notes, notes...)
	return l
}

// expects is what GPUs and pairs are held against.
func (q *Check) expects(ctx context.Context, env Env) (x expectation, err error) {
	if q.Cluster != "" {
		x.cluster, err = LoadAtLeast(ctx, env, q.Cluster, 1)
		x.oneNode = oneNodeJob(os.Getenv)
	}
	return x, err
}

// sumOver adds a vector over all nodes of a group and counts what is wrong of it here.
func sumOver(ctx context.Context, g *engine.Group) (wrong int, err error) {
	n := g.Size()
	op := coll.Op{Kind: coll.AllReduce, Type: coll.Int32, Bytes: 1 << 20}
	s, err := g.Pick(op)
	if err != nil {
		return 0, err
	}
	send, recv := make([]byte, op.Bytes), make([]byte, op.Bytes)
	for i := 0; i < len(send); i += 4 {
		send[i], send[i+1] = byte(g.Rank()+1), byte((g.Rank()+1)>>8)
	}
	if _, err := g.Run(ctx, s, op, engine.Buffers{Send: send, Recv: recv}); err != nil {
		return 0, err
	}
	want := uint32(n * (n + 1) / 2)
	for i := 0; i < len(recv); i += 4 {
		if uint32(recv[i])|uint32(recv[i+1])<<8|uint32(recv[i+2])<<16|uint32(recv[i+3])<<24 != want {
			wrong++
		}
	}
	return wrong, nil
}

// newCheckDoc joins what nodes say of themselves with what their pairs show.
func newCheckDoc(by string, locals []checkLocal, table *pairs.Table, x expectation) *CheckDoc {
	var measured []checkGPU
	x.unknownHosts(locals)
	x.countGPUs(locals)
	x.portFindings(locals)
	for _, l := range locals {
		for _, g := range l.Measured {
			if len(l.Measured) <= l.GPUs { // its own, by the name that pairs know
				g.Host = l.Host
			}
			measured = append(measured, g)
		}
	}
	d := &CheckDoc{By: by, Findings: []finding.Finding{}, Notes: []string{}, Expected: x.heldAgainst(len(measured))}
	reasons, suspect := map[string][]string{}, map[string][]string{}
	said := map[string]bool{} // two ranks of a host find the same
	for _, l := range locals {
		for _, f := range l.Findings {
			text := reason(f)
			f.Where, f.Nodes = strings.Replace(f.Where, nodesOf(f), l.Host, 1), []string{l.Host}
			key := l.Host + "\n" + f.ID + "\n" + f.Text
			if said[key] {
				continue
			}
			said[key] = true
			d.Findings = append(d.Findings, f)
			if f.Severity != finding.Note {
				reasons[l.Host] = append(reasons[l.Host], text)
			}
		}
		if l.Wrong > 0 {
			reasons[l.Host] = append(reasons[l.Host], fmt.Sprintf("%d elements of a sum over all nodes were wrong there", l.Wrong))
		}
	}
	d.Notes = append(d.Notes, together(locals)...)
	looked := func(l checkLocal) bool {
		return l.GPUs > 0 || slices.ContainsFunc(l.Notes, func(n string) bool { return strings.HasPrefix(n, "GPUs were not checked") })
	}
	if !slices.ContainsFunc(locals, looked) {
		d.Notes = append(d.Notes, "no GPUs were checked: healthy says nothing about GPUs here")
	}
	for _, f := range x.slowGPUs(measured) {
		d.Findings = append(d.Findings, f)
		reasons[f.Nodes[0]] = append(reasons[f.Nodes[0]], reason(f))
	}
	d.judgePairs(table, reasons, suspect)
	var bad []string
	alone := len(locals) > 2 && !slices.ContainsFunc(locals[1:], func(l checkLocal) bool { return l.Away == "" })
	if alone {
		reasons[locals[0].Host] = append(reasons[locals[0].Host], "no other node reaches it, where the check meets: its network, its firewall, or the address that the others were given")
	}
	for _, l := range locals {
		if slices.ContainsFunc(d.Nodes, func(n CheckNode) bool { return n.Host == l.Host }) {
			continue
		}
		n := CheckNode{Host: l.Host, Verdict: "healthy", Reasons: orEmpty(reasons[l.Host]), GPUs: l.GPUs, Loaded: len(l.Measured), Ports: len(l.Ports)}
		switch {
		case l.Away != "":
			n.Verdict, n.Reasons = "unreachable", []string{l.Away}
			if !alone {
				bad = append(bad, l.Host)
			}
		case len(n.Reasons) > 0:
			n.Verdict = "unhealthy"
			bad = append(bad, l.Host)
		case len(suspect[l.Host]) > 0:
			n.Verdict, n.Reasons = "suspect", suspect[l.Host]
		}
		d.Nodes = append(d.Nodes, n)
	}
	d.Hostlist = cluster.FormatSlurmHosts(bad)
	return d
}

// reason is a finding's text below the name of its host, which it need not say again.
func reason(f finding.Finding) string {
	if host := nodesOf(f); host != "" {
		return strings.Replace(f.Text, " of "+host, "", 1)
	}
	return f.Text
}

func nodesOf(f finding.Finding) string {
	if len(f.Nodes) == 0 {
		return ""
	}
	return f.Nodes[0]
}
