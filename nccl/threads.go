package nccl

import (
	"fmt"
	"strings"
)

// Thread counts (NCCL 2.28 src/include/device.h, graph/tuning.cc and enqueue.cc).
const (
	warp         = 32
	maxThreads   = 640
	simpleMost   = 512
	llMost       = 512
	ll128Most    = 640
	pciBandwidth = 12 // GB/s below which Ring Simple takes half the threads
	rcclThreads  = 256
)

// threads fills the most threads per block and the bytes that make one worth it.
func (t *Table) threads(c *Comm, g *Graphs) {
	ringDefault := simpleMost
	if g.Ring.BwIntra*float32(g.Ring.NChannels) <= pciBandwidth {
		ringDefault = simpleMost / 2
	}
	t.Threads[Ring][Simple] = asked(c.Env, "NCCL_NTHREADS", 2*warp, simpleMost, ringDefault)
	t.Threads[Tree][Simple] = asked(c.Env, "NCCL_NTHREADS", 2*warp, simpleMost, simpleMost)
	for _, a := range []Algo{CollNetDirect, CollNetChain, NVLS, NVLSTree} {
		t.Threads[a][Simple] = maxThreads
	}
	for _, a := range []Algo{Tree, Ring} {
		t.Threads[a][LL] = asked(c.Env, "NCCL_NTHREADS", 2*warp, llMost, llMost)
		t.Threads[a][LL128] = asked(c.Env, "NCCL_LL128_NTHREADS", ll128Most/4, ll128Most, ll128Most)
	}
	for a := range t.PerThread {
		t.PerThread[a] = [nProtos]int{LL: 8, LL128: 8, Simple: 64}
	}
	t.PerThread[Ring][LL] *= c.NRanks
	t.PerThread[CollNetDirect][Simple], t.PerThread[CollNetChain][Simple] = 512, 512
	t.userThresholds(c.Env["NCCL_THREAD_THRESHOLDS"])
	if c.RCCL != nil {
		for _, a := range []Algo{Tree, Ring} {
			t.Threads[a] = [nProtos]int{LL: rcclThreads, LL128: rcclThreads, Simple: rcclThreads}
		}
	}
}

// asked is a number of threads the user set, brought into its bounds, or the
// default.
func asked(env map[string]string, key string, least, most, usual int) int {
	n, ok := envInt(env, key)
	switch {
	case !ok || n <= 0:
		return usual
	case n%warp != 0 || n > most:
		return most
	case n < least:
		return least
	}
	return n
}

// userThresholds reads six numbers: Tree LL, LL128, Simple, then Ring.
func (t *Table) userThresholds(s string) {
	for i, w := range strings.Fields(s) {
		var n int
		if _, err := fmt.Sscan(w, &n); err != nil || i >= 2*nProtos {
			return
		}
		if n >= 0 {
			t.PerThread[i/nProtos][i%nProtos] = n
		}
	}
}

// width is the most channels a call may use and its threads per block: small
// messages use fewer channels, then fewer threads.
func (t *Table) width(call Call, a Algo, p Proto) (channels, threads int) {
	c, r := t.comm, t.comm.rules
	nc, nt := c.Channels, t.Threads[a][p]
	each := t.PerThread[a][p]
	small := func() bool { return call.Bytes < int64(nc)*int64(nt)*int64(each) }
	switch a {
	case CollNetDirect:
		nc = t.directWidth(call, nt, each)
	case NVLS, NVLSTree:
		nc = c.NVLSChannels
		if a == NVLS && c.NNodes > 1 && r.NVLSCapped {
			nc = min(nc, c.Channels)
		}
	default:
		for small() && nc >= 2 {
			nc--
		}
		for small() && nt%128 == 0 && nt > 0 {
			nt /= 2
		}
	}
	if p == Simple && a == Ring {
		nt += warp
	}
	if p == Simple && a == Tree {
		nt += 4 * warp
	}
	nt = max(nt, 3*warp)
	if r.TreeThreads && (a == Tree || a == PAT) {
		nt = maxThreads
	}
	return max(nc, 1), nt
}

// directWidth narrows CollNetDirect in steps of halves.
func (t *Table) directWidth(call Call, nt, each int) int {
	nc, heads := t.comm.Channels, max(t.comm.CollNetHeads, 1)
	for step, small := 16, true; step >= 1 && small; step /= 2 {
		for {
			small = call.Bytes < int64(nc)*int64(nt)*int64(heads)*int64(each)
			if !small || nc <= step {
				break
			}
			if nc == step+step/2 {
				each /= 2
			}
			nc--
		}
	}
	return nc
}

// spread is how many channels a single call's data fills. Since 2.22 data is cut
// into cells of a least traffic, and channels are filled in turn.
func (t *Table) spread(call Call, a Algo, p Proto, most int) int {
	c, r := t.comm, t.comm.rules
	nvls := a == NVLS || a == NVLSTree
	if !r.Cells || a == CollNetDirect || a == CollNetChain || a == NVLS && c.NNodes > 1 || c.NRanks <= 1 {
		return most
	}
	least, perByte, bytes := r.CellBytes, int64(1), call.Bytes
	switch call.Op {
	case AllReduce:
		perByte = 2
	case AllGather, ReduceScatter:
		perByte = int64(c.NRanks)
		bytes /= perByte
	}
	if p == LL {
		perByte *= r.LLTraffic
	}
	all := c.Channels
	if nvls {
		all = c.NVLSChannels
	}
	perChannel := max(least, max(least, bytes*perByte)/int64(min(most, all)))
	cell := up(up(least, perByte), 16) * 16
	cells := up(bytes, cell)
	if cells == 0 {
		return 1
	}
	per := min(cells, up(perChannel, cell*perByte))
	if all == 1 {
		return 1
	}
	rest := cells - per
	return min(int(1+up(rest, per)), all)
}

func up(a, b int64) int64 { return (a + b - 1) / b }
