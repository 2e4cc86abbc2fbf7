package query

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"busbar.dev/calibrate"
	"busbar.dev/cluster"
	"busbar.dev/engine/bench"
	"busbar.dev/engine/bench/gpu"
	"busbar.dev/engine/device"
	"busbar.dev/finding"
	"busbar.dev/hardware"
	"busbar.dev/internal/failure"
	"busbar.dev/internal/stats"
	"busbar.dev/result"
	"busbar.dev/result/pairs"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// gpuHosts are hosts that are checked through ssh: a worker of busbar-gpu on each. A pair has a communicator of its
// own, so that one that comes to no end holds up its two workers alone: they are ended, and others take their place.
type gpuHosts struct {
	q       *Check
	with    Programs
	plan    bench.PairPlan
	hosts   []string
	workers []*device.Worker // nil where lost says why
	lost    []string

	mu    sync.Mutex
	wrong int64 // bytes
	first time.Duration
}

// checkStartTime is how long a host may take to start busbar-gpu, which loads the driver.
const checkStartTime = time.Minute

// RunWith checks hosts through ssh: their GPUs' state, then every pair of hosts by NCCL, one GPU each.
func (q Check) RunWith(ctx context.Context, env Env, with Programs) (doc *CheckDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	size := q.Size
	if size == "4M" {
		size = "64M"
	}
	h := &gpuHosts{q: &q, with: with, plan: bench.PairPlan{Warm: q.Warm, Iters: q.Iters, Small: 8}, first: checkFirst}
	if h.plan.Large, err = unit.ParseBytes(string(size)); err != nil {
		return nil, fmt.Errorf("--size: %w", err)
	}
	if h.hosts, err = cluster.ParseHosts(q.Hosts); err != nil {
		return nil, fmt.Errorf("--hosts: %w", err)
	}
	x, err := q.expects(ctx, env)
	if err != nil {
		return nil, err
	}
	return h.check(ctx, env, x)
}

// check is the check of all hosts.
func (h *gpuHosts) check(ctx context.Context, env Env, x expectation) (*CheckDoc, error) {
	begin := time.Now()
	n := len(h.hosts)
	h.workers, h.lost = make([]*device.Worker, n), make([]string, n)
	defer h.end()
	env.progress("nodes")
	locals := make([]checkLocal, n)
	h.each(func(i int) {
		h.start(ctx, i)
		locals[i] = h.local(ctx, i)
	})
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	if err := h.nobody(); err != nil {
		return nil, failure.Cannot(err)
	}
	c := &checkPairs{
		names: h.hosts, hosts: h.hosts, away: func(r int) bool { return h.lost[r] != "" }, turn: h.turn, show: env.progress,
		first: h.first,
	}
	table, err := c.measure(ctx, checkSchedule(n, h.q.Rounds))
	env.progress("")
	if err != nil {
		return nil, failure.Cannot(err)
	}
	for i := range locals {
		locals[i].Away = h.lost[i]
	}
	doc := newCheckDoc(result.NCCL, locals, table, x)
	doc.Notes = append(doc.Notes, "RDMA ports were not looked at: --hosts asks busbar-gpu alone; busbar check as a job "+
		"on these hosts (srun, mpirun) reads them")
	if h.wrong > 0 { // of nobody knows whose
		doc.suspectAll(finding.Finding{
			Severity: finding.Error, Confidence: 1, Text: fmt.Sprintf("%d bytes arrived wrong", h.wrong),
		})
	}
	for _, w := range h.workers {
		if w != nil {
			doc.slowPairs(x, h.plan.Large, device.Team{w}, table)
			break
		}
	}
	doc.Rounds, doc.Partners, doc.Seconds = c.turns, table.Partners(), time.Since(begin).Seconds()
	return doc, nil
}

// each does something of all hosts at once.
func (h *gpuHosts) each(do func(i int)) {
	var all sync.WaitGroup
	for i := range h.hosts {
		all.Go(func() { do(i) })
	}
	all.Wait()
}

// nobody says why no host answers.
func (h *gpuHosts) nobody() error {
	var why []error
	for i, w := range h.workers {
		if w != nil {
			return nil
		}
		why = append(why, fmt.Errorf("%s: %s", h.hosts[i], h.lost[i]))
	}
	return errors.Join(why[:min(len(why), 4)]...)
}

func (h *gpuHosts) end() {
	h.each(func(i int) {
		if h.workers[i] != nil {
			h.workers[i].End()
		}
	})
}

// start starts a worker on a host; why it cannot be is why the host is lost.
func (h *gpuHosts) start(ctx context.Context, i int) {
	ctx, cancel := context.WithTimeoutCause(ctx, checkStartTime,
		fmt.Errorf("busbar-gpu did not start within %v", checkStartTime))
	defer cancel()
	g := GPURanks{PerHost: 1, Hosts: h.hosts[i], SSH: h.q.SSH, Helper: h.q.Helper}
	team, _, err := g.workers(ctx, h.with, nil, nil, false)
	if err != nil {
		h.workers[i], h.lost[i] = nil, strings.TrimPrefix(err.Error(), h.hosts[i]+": ")
		return
	}
	h.workers[i] = team[0]
}

// again ends a worker that came to no end, and starts another.
func (h *gpuHosts) again(ctx context.Context, i int) {
	if w := h.workers[i]; w != nil {
		h.workers[i] = nil
		w.End()
	}
	if ctx.Err() == nil {
		h.start(ctx, i)
	}
}

// local is what a host says of itself. A GPU that does not come to an end with it is started anew.
func (h *gpuHosts) local(ctx context.Context, i int) checkLocal {
	l := checkLocal{Host: h.hosts[i]}
	w := h.workers[i]
	if w == nil {
		return l
	}
	within, cancel := context.WithTimeoutCause(ctx, checkLocalTime, fmt.Errorf("no answer within %v", checkLocalTime))
	defer cancel()
	a, err := w.Ask(within, device.Request{Do: device.Health})
	if err == nil {
		l.GPUs, l.Findings, l.Asked = len(a.Health), device.Findings(l.Host, a.Health), true
		if len(a.Health) > 0 {
			l.Model = a.Health[0].Name
		}
	}
	if err == nil && !h.q.NoLoad {
		l.Measured, l.Notes = measureGPUs(within, device.Team{w}, a.Health)
	}
	if err != nil {
		l.Notes = append(l.Notes, fmt.Sprintf("GPUs were not checked: %v", err))
	}
	if within.Err() != nil {
		h.again(ctx, i)
	}
	return l
}

// turn measures disjoint pairs at once, each in a communicator of its own.
func (h *gpuHosts) turn(ctx context.Context, list [][2]int,
	limit time.Duration,
) (cells []pairs.Measure, took []time.Duration) {
	took = make([]time.Duration, len(list))
	each := make([][]pairs.Measure, len(list))
	var all sync.WaitGroup
	for i, p := range list {
		all.Go(func() {
			begin := time.Now()
			within, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no end within %.3g s", limit.Seconds()))
			defer cancel()
			got, err := h.pair(within, p)
			if err == nil {
				each[i], took[i] = got, time.Since(begin)
				return
			}
			for k := range p {
				each[i] = append(each[i], pairs.Measure{From: p[k], To: p[1-k], Failed: err.Error()})
				h.again(ctx, p[k])
			}
		})
	}
	all.Wait()
	for _, c := range each {
		cells = append(cells, c...)
	}
	return cells, took
}

// pair measures two hosts.
func (h *gpuHosts) pair(ctx context.Context, p [2]int) ([]pairs.Measure, error) {
	team := device.Team{h.workers[p[0]], h.workers[p[1]]}
	if err := team.Join(ctx); err != nil {
		return nil, err
	}
	t, wrong, err := gpu.Pairs(ctx, team, h.plan, true, nil)
	if err != nil {
		return nil, err
	}
	if _, err := team.All(ctx, device.Request{Do: device.Leave}, nil); err != nil {
		return nil, err
	}
	for i := range t.Cells {
		m := &t.Cells[i]
		m.From, m.To = p[m.From], p[m.To]
	}
	h.mu.Lock()
	h.wrong += wrong
	h.mu.Unlock()
	return t.Cells, nil
}

// checkGPU is what a GPU did in a check.
type checkGPU struct {
	Host   string  `json:"host,omitempty"`
	Index  int     `json:"gpu"`
	Name   string  `json:"name"`
	TFLOPS float64 `json:"tflops,omitempty"`
	GBps   float64 `json:"GBps,omitempty"`
	MHz    int     `json:"sm_mhz,omitempty"`
	Why    string  `json:"throttled,omitempty"`
}

// The product and the copy of a check, and how long the product runs before it counts: locked clocks, cooling and power
// limits show under load only.
const (
	checkSide   = 8192
	checkCopy   = 256 * unit.MiB
	checkHeat   = 0.5e6 // µs
	checkTimed  = 0.2e6
	checkStream = 50
)

// measureGPUs times a product and a copy on the GPUs of a team, all at once. What one refuses is a note.
func measureGPUs(ctx context.Context, team device.Team, states []device.State) (list []checkGPU, notes []string) {
	if busy := busyGPUs(states); busy != "" {
		return nil, []string{"products and memory were not measured: " + busy}
	}
	product := device.Request{
		Do: device.Product, M: checkSide, N: checkSide, K: checkSide, Dtype: "bfloat16", Warm: 1, Iters: 2,
	}
	answers, err := team.All(ctx, product, nil)
	if err == nil {
		us := max(answers[0].Product.Micros, 1)
		product.Warm, product.Iters, product.Check = 1+int(checkHeat/us), 1+int(checkTimed/us), true
		answers, err = team.All(ctx, product, nil)
	}
	if err != nil {
		notes = append(notes, fmt.Sprintf("products were not measured: %v", err))
		answers = make([]device.Answer, len(team))
	}
	copies, err := team.All(ctx, device.Request{Do: device.Memory, Bytes: int64(checkCopy), Warm: 5, Iters: checkStream},
		nil)
	if err != nil {
		notes = append(notes, fmt.Sprintf("memory was not measured: %v", err))
		copies = make([]device.Answer, len(team))
	}
	next := map[string]int{}
	for i, w := range team {
		g := checkGPU{Host: w.Hello.Host, Index: next[w.Hello.Host], Name: w.Device.Name}
		next[w.Hello.Host]++
		if p := answers[i].Product; p != nil {
			g.TFLOPS, g.MHz, g.Why = p.TFLOPS, p.MHz, strings.Join(p.Why, ", ")
		}
		for _, r := range copies[i].Rates {
			if r.What == "copy" {
				g.GBps = r.GBps
			}
		}
		list = append(list, g)
	}
	return list, notes
}

// busyShare is the utilization, in percent, from which somebody else is computing on a GPU.
const busyShare = 20

// busyGPUs says who is on the GPUs already: what is measured beside others says nothing. Ours are processes that do not
// count.
func busyGPUs(states []device.State, ours ...int) string {
	for _, s := range states {
		if s.Utilization == nil || *s.Utilization <= busyShare {
			continue
		}
		var who []string
		mine := 0
		for _, u := range s.Users {
			if slices.Contains(ours, u.PID) {
				mine++
			} else {
				who = append(who, strings.TrimSpace(fmt.Sprintf("%s %d", u.Name, u.PID)))
			}
		}
		if mine > 0 && len(who) == 0 {
			continue
		}
		text := fmt.Sprintf("GPU %d is busy (%d%%)", s.Index, *s.Utilization)
		if len(who) > 0 {
			text += fmt.Sprintf(", by process %s", strings.Join(who[:min(len(who), 4)], ", "))
		}
		return text
	}
	return ""
}

// busyTeam says who else is on the GPUs of a team while it does nothing; "" where nobody is, or nobody can say. The
// driver's utilization is of the last second, in which another command of ours may have ended.
func busyTeam(ctx context.Context, team device.Team) string {
	first, pids, uuids := map[string]*device.Worker{}, map[string][]int{}, map[string][]string{} // by host
	var hosts []string
	for _, w := range team {
		h := w.Hello.Host
		if first[h] == nil {
			first[h] = w
			hosts = append(hosts, h)
		}
		pids[h], uuids[h] = append(pids[h], w.Hello.PID), append(uuids[h], w.Device.UUID)
	}
	look := func() string {
		for _, h := range hosts {
			a, err := first[h].Ask(ctx, device.Request{Do: device.Health})
			if err != nil { // no NVML, or a driver without it
				continue
			}
			own := slices.DeleteFunc(slices.Clone(a.Health),
				func(s device.State) bool { return !slices.Contains(uuids[h], s.UUID) })
			if busy := busyGPUs(own, pids[h]...); busy != "" {
				return h + ": " + busy
			}
		}
		return ""
	}
	if look() == "" {
		return ""
	}
	select {
	case <-ctx.Done():
	case <-time.After(busyAgain):
	}
	return look()
}

// busyAgain is how long after a GPU was seen busy it is looked at again.
const busyAgain = 1500 * time.Millisecond

// expectation is what GPUs are held against: the prediction by the cluster's figures, and how far a healthy one may be
// off.
type expectation struct {
	cluster *cluster.Cluster // nil: none was given
	oneNode bool             // the job that nodes are checked for has one, and sends nothing over RDMA
}

// Bars are two standard deviations of what is known of a figure that nobody measured here; of one that a calibration
// measured, what GPUs of one model differ by.
const calibratedBar = 1.12

// of is the predicted product rate (TFLOPS) and memory rate (GB/s) of a GPU with their bars; false where it is in no
// catalogue.
func (x expectation) of(name string) (tflops, gbps, bar, memBar float64, from string, ok bool) {
	m, found := hardware.GPUByName(name)
	if !found {
		return 0, 0, 0, 0, "", false
	}
	c := x.cluster
	if c == nil {
		c = &cluster.Cluster{}
	}
	g, err := gpuOn(c, m)
	if err != nil || m.Peak[cluster.BF16] <= 0 {
		return 0, 0, 0, 0, "", false
	}
	flops := 2 * math.Pow(checkSide, 3)
	t := g.Time(&workload.Task{
		Kind: workload.Product, M: checkSide, N: checkSide, K: checkSide, Count: 1, Flops: flops, Starts: 1,
	}, workload.BF16)
	s := g.Time(&workload.Task{Kind: workload.Stream, Bytes: unit.Volume(2 * checkCopy), Starts: 1}, workload.BF16)
	bar, memBar, from = calibrate.KernelBar(true), calibrate.KernelBar(false), "the prediction"
	if c.Calibration != nil && slices.ContainsFunc(c.Calibration.Figures,
		func(f cluster.Calibrated) bool { return strings.HasPrefix(f.Name, cluster.StepFigure) }) {
		bar, memBar, from = calibratedBar, calibratedBar, "the calibrated prediction"
	}
	return flops / float64(t) / 1e12, 2 * float64(checkCopy) / float64(s) / 1e9, bar, memBar, from, true
}

// slowGPUs are the findings about GPUs that do less than predicted, beyond the error bar, or than others of their model
// do.
func (x expectation) slowGPUs(list []checkGPU) []finding.Finding {
	var found []finding.Finding
	add := func(g checkGPU, what, unit string, has, want, bar float64, from string) bool {
		if has <= 0 || has >= want/bar {
			return false
		}
		why := ""
		if g.MHz > 0 {
			why = fmt.Sprintf(" at %d MHz", g.MHz)
		}
		if g.Why != "" {
			why += " (" + g.Why + ")"
		}
		f := finding.Finding{
			ID: "gpu-slow-" + what, Severity: finding.Warn, Confidence: 1, Where: fmt.Sprintf("%s/gpu%d", g.Host, g.Index),
			Nodes: []string{g.Host}, Factor: has / want,
			Text: fmt.Sprintf("GPU %d of %s does %.0f %s in %s%s; %s says %.0f, and less than %.0f is beyond its error bar",
				g.Index, g.Host, has, unit, what, why, from, want, want/bar),
			Fix: "nvidia-smi -q -d CLOCK,POWER,PERFORMANCE shows locked clocks, limits and throttling; nvidia-smi -rgc frees " +
				"clocks.",
		}
		if has < want/bar/bar {
			f.Severity = finding.Error
		}
		found = append(found, f)
		return true
	}
	for _, g := range list {
		tflops, gbps, bar, memBar, from, ok := x.of(g.Name)
		slow := ok && add(g, "products", "TFLOPS", g.TFLOPS, tflops, bar, from)
		thin := ok && add(g, "memory", "GB/s", g.GBps, gbps, memBar, from)
		if !slow {
			mid, bar := peers(list, g.Name, func(g checkGPU) float64 { return g.TFLOPS })
			add(g, "products", "TFLOPS", g.TFLOPS, mid, bar, "the median of its peers")
		}
		if !thin {
			mid, bar := peers(list, g.Name, func(g checkGPU) float64 { return g.GBps })
			add(g, "memory", "GB/s", g.GBps, mid, bar, "the median of its peers")
		}
	}
	return found
}

// peers is the median of GPUs of one model, and how far one may be below it: five of their own deviations, and a tenth
// at least. Fewer than four say nothing.
func peers(list []checkGPU, name string, of func(checkGPU) float64) (mid, bar float64) {
	var all []float64
	for _, g := range list {
		if v := of(g); g.Name == name && v > 0 {
			all = append(all, v)
		}
	}
	if len(all) < 4 {
		return 0, 1
	}
	mid = stats.Median(all)
	off := make([]float64, len(all))
	for i, v := range all {
		off[i] = math.Abs(math.Log(v / mid))
	}
	return mid, math.Exp(max(math.Log(1/0.9), 5*1.48*stats.Median(off)))
}

// heldAgainst says what nodes were held against.
func (x expectation) heldAgainst(measured int) string {
	words := "each GPU's own limits, and the median of all pairs"
	if measured == 0 {
		return words
	}
	m := "the model's prediction of products and memory with its error bar"
	if x.cluster != nil && x.cluster.Calibration != nil {
		m = "the calibrated prediction of products and memory with its error bar"
	}
	return m + ", each GPU's own limits, and the median of all pairs"
}

// checkMeasured is what the pairs of a check showed.
type checkMeasured struct {
	turns    *checkPairs
	table    *pairs.Table
	by, why  string            // what they were measured by, and why by nothing better
	findings []finding.Finding // beyond those of the table
	notes    []string
	rankOf   func(index int) int // of the table
}

// rdmaInCheck is how perftest is run for a check: briefly, for all wait for it.
func (q *Check) rdmaInCheck(with Programs) (*rdmaWorker, error) {
	b := BenchRDMA{Perftest: q.Perftest, Iters: rdmaLeast}
	if err := prepare(&b); err != nil {
		return nil, err
	}
	bw, lat, err := b.tests()
	return &rdmaWorker{q: &b, with: with, bw: bw, lat: lat}, err
}

// checkRails bounds the rounds of a check over all rails together; a port has a few partners at least.
const (
	checkRails    = 32
	checkPartners = 4
)

// pairs measures them by RDMA where all hosts have it, and else over TCP.
func (q *Check) pairs(ctx context.Context, env Env, h *checkHub, expects expectation) (*checkMeasured, error) {
	m, why := q.overRDMA(ctx, h)
	if m == nil && q.By == result.RDMA {
		return nil, errors.New("pairs cannot be measured by RDMA: " + why)
	}
	x := &checkMeasured{by: h.by, why: why, rankOf: func(i int) int { return i }}
	c := &checkPairs{
		names: rankNames(h.members), away: func(r int) bool { return h.lost[r] != "" }, turn: h.turn, show: env.progress,
		first: h.first,
	}
	for _, m := range h.members {
		c.hosts = append(c.hosts, m.Host)
	}
	rounds := checkSchedule(len(h.members), q.Rounds)
	if m != nil {
		m.expects = expects
		x.by, x.rankOf, x.findings = result.RDMA, func(e int) int { return m.ends[e].rank }, m.absent
		c = m.turns(env)
		if m.q.Rounds = q.Rounds; q.Rounds == 0 {
			m.q.Rounds = max(checkPartners, checkRails/len(m.rails))
		}
		rounds = m.rounds()
	}
	var err error
	x.turns = c
	if x.table, err = c.measure(ctx, rounds); err != nil {
		return nil, err
	}
	if m != nil {
		for _, f := range m.document(x.table).Findings {
			if f.Kind == rdmaSlowRail {
				x.findings = append(x.findings, f)
			}
		}
		x.notes = m.notes
	} else {
		x.by = h.by
	}
	return x, nil
}

// overRDMA asks hosts for their ports; nil where pairs are not measured by them, and why. A host without an active port
// where most have one is no reason: it is a finding.
func (q *Check) overRDMA(ctx context.Context, h *checkHub) (*rdmaHub, string) {
	if q.By == "tcp" {
		return nil, "as was asked for"
	}
	orders, job := map[int]checkOrder{}, bench.NewSession()
	hosts := map[string]bool{}
	for r, m := range h.members {
		orders[r] = checkOrder{Do: "rdma-ports", RDMA: &rdmaOrder{Job: job}}
		hosts[m.Host] = true
	}
	if len(hosts) < max(2, len(h.members)) {
		return nil, "there are not two or more hosts with one rank each"
	}
	m := &rdmaHub{checkHub: h, q: h.rdma.q, names: rankNames(h.members), brief: true}
	replies := h.ask(ctx, orders, rdmaTime)
	with, came := 0, 0
	var lacks []string
	for r := range h.members {
		x, ok := replies[r]
		switch {
		case !ok:
			continue // it is unreachable, which others say
		case len(x.Ports) > 0:
			with++
		case !x.Portless || x.Failed == "":
			lacks = append(lacks, fmt.Sprintf("%s: %s", h.members[r].Host, x.Failed))
		}
		came++
	}
	switch {
	case len(lacks) > 0:
		return nil, "RDMA is not measured: " + lacks[0]
	case with < 2 || 2*with <= came:
		return nil, fmt.Sprintf("%d of %d nodes have an active RDMA port", with, came)
	}
	m.collect(replies)
	m.absent = slices.DeleteFunc(m.absent, func(f finding.Finding) bool { _, ok := replies[f.Ranks[0]]; return !ok })
	return m, ""
}

// turns are those over all ports.
func (m *rdmaHub) turns(env Env) *checkPairs {
	c := &checkPairs{
		away: func(e int) bool { return m.lost[m.ends[e].rank] != "" }, turn: m.turn, show: env.progress, every: true,
		first: m.first,
	}
	for _, e := range m.ends {
		c.names, c.hosts = append(c.names, m.portName(e)), append(c.hosts, m.members[e.rank].Host)
	}
	return c
}

// whole are the ranks whose pairs all came to an end.
func (x *checkMeasured) whole(h *checkHub) (list []int) {
	bad := map[int]bool{}
	for _, m := range x.table.Cells {
		if m.Failed != "" {
			bad[x.rankOf(m.From)], bad[x.rankOf(m.To)] = true, true
		}
	}
	for i := range x.table.Names {
		if x.turns.out(i) {
			bad[x.rankOf(i)] = true
		}
	}
	for r := range h.members {
		if !bad[r] && h.lost[r] == "" {
			list = append(list, r)
		}
	}
	return list
}
