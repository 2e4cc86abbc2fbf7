package hang

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"busbar.dev/input/joblog"
)

// gpuFault finds a GPU's error: Xid lines of the job's processes, else the first CUDA error of a rank that noticed
// nothing before.
func (v *logView) gpuFault() (claim, bool) {
	c := newClaim(GPUFault, fromKernel)
	list := slices.DeleteFunc(slices.Clone(v.by[joblog.Xid]),
		func(t told) bool { return t.PID > 0 && t.rank < 0 && len(v.j.procs) > 0 }) // another job's
	raised := slices.DeleteFunc(v.of(joblog.CUDAError, joblog.GPULost), func(t told) bool {
		n, ok := v.noticed[t.rank]
		return t.rank < 0 || ok && n.Time > 0 && t.Time > n.Time // what an abort leaves behind
	})
	slices.SortStableFunc(raised, func(a, b told) int { return cmp.Compare(a.Time, b.Time) })
	switch {
	case len(list) > 0:
		text, _ := joblog.XidMeaning(list[0].Code)
		c.why = fmt.Sprintf("the driver reports Xid %d (%s)", list[0].Code, text)
	case len(raised) > 0:
		c.source = fromLog
		c.become(GPUFault)
		list = raised[:1]
		c.why = fmt.Sprintf("rank %d's GPU raised an error: %s", list[0].rank, short(list[0].Text))
	default:
		return claim{}, false
	}
	c.quotes = quotes(list...)
	for _, t := range list[:len(c.quotes)] {
		if t.rank >= 0 {
			c.ranks = append(c.ranks, t.rank)
		} else if t.Host != "" {
			c.nodes = append(c.nodes, t.Host)
		}
	}
	c.ranks, c.nodes = slices.Compact(sorted(c.ranks)), slices.Compact(c.nodes)
	return c, true
}

// network finds failures of the network that no process's end explains. A host whose own port failed is to blame, else
// the one that most others name; of two that do not reach each other nothing tells which.
func (v *logView) network() (claim, bool) {
	own := v.by[joblog.PortFault]
	list := own
	if len(own) == 0 {
		list = v.by[joblog.Network]
	}
	if len(list) == 0 {
		return claim{}, false
	}
	c := newClaim(Network, fromLog)
	c.quotes = quotes(list...)
	c.why = "NCCL's network transport failed: " + short(list[0].Text)
	by := map[string]map[string]bool{} // who names a host
	ends := map[string]bool{}
	most := 0
	for _, t := range list {
		host := t.Host
		if len(own) == 0 {
			host = v.j.named(t.Peer)
		}
		if by[host] == nil {
			by[host] = map[string]bool{}
		}
		by[host][t.Host] = true
		ends[t.Host], ends[v.j.named(t.Peer)] = true, true
		most = max(most, len(by[host]))
	}
	delete(by, "")
	blamed := slices.DeleteFunc(slices.Sorted(maps.Keys(by)), func(h string) bool { return len(by[h]) < most })
	if c.doubt = len(own) == 0 && (most < 2 || len(blamed) != 1); c.doubt {
		delete(ends, "")
		c.why += "; nothing says which of " + strings.Join(slices.Sorted(maps.Keys(ends)), ", ") + " is at fault"
		return c, true
	}
	c.why = strings.Replace(c.why, "failed", "failed at "+strings.Join(blamed, ", "), 1)
	for _, h := range blamed {
		ranks := v.j.onHost(h)
		if c.ranks = append(c.ranks, ranks...); len(ranks) == 0 {
			c.nodes = append(c.nodes, h)
		}
	}
	return c, true
}
