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
	r := &Run{Source: source, Comm: m.ID, NRanks: size(m)}
	if r.NRanks > maxRanks {
		return nil, fmt.Errorf("%s: a communicator of %d ranks; at most %d can be laid out", source, r.NRanks, maxRanks)
	}
	if len(l.Versions) > 0 {
		r.NCCL = l.Versions[0].Text
	}
	for i := range l.Comms {
		if o := &l.Comms[i]; i != at {
			r.Others = append(r.Others, Other{o.ID, size(o), len(o.Ranks), max(len(o.Rings), len(o.Trees))})
		}
	}
	b := &builder{Run: r, log: l, comm: m}
	b.members()
	b.connections()
	b.channels()
	b.places()
	b.turn()
	b.hops()
	b.alike()
	b.loads()
	b.flows()
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
	// ways are the connections of the communicator: who sends to whom in a
	// channel, as the sender and as the receiver print it.
	send, recv map[edge]*nccllog.Connection
	nics       map[[2]int]int // host and device to NIC
	up         map[edge]bool  // tree edges, child to parent
}

// edge is a hop without its way.
type edge struct{ channel, from, to int }

// members places the ranks that wrote lines.
func (b *builder) members() {
	b.Ranks = make([]Rank, b.NRanks)
	for i := range b.Ranks {
		b.Ranks[i] = Rank{Rank: i, Host: -1}
	}
	hosts := map[string]int{}
	for _, k := range b.comm.Ranks {
		if k.Rank < 0 || k.Rank >= b.NRanks || k.Host == "" || b.Ranks[k.Rank].Logged {
			continue
		}
		at, ok := hosts[k.Host]
		if !ok {
			at = len(b.Hosts)
			hosts[k.Host] = at
			b.Hosts = append(b.Hosts, Host{Name: k.Host})
		}
		m := &b.Ranks[k.Rank]
		m.Host, m.Logged = at, true
		switch {
		case k.NvmlDev >= 0:
			m.Device = fmt.Sprint(k.NvmlDev)
		case k.CudaDev >= 0:
			m.Device = fmt.Sprint(k.CudaDev)
		}
	}
}

// connections finds the lines that belong to this communicator. Lines do not name
// it (but for RCCL's), so ranks of a line are held against where they are.
func (b *builder) connections() {
	b.send, b.recv = map[edge]*nccllog.Connection{}, map[edge]*nccllog.Connection{}
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
		teller := n.From
		if n.Dir == "receive" {
			teller = n.To
		}
		if h := b.Ranks[teller].Host; h >= 0 && n.Host != "" && b.Hosts[h].Name != n.Host {
			continue
		}
		if n.Index > 0 {
			b.P2P++
			continue
		}
		e, list := edge{n.Channel, n.From, n.To}, b.send
		if n.Dir == "receive" {
			list = b.recv
		}
		if list[e] == nil {
			list[e] = n
		}
	}
}

// places gives hosts to ranks that wrote nothing but share memory with one that
// did, numbers what is left, and puts hosts in the order of their ranks.
func (b *builder) places() {
	edges := slices.SortedFunc(maps.Keys(b.send), func(a, b edge) int {
		return cmp.Or(a.channel-b.channel, a.from-b.from, a.to-b.to)
	})
	for changed := true; changed; {
		changed = false
		for _, e := range edges {
			x, y := &b.Ranks[e.from], &b.Ranks[e.to]
			if b.send[e].Transport == "NET" || x.Host == y.Host {
				continue
			}
			switch {
			case x.Host < 0:
				x.Host, changed = y.Host, true
			case y.Host < 0:
				y.Host, changed = x.Host, true
			}
		}
	}
	for i := range b.Ranks {
		m := &b.Ranks[i]
		if m.Host >= 0 {
			b.Hosts[m.Host].Ranks = append(b.Hosts[m.Host].Ranks, i)
		}
		if !m.Logged {
			b.Unseen = append(b.Unseen, i)
		}
	}
	hosts, to := reorder(b.Hosts, func(x, y *Host) int { return x.Ranks[0] - y.Ranks[0] })
	b.Hosts = hosts
	for i := range b.Ranks {
		if h := b.Ranks[i].Host; h >= 0 {
			b.Ranks[i].Host = to[h]
		}
	}
}

// nic finds or makes the NIC of a host that NCCL numbers dev.
func (b *builder) nic(host, dev int, net string) int {
	if host < 0 || dev < 0 {
		return -1
	}
	at, ok := b.nics[[2]int{host, dev}]
	if !ok {
		at = len(b.NICs)
		b.nics[[2]int{host, dev}] = at
		b.NICs = append(b.NICs, NIC{Host: host, Dev: dev, Net: net})
		b.named(&b.NICs[at])
		b.Hosts[host].NICs = append(b.Hosts[host].NICs, at)
	}
	return at
}

// named gives a NIC its name and rate, where the log lists the host's devices.
// Plugins such as IBext number them as NCCL's own list does.
func (b *builder) named(n *NIC) {
	for i := range b.log.NICs {
		o := &b.log.NICs[i]
		if o.Host != b.Hosts[n.Host].Name || o.Index != n.Dev {
			continue
		}
		if o.Net == n.Net || o.Net == "IB" && strings.HasPrefix(n.Net, "IB") {
			n.Name = o.Name
			if o.Mbps > 0 {
				n.Rate = unit.Rate(o.Mbps) * 1e6 / 8
			}
			return
		}
	}
}
