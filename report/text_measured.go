package report

import (
	"fmt"
	"slices"

	"busbar/cluster"
	"busbar/internal/texttab"
	"busbar/unit"
)

// outlier is how far below the median of its class a measured pair must be to be
// named: a tenth, which is more than repeated runs differ by.
const outlier = 0.9

// measured prints what was timed between pairs of devices: the spread within
// every path class, and the pairs that fall out of it.
func (p *printer) measured(t *cluster.NodeType) {
	p.peerAccess(t)
	classes := newClassTable(t)
	type sample struct {
		pair int
		rate unit.Rate
	}
	byClass := make(map[string][]sample)
	var order []string
	for i, pair := range t.Pairs {
		if pair.Rate.Origin != cluster.Measured {
			continue
		}
		c := classes.of(pair.A, pair.B)
		if byClass[c] == nil {
			order = append(order, c)
		}
		byClass[c] = append(byClass[c], sample{i, pair.Rate.Value})
	}
	if len(order) == 0 {
		return
	}
	p.rates = true
	p.printf("\n")
	tab := &texttab.Table{Indent: "  ", Columns: []texttab.Column{{Head: "measured"}, {Head: "pairs", Align: texttab.Right},
		{Head: "lowest", Align: texttab.Right}, {Head: "median", Align: texttab.Right}, {Head: "highest", Align: texttab.Right}}}
	var odd []string
	for _, c := range order {
		s := byClass[c]
		slices.SortStableFunc(s, func(a, b sample) int { return int(min(1, max(-1, a.rate-b.rate))) })
		median := s[len(s)/2].rate
		tab.Row(p.class(c), fmt.Sprint(len(s)), s[0].rate.String(), median.String(), s[len(s)-1].rate.String())
		for _, x := range s {
			if x.rate < outlier*median {
				pair := &t.Pairs[x.pair]
				odd = append(odd, fmt.Sprintf("%s → %s (%s): %s, %.0f %% of the median", t.Devices[pair.A].Name,
					t.Devices[pair.B].Name, c, x.rate, 100*float64(x.rate/median)))
			}
		}
	}
	p.table(tab)
	for i, o := range odd {
		if i == maxLinks {
			p.printf("  … and %d more below %.0f %% of their median\n", len(odd)-i, 100*outlier)
			break
		}
		p.para("  ", p.red("slow ")+o)
	}
}

// peerAccess tells which pairs the driver does not let reach each other.
func (p *printer) peerAccess(t *cluster.NodeType) {
	var names []string
	why := make(map[string]int)
	yes, no := 0, 0
	for _, pair := range t.Pairs {
		switch pair.P2P {
		case cluster.Yes:
			yes++
		case cluster.No:
			no++
			if why[pair.Why]++; why[pair.Why] == 1 {
				names = append(names, pair.Why)
			}
		}
	}
	if no == 0 {
		return
	}
	s := fmt.Sprintf("peer access: the driver refuses %d of %d directed pairs", no, yes+no)
	for _, w := range names {
		if w != "" {
			s += fmt.Sprintf(", %d with %s", why[w], w)
		}
	}
	p.para("  ", p.yellow(s))
}

// classTable looks up the class of the path between two devices.
type classTable struct {
	m  cluster.Matrix
	at map[int]int // device → row
}

func newClassTable(t *cluster.NodeType) classTable {
	c := classTable{m: t.Matrix(), at: make(map[int]int)}
	for i, d := range append(t.Of(cluster.GPU), t.Of(cluster.NIC)...) {
		c.at[d] = i
	}
	return c
}

// of is the class between two GPUs or NICs, "host" where an end is neither.
func (c classTable) of(a, b int) string {
	i, okA := c.at[a]
	j, okB := c.at[b]
	if !okA || !okB {
		return "host"
	}
	return c.m.Class[i][j]
}
