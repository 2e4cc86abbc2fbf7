package query

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/engine/bench"
	"busbar.dev/engine/bench/gpu"
	"busbar.dev/engine/device"
	"busbar.dev/finding"
	"busbar.dev/internal/failure"
	"busbar.dev/result"
	"busbar.dev/result/pairs"
	"busbar.dev/unit"
)

// gpuHosts are hosts that are checked through ssh: a worker of busbar-gpu on each. A pair has a communicator of its own, so that one that comes to no
// end holds up its two workers alone: they are ended, and others take their place.
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
	c := &checkPairs{names: h.hosts, hosts: h.hosts, away: func(r int) bool { return h.lost[r] != "" }, turn: h.turn, show: env.progress, first: h.first}
	table, err := c.measure(ctx, checkSchedule(n, h.q.Rounds))
	env.progress("")
	if err != nil {
		return nil, failure.Cannot(err)
	}
	for i := range locals {
		locals[i].Away = h.lost[i]
	}
	doc := newCheckDoc(result.NCCL, locals, table, x)
	doc.Notes = append(doc.Notes, "RDMA ports were not looked at: --hosts asks busbar-gpu alone; busbar check as a job on these hosts (srun, mpirun) reads them")
	if h.wrong > 0 { // of nobody knows whose
		doc.suspectAll(finding.Finding{Severity: finding.Error, Confidence: 1, Text: fmt.Sprintf("%d bytes arrived wrong", h.wrong)})
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
	ctx, cancel := context.WithTimeoutCause(ctx, checkStartTime, fmt.Errorf("busbar-gpu did not start within %v", checkStartTime))
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
func (h *gpuHosts) turn(ctx context.Context, list [][2]int, limit time.Duration) (cells []pairs.Measure, took []time.Duration) {
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
