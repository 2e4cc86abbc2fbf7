package nccl

import (
	"fmt"
	"math"
	"strings"
)

// Entry is one row of the table as written out, in the digits NCCL prints.
type Entry struct {
	Op      string  `json:"op"`
	Algo    string  `json:"algo"`
	Proto   string  `json:"proto"`
	Latency float64 `json:"latency_us"`
	BW      float64 `json:"bw_GBps"` // 0: NCCL will not take it
}

// Entries lists the combinations the release models, by collective, algorithm and
// protocol.
func (t *Table) Entries() []Entry {
	all := []Entry{}
	for op := range Op(nOps) {
		for a := range Algo(nAlgos) {
			for p := range Proto(nProtos) {
				if e := t.Est[op][a][p]; e != (Estimate{}) {
					all = append(all, Entry{op.String(), a.String(), p.String(), tenth(e.Latency), tenth(e.BW)})
				}
			}
		}
	}
	return all
}

// tenth is a figure in the digits that printf("%.1f") gives it: of two equally near the even one, 2.2 for 2.25.
func tenth(x float32) float64 { return math.RoundToEven(float64(x)*10) / 10 }

// SetupTree is a tree as parents and children by rank.
type SetupTree struct {
	Up   []int   `json:"up"`
	Down [][]int `json:"down"`
}

// Setup is a plan written out: rings and trees in full, and the log.
type Setup struct {
	Version     Version     `json:"version"`
	NRanks      int         `json:"nranks"`
	NNodes      int         `json:"nnodes"`
	Channels    int         `json:"channels"`
	P2PChannels int         `json:"p2p_channels"`
	P2PPerPeer  int         `json:"p2p_channels_per_peer"`
	P2PChunk    int         `json:"p2p_chunk_bytes,omitempty"` // of sends and receives
	NVLS        int         `json:"nvls_channels"`
	CollNet     bool        `json:"collnet"`
	Rings       [][]int     `json:"rings"`
	Trees       []SetupTree `json:"trees"`
	NICs        [][2]int    `json:"nics,omitempty"` // of rank 0's node, per channel: receiving, sending
	Table       []Entry     `json:"table"`
	Log         string      `json:"log"` // of rank 0, see Plan.String
}

// Setup writes the plan out.
func (p *Plan) Setup() *Setup {
	out := &Setup{
		Version: p.Version, NRanks: p.NRanks, NNodes: p.NNodes, Channels: p.Count(), P2PChannels: p.P2PChannels,
		P2PPerPeer: p.P2PPerPeer, P2PChunk: p.p2pChunk(),
		NVLS: p.NVLSChannels, CollNet: p.CollNet, Rings: [][]int{}, Trees: []SetupTree{}, Table: p.Entries(),
		Log: p.String(),
	}
	for c := range p.Count() {
		out.Rings = append(out.Rings, p.Ring(c))
		var t SetupTree
		for _, l := range p.Tree(c) {
			kids := []int{}
			for _, d := range l.Down {
				if d >= 0 {
					kids = append(kids, d)
				}
			}
			t.Up, t.Down = append(t.Up, l.Up), append(t.Down, kids)
		}
		out.Trees = append(out.Trees, t)
		if p.NNodes > 1 {
			out.NICs = append(out.NICs, p.NIC(0, c))
		}
	}
	return out
}

// String prints the plan as rank 0's log of NCCL shows it: graphs, rings, its
// trees, the tuning table and the channels.
func (p *Plan) String() string {
	var b strings.Builder
	v := p.Nodes[0].View
	for _, g := range v.Graphs.all() {
		if g.NChannels > 0 {
			v.sys.printGraph(&b, g)
		}
	}
	fmt.Fprintf(&b, "nRanks %d nNodes %d localRanks %d\n", p.NRanks, p.NNodes, len(p.Nodes[0].Ranks))
	width := len(fmt.Sprint(p.NRanks - 1))
	var trees strings.Builder
	for c := range p.Count() {
		fmt.Fprintf(&b, "Channel %02d/%02d :", c, p.Count())
		for _, r := range p.Ring(c) {
			fmt.Fprintf(&b, " %*d", width, r)
		}
		b.WriteByte('\n')
		l := p.Tree(c)[0]
		fmt.Fprintf(&trees, " [%d] %d/%d/%d->0->%d", c, l.Down[0], l.Down[1], l.Down[2], l.Up)
	}
	fmt.Fprintf(&b, "Trees%s\n", trees.String())
	b.WriteString(p.Table.String())
	fmt.Fprintf(&b, "%d coll channels, %d collnet channels, %d nvls channels, %d p2p channels, %d p2p channels per peer\n",
		p.Count(), p.Count(), p.NVLSChannels, p.P2PChannels, p.P2PPerPeer)
	return b.String()
}

// printGraph prints a graph as the GRAPH subsystem does.
func (s *system) printGraph(b *strings.Builder, g *Graph) {
	fmt.Fprintf(b, "Pattern %d, crossNic %d, nChannels %d, bw %f/%f, type %s/%s, sameChannels %d\n",
		g.Pattern, g.CrossNIC, g.NChannels, g.BwIntra, g.BwInter, g.TypeIntra, g.TypeInter, bit(g.SameChannels))
	for c := range g.NChannels {
		fmt.Fprintf(b, "%2d :", c)
		if s.inter {
			b.WriteString(" " + s.nodes[kindNET][g.Inter[c][0]].name())
		}
		for _, r := range g.Intra[c] {
			for _, gpu := range s.nodes[kindGPU] {
				if gpu.gpu.rank == r {
					b.WriteString(" " + gpu.name())
				}
			}
			if g.Pattern == NVLSPattern {
				break
			}
		}
		if s.inter {
			b.WriteString(" " + s.nodes[kindNET][g.Inter[c][1]].name())
		}
		b.WriteByte('\n')
	}
}
