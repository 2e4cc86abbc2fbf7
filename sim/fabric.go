package sim

import (
	"math"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// fabric is the network's part of a machine. The uplinks of a switch are one
// resource: traffic is spread over them, by the network's routing or by the hash of
// many connections.
type fabric struct {
	c     *cluster.Cluster
	first int64 // number of its first resource
	up    []uplinks
	// above lists the switches of the next tier that a switch is joined to, with the
	// link of the first cable.
	above [][]upper
	// lateral is what the links of a switch to others of its tier carry together, where routing spreads traffic over them;
	// else nil.
	lateral []unit.Rate
}

type upper struct{ sw, link int32 }

// uplinks are the cables of a switch to the tier above.
type uplinks struct {
	rate   unit.Rate // all of them together
	cables int
}

func newFabric(c *cluster.Cluster, first int64) fabric {
	f := fabric{
		c: c, first: first, up: make([]uplinks, len(c.Network.Switches)), above: make([][]upper, len(c.Network.Switches)),
	}
	if c.Network.Routing == "adaptive" {
		f.lateral = make([]unit.Rate, len(f.up))
	}
	for i := range c.Network.Links {
		l := &c.Network.Links[i]
		if l.State == cluster.Down || l.A.ToHosts() || l.B.ToHosts() {
			continue
		}
		if f.spreads(l) {
			f.lateral[l.A.Switch] += l.Rate.Value * unit.Rate(l.Cables())
			f.lateral[l.B.Switch] += l.Rate.Value * unit.Rate(l.Cables())
		}
		if low := f.lower(l); low >= 0 {
			f.up[low].rate += l.Rate.Value * unit.Rate(l.Cables())
			// where nobody described a network, nothing is known to collide
			if c.Network.Oversubscription.Origin != cluster.Assumed {
				f.up[low].cables += l.Cables()
			}
			f.above[low] = append(f.above[low], upper{int32(l.A.Switch + l.B.Switch - low), int32(i)})
		}
	}
	return f
}

// lower is the switch at the lower end of a link, -1 where both are of one tier.
func (f *fabric) lower(l *cluster.NetLink) int {
	sw := f.c.Network.Switches
	a, b := sw[l.A.Switch].Tier, sw[l.B.Switch].Tier
	switch {
	case a > b:
		return l.B.Switch
	case b > a:
		return l.A.Switch
	}
	return -1
}

// spreads reports a link between switches of one tier in a network that routes adaptively.
func (f *fabric) spreads(l *cluster.NetLink) bool {
	return f.lateral != nil && f.lower(l) < 0
}

// pools appends what all lateral links of the ends of a leg carry: adaptive routing lets a pair use more than the link
// between them, and bounds them by what each end has.
func (f *fabric) pools(dst []int64, leg cluster.Leg) []int64 {
	l := &f.c.Network.Links[leg.Link]
	a, b := l.A.Switch, l.B.Switch
	if !leg.Forward {
		a, b = b, a
	}
	n := int64(len(f.up) + len(f.c.Network.Links))
	return append(dst, f.first+2*(n+int64(a)), f.first+2*(n+int64(b))+1)
}

// number is the resource that a leg between switches is.
func (f *fabric) number(leg cluster.Leg) int64 {
	l := &f.c.Network.Links[leg.Link]
	n := int64(leg.Link + len(f.up))
	rising := leg.Forward
	if low := f.lower(l); low >= 0 {
		n = int64(low)
		rising = leg.Forward == (l.A.Switch == low)
	}
	if rising {
		return f.first + 2*n
	}
	return f.first + 2*n + 1
}

func (f *fabric) resource(id int64) resource {
	n := (id - f.first) / 2
	x := resource{kind: Fabric, host: -1, local: id - f.first, net: f.c.Network.Kind}
	if n < int64(len(f.up)) {
		x.rate = f.up[n].rate
		return x
	}
	n -= int64(len(f.up))
	if k := n - int64(len(f.c.Network.Links)); k >= 0 {
		x.rate = f.lateral[k]
		return x
	}
	l := &f.c.Network.Links[n]
	x.rate = l.Rate.Value * unit.Rate(l.Cables())
	if f.spreads(l) { // the others at half, since each byte then takes two links
		x.rate = max(x.rate, min(f.lateral[l.A.Switch], f.lateral[l.B.Switch])/2)
	}
	return x
}

// cables is the number of cables that a resource of the network stands for.
func (f *fabric) cables(id int64) int {
	n := (id - f.first) / 2
	if n < int64(len(f.up)) {
		return f.up[n].cables
	}
	if n -= int64(len(f.up)); n >= int64(len(f.c.Network.Links)) {
		return 1
	}
	return f.c.Network.Links[n].Cables()
}

// hashed is the part of their rate that uplinks give to connections which a hash
// spreads over them: the mean over the fullest. The fullest of k bins with m balls
// each on average has about m + √(2m·ln k) (Raab and Steger, 1998).
func hashed(connections float64, cables int) float64 {
	if cables < 2 || connections <= 0 {
		return 1
	}
	mean := connections / float64(cables)
	fullest := mean + math.Sqrt(2*mean*math.Log(float64(cables)))
	return mean / max(fullest, 1)
}

// climb finds the route between two switches that meet above: what it passes, and
// the latency of its cables. False where they do not meet within three tiers.
func (f *fabric) climb(dst []int64, a, b int) ([]int64, unit.Time, bool) {
	if a == b {
		return dst, 0, true
	}
	links := f.c.Network.Links
	for _, x := range f.above[a] {
		for _, y := range f.above[b] {
			if x.sw == y.sw {
				return append(dst, f.first+2*int64(a), f.first+2*int64(b)+1),
					links[x.link].Latency.Value + links[y.link].Latency.Value, true
			}
		}
	}
	for _, x := range f.above[a] {
		for _, y := range f.above[b] {
			for _, v := range f.above[x.sw] {
				for _, w := range f.above[y.sw] {
					if v.sw == w.sw {
						late := links[x.link].Latency.Value + links[y.link].Latency.Value + links[v.link].Latency.Value +
							links[w.link].Latency.Value
						return append(dst, f.first+2*int64(a), f.first+2*int64(x.sw), f.first+2*int64(y.sw)+1, f.first+2*int64(b)+1),
							late, true
					}
				}
			}
		}
	}
	return dst, 0, false
}

// cable is what limits a NIC beside its own port: the cable it hangs on.
func (m *Machine) cable(host, nic int) unit.Rate {
	_, link := m.routes.Leaf(host, nic)
	if link < 0 {
		return 0
	}
	l := &m.c.Network.Links[link]
	return l.Rate.Value * unit.Rate(l.Cables())
}
