package hang

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"busbar.dev/finding"
	"busbar.dev/input/joblog"
)

// gpuFault finds a GPU's error: Xid lines of the job's processes, CUDA errors of a rank that noticed nothing before.
func (v *logView) gpuFault() (claim, bool) {
	xids := slices.DeleteFunc(slices.Clone(v.by[joblog.Xid]),
		func(t told) bool { return t.PID > 0 && t.rank < 0 && len(v.j.procs) > 0 }) // another job's
	raised := slices.DeleteFunc(v.of(joblog.CUDAError, joblog.GPULost), func(t told) bool {
		n, ok := v.noticed[t.rank]
		return t.rank < 0 || ok && n.Time > 0 && t.Time > n.Time // what an abort leaves behind
	})
	slices.SortStableFunc(raised, func(a, b told) int { return cmp.Compare(a.Time, b.Time) })
	c := newClaim(GPUFault, fromLog)
	switch {
	case len(xids) > 0:
		c.source = fromKernel
		c.become(GPUFault)
		c.why = fmt.Sprintf("the driver reports Xid %d (%s)", xids[0].Code, xidText(xids[0].Code))
	case len(raised) > 0:
		c.why = fmt.Sprintf("rank %d's GPU raised an error: %s", raised[0].rank, short(raised[0].Text))
	default:
		return claim{}, false
	}
	for _, t := range slices.Concat(xids[:min(len(xids), 4)], raised[:min(len(raised), 1)]) {
		c.quotes = append(c.quotes, t.quote())
		switch rank := t.rank; {
		case rank >= 0 && (t.Kind == joblog.Xid || len(c.ranks) == 0) && !slices.Contains(c.ranks, rank):
			c.ranks = append(c.ranks, rank)
		case rank < 0 && t.Host != "" && !slices.Contains(c.nodes, t.Host):
			c.nodes = append(c.nodes, t.Host)
		}
	}
	if len(c.ranks) > 0 {
		c.nodes = nil
	}
	return c, true
}

// gpuState finds a GPU that the driver lost or stopped, by what DCGM and nvidia-smi say. The last Xid of a GPU may be
// old: it counts where the job waits or ended.
func (x *judge) gpuState() (claim, bool) {
	waits := x.timedOut() || x.still || x.log.peersGone()
	i := slices.IndexFunc(x.c.gpus, func(g gpuState) bool { return g.Lost || g.Xid > 0 && waits })
	if i < 0 {
		return claim{}, false
	}
	g := &x.c.gpus[i]
	c := newClaim(GPUFault, fromGPU)
	c.quotes = []finding.Quote{{File: g.name, Line: g.Line, Text: g.Text}}
	c.why = "a GPU does not answer: " + short(g.Text)
	if g.Xid > 0 {
		c.why = fmt.Sprintf("DCGM reports Xid %d (%s)", g.Xid, xidText(g.Xid))
	}
	c.ranks = slices.DeleteFunc(x.job.onHost(g.Host), func(r int) bool { return x.job.procs[r].gpu != g.GPU+1 })
	return c, true
}

func xidText(code int) string {
	text, _ := joblog.XidMeaning(code)
	return text
}

// network finds failures of the network that no process's end explains. A host whose own port failed is to blame, else
// the one that failed with the most others; of two that do not reach each other nothing tells which.
func (v *logView) network() (claim, bool) {
	own := len(v.by[joblog.PortFault]) > 0
	list := v.by[joblog.PortFault]
	if !own {
		list = v.by[joblog.Network]
	}
	if len(list) == 0 {
		return claim{}, false
	}
	others := map[string]map[string]bool{} // of a host: those that it failed with
	most := 0
	failed := func(host, with string) {
		if others[host] == nil {
			others[host] = map[string]bool{}
		}
		others[host][with] = true
		most = max(most, len(others[host]))
	}
	c := newClaim(Network, fromLog)
	for _, t := range list {
		c.quotes = append(c.quotes, t.quote())
		failed(t.Host, v.j.named(t.Peer))
		if !own {
			failed(v.j.named(t.Peer), t.Host)
		}
	}
	delete(others, "")
	c.quotes = c.quotes[:min(len(list), 4)]
	blamed := slices.DeleteFunc(slices.Sorted(maps.Keys(others)), func(h string) bool { return len(others[h]) < most })
	c.doubt = !own && (most < 2 || len(blamed) != 1)
	c.why = "NCCL's network transport failed: " + short(list[0].Text)
	switch names := strings.Join(blamed, ", "); {
	case c.doubt && len(blamed) > 1:
		c.why += "; nothing says which of " + names + " is at fault"
		return c, true
	case !c.doubt:
		c.why = strings.Replace(c.why, "failed", "failed at "+names, 1)
	}
	for _, h := range blamed {
		ranks := v.j.onHost(h)
		if c.ranks = append(c.ranks, ranks...); len(ranks) == 0 {
			c.nodes = append(c.nodes, h)
		}
	}
	slices.Sort(c.ranks)
	return c, true
}
