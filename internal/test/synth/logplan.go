package synth

import (
	"fmt"
	"strings"

	"busbar.dev/internal/lazyre"
	"busbar.dev/nccl"
	"busbar.dev/unit"
)

// hostPart is the host in names of nodes, which came with 2.21.
var hostPart = lazyre.New(`\b(GPU|NET|NIC|CPU|PCI|NVS)/[0-9a-f]+-([0-9a-f]+)`)

// named gives the names of nodes in a text the form of the release: in capitals and without the host before 2.21.
func (j *Job) named(text string) string {
	if j.Minor >= 21 {
		return text
	}
	return hostPart.ReplaceAllStringFunc(text, func(s string) string {
		kind, rest, _ := strings.Cut(s, "/")
		_, id, _ := strings.Cut(rest, "-")
		return kind + "/" + strings.ToUpper(id)
	})
}

// Middle is the set-up of the communicator: topology, graphs, rings, trees, connections, tuning.
func (j *Job) Middle(rank int) string {
	var b strings.Builder
	line := func(format string, args ...any) { b.WriteString(j.Info(rank, format, args...)) }
	local := rank % j.PerNode
	node := j.Plan.Nodes[min(rank/j.PerNode, len(j.Plan.Nodes)-1)]
	if j.Minor >= 20 {
		line("MNNVL busId 0x%x000 fabric UUID 0.0 cliqueId 0x0 state 3 healthMask 0x0", Bus(local))
	}
	if j.Minor >= 28 {
		line("ncclTopoGetCpuAffinity: Affinity for GPU %d is %d-%d. (GPU affinity = %d-%d ; CPU affinity = 0-95).", local,
			12*local, 12*local+11, 12*local, 12*local+11)
	} else {
		line("Setting affinity for GPU %d to %x", local, 0xfff<<(4*local))
	}
	for text := range strings.Lines(j.named(node.View.String())) {
		line("%s", strings.TrimRight(text, "\n"))
	}
	for _, g := range []*nccl.Graph{&node.View.Graphs.Ring, &node.View.Graphs.Tree} {
		j.graph(line, g)
	}
	if j.Minor >= 17 {
		line("comm %s rank %d nRanks %d nNodes %d localRanks %d localRank %d MNNVL 0", j.comm(rank), rank, j.Ranks(),
			j.Plan.NNodes, j.PerNode, local)
	}
	j.channels(line, rank)
	for text := range strings.Lines(j.Plan.Table.String()) {
		line("%s", strings.TrimRight(text, "\n"))
	}
	p := j.Plan
	if j.Minor >= 17 {
		line("%d coll channels, %d collnet channels, %d nvls channels, %d p2p channels, %d p2p channels per peer", p.Count(),
			0, p.NVLSChannels, p.P2PChannels, p.P2PPerPeer)
	} else {
		line("%d coll channels, %d p2p channels, %d p2p channels per peer", p.Count(), p.P2PChannels, p.P2PPerPeer)
	}
	for c := range p.Count() {
		b.WriteString(j.Connections(rank, c))
	}
	line("Connected all rings, use ring PXN 0 GDR %d", map[bool]int{false: 1}[j.sock])
	line("Connected all trees")
	return b.String()
}

// graph prints what a search found; up to 2.12 the figures are called speed.
func (j *Job) graph(line func(string, ...any), g *nccl.Graph) {
	if g.NChannels == 0 {
		return
	}
	word, same := "bw", 0
	if j.Minor <= 12 {
		word = "speed"
	}
	if g.SameChannels {
		same = 1
	}
	line("Pattern %d, crossNic %d, nChannels %d, %s %f/%f, type %s/%s, sameChannels %d", g.Pattern, g.CrossNIC,
		g.NChannels, word, g.BwIntra, g.BwInter, g.TypeIntra, g.TypeInter, same)
	for c := range g.NChannels {
		var nodes []string
		for _, r := range g.Intra[c] {
			nodes = append(nodes, fmt.Sprintf("GPU/0-%x000", Bus(r)))
		}
		if c < len(g.Inter) && g.Inter[c][0] >= 0 {
			nodes = append(append([]string{fmt.Sprintf("NET/0-%x", g.Inter[c][0])}, nodes...),
				fmt.Sprintf("NET/0-%x", g.Inter[c][1]))
		}
		line("%2d : %s", c, j.named(strings.Join(nodes, " ")))
	}
}

// channels prints rings and trees: all rings at rank 0, and everybody's own place in them.
func (j *Job) channels(line func(string, ...any), rank int) {
	p := j.Plan
	var trees strings.Builder
	for c := range p.Count() {
		ring := p.Ring(c)
		if rank == 0 {
			var list strings.Builder
			for _, r := range ring {
				fmt.Fprintf(&list, " %3d", r)
			}
			line("Channel %02d/%02d :%s", c, p.Count(), list.String())
		}
		l := p.Tree(c)[rank]
		fmt.Fprintf(&trees, " [%d] %d/%d/%d->%d->%d", c, l.Down[0], l.Down[1], l.Down[2], rank, l.Up)
		prev, next := around(ring, rank)
		line("Ring %02d : %d -> %d -> %d", c, prev, rank, next)
		line("Tree %d : %d -> %d -> %d/%d/%d", c, l.Up, rank, l.Down[0], l.Down[1], l.Down[2])
	}
	line("Trees%s", trees.String())
}

// around are a rank's neighbours in a ring.
func around(ring []int, rank int) (prev, next int) {
	for i, r := range ring {
		if r == rank {
			return ring[(i+len(ring)-1)%len(ring)], ring[(i+1)%len(ring)]
		}
	}
	return -1, -1
}

// Connections are a rank's with its neighbours in the ring of a channel.
func (j *Job) Connections(rank, channel int) string {
	prev, next := around(j.Plan.Ring(channel), rank)
	text := ""
	if rank/j.PerNode == next/j.PerNode {
		text += j.Info(rank, "Channel %02d/0 : %d[%s] -> %d[%s] via %s", channel, rank, j.dev(rank), next, j.dev(next),
			j.peer())
	} else {
		text += j.Info(rank, "Channel %02d/0 : %d[%s] -> %d[%s] [send] via %s", channel, rank, j.dev(rank), next, j.dev(next),
			j.net(rank, channel, 1))
	}
	if rank/j.PerNode != prev/j.PerNode {
		text += j.Info(rank, "Channel %02d/0 : %d[%s] -> %d[%s] [receive] via %s", channel, prev, j.dev(prev), rank,
			j.dev(rank), j.net(rank, channel, 0))
	}
	return text
}

// dev stands in brackets behind a rank: the bus up to 2.16, the index of NVML since.
func (j *Job) dev(rank int) string {
	if j.Minor <= 16 {
		return fmt.Sprintf("%x000", Bus(rank%j.PerNode))
	}
	return fmt.Sprint(rank % j.PerNode)
}

// peer is how GPUs of a node reach each other.
func (j *Job) peer() string {
	switch {
	case strings.Contains(j.Intra, "no NVLink"):
		return "SHM/direct/direct"
	case j.Minor <= 16:
		return "P2P/IPC/read"
	}
	return "P2P/CUMEM/read"
}

// net is how a channel leaves the node: end 0 receives, end 1 sends.
func (j *Job) net(rank, channel, end int) string {
	if j.sock {
		return "NET/Socket/0"
	}
	return fmt.Sprintf("NET/IB/%d/GDRDMA", j.Plan.NIC(rank/j.PerNode, channel)[end])
}

// End is the end of the set-up, some calls with what NCCL chose for them, and the end of the communicator.
func (j *Job) End(rank int) string {
	var b strings.Builder
	line := func(format string, args ...any) { b.WriteString(j.Info(rank, format, args...)) }
	call := ""
	if j.Minor >= 19 {
		call = "ncclCommInitRank "
	}
	about := fmt.Sprintf("comm %s rank %d nranks %d cudaDev %d%s busId %x000", j.comm(rank), rank, j.Ranks(),
		rank%j.PerNode, j.nvml(rank), Bus(rank%j.PerNode))
	line("%s%s%s - Init COMPLETE", call, about, j.id())
	if j.Minor >= 22 {
		line("Init timings - ncclCommInitRank: rank %d nranks %d total 1.25 (kernels 0.50, alloc 0.10, bootstrap 0.25, "+
			"allgathers 0.05, topo 0.15, graphs 0.05, connections 0.10, rest 0.05)", rank, j.Ranks())
	}
	for i, size := range Sizes(4, 64) {
		j.call(line, rank, i, size)
	}
	line("%s%s - Destroy COMPLETE", about, j.id())
	return b.String()
}

// call is an all-reduce and, at rank 0, what NCCL takes for it.
func (j *Job) call(line func(string, ...any), rank, count int, size unit.Bytes) {
	line("AllReduce: opCount %x sendbuff 0x7f0000000000 recvbuff 0x7f0000000000 count %d datatype 7 op 0 root 0 comm %s "+
		"[nranks=%d] stream 0x55bb00", count, size/4, j.comm(rank), j.Ranks())
	s, err := j.Plan.Choose(nccl.Call{Op: nccl.AllReduce, Bytes: int64(size)})
	if err != nil || rank != 0 {
		return
	}
	switch {
	case j.Minor >= 24:
		line("AllReduce: %d Bytes -> Algo %s proto %s channel{Lo..Hi}={0..%d}", size, strings.ToUpper(s.Algo.String()),
			strings.ToUpper(s.Proto.String()), s.Channels-1)
	case j.Minor == 23:
		line("AllReduce: %d Bytes -> Algo %d proto %d time %f", size, s.Algo, s.Proto, s.Time)
	default:
		line("%d Bytes -> Algo %d proto %d time %f", size, s.Algo, s.Proto, s.Time)
	}
}
