package hang

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

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
		text, _ := joblog.XidMeaning(xids[0].Code)
		c.why = fmt.Sprintf("the driver reports Xid %d (%s)", xids[0].Code, text)
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
	failed := map[string]map[string]bool{} // with which others, by host
	c := newClaim(Network, fromLog)
	for _, t := range list {
		c.quotes = append(c.quotes, t.quote())
		ends := []string{t.Host, v.j.named(t.Peer), t.Host}
		if own {
			ends = ends[:2] // the other end is well
		}
		for i, host := range ends[1:] {
			if failed[ends[i]] == nil {
				failed[ends[i]] = map[string]bool{}
			}
			failed[ends[i]][host] = true
		}
	}
	delete(failed, "")
	most := 0
	for _, others := range failed {
		most = max(most, len(others))
	}
	c.quotes = c.quotes[:min(len(list), 4)]
	blamed := slices.DeleteFunc(slices.Sorted(maps.Keys(failed)), func(h string) bool { return len(failed[h]) < most })
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
