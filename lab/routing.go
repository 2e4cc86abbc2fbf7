package lab

import (
	"fmt"
	"slices"
)

// port is a port of a switch: of a NIC's cable, or of one between switches.
type port struct {
	Cable int // -1: a NIC's
	NIC   int
}

// table is a switch's forwarding: the port for each destination, by NIC; Cable and
// NIC are both -1 where the destination cannot be reached.
type table []port

// tables are the forwarding tables of all switches. A destination is reached by the
// shortest way; of several cables that are as short its order on its leaf picks one.
func (p *Plan) tables() []table {
	tables, ends := make([]table, len(p.Switches)), p.ends()
	for s := range tables {
		tables[s] = make(table, len(p.NICs))
	}
	far := map[int][]int{} // distances, by the destination's switch
	for d := range p.NICs {
		home := p.NICs[d].Switch
		if far[home] == nil {
			far[home] = p.distances(home, ends)
		}
		dist := far[home]
		for s := range tables {
			tables[s][d] = port{Cable: -1, NIC: -1}
			if s == home {
				tables[s][d].NIC = d
				continue
			}
			var next []int
			for _, c := range ends[s] {
				if o := p.Cables[c].other(s); dist[s] >= 0 && dist[o] == dist[s]-1 {
					next = append(next, c)
				}
			}
			if len(next) > 0 {
				tables[s][d].Cable = next[p.NICs[d].Order%len(next)]
			}
		}
	}
	return tables
}

// ends are the cables of each switch.
func (p *Plan) ends() [][]int {
	ends := make([][]int, len(p.Switches))
	for c, x := range p.Cables {
		ends[x.A] = append(ends[x.A], c)
		ends[x.B] = append(ends[x.B], c)
	}
	return ends
}

// other is the switch at the other end.
func (c *Cable) other(s int) int { return c.A + c.B - s }

// distances counts the cables from every switch to one; -1 where there is no way.
func (p *Plan) distances(to int, ends [][]int) []int {
	dist := slices.Repeat([]int{-1}, len(p.Switches))
	dist[to] = 0
	for queue := []int{to}; len(queue) > 0; queue = queue[1:] {
		for _, c := range ends[queue[0]] {
			if o := p.Cables[c].other(queue[0]); dist[o] < 0 {
				dist[o] = dist[queue[0]] + 1
				queue = append(queue, o)
			}
		}
	}
	return dist
}

// connected reports the first pair of nodes whose first NICs do not reach each other.
func (p *Plan) connected() error {
	if len(p.Cables) > maxCables {
		return fmt.Errorf("%d cables between switches; at most %d", len(p.Cables), maxCables)
	}
	ends := p.ends()
	for i, n := range p.Nodes {
		next := p.Nodes[(i+1)%len(p.Nodes)]
		for _, x := range n.NICs {
			dist := p.distances(p.NICs[x].Switch, ends)
			if len(p.Nodes) > 1 &&
				!slices.ContainsFunc(next.NICs, func(y int) bool { return dist[p.NICs[y].Switch] >= 0 }) {
				return fmt.Errorf("%s/%s reaches no NIC of %s: the file joins their switches nowhere", n.Name, p.NICs[x].Name,
					next.Name)
			}
		}
	}
	return nil
}
