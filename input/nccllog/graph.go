package nccllog

import (
	"slices"
	"strconv"
	"strings"
)

// parseChannel reads both meanings of "Channel": a ring ("Channel 00/02 : 0 1 2 3")
// and a connection ("Channel 00/0 : 0[0] -> 1[0] via …"). The arrow tells them
// apart.
func parseChannel(r *Record) any {
	if strings.Contains(r.Text, "->") {
		return parseConnection(r)
	}
	f := strings.Fields(r.Text)
	if len(f) < 3 {
		return nil
	}
	ch, total, slash := strings.Cut(f[1], "/")
	ring := &Ring{Channel: number(ch), Channels: -1, At: r.At}
	if slash {
		ring.Channels = number(total)
	}
	rest := f[2:]
	if rest[0] == ":" {
		rest = rest[1:]
	}
	if ring.Channel < 0 || len(rest) == 0 || slash && ring.Channels < 0 {
		return nil
	}
	for _, s := range rest {
		if strings.HasPrefix(s, "..") {
			ring.Cut = true
			break
		}
		n := number(s)
		if n < 0 {
			return nil
		}
		ring.Ranks = append(ring.Ranks, n)
	}
	return ring
}

func (c *collector) ring(r *Record, ring *Ring) {
	k := c.current(r)
	switch {
	case k == nil:
	case c.brief:
		k.plans = true
	case len(k.Rings) < maxChannels:
		k.Rings = append(k.Rings, *ring)
	default:
		c.drop("rings")
	}
}

// parseRingLink reads "Ring 00 : 3 -> 0 -> 1": before, rank, after.
func parseRingLink(r *Record) any {
	ch, v, ok := triple(strings.TrimPrefix(r.Text, "Ring "))
	if !ok {
		return nil
	}
	return &RingLink{ch, number(v[1]), number(v[2])}
}

// triple splits "00 : 3 -> 0 -> 1" into a channel and three parts.
func triple(s string) (channel int, parts []string, ok bool) {
	head, rest, ok := strings.Cut(s, " : ")
	channel = number(head)
	parts = strings.Split(rest, "->")
	if !ok || channel < 0 || len(parts) != 3 {
		return 0, nil, false
	}
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return channel, parts, number(parts[1]) >= 0
}

// parseGraphTree reads "Tree 0 : -1 -> 0 -> 2/-1/-1": parent, rank, children. The
// line "Trees" says the same, in the other order, so this one is only checked.
func parseGraphTree(r *Record) any {
	_, v, ok := triple(strings.TrimPrefix(r.Text, "Tree "))
	if !ok {
		return nil
	}
	if _, ok = children(v[2]); !ok {
		return nil
	}
	return known{}
}

// parseTrees reads "Trees [0] 2/-1/-1->0->-1 [1] …": children, rank, parent. 2.5 to
// 2.7 add the way down behind a bar; 2.4 began with the parent.
func parseTrees(r *Record) any {
	var nodes Trees
	f := strings.Fields(r.Text)
	for i := 1; i < len(f); i += 2 {
		ch := number(strings.Trim(f[i], "[]"))
		if ch < 0 || !strings.HasPrefix(f[i], "[") || i+1 == len(f) {
			break // the end of a line that NCCL cut
		}
		up, _, _ := strings.Cut(f[i+1], "|")
		v := strings.Split(up, "->")
		if len(v) != 3 {
			break
		}
		if !strings.Contains(v[0], "/") && strings.Contains(v[2], "/") {
			v[0], v[2] = v[2], v[0]
		}
		kids, ok := children(v[0])
		rank, parent := number(v[1]), number(v[2])
		if !ok || rank < 0 || v[2] == "" || parent < 0 && v[2] != "-1" {
			break
		}
		nodes = append(nodes, TreeNode{ch, rank, parent, kids})
	}
	if len(nodes) == 0 {
		return nil
	}
	return nodes
}

func (c *collector) trees(r *Record, nodes Trees) {
	k := c.current(r)
	if k == nil {
		return
	}
	if k.Rank < 0 {
		k.Rank = nodes[0].Rank
	}
	if c.brief {
		k.plans = true
		return
	}
	if len(k.Trees)+len(nodes) > maxChannels {
		c.drop("trees")
		return
	}
	k.Trees = append(k.Trees, nodes...)
}

// children reads "2/-1/-1".
func children(s string) ([]int, bool) {
	var kids []int
	for _, t := range strings.Split(s, "/") {
		n, err := strconv.Atoi(t)
		if err != nil || n < -1 || len(kids) > 64 {
			return nil, false
		}
		if n >= 0 {
			kids = append(kids, n)
		}
	}
	return kids, true
}

// parseChannels reads "24 coll channels, 24 collnet channels, 0 nvls channels, 32 p2p
// channels, 32 p2p channels per peer".
func parseChannels(r *Record) any {
	v := &Channels{-1, -1, -1, -1, -1}
	for _, part := range strings.Split(r.Text, ", ") {
		num, what, _ := strings.Cut(strings.TrimSpace(part), " ")
		n := number(num)
		switch strings.TrimSpace(what) {
		case "coll channels":
			v.Coll = n
		case "collnet channels":
			v.CollNet = n
		case "nvls channels":
			v.NVLS = n
		case "p2p channels":
			v.P2P = n
		case "p2p channels per peer":
			v.P2PPerPeer = n
		}
	}
	if v.Coll < 0 || v.P2P < 0 {
		return nil
	}
	return v
}

// parsePattern reads "Pattern 4, crossNic 0, nChannels 1, bw 1.200000/1.200000, type
// LOC/PHB, sameChannels 1"; up to 2.12 it says speed for bw.
func parsePattern(r *Record) any {
	g := &Graph{CrossNic: -1, NChannels: -1, SameChannels: -1, At: r.At}
	for _, part := range strings.Split(r.Text, ", ") {
		key, v, _ := strings.Cut(strings.TrimSpace(part), " ")
		a, b, _ := strings.Cut(v, "/")
		switch key {
		case "Pattern":
			g.Pattern = number(v)
		case "crossNic":
			g.CrossNic = number(v)
		case "nChannels":
			g.NChannels = number(v)
		case "bw", "speed":
			g.BwIntra, g.BwInter = float(a), float(b)
		case "type":
			g.TypeIntra, g.TypeInter = a, b
		case "sameChannels":
			g.SameChannels = number(v)
		}
	}
	if g.NChannels < 0 {
		return nil
	}
	return g
}

func (c *collector) graph(r *Record, g *Graph) {
	k := c.current(r)
	if k == nil {
		return
	}
	if c.brief {
		k.plans = true
		return
	}
	if len(k.Graphs) == 0 {
		if c.graphs >= maxGraphRanks {
			c.drop("graphs")
			return
		}
		c.graphs++
	}
	if len(k.Graphs) < 16 {
		g.TypeIntra, g.TypeInter = c.intern(g.TypeIntra), c.intern(g.TypeInter)
		k.Graphs = append(k.Graphs, *g)
	}
}

// kinds begin the names of NCCL's nodes.
var kinds = []string{"GPU/", "NET/", "NIC/", "CPU/", "PCI/", "NVS/", "GIN/"}

// hexDigits are those of nodes' numbers; releases before 2.21 print capitals.
const hexDigits = "0123456789abcdefABCDEF"

// isNode reports whether a word is a node such as GPU/0-60 or NET/1. Names of networks begin like one ("NET/efa"), so
// that nothing but numbers may follow there.
func isNode(s string) bool {
	if len(s) <= 4 || !slices.Contains(kinds, s[:4]) {
		return false
	}
	if s[:4] == "NET/" {
		return strings.Trim(s[4:], hexDigits+"-") == ""
	}
	return strings.IndexByte(hexDigits, s[4]) >= 0
}

type (
	graphChannel []string // nodes that a channel of a pattern passes
	systemLine   struct{} // of the tree of a node
	systemEnd    struct{} // the line under it
	pathRow      struct { // from one node to others
		paths []Path
		torn  bool // its end does not read
	}
)

// parseGraphLine reads the lines of the GRAPH subsystem that begin with a number or
// a node: a channel of a pattern, a processor, a row of paths.
func parseGraphLine(r *Record) any {
	word, rest, _ := strings.Cut(r.Text, " ")
	if isDigits(word) && strings.HasPrefix(rest, ": ") {
		if nodes := strings.Fields(rest[2:]); len(nodes) > 0 && isNode(nodes[0]) {
			return graphChannel(nodes)
		}
	}
	if !isNode(word) {
		return nil
	}
	if strings.HasPrefix(rest, ":") {
		return parsePaths(word, rest[1:])
	}
	return systemLine{}
}

func (c *collector) graphChannel(r *Record, nodes graphChannel) {
	k := c.threads[threadOf(r)]
	if k == nil || len(k.Graphs) == 0 {
		return
	}
	g := &k.Graphs[len(k.Graphs)-1]
	if len(g.Lines) >= maxChannels {
		return
	}
	for i := range nodes {
		nodes[i] = c.intern(nodes[i])
	}
	g.Lines = append(g.Lines, nodes)
}

// parseSystem begins the tree of a node: "=== System : maxBw 1.2 totalBw 48.0 ===".
func parseSystem(r *Record) any {
	s := &System{At: r.At}
	f := strings.Fields(r.Text)
	for i := 0; i+1 < len(f) && i < 16; i++ {
		switch f[i] {
		case "maxBw", "maxWidth":
			s.MaxBw = float(f[i+1])
		case "totalBw", "totalWidth":
			s.TotalBw = float(f[i+1])
		}
	}
	return s
}

func (c *collector) system(r *Record, s *System) {
	k := c.current(r)
	if k == nil {
		return
	}
	if k.System == nil {
		if c.systems >= maxSystems {
			c.drop("systems")
			return
		}
		c.systems++
	}
	k.System, k.tree = s, true
}

// parseSystemEnd is for the line of equal signs under the tree.
func parseSystemEnd(*Record) any { return systemEnd{} }

// parseSystemLine is for the lines within it.
func parseSystemLine(*Record) any { return systemLine{} }

// systemLine keeps a line of the tree with its indentation. Outside a tree, only its
// beginning tells it.
func (c *collector) systemLine(r *Record) bool {
	k := c.threads[threadOf(r)]
	if !c.brief && k != nil && k.System != nil && k.tree && len(k.System.Tree) < 4*maxChannels && len(r.Text) < 200 {
		k.System.Tree = append(k.System.Tree, strings.Clone(strings.Repeat(" ", min(r.indent, 400))+r.Text))
	}
	return strings.HasPrefix(r.Text, "+ ") || k != nil && k.tree
}

// parsePaths reads a row "GPU/0-60 :GPU/0-60 (0/5000.0/LOC) NET/0-0 (3/1.2/PHB)".
func parsePaths(from, rest string) any {
	f := strings.Fields(rest)
	if len(f)%2 != 0 {
		return nil
	}
	row := &pathRow{}
	for i := 0; i < len(f); i += 2 {
		v := strings.Split(strings.Trim(f[i+1], "()"), "/")
		if row.torn = !isNode(f[i]) || len(v) != 3; row.torn {
			break
		}
		row.paths = append(row.paths, Path{from, f[i], number(v[0]), float(v[1]), v[2]})
	}
	return row
}

func (c *collector) paths(r *Record, row *pathRow) {
	k := c.threads[threadOf(r)]
	if c.brief || k == nil || k.System == nil {
		return
	}
	for _, p := range row.paths {
		if len(k.System.Paths) < 16*maxChannels {
			k.System.Paths = append(k.System.Paths, Path{c.intern(p.From), c.intern(p.To), p.Hops, p.GBps, c.intern(p.Type)})
		}
	}
}

// float reads a figure, 0 when it is none.
func float(s string) float64 {
	v, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil || v != v {
		return 0
	}
	return v
}
