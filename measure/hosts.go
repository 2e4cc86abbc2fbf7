package measure

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"busbar.dev/engine/bench/gpu"
	"busbar.dev/engine/device"
	"busbar.dev/finding"
	"busbar.dev/internal/failure"
	"busbar.dev/result"
	"busbar.dev/result/pairs"
)

// gpuHosts are hosts that are checked through ssh: a worker of busbar-gpu on each. A pair has a communicator of its
// own, so that one that comes to no end holds up its two workers alone: they are ended, and others take their place.
type gpuHosts struct {
	*Checker
	workers []*device.Worker // nil where lost says why
	lost    []string

	mu    sync.Mutex
	wrong int64 // bytes
}

// startTime is how long a host may take to start busbar-gpu, which loads the driver.
const startTime = time.Minute

// OverSSH checks hosts through ssh: their GPUs' state, then every pair of hosts by NCCL, one GPU each.
func (c *Checker) OverSSH(ctx context.Context) (*Check, error) {
	begin := time.Now()
	n := len(c.Hosts)
	h := &gpuHosts{Checker: c, workers: make([]*device.Worker, n), lost: make([]string, n)}
	defer device.Team(h.workers).End() // those that are there by then
	c.Show("nodes")
	nodes := make([]*Node, n)
	h.each(func(i int) {
		h.start(ctx, i)
		nodes[i] = h.look(ctx, i)
	})
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	first, err := h.anybody()
	if err != nil {
		return nil, failure.Cannot(err)
	}
	x := &checkedPairs{by: result.NCCL, sweep: &Sweep{
		Names: c.Hosts, Hosts: c.Hosts, Away: func(i int) bool { return h.lost[i] != "" }, Turn: Concurrently(h.pair),
		Show: c.Show, First: c.first,
	}}
	err = x.measure(ctx, Rounds(n, c.Rounds))
	c.Show("")
	if err != nil {
		return nil, failure.Cannot(err)
	}
	for i, n := range nodes {
		n.Away = h.lost[i]
	}
	x.notes = []string{"RDMA ports were not looked at: --hosts asks busbar-gpu alone; busbar check as a job " +
		"on these hosts (srun, mpirun) reads them"}
	if h.wrong > 0 { // of nobody knows whose
		x.findings = append(x.findings, finding.Finding{
			Severity: finding.Error, Confidence: 1, Text: fmt.Sprintf("%d bytes arrived wrong", h.wrong),
		})
	}
	c.slowPairs(x, first.Device.NCCL)
	d := c.judge(nodes, x)
	d.Seconds = time.Since(begin).Seconds()
	return d, nil
}

// slowPairs holds all pairs together against the prediction of NCCL's sends and receives between two hosts: where every
// pair is slow, none stands out.
func (c *Checker) slowPairs(x *checkedPairs, release string) {
	_, mid, _ := x.table.Extremes(pairs.BothGBps)
	if c.Expect.Cluster == nil || len(c.Expect.Cluster.Hosts) < 2 || mid <= 0 {
		return
	}
	rate, margin, err := c.Expect.pairRate(c.Plan.Large, release)
	if err != nil {
		x.notes = append(x.notes, fmt.Sprintf("pairs were compared with each other only: %v", err))
		return
	}
	if x.expected = ", and the prediction of a pair with its error bar"; mid < rate/margin {
		x.findings = append(x.findings, finding.Finding{
			ID: "pairs-slow", Severity: finding.Warn, Confidence: 1, Factor: mid / rate,
			Text: fmt.Sprintf("the median pair moves %.2f GB/s each way at once; the prediction says %.2f, and less than %.2f "+
				"is beyond its error bar", mid, rate, rate/margin),
		})
	}
}

// each does something of all hosts at once.
func (h *gpuHosts) each(do func(i int)) {
	var all sync.WaitGroup
	for i := range h.Hosts {
		all.Go(func() { do(i) })
	}
	all.Wait()
}

// anybody is a worker, or why no host answers.
func (h *gpuHosts) anybody() (*device.Worker, error) {
	var why []error
	for i, w := range h.workers {
		if w != nil {
			return w, nil
		}
		why = append(why, fmt.Errorf("%s: %s", h.Hosts[i], h.lost[i]))
	}
	return nil, errors.Join(why[:min(len(why), 4)]...)
}

// start starts a worker on a host; why it cannot be is why the host is lost. One that came to no end is ended.
func (h *gpuHosts) start(ctx context.Context, i int) {
	if w := h.workers[i]; w != nil {
		h.workers[i] = nil
		w.End()
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTime, fmt.Errorf("busbar-gpu did not start within %v", startTime))
	defer cancel()
	g := GPURanks{PerHost: 1, Hosts: h.Hosts[i], SSH: h.SSH, Helper: h.Helper}
	team, _, err := g.Workers(ctx, h.With, nil, nil, false)
	if err != nil {
		h.lost[i] = strings.TrimPrefix(err.Error(), h.Hosts[i]+": ")
		return
	}
	h.workers[i] = team[0]
}

// look is what a host says of itself. A GPU that does not come to an end with it is started anew.
func (h *gpuHosts) look(ctx context.Context, i int) *Node {
	n := &Node{Host: h.Hosts[i]}
	w := h.workers[i]
	if w == nil {
		return n
	}
	within, cancel := context.WithTimeoutCause(ctx, lookTime, fmt.Errorf("no answer within %v", lookTime))
	defer cancel()
	a, err := w.Ask(within, device.Request{Do: device.Health})
	if err != nil {
		n.Notes = append(n.Notes, fmt.Sprintf("GPUs were not checked: %v", err))
	} else {
		n.GPUs, n.Findings, n.Asked = len(a.Health), device.Findings(n.Host, a.Health), true
		if len(a.Health) > 0 {
			n.Model = a.Health[0].Name
		}
		if !h.NoLoad {
			n.load(within, device.Team{w}, a.Health)
		}
	}
	if within.Err() != nil {
		h.start(ctx, i)
	}
	return n
}

// pair measures two hosts in a communicator of their own. Where it comes to no end, both get another worker.
func (h *gpuHosts) pair(ctx context.Context, p [2]int, limit time.Duration) (got [2]pairs.Measure) {
	within, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no end within %.3g s", limit.Seconds()))
	defer cancel()
	team := device.Team{h.workers[p[0]], h.workers[p[1]]}
	err := team.Join(within)
	if err == nil {
		var cells []pairs.Measure
		var wrong int64
		if cells, wrong, err = gpu.Turn(within, team, h.Plan, true, [][2]int{{0, 1}}); err == nil {
			copy(got[:], cells)
			_, err = team.All(within, device.Request{Do: device.Leave}, nil)
		}
		h.mu.Lock()
		h.wrong += wrong
		h.mu.Unlock()
	}
	for i := range got {
		if err != nil {
			got[i] = pairs.Measure{Failed: err.Error()}
			h.start(ctx, p[i])
		}
	}
	return got
}
