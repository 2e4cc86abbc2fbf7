package hang

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"busbar.dev/finding"
	"busbar.dev/input/joblog"
)

// gpuFault finds a GPU's error: Xid lines of the job's processes, CUDA errors of a rank that noticed nothing before.
func (v *logView) gpuFault() (claim, bool) {
	var xids []told
	for _, t := range v.by[joblog.Xid] {
		if t.PID > 0 && t.rank < 0 && len(v.j.procs) > 0 {
			continue // another job's
		}
		xids = append(xids, t)
	}
	var best *told
	for _, k := range []joblog.Kind{joblog.CUDAError, joblog.GPULost} {
		for i := range v.by[k] {
			t := &v.by[k][i]
			if n, ok := v.noticed[t.rank]; ok && n.Time > 0 && t.Time > n.Time {
				continue // what an abort leaves behind
			}
			if best == nil || best.Time == 0 && t.Time > 0 || t.Time > 0 && t.Time < best.Time {
				best = t
			}
		}
	}
	c := claim{kind: GPUFault, source: fromLog, sure: 0.9}
	switch {
	case len(xids) > 0:
		t := xids[0]
		c.source, c.sure = fromKernel, 0.92
		c.why = fmt.Sprintf("the driver reports Xid %d (%s)", t.Code, xidText(t.Code))
		for _, x := range xids[:min(len(xids), 4)] {
			if x.rank >= 0 && !slices.Contains(c.ranks, x.rank) {
				c.ranks = append(c.ranks, x.rank)
			}
			c.quotes = append(c.quotes, x.quote())
		}
		if best != nil {
			if len(c.ranks) == 0 && best.rank >= 0 {
				c.ranks = []int{best.rank}
			}
			c.quotes = append(c.quotes, best.quote())
		}
		if len(c.ranks) == 0 && t.Host != "" {
			if r := v.j.ofHost(t.Host); r >= 0 {
				c.ranks = []int{r}
			} else {
				c.nodes = []string{t.Host}
			}
		}
	case best != nil && best.rank >= 0:
		c.ranks, c.quotes = []int{best.rank}, []finding.Quote{best.quote()}
		c.why = fmt.Sprintf("rank %d's GPU raised an error: %s", best.rank, short(best.Text))
	default:
		return claim{}, false
	}
	return c, true
}

// gpuState finds a GPU that the driver lost or stopped, by what DCGM and nvidia-smi say. The last Xid of a GPU may be
// old: it counts where the job waits or ended. Other errors are notes.
func (x *judge) gpuState() (claim, bool) {
	waits := x.timedOut() || x.still || x.log.peersGone()
	for _, g := range x.c.gpus {
		if !g.Lost && (g.Xid == 0 || !waits) {
			if len(x.notes) < 16 {
				x.notes = append(x.notes, fmt.Sprintf("%s:%d: GPU %s: %s", g.name, g.Line, g.Bus, g.Text))
			}
			continue
		}
		c := claim{
			kind: GPUFault, source: "gpu", sure: 0.85, quotes: []finding.Quote{{File: g.name, Line: g.Line, Text: g.Text}},
		}
		c.why = "a GPU does not answer: " + short(g.Text)
		if g.Xid > 0 {
			c.why = fmt.Sprintf("DCGM reports Xid %d (%s)", g.Xid, xidText(g.Xid))
		}
		for _, r := range slices.Sorted(maps.Keys(x.job.procs)) {
			p := x.job.procs[r]
			if g.Host != "" && (p.host == g.Host || p.addr == g.Host) && (p.gpu == g.GPU || p.gpu < 0 && x.job.single[g.Host]) {
				c.ranks = append(c.ranks, r)
			}
		}
		return c, true
	}
	return claim{}, false
}

func xidText(code int) string {
	text, _ := joblog.XidMeaning(code)
	return text
}

// network finds failures of the network that no process's end explains. A host whose own port failed is to blame, else
// the one that failed with the most others; of two that do not reach each other nothing tells which.
func (v *logView) network() (claim, bool) {
	own := v.by[joblog.PortFault]
	list := v.of(joblog.PortFault, joblog.Network)
	if len(list) == 0 {
		return claim{}, false
	}
	c := claim{kind: Network, source: fromLog, sure: 0.8}
	others := map[string]map[string]bool{} // of a host: those that it failed with
	most := 0
	failed := func(host, with string) {
		if host == "" {
			return
		}
		if others[host] == nil {
			others[host] = map[string]bool{}
		}
		others[host][with] = true
		most = max(most, len(others[host]))
	}
	for _, t := range list {
		if len(c.quotes) < 4 {
			c.quotes = append(c.quotes, t.quote())
		}
		if len(own) == 0 {
			failed(v.j.named(t.Peer), t.Host)
		}
		if len(own) == 0 || t.Kind == joblog.PortFault {
			failed(t.Host, v.j.named(t.Peer))
		}
	}
	blamed := slices.DeleteFunc(slices.Sorted(maps.Keys(others)), func(h string) bool { return len(others[h]) < most })
	c.doubt = len(own) == 0 && (most < 2 || len(blamed) > 1)
	c.why = "NCCL's network transport failed: " + short(list[0].Text)
	switch names := strings.Join(blamed, ", "); {
	case c.doubt && len(blamed) > 1:
		c.why += "; nothing says which of " + names + " is at fault"
		return c, true
	case !c.doubt:
		c.why = strings.Replace(c.why, "failed", "failed at "+names, 1)
	}
	for _, h := range blamed {
		before := len(c.ranks)
		for r, p := range v.j.procs {
			if p.host == h || p.addr == h {
				c.ranks = append(c.ranks, r)
			}
		}
		if len(c.ranks) == before {
			c.nodes = append(c.nodes, h)
		}
	}
	slices.Sort(c.ranks)
	return c, true
}
