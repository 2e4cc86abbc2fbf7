package query

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/engine/bench"
	"busbar.dev/engine/device"
	"busbar.dev/engine/health"
	"busbar.dev/engine/ranks"
	"busbar.dev/finding"
	"busbar.dev/input/sysfs"
	"busbar.dev/internal/counter"
	"busbar.dev/internal/failure"
	"busbar.dev/internal/stats"
	"busbar.dev/internal/words"
	"busbar.dev/nccl"
	"busbar.dev/predict"
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

// lead is the check as rank 0 leads it: each node by itself, pairs, and a sum over the nodes whose pairs all came to an
// end.
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
	l := checkLocal{
		Host: host, GPUs: len(r.GPUs), Findings: r.Findings, Notes: r.Notes, Asked: true, Hidden: r.Hidden,
		Node: nodeName(os.Getenv),
	}
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
			g.Host = l.Host // its own, by the name that pairs know
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
			reasons[l.Host] = append(reasons[l.Host],
				fmt.Sprintf("%d elements of a sum over all nodes were wrong there", l.Wrong))
		}
	}
	d.Notes = append(d.Notes, together(locals)...)
	looked := func(l checkLocal) bool {
		return l.GPUs > 0 ||
			slices.ContainsFunc(l.Notes, func(n string) bool { return strings.HasPrefix(n, "GPUs were not checked") })
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
		reasons[locals[0].Host] = append(reasons[locals[0].Host], "no other node reaches it, where the check meets: its "+
			"network, its firewall, or the address that the others were given")
	}
	for _, l := range locals {
		if slices.ContainsFunc(d.Nodes, func(n CheckNode) bool { return n.Host == l.Host }) {
			continue
		}
		n := CheckNode{
			Host: l.Host, Verdict: "healthy", Reasons: orEmpty(reasons[l.Host]), GPUs: l.GPUs, Loaded: len(l.Measured),
			Ports: len(l.Ports),
		}
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

// nodeName is the name of this host in Slurm or, by the Job of --emit kube, in Kubernetes: a pod's host name is its
// own.
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

// named tells that the description names the hosts of a site. One node, and node0, node1, … stand for any: presets
// and counts make such names.
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

// node is what the description says of a host: under its name or, where it names none or the host has an address only,
// of all its nodes if they are alike.
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

// unknownHosts finds nodes that the description says nothing of: nobody knows what they should have, so that they
// cannot be called healthy.
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
		text := fmt.Sprintf("%s is not among the hosts of the cluster's description, %s", name,
			cluster.FormatSlurmHosts(names))
		if x.host(l) >= 0 {
			text = name + " is among the hosts of the cluster's description, which does not say what it has"
		}
		l.Findings = append(l.Findings, finding.Finding{
			ID: "host-unknown", Severity: finding.Error, Confidence: 1, Where: l.Host, Nodes: []string{l.Host}, Text: text,
			Fix: "Write the description anew with busbar map, or give the one of this node's cluster with -c.",
		})
	}
}

// countGPUs finds nodes with fewer GPUs than the description has or, without one, than most nodes with GPUs of the same
// model.
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
				Fix: "Look at nvidia-smi -L, lspci and dmesg: a GPU that fell off the bus, a driver that is not loaded, or a " +
					"description that is not this node's.",
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

// checkPort is an RDMA port as its node shows it.
type checkPort struct {
	Name     string            `json:"name"` // mlx5_0/1
	Layer    string            `json:"layer"`
	Up       bool              `json:"up"`
	State    string            `json:"state"`
	Physical string            `json:"physical"`
	Rate     unit.Rate         `json:"rate"`
	Lanes    string            `json:"lanes"`
	Counters map[string]uint64 `json:"counters"`
}

// checkPorts reads the RDMA ports of this node; false where that is not possible.
func checkPorts(root fs.FS) ([]checkPort, bool) {
	if root == nil {
		return nil, false
	}
	all, err := sysfs.Ports(root)
	var list []checkPort
	for _, p := range all {
		software := strings.HasPrefix(p.Name, "rxe") || strings.HasPrefix(p.Name, "siw")
		if p.RDMA && !software {
			list = append(list, checkPort{p.Name, p.Layer, p.Up, p.State, p.Physical, p.Rate, p.Lanes, p.Counters})
		}
	}
	return list, err == nil
}

// portFindings judge the ports of all nodes: by themselves, by what most nodes show, and by the cluster's description.
func (x expectation) portFindings(locals []checkLocal) {
	usual := usualPorts(locals)
	for i := range locals {
		l := &locals[i]
		if l.Away != "" || !l.PortsRead {
			continue
		}
		l.portsLike(usual)
		for _, p := range l.Ports {
			l.portItself(p, len(locals) > 2)
		}
		if t := x.node(l); t != nil {
			l.portsDescribed(t, x.oneNode)
		}
		for _, p := range l.Later {
			l.portCounts(p)
		}
	}
}

// portFinding adds one; a port is named once.
func (l *checkLocal) portFinding(id string, severity finding.Severity, port, format string, args ...any) {
	where := l.Host + "/" + port
	if slices.ContainsFunc(l.Findings,
		func(f finding.Finding) bool { return f.Where == where && f.Severity >= severity }) {
		return
	}
	l.Findings = append(l.Findings, finding.Finding{
		ID: id, Severity: severity, Confidence: 1, Where: where, Nodes: []string{l.Host},
		Text: fmt.Sprintf("port %s of %s ", port, l.Host) + fmt.Sprintf(format, args...),
		Fix:  "Look at ibstat and at the switch port; reseat or replace cable and transceiver.",
	})
}

// portItself judges a port by itself. One that is down may have no cable, as a second port often has.
func (l *checkLocal) portItself(p checkPort, compared bool) {
	switch {
	case p.Layer == "InfiniBand" && p.State == "INIT":
		l.portFinding("port-init", finding.Error, p.Name, "has a link, and no subnet manager has configured it (INIT)")
	case p.Up && strings.HasPrefix(p.Lanes, "1X"):
		l.portFinding("port-slow", finding.Error, p.Name, "runs on one lane: %s (%s)", p.Rate.Bits(), p.Lanes)
	case !p.Up && p.Physical != "Disabled" && !compared:
		l.portFinding("port-down", finding.Note, p.Name, "is down (%s)", p.words())
	}
}

func (p checkPort) words() string { return strings.TrimPrefix(p.Physical+", "+p.State, ", ") }

// usualPorts are the ports that are up on more than half of at least three nodes, with the rate that as many have.
func usualPorts(locals []checkLocal) map[string]unit.Rate {
	nodes := 0
	up, rates := map[string]int{}, map[string]map[unit.Rate]int{}
	for _, l := range locals {
		if l.Away != "" || !l.PortsRead {
			continue
		}
		nodes++
		for _, p := range l.Ports {
			if p.Up {
				up[p.Name]++
				if rates[p.Name] == nil {
					rates[p.Name] = map[unit.Rate]int{}
				}
				rates[p.Name][p.Rate]++
			}
		}
	}
	usual := map[string]unit.Rate{}
	for name, n := range up {
		if nodes < 3 || 2*n <= nodes {
			continue
		}
		usual[name] = 0
		for rate, n := range rates[name] {
			if 2*n > nodes {
				usual[name] = rate
			}
		}
	}
	return usual
}

// portsLike compares the ports of a node with those of most.
func (l *checkLocal) portsLike(usual map[string]unit.Rate) {
	for _, name := range slices.Sorted(maps.Keys(usual)) {
		i := slices.IndexFunc(l.Ports, func(p checkPort) bool { return p.Name == name })
		switch {
		case i < 0:
			l.portFinding("port-missing", finding.Error, name, "is missing; most nodes have it")
		case !l.Ports[i].Up:
			l.portFinding("port-down", finding.Error, name, "is down (%s); on most nodes it is up", l.Ports[i].words())
		case l.Ports[i].Rate < usual[name]*0.97:
			l.portFinding("port-slow", finding.Error, name, "runs at %s (%s); on most nodes it has %s", l.Ports[i].Rate.Bits(),
				l.Ports[i].Lanes, usual[name].Bits())
		}
	}
}

// portsDescribed compares the fastest port of each RDMA device with the NICs of the description, the fastest with the
// fastest: descriptions name NICs differently. A job on one node does not need them, so that what is wrong is a note
// there.
func (l *checkLocal) portsDescribed(t *cluster.NodeType, oneNode bool) {
	severity, why := finding.Error, "; a job over several nodes needs them"
	if oneNode {
		severity, why = finding.Note, "; this job has one node and does not need them"
	}
	var want []unit.Rate
	for _, d := range t.Devices {
		if d.Kind == cluster.NIC && d.NIC != nil && (d.NIC.Kind == cluster.InfiniBand || d.NIC.Kind == cluster.RoCE) {
			want = append(want, d.NIC.Rate().Value)
		}
	}
	fastest := map[string]checkPort{}
	var down []string
	for _, p := range l.Ports {
		device, _, _ := strings.Cut(p.Name, "/")
		if old, known := fastest[device]; p.Up && (!known || p.Rate > old.Rate) {
			fastest[device] = p
		}
		if !p.Up {
			down = append(down, p.Name)
		}
	}
	have := slices.SortedFunc(maps.Values(fastest), func(a, b checkPort) int {
		return cmp.Or(cmp.Compare(b.Rate, a.Rate), strings.Compare(a.Name, b.Name))
	})
	slices.SortFunc(want, func(a, b unit.Rate) int { return cmp.Compare(b, a) })
	if len(have) < len(want) {
		text := fmt.Sprintf("%d of %s of %s are active, as the cluster's description has them", len(have),
			words.Plural(len(want), "RDMA device"), l.Host)
		if len(down) > 0 {
			text += "; down: " + strings.Join(down, ", ")
		}
		text += why
		l.Findings = append(l.Findings, finding.Finding{
			ID: "nic-missing", Severity: severity, Confidence: 1, Where: l.Host, Nodes: []string{l.Host}, Text: text,
			Fix: "Look at ibstat and lspci: a NIC without a driver or a link, or a description that is not this node's.",
		})
	}
	for i := range min(len(have), len(want)) {
		if have[i].Rate > 0 && have[i].Rate < want[i]*0.97 {
			l.portFinding("port-slow", severity, have[i].Name, "runs at %s (%s); the cluster's description has %s",
				have[i].Rate.Bits(), have[i].Lanes, want[i].Bits())
		}
	}
}

// oneNodeJob tells that Slurm runs a job of one node here. Where nobody says, there may be several.
func oneNodeJob(getenv func(string) string) bool {
	if n := getenv("SLURM_JOB_NUM_NODES"); n != "" {
		return n == "1"
	}
	hosts, err := cluster.ParseHosts(getenv("SLURM_JOB_NODELIST"))
	return err == nil && len(hosts) == 1
}

// portCounts looks for errors that were counted while the check ran.
func (l *checkLocal) portCounts(later checkPort) {
	i := slices.IndexFunc(l.Ports, func(p checkPort) bool { return p.Name == later.Name })
	if i < 0 {
		return
	}
	if l.Ports[i].Up && !later.Up {
		l.portFinding("port-down", finding.Error, later.Name, "went down during the check (%s)", later.words())
	}
	for _, name := range slices.Sorted(maps.Keys(later.Counters)) {
		c := counter.Find(name)
		before, known := l.Ports[i].Counters[name]
		if c == nil || c.Kind != counter.Link || !known || later.Counters[name] <= before {
			continue
		}
		n := later.Counters[name] - before
		if n < 2 && c.Hourly > 2 { // one by itself is ordinary
			continue
		}
		l.portFinding("port-errors", finding.Error, later.Name, "counted %s during the check (%s: %s)",
			words.Plural(int(min(n, 1<<31)), "error"), name, c.Says)
	}
}

// Turns of a check. A pair gets some times as long as pairs take in the middle, for it may be slow. A node that came to
// no end with so many others, and with none to one, is not asked again; one that takes long with everybody rests when
// enough is known of it, for all wait for the last pair of a round. Rounds are measured again, whole, so that what is
// named and what it is compared with were measured equally often.
const (
	checkTries   = 3
	checkRounds  = 64  // of more nodes than checkAll
	checkAll     = 128 // nodes of which all pairs are measured
	checkAgain   = 16  // rounds that are measured again
	checkStrikes = 3
	// pairs of a node that holds rounds up, each of which took checkLong times as long as pairs take in the middle
	checkSlow  = 16
	checkLong  = 1.5
	checkFirst = 20 * time.Second // for a pair of the first round
	checkLeast = 3 * time.Second
	checkTimes = 6
)

// checkPairs measures pairs in turns.
type checkPairs struct {
	names, hosts []string
	away         func(rank int) bool // it does not answer, or never came
	// turn measures disjoint pairs, and says of each how long it took; 0: it came to no end.
	turn func(ctx context.Context, list [][2]int, limit time.Duration) ([]pairs.Measure, []time.Duration)
	show func(string)
	// first is how long a pair of the first round may take; 0 is checkFirst.
	first time.Duration
	// every measures all rounds again where something stands out, and not only checkAgain of them.
	every bool

	took    []time.Duration // by pairs that came to an end
	ended   map[int]bool    // ranks with such a pair
	strikes map[int]int     // how many pairs of a rank came to none
	long    map[int]int     // how many took long, of this pass
	short   map[int]int     // and how many did not
	turns   int
}

// checkSchedule is the rounds of n nodes, at most so many; 0 is as many as usual.
func checkSchedule(n, most int) [][][2]int {
	if most == 0 && n <= checkAll || most >= pairs.Count(n) {
		return pairs.Rounds(n)
	}
	most = cmp.Or(most, checkRounds)
	return pairs.Sample(n, most)
}

// measure measures rounds, and some of them again where something stands out.
func (c *checkPairs) measure(ctx context.Context, rounds [][][2]int) (*pairs.Table, error) {
	c.ended, c.strikes = map[int]bool{}, map[int]int{}
	return measureAgain(rounds, c.every, func(rounds [][][2]int) (*pairs.Table, error) { return c.pass(ctx, rounds) })
}

// measureAgain measures rounds by pass, again where something stands out, and then those pairs alone that are named;
// what is slow every time remains. Of many rounds some are repeated, and the others are not judged, unless every says
// that all are.
func measureAgain(rounds [][][2]int, every bool, pass func([][][2]int) (*pairs.Table, error)) (*pairs.Table, error) {
	table, err := pass(rounds)
	more := func(rounds [][][2]int) {
		var again *pairs.Table
		if again, err = pass(rounds); err == nil {
			table.Better(again)
		}
	}
	for try := 1; try < checkTries && err == nil && standsOut(table); try++ {
		if try == 1 && len(rounds) > checkAgain && !every {
			rounds = worstRounds(rounds, table.Findings())
			table.Keep(rounds)
		}
		more(rounds)
	}
	for try := 0; try < checkTries-1 && err == nil; try++ {
		alone := namedPairs(table.Findings())
		if len(alone) == 0 {
			break
		}
		more(alone)
	}
	return table, err
}

// namedPairs are rounds of those pairs alone that findings name: what is slow only while hosts have much else to do is
// no fault of theirs. Of many there is more to find than a few pairs, and they are left.
func namedPairs(list []finding.Finding) (rounds [][][2]int) {
	for _, f := range list {
		if f.Severity == finding.Note || !pairs.OfPair(f.Kind) {
			continue
		}
		p := [2]int{min(f.Ranks[0], f.Ranks[1]), max(f.Ranks[0], f.Ranks[1])}
		if !slices.ContainsFunc(rounds, func(r [][2]int) bool { return r[0] == p }) {
			rounds = append(rounds, [][2]int{p})
		}
	}
	return rounds[:min(len(rounds), checkAgain/2)]
}

// pass measures rounds once.
func (c *checkPairs) pass(ctx context.Context, rounds [][][2]int) (*pairs.Table, error) {
	t := &pairs.Table{Names: c.names, Hosts: c.hosts}
	c.long, c.short = map[int]int{}, map[int]int{}
	for k, round := range rounds {
		c.show(fmt.Sprintf("pairs, round %d of %d", k+1, len(rounds)))
		var list [][2]int
		for _, p := range round {
			if !c.out(p[0]) && !c.out(p[1]) {
				list = append(list, p)
			}
		}
		if len(list) == 0 {
			continue
		}
		cells, took := c.turn(ctx, list, c.limit())
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		c.turns++
		c.note(list, took)
		t.Cells = append(t.Cells, cells...)
		for _, m := range cells {
			if m.Failed == "" {
				c.ended[m.From] = true
			} else {
				c.strikes[m.From]++
			}
		}
	}
	return t, nil
}

// note remembers how long pairs took.
func (c *checkPairs) note(list [][2]int, took []time.Duration) {
	for _, d := range took {
		if d > 0 {
			c.took = append(c.took, d)
		}
	}
	mid := c.middle()
	for i, p := range list {
		count := c.short
		if took[i] > time.Duration(checkLong*float64(mid)) {
			count = c.long
		}
		count[p[0]]++
		count[p[1]]++
	}
}

// out tells nodes that are not measured any more.
func (c *checkPairs) out(rank int) bool {
	return c.away(rank) || !c.ended[rank] && c.strikes[rank] >= checkStrikes ||
		c.long[rank] >= checkSlow && c.long[rank] > 4*c.short[rank]
}

// middle is how long pairs take.
func (c *checkPairs) middle() time.Duration {
	if len(c.took) == 0 {
		return 0
	}
	list := make([]float64, len(c.took))
	for i, d := range c.took {
		list[i] = float64(d)
	}
	return time.Duration(stats.Median(list))
}

// limit is how long a pair may take.
func (c *checkPairs) limit() time.Duration {
	mid, first := c.middle(), cmp.Or(c.first, checkFirst)
	if mid == 0 {
		return first
	}
	return min(max(checkTimes*mid, checkLeast), 2*first)
}

// worstRounds are those with the pairs that findings name, and then the first ones: every node is in each of them.
func worstRounds(rounds [][][2]int, list []finding.Finding) [][][2]int {
	named := map[[2]int]int{}
	for _, f := range list {
		if f.Severity != finding.Note && pairs.OfPair(f.Kind) {
			named[[2]int{min(f.Ranks[0], f.Ranks[1]), max(f.Ranks[0], f.Ranks[1])}]++
		}
	}
	count := func(round [][2]int) (n int) {
		for _, p := range round {
			n += named[p]
		}
		return n
	}
	rounds = slices.Clone(rounds)
	slices.SortStableFunc(rounds, func(a, b [][2]int) int { return count(b) - count(a) })
	return rounds[:checkAgain]
}

// standsOut tells whether a table has more than notes.
func standsOut(t *pairs.Table) bool {
	return slices.ContainsFunc(t.Findings(), func(f finding.Finding) bool { return f.Severity != finding.Note })
}

// slowPairs holds all pairs together against the prediction of NCCL's sends and receives between two hosts: where every
// pair is slow, none stands out.
func (d *CheckDoc) slowPairs(x expectation, size unit.Bytes, team device.Team, t *pairs.Table) {
	if x.cluster == nil || len(t.Cells) == 0 || len(x.cluster.Hosts) < 2 {
		return
	}
	rate, margin, err := x.pairRate(size, team[0].Device.NCCL)
	if err != nil {
		d.Notes = append(d.Notes, fmt.Sprintf("pairs were compared with each other only: %v", err))
		return
	}
	_, mid, _ := t.Extremes(pairs.BothGBps)
	d.Expected += ", and the prediction of a pair with its error bar"
	if mid <= 0 || mid >= rate/margin {
		return
	}
	text := fmt.Sprintf("the median pair moves %.2f GB/s each way at once; the prediction says %.2f, and less than %.2f "+
		"is beyond its error bar", mid, rate, rate/margin)
	d.suspectAll(finding.Finding{ID: "pairs-slow", Severity: finding.Warn, Confidence: 1, Factor: mid / rate, Text: text})
}

// suspectAll adds a finding that any node may be the reason of.
func (d *CheckDoc) suspectAll(f finding.Finding) {
	d.Findings = append(d.Findings, f)
	for i := range d.Nodes {
		if d.Nodes[i].Verdict == "healthy" {
			d.Nodes[i].Verdict, d.Nodes[i].Reasons = "suspect", []string{f.Text}
		}
	}
}

// pairRate is what two hosts send each other at once, one GPU each, as predicted, in GB/s each way, and the error bar
// of it.
func (x expectation) pairRate(size unit.Bytes, release string) (gbps, margin float64, err error) {
	version, err := (&Env{}).parseNCCL(release)
	if err != nil {
		return 0, 0, err
	}
	l, err := nccl.Block(x.cluster, 2, 1)
	if err != nil {
		return 0, 0, err
	}
	p, err := predict.New(x.cluster, l, version, nil, nil)
	if err != nil {
		return 0, 0, err
	}
	op := coll.Op{Kind: coll.SendRecv, Bytes: size, Type: coll.Uint8}
	s, err := p.Auto(op)
	if err != nil {
		return 0, 0, err
	}
	run, err := p.Price(op, s)
	if err != nil {
		return 0, 0, err
	}
	return float64(size) / run.Time.Micros() / 1e3, run.Margin, nil
}

// together makes one note of those that several hosts have, with the hosts as a list.
func together(locals []checkLocal) []string {
	var list []string
	hosts := map[string][]string{}
	for _, l := range locals {
		for _, n := range l.Notes {
			if hosts[n] == nil {
				list = append(list, n)
			}
			if !slices.Contains(hosts[n], l.Host) {
				hosts[n] = append(hosts[n], l.Host)
			}
		}
	}
	for i, n := range list {
		list[i] = fmt.Sprintf("%s: %s", cluster.FormatSlurmHosts(hosts[n]), n)
	}
	return list
}

// judgePairs adds what pairs show: a node that is slow with everybody is unhealthy, and explains its pairs. Of a slow
// pair whose nodes are both well otherwise nothing says which one it is.
func (d *CheckDoc) judgePairs(t *pairs.Table, reasons, suspect map[string][]string) {
	list := t.Findings()
	for _, f := range list {
		d.Findings = append(d.Findings, f)
		if !pairs.OfPair(f.Kind) && f.Severity != finding.Note {
			for _, r := range f.Ranks {
				reasons[t.Hosts[r]] = append(reasons[t.Hosts[r]], f.Text)
			}
		}
	}
	for _, f := range list {
		if f.Severity == finding.Note || !pairs.OfPair(f.Kind) {
			continue
		}
		known := slices.ContainsFunc(f.Ranks, func(r int) bool { return len(reasons[t.Hosts[r]]) > 0 })
		for _, r := range f.Ranks {
			if !known {
				suspect[t.Hosts[r]] = append(suspect[t.Hosts[r]], f.Text)
			}
		}
	}
}

// checkOrder is what rank 0 asks of a node.
type checkOrder struct {
	ID    int           `json:"id"`
	Do    string        `json:"do"`   // local, ports, pair, sum, rdma-ports, rdma-serve, rdma-run, rdma-end, end
	Seat  engine.Seat   `json:"seat"` // in the group of a pair or a sum
	Limit time.Duration `json:"limit"`
	RDMA  *rdmaOrder    `json:"rdma,omitempty"`
	// with is the rank whose loss ends the order, where the asking rank itself does it; 0 is none.
	with int
}

// checkReply is what came of it.
type checkReply struct {
	ID     int              `json:"id"`
	Local  *checkLocal      `json:"local,omitempty"`
	Cells  []pairs.Measure  `json:"cells,omitempty"` // of a pair, from its first rank
	By     string           `json:"by,omitempty"`
	Counts engine.TCPCounts `json:"counts"` // of a pair that failed, as the sender
	Wrong  int              `json:"wrong,omitempty"`
	Failed string           `json:"failed,omitempty"`
	Took   time.Duration    `json:"took,omitempty"`
	Ports  []rdmaPort       `json:"ports,omitempty"` // for RDMA
	// Portless tells that RDMA failed for want of an active port, and not of programs.
	Portless bool `json:"portless,omitempty"`
	TCP      int  `json:"tcp,omitempty"` // the port of a server of perftest
}

// checkWorker does what rank 0 asks.
type checkWorker struct {
	q    *Check
	star *engine.Star
	plan bench.PairPlan
	with Programs
	rdma *rdmaWorker // of BenchRDMA
}

// serve does orders until the last.
func (w *checkWorker) serve(ctx context.Context) error {
	defer w.done()
	for {
		body, err := w.star.Next(ctx)
		if err != nil {
			return failure.Cannot(err)
		}
		o, err := w.decodeOrder(body)
		if err != nil {
			return failure.Cannot(err)
		}
		if o.Do == "end" {
			return nil
		}
		if err := w.star.Reply(w.do(ctx, o)); err != nil {
			return failure.Cannot(fmt.Errorf("a reply to rank 0: %w", err))
		}
	}
}

// done leaves nothing behind that an order started.
func (w *checkWorker) done() {
	if w.rdma != nil {
		_ = w.rdma.end(true) // rank 0 is gone, and nobody asks
		w.rdma.free()
	}
}

// do does one order. What fails is part of the answer.
func (w *checkWorker) do(ctx context.Context, o checkOrder) checkReply {
	r := checkReply{ID: o.ID}
	begin := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, o.Limit, fmt.Errorf("no end within %.3g s", o.Limit.Seconds()))
	defer cancel()
	switch {
	case o.Do == "local":
		l := w.q.local(ctx, w.with)
		r.Local = &l
		return r
	case o.Do == "ports":
		r.Local = &checkLocal{}
		r.Local.Ports, _ = checkPorts(w.with.Sys)
		return r
	case o.RDMA != nil:
		var err error
		if o.Do == "rdma-run" {
			o.RDMA.Server, err = w.star.Reached(o.RDMA.Server)
		}
		if err == nil {
			err = w.rdma.do(ctx, o.Do, o.RDMA, &r)
		}
		if err != nil {
			r.Failed = err.Error()
		}
		r.Took = time.Since(begin)
		return r
	}
	g, err := w.star.Sit(ctx, o.Seat)
	if err == nil {
		defer g.Close()
		r.By = string(g.Transport())
		if o.Do == "sum" {
			r.Wrong, err = sumOver(ctx, g)
		} else {
			var t *pairs.Table
			if t, err = bench.Pairs(ctx, g, w.plan, nil); t != nil {
				r.Cells = t.Cells
			}
			if err != nil {
				r.Counts = g.TCPCounts(1 - g.Rank())
			}
		}
	}
	if err != nil {
		r.Failed = err.Error()
		if context.Cause(ctx) != nil {
			r.Failed = context.Cause(ctx).Error()
		}
	}
	r.Took = time.Since(begin)
	return r
}

// checkHub is rank 0's side: it gives orders and waits for replies. It is a node as well.
type checkHub struct {
	checkWorker
	own     chan checkReply
	orders  int
	lost    map[int]string // ranks that do not answer any more, and why
	by      string
	members []engine.Member
	first   time.Duration // for a pair of the first round
}

func newCheckHub(w checkWorker) *checkHub {
	h := &checkHub{
		checkWorker: w, own: make(chan checkReply, 1), lost: map[int]string{}, by: string(engine.TCP),
		members: w.star.Members(), first: checkFirst,
	}
	for r := range h.members {
		m := &h.members[r]
		if m.Host == "" {
			if m.Host = ranks.HostOf(os.Getenv, r, w.star.Size()); m.Host == "" {
				m.Host = fmt.Sprintf("rank %d", r)
			}
		}
		if m.Pid == 0 {
			h.lost[r] = "it did not come: it was not started, or does not reach " + h.members[0].Host
		}
	}
	return h
}

// checkGrace is how much longer than a limit a reply may take: to notice, and to travel.
const checkGrace = 5 * time.Second

// ask gives orders, one a rank, and waits for all replies. Who does not reply in time is lost.
func (h *checkHub) ask(ctx context.Context, orders map[int]checkOrder, limit time.Duration) map[int]checkReply {
	first := h.orders
	waits := map[int]bool{}
	mine, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for r, o := range orders {
		if h.lost[r] != "" {
			continue
		}
		o.ID, o.Limit = first, limit
		waits[r] = true
		if r == 0 {
			go func() { h.own <- h.do(mine, o) }()
		} else if h.star.Order(r, o) != nil {
			h.gone(r)
			delete(waits, r)
		}
	}
	h.orders++
	replies := map[int]checkReply{}
	end := time.NewTimer(limit + checkGrace)
	defer end.Stop()
	for len(waits) > 0 {
		select {
		case r := <-h.own: // it has a limit of its own
			if why := context.Cause(mine); why != nil && ctx.Err() == nil {
				r.Failed = why.Error()
			}
			replies[0] = r
			delete(waits, 0)
		case x := <-h.star.Replies():
			if x.Err == nil && !waits[x.Rank] { // it is late
				continue
			}
			var r checkReply
			if o := orders[x.Rank]; x.Err == nil {
				o.ID = first
				if r, x.Err = o.decodeReply(x.Body); x.Err != nil {
					h.lost[x.Rank] = fmt.Sprintf("its reply cannot be: %v", x.Err)
				}
			}
			delete(waits, x.Rank)
			if x.Err == nil {
				replies[x.Rank] = r
				continue
			}
			h.gone(x.Rank)
			if orders[0].with == x.Rank { // a program that waits for one that is gone
				cancel(fmt.Errorf("%s: %s", h.members[x.Rank].Host, h.lost[x.Rank]))
			}
		case <-end.C:
			for r := range waits {
				if r != 0 {
					h.lost[r] = fmt.Sprintf("it did not answer within %.3g s", (limit + checkGrace).Seconds())
					delete(waits, r)
				}
			}
			if waits[0] {
				replies[0] = <-h.own
			}
			return replies
		}
	}
	return replies
}

// gone is that a rank's connection ended: it was killed, or is cut off.
func (h *checkHub) gone(rank int) {
	if h.lost[rank] == "" {
		h.lost[rank] = "its connection to " + h.members[0].Host + " ended during the check"
	}
}

// turn measures disjoint pairs at once.
func (h *checkHub) turn(ctx context.Context, list [][2]int,
	limit time.Duration,
) (cells []pairs.Measure, took []time.Duration) {
	orders := map[int]checkOrder{}
	for _, p := range list {
		seats := h.star.Seats(p[:])
		for i, r := range p {
			orders[r] = checkOrder{Do: "pair", Seat: seats[i]}
		}
	}
	replies := h.ask(ctx, orders, limit)
	for _, p := range list {
		a, okA := replies[p[0]]
		b, okB := replies[p[1]]
		if okA && okB && a.Failed == "" && b.Failed == "" && len(a.Cells) == 2 {
			for _, m := range a.Cells {
				m.From, m.To = p[m.From], p[m.To]
				cells = append(cells, m)
			}
			h.by = a.By
			took = append(took, max(a.Took, b.Took))
			continue
		}
		took = append(took, 0)
		why := a.Failed
		for i, ok := range []bool{okA, okB} {
			if !ok {
				why = fmt.Sprintf("%s: %s", h.members[p[i]].Host, h.lost[p[i]])
			}
		}
		why = cmp.Or(why, b.Failed)
		for i, c := range []engine.TCPCounts{a.Counts, b.Counts} {
			cells = append(cells, pairs.Measure{
				From: p[i], To: p[1-i], Failed: why, Segments: c.Segments, Lost: c.Lost, MSS: c.MSS,
			})
		}
	}
	return cells, took
}

// sum adds a vector over some ranks; why is empty where it came to an end.
func (h *checkHub) sum(ctx context.Context, list []int, limit time.Duration) (wrong map[int]int, why string) {
	orders := map[int]checkOrder{}
	for i, seat := range h.star.Seats(list) {
		orders[list[i]] = checkOrder{Do: "sum", Seat: seat}
	}
	wrong = map[int]int{}
	replies := h.ask(ctx, orders, limit)
	for _, r := range list {
		x, ok := replies[r]
		switch {
		case !ok:
			why = fmt.Sprintf("%s: %s", h.members[r].Host, h.lost[r])
		case x.Failed != "" && why == "":
			why = x.Failed
		}
		wrong[r] = x.Wrong
	}
	return wrong, why
}

// end lets the others go.
func (h *checkHub) end() {
	h.done()
	for r := 1; r < len(h.members); r++ {
		if h.lost[r] == "" {
			_ = h.star.Order(r, checkOrder{Do: "end"}) // who is lost now ends by itself
		}
	}
}
