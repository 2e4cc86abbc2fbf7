package hub

import (
	"fmt"
	"net/netip"

	"busbar.dev/fleet"
)

// A node says itself where it is met, and one in the wrong hands may say anything. So a rendezvous that fails is the
// fault of neither side until others agree: of who is met, when two partners do not meet it and nobody does; of a
// partner, when it does not meet two that others meet.

// witnesses is how many must agree.
const witnesses = 2

// meets is who met whom in a sweep, and who did not.
type meets struct {
	hosts    map[fleet.Name]map[fleet.Name]bool // partners that did not meet it
	partners map[fleet.Name]map[fleet.Name]bool // hosts that it did not meet
	ok       map[fleet.Name]bool                // was met, or met somebody
}

func (m *meets) failed(host, partner fleet.Name) {
	if m.hosts == nil {
		m.hosts, m.partners = map[fleet.Name]map[fleet.Name]bool{}, map[fleet.Name]map[fleet.Name]bool{}
	}
	for _, e := range []struct {
		in   map[fleet.Name]map[fleet.Name]bool
		a, b fleet.Name
	}{{m.hosts, host, partner}, {m.partners, partner, host}} {
		if e.in[e.a] == nil {
			e.in[e.a] = map[fleet.Name]bool{}
		}
		e.in[e.a][e.b] = true
	}
}

func (m *meets) met(ranks []fleet.Name) {
	if m.ok == nil {
		m.ok = map[fleet.Name]bool{}
	}
	for _, n := range ranks {
		m.ok[n] = true
	}
}

// blame is who is at fault, and why.
func (m *meets) blame() map[fleet.Name]string {
	out := map[fleet.Name]string{}
	agree := func(by map[fleet.Name]bool) (n int) {
		for x := range by {
			if m.ok[x] || len(m.hosts[x]) == 0 { // it meets others, or was never the one to be met
				n++
			}
		}
		return n
	}
	for host, by := range m.hosts {
		if !m.ok[host] && agree(by) >= witnesses {
			out[host] = fmt.Sprintf("cannot be reached: %d nodes report it, and no node reaches it", len(by))
		}
	}
	for partner, of := range m.partners {
		others := 0
		for host := range of {
			if m.ok[host] {
				others++
			}
		}
		if others >= witnesses && !m.ok[partner] {
			out[partner] = fmt.Sprintf("does not reach %d nodes that others reach", others)
		}
	}
	return out
}

// meetingPlace is what sort of addresses a meeting point has.
type meetingPlace struct {
	loop bool // of the machine itself
	odd  bool // of a link, or of many
	text string
}

// placeOf judges a meeting point that is an address. Names are for nodes to resolve, and to judge.
func placeOf(meet string) (p meetingPlace) {
	at, err := netip.ParseAddrPort(meet)
	if err != nil {
		return p
	}
	ip := at.Addr().WithZone("").Unmap()
	p.loop = ip.IsLoopback() || ip.IsUnspecified()
	p.odd = ip.IsLinkLocalUnicast() || ip.IsMulticast()
	p.text = ip.String()
	return p
}

// unmeetable says which partner cannot reach where rank 0 says that it is met, and why. Nodes that are all on one
// machine meet there. Either may say a wrong address: others must agree, as where a partner says so itself.
func (h *Hub) unmeetable(ranks []fleet.Name, meet string) (partner fleet.Name, why string) {
	at := placeOf(meet)
	if !at.loop && !at.odd {
		return "", ""
	}
	for _, n := range ranks[1:] {
		own := h.view.meet(n)
		if other := placeOf(own); own != "" && (at.loop && !other.loop || at.odd && !other.odd) {
			return n, cut(fmt.Sprintf("announces the address %s (%s), where %s cannot reach it; give its agent --bind "+
				"INTERFACE or ADDRESS", meet, at.text, n))
		}
	}
	return "", ""
}
