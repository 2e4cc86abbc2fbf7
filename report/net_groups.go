package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/internal/svg"
)

// groups is how the switches of a tier belong together, in the order of their names: by rail, by group of a dragonfly, by rows or
// planes of a torus or a hyperx; nil where they do not.
func (s *strip) groups(tier []int) [][]int {
	net := &s.v.c.Network
	railed := net.Rails > 1 && !slices.ContainsFunc(tier, func(id int) bool { return net.Switches[id].Rail < 0 })
	each := s.groupSize()
	if !railed && (each < 2 || len(tier) <= each || s.v.tier[tier[0]] != 0) {
		return nil
	}
	var out [][]int
	for i, id := range tier {
		next := i == 0 || !railed && i%each == 0 || railed && net.Switches[id].Rail != net.Switches[tier[i-1]].Rail
		if next {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], id)
	}
	if len(out) < 2 {
		return nil
	}
	return out
}

// groupSize is how many leaves of the described topology belong together; 0 where it has no groups.
func (s *strip) groupSize() int {
	kind, sizes, _ := strings.Cut(s.v.c.Network.Topology, ":")
	list := strings.Split(sizes, "x")
	if kind == "torus" || kind == "hyperx" {
		list = list[:len(list)-1] // the last dimension counts the groups
	}
	each := 1
	for _, text := range list {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 1<<16 {
			return 0
		}
		each = min(each*n, 1<<20)
	}
	return each
}

// groupWords says what belongs together.
func (s *strip) groupWords() string {
	kind, sizes, _ := strings.Cut(s.v.c.Network.Topology, ":")
	list := strings.Split(sizes, "x")
	inner := strings.Join(list[:len(list)-1], "x")
	switch {
	case s.v.c.Network.Rails > 1:
		return "one rail"
	case kind == "torus" && len(list) == 2:
		return "one ring of the torus"
	case kind == "hyperx" && len(list) == 2:
		return "one row, all joined"
	case len(list) > 2:
		return "one " + inner + " layer"
	}
	return "one group"
}

// drawGroups shades what belongs together in rows whose switches are drawn one by one.
func (s *strip) drawGroups(p *picture) {
	const margin = 5
	for _, row := range s.rows {
		for _, g := range s.shaded(row) {
			first, last := s.boxOf(g[0]), s.boxOf(g[len(g)-1])
			p.Open("switches", s.groupWords())
			p.Rect(first.box.x-margin, first.box.y-margin, last.box.x+last.box.w-first.box.x+2*margin, switchBH+2*margin, 9, svg.Paint{Fill: netViol, Opacity: 0.16})
			p.Close()
		}
	}
}

// shaded are the groups of a row that are shaded.
func (s *strip) shaded(row []netBox) [][]int {
	var tier []int
	for _, n := range row {
		if len(n.ids) > 1 {
			return nil
		}
		tier = append(tier, n.ids[0])
	}
	g := s.groups(tier)
	if len(g) == len(tier) {
		return nil // one switch each
	}
	return g
}

// groupCaption says what shading, or a box of several switches, stands for.
func (s *strip) groupCaption(row []netBox) string {
	switch {
	case s.shaded(row) != nil:
		return "shaded: " + s.groupWords()
	case len(row) > 1 && len(row[0].ids) > 1 && len(s.groups(slices.Concat(idsOf(row)...))) == len(row):
		return "each box: " + s.groupWords()
	}
	return ""
}

func idsOf(row []netBox) (out [][]int) {
	for _, n := range row {
		out = append(out, n.ids)
	}
	return out
}

// shortNames are the names that a box shows: without the rail that the box says anyway, so that many boxes fit side by side.
func (s *strip) shortNames(n *netBox) (lead string, names []string) {
	lead, names = s.names(n, s.name)
	if rail := s.rail(n); rail >= 0 {
		for i := range names {
			names[i] = strings.TrimPrefix(names[i], fmt.Sprintf("rail%d-", rail))
		}
	}
	return lead, names
}

// rail is the one that all switches of a box serve, -1 where there is none.
func (s *strip) rail(n *netBox) int {
	net := &s.v.c.Network
	r := net.Switches[n.ids[0]].Rail
	if net.Rails < 2 || slices.ContainsFunc(n.ids, func(id int) bool { return net.Switches[id].Rail != r }) {
		return -1
	}
	return r
}
