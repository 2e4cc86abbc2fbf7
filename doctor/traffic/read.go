package traffic

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"busbar.dev/input/nccllog"
	"busbar.dev/unit"
)

// maxRanks bounds what is laid out.
const maxRanks = 1 << 16

// From lays out one communicator of a log: the one whose id or number (from 0)
// is comm, or the largest that shows rings or trees.
func From(l *nccllog.Log, comm string) (*Run, error) {
	source := strings.Join(l.Sources, ", ")
	at, err := choose(l, comm)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	m := &l.Comms[at]
	r := &Run{Source: source, Comm: m.ID, Comms: len(l.Comms), NRanks: size(m)}
	if r.NRanks > maxRanks {
		return nil, fmt.Errorf("%s: a communicator of %d ranks; at most %d can be laid out", source, r.NRanks, maxRanks)
	}
	if len(l.Versions) > 0 {
		r.NCCL = l.Versions[0].Text
	}
	b := &builder{
		Run: r, log: l, comm: m, send: map[edge]*nccllog.Connection{}, recv: map[edge]*nccllog.Connection{},
		first: map[[2]int]int{}, nics: map[seat]int{},
	}
	b.placeRanks()
	b.connections()
	b.listNICs()
	b.channels()
	b.hops()
	b.odd()
	return r, nil
}

// size is the number of ranks, as far as the log tells.
func size(m *nccllog.Comm) int {
	n := max(m.NRanks, len(m.Ranks))
	for _, g := range m.Rings {
		for _, k := range g.Ranks {
			n = max(n, k+1)
		}
	}
	for _, t := range m.Trees {
		for _, k := range t.Nodes {
			n = max(n, k.Rank+1, k.Parent+1)
		}
	}
	return n
}

// choose finds the communicator that is meant.
func choose(l *nccllog.Log, comm string) (int, error) {
	if comm != "" {
		var ids []string
		for i := range l.Comms {
			if id := l.Comms[i].ID; id == comm || fmt.Sprint(i) == comm {
				return i, nil
			} else if len(ids) < 8 {
				ids = append(ids, fmt.Sprintf("%d (%s, %d ranks)", i, cmp.Or(id, "no id"), size(&l.Comms[i])))
			}
		}
		return 0, fmt.Errorf("no communicator %s; the log has %s", comm, cmp.Or(strings.Join(ids, ", "), "none"))
	}
	best := -1
	for i := range l.Comms {
		m := &l.Comms[i]
		if len(m.Rings) == 0 && len(m.Trees) == 0 {
			continue
		}
		if best < 0 || size(m) > size(&l.Comms[best]) ||
			size(m) == size(&l.Comms[best]) && len(m.Ranks) > len(l.Comms[best].Ranks) {
			best = i
		}
	}
	if best < 0 {
		return 0, fmt.Errorf("no rings and no trees in this log; they are printed while NCCL sets up: run with " +
			"NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=INIT,GRAPH and keep the log from its first line")
	}
	return best, nil
}

// builder fills a Run.
type builder struct {
	*Run
	log  *nccllog.Log
	comm *nccllog.Comm
	// send and recv are the connections of the communicator: who sends to whom in a
	// channel, as the sender and as the receiver print it.
	send, recv map[edge]*nccllog.Connection
	first      map[[2]int]int // in a channel and from a rank, the rank that it connected to first
	nics       map[seat]int   // of Run.NICs
}

// edge is a hop without its way.
type edge struct{ channel, from, to int }

// seat is a NIC of a host as NCCL numbers it.
type seat struct{ host, dev int }

// placeRanks gives hosts to the ranks that wrote lines.
func (b *builder) placeRanks() {
	names := make([]string, b.NRanks)
	for _, k := range b.comm.Ranks {
		if k.Rank >= 0 && k.Rank < b.NRanks {
			names[k.Rank] = cmp.Or(names[k.Rank], k.Host)
		}
	}
	for i, name := range names {
		at := -1
		if name == "" {
			b.Unseen = append(b.Unseen, i)
		} else if at = b.host(name); at < 0 {
			at = len(b.Hosts)
			b.Hosts = append(b.Hosts, Host{Name: name})
		}
		if b.HostOf = append(b.HostOf, at); at >= 0 {
			b.Hosts[at].Ranks = append(b.Hosts[at].Ranks, i)
		}
	}
}

// hostOf is where a rank is, whatever number a log gives; -1 unknown.
func (b *builder) hostOf(rank int) int {
	if rank < 0 || rank >= b.NRanks {
		return -1
	}
	return b.HostOf[rank]
}

// host is the index of a host, -1 where it has no rank.
func (b *builder) host(name string) int {
	return slices.IndexFunc(b.Hosts, func(h Host) bool { return h.Name == name })
}

// connections finds the lines that belong to this communicator. Lines do not name
// it (but for RCCL's), so ranks of a line are held against where they are.
func (b *builder) connections() {
	pointers := map[string]bool{}
	for _, k := range b.comm.Ranks {
		if k.Comm != "" {
			pointers[k.Comm] = true
		}
	}
	for i := range b.log.Connections {
		n := &b.log.Connections[i]
		if n.From < 0 || n.To < 0 || n.From >= b.NRanks || n.To >= b.NRanks || n.From == n.To || n.Transport == "COLLNET" {
			continue
		}
		if n.Comm != "" && len(pointers) > 0 && !pointers[n.Comm] || n.NRanks > 0 && n.NRanks != b.NRanks {
			continue
		}
		e, list, teller := edge{n.Channel, n.From, n.To}, b.send, n.From
		if n.Dir == "receive" {
			list, teller = b.recv, n.To
		}
		// An index above 0 is of sends and receives, which are no part of collectives.
		if h := b.HostOf[teller]; n.Index > 0 || h >= 0 && n.Host != "" && b.Hosts[h].Name != n.Host {
			continue
		}
		if list[e] == nil {
			list[e] = n
		}
		if _, known := b.first[[2]int{n.Channel, n.From}]; !known && teller == n.From {
			b.first[[2]int{n.Channel, n.From}] = n.To
		}
		if h := b.HostOf[teller]; n.Transport == "NET" && h >= 0 && n.NetDev >= 0 {
			b.addNIC(seat{h, n.NetDev}, n.Net)
		}
	}
}

func (b *builder) addNIC(at seat, net string) *NIC {
	i, known := b.nics[at]
	if !known {
		i = len(b.NICs)
		b.nics[at], b.NICs = i, append(b.NICs, NIC{Host: at.host, Dev: at.dev, Net: net})
	}
	return &b.NICs[i]
}

// listNICs gives NICs their names and rates, adds those that the log lists and nothing uses, and puts them in order.
// Plugins such as IBext number them as NCCL's own list does.
func (b *builder) listNICs() {
	used := map[string]bool{}
	for i := range b.NICs {
		used[network(b.NICs[i].Net)] = true
	}
	for i := range b.log.NICs {
		o := &b.log.NICs[i]
		h := b.host(o.Host)
		if h < 0 || o.Index < 0 || !used[network(o.Net)] {
			continue
		}
		if n := b.addNIC(seat{h, o.Index}, o.Net); n.Name == "" && network(n.Net) == network(o.Net) {
			n.Name, n.Rate = o.Name, unit.Rate(o.Mbps)*1e6/8
		}
	}
	slices.SortFunc(b.NICs, func(x, y NIC) int { return cmp.Or(x.Host-y.Host, x.Dev-y.Dev) })
	for i, n := range b.NICs {
		b.nics[seat{n.Host, n.Dev}] = i
	}
}

// network is what plugins for InfiniBand have in common with NCCL's own.
func network(net string) string {
	if strings.HasPrefix(net, "IB") {
		return "IB"
	}
	return net
}

// channels takes rings and trees from the log.
func (b *builder) channels() {
	index := map[int]*Channel{}
	get := func(c int) *Channel {
		if index[c] == nil {
			index[c] = &Channel{Index: c}
		}
		return index[c]
	}
	for _, g := range b.comm.Rings {
		c := get(g.Channel)
		c.Ring, c.Cut = g.Ranks, g.Cut
		if whole := b.follow(g); g.Cut && whole != nil {
			c.Ring, c.Cut = whole, false
		}
	}
	for _, t := range b.comm.Trees {
		c := get(t.Channel)
		c.Parent = slices.Repeat([]int{-2}, b.NRanks)
		for _, k := range t.Nodes {
			if k.Rank < 0 || k.Rank >= b.NRanks || k.Parent >= b.NRanks {
				continue
			}
			c.Parent[k.Rank] = max(k.Parent, -1)
			for _, child := range k.Children {
				if child >= 0 && child < b.NRanks && c.Parent[child] == -2 {
					c.Parent[child] = k.Rank
				}
			}
		}
	}
	for _, i := range slices.Sorted(maps.Keys(index)) {
		index[i].Ring = b.turned(index[i])
		b.Channels = append(b.Channels, *index[i])
	}
}

// follow completes a ring of which NCCL printed the first ranks, for it connects the ring before the trees. It is nil
// unless the links lead through every rank once.
func (b *builder) follow(g nccllog.Ring) []int {
	ring, seen := []int{}, map[int]bool{}
	for _, k := range g.Ranks {
		ring, seen[k] = append(ring, k), true
	}
	for len(ring) > 0 && len(ring) < b.NRanks {
		k, ok := b.first[[2]int{g.Channel, ring[len(ring)-1]}]
		if !ok || seen[k] {
			return nil
		}
		ring, seen[k] = append(ring, k), true
	}
	if len(seen) != b.NRanks {
		return nil
	}
	return ring
}

// turned begins a ring where it enters a host, so that the ranks of a host stand together.
func (b *builder) turned(c *Channel) []int {
	host := func(i int) int { return b.hostOf(c.Ring[i]) }
	for i := range c.Ring {
		if before := (i + len(c.Ring) - 1) % len(c.Ring); !c.Cut && host(before) != host(i) && host(i) == host(0) {
			return slices.Concat(c.Ring[i:], c.Ring[:i])
		}
	}
	return c.Ring
}

// hops lists the edges of rings and trees, and adds up what rings send through each NIC.
func (b *builder) hops() {
	for i := range b.Channels {
		c := &b.Channels[i]
		ring := map[edge]bool{}
		for k, from := range c.Ring {
			if c.Cut && k == len(c.Ring)-1 {
				break // who follows is not printed
			}
			e := edge{c.Index, from, c.Ring[(k+1)%len(c.Ring)]}
			if e.from != e.to && min(e.from, e.to) >= 0 && max(e.from, e.to) < b.NRanks {
				ring[e] = true
				b.addHop(e, 2*float64(b.NRanks-1)/float64(b.NRanks)/float64(len(b.Channels)))
			}
		}
		for child, parent := range c.Parent {
			for _, e := range []edge{{c.Index, child, parent}, {c.Index, parent, child}} {
				if parent >= 0 && parent != child && !ring[e] {
					b.addHop(e, 0)
				}
			}
		}
	}
}

// addHop adds an edge, over which a ring sends so many bytes a byte.
func (b *builder) addHop(e edge, ring float64) {
	h := b.hop(e)
	h.Ring = ring > 0
	if h.Out >= 0 {
		b.NICs[h.Out].Out += ring
		b.NICs[h.Out].pass(&h, e.from)
	}
	if h.In >= 0 {
		b.NICs[h.In].In += ring
		b.NICs[h.In].pass(&h, e.to)
	}
	b.Hops = append(b.Hops, h)
}

// pass counts an end of a hop.
func (n *NIC) pass(h *Hop, rank int) {
	n.Hops++
	if h.GDR {
		n.GDR++
	}
	n.Channels, n.Ranks = withNumber(n.Channels, h.Channel), withNumber(n.Ranks, rank)
}

// withNumber has a number in an ordered list once.
func withNumber(list []int, v int) []int {
	i, ok := slices.BinarySearch(list, v)
	if ok {
		return list
	}
	return slices.Insert(list, i, v)
}

// hop looks up how an edge is connected.
func (b *builder) hop(e edge) Hop {
	h := Hop{Channel: e.channel, From: e.from, To: e.to, Out: -1, In: -1, Proxy: -1}
	sent, received := b.send[e], b.recv[e]
	n := cmp.Or(sent, received)
	if n == nil {
		return h
	}
	h.Transport, h.Via, h.GDR, h.Line = n.Transport, n.Via, n.GDR, n.First.Line
	if sent != nil && n.Transport == "NET" {
		h.Out, h.Proxy = b.nic(e.from, sent), sent.Proxy
	}
	if received != nil && received.Transport == "NET" {
		h.In = b.nic(e.to, received)
	}
	return h
}

// nic is the NIC by which a rank's end of a connection goes, -1 unknown.
func (b *builder) nic(rank int, n *nccllog.Connection) int {
	if i, known := b.nics[seat{b.HostOf[rank], n.NetDev}]; known {
		return i
	}
	return -1
}
